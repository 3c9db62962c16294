/* topt_svg.h - what all pictures share: a document that stands alone, words that stay within it, and a
 * legend.
 *
 * A picture grows downwards: each block of words begins at 'y' and moves it on, so the height is known
 * when the picture is finished.  Lengths are estimated, as no font is known here.
 * Thread safety: none; one owner at a time. */
#ifndef TOPT_SVG_H
#define TOPT_SVG_H

#include "topt_text.h"

/* Start from {.width =, .left =, .right =}; all in pixels. */
struct topt_svg {
    struct topt_text t;
    double width, left, right; /* words and keys stand between left and right */
    double y;                  /* where the next block begins */
};

/* Text of a document: markup is escaped, bytes that XML does not know become spaces. */
void topt_svg_escape(struct topt_text *t, const char *s);
/* The length of these words in letters of 12 pixels, rather too long than too short. */
double topt_svg_length(const char *words);
/* One line of words at x, y with these attributes. */
void topt_svg_words(struct topt_text *t, double x, double y, const char *attributes,
                    const char *words);
/* As many lines of words as they need between left and right. */
void topt_svg_lines(struct topt_svg *v, double size, const char *attributes,
                    const char *words);
/* Title and subtitle of a picture, where it begins. */
void topt_svg_head(struct topt_svg *v, const char *title, const char *subtitle);
/* A name in the legend, beside the room for its swatch of 'swatch' pixels, which the caller draws at
 * '*ret_x' around v->y.  '*at' is where the line's next name begins, 0 before the first; a name that does
 * not fit there begins another line. */
void topt_svg_key(struct topt_svg *v, double swatch, const char *name, double *at,
                  double *ret_x);
/* The whole document, of height v->y, to be freed; NULL where memory ran out.  'v' is given up. */
char *topt_svg_done(struct topt_svg *v, const char *title, const char *description,
                    const char *style);

#endif
