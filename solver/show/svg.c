/* svg.c - SVG documents that stand alone: no script, no font, nothing to fetch.
 *
 * The viewer's font is unknown.  A letter's width is that of DejaVu Sans, the widest of the usual fonts:
 * words that fit in it fit in the others. */
#include "topt_svg.h"

#include <stdio.h>
#include <string.h>

enum { KEY = 20 /* lines of the legend */ };

void topt_svg_escape(struct topt_text *t, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        const char *as = c == '<'   ? "&lt;"
                         : c == '>' ? "&gt;"
                         : c == '&' ? "&amp;"
                                    : NULL;
        if (c == '"')
            as = "&quot;";
        if (as)
            topt_text_add(t, "%s", as);
        else
            topt_text_put(t, c < 32 || c == 127 ? " " : s, 1);
    }
}

/* The width of the character that begins with this byte, in ems. */
static double width_of(unsigned char c)
{
    if (c >= 0x80 && c < 0xc0)
        return 0; /* the rest of a character */
    if (c >= 0xe3)
        return 1;
    if (strchr("iljI.,:;'|! ", c))
        return 0.34;
    if (strchr("frt()[]-/\"", c))
        return 0.42;
    if (strchr("mwMW@%", c))
        return 0.98;
    return c >= 'A' && c <= 'Z' ? 0.7 : 0.635;
}

static double length_of(const char *s, size_t n, double size)
{
    double ems = 0;
    for (size_t i = 0; i < n; i++)
        ems += width_of((unsigned char)s[i]);
    return ems * size;
}

double topt_svg_length(const char *words)
{
    enum { LETTER = 12 };
    return length_of(words, strlen(words), LETTER);
}

static void put_words(struct topt_text *t, double x, double y, const char *attributes,
                      const char *words, size_t n)
{
    topt_text_add(t, "<text x=\"%.2f\" y=\"%.2f\" %s>", x, y, attributes);
    struct topt_text line = {0};
    topt_text_put(&line, words, n);
    topt_svg_escape(t, line.s ? line.s : "");
    t->oom |= line.oom;
    topt_text_fini(&line);
    topt_text_add(t, "</text>\n");
}

void topt_svg_words(struct topt_text *t, double x, double y, const char *attributes,
                    const char *words)
{
    put_words(t, x, y, attributes, words, strlen(words));
}

/* How many bytes of the words one line takes: up to a space, else up to a joint of a long name, else
 * as many whole characters as have room. */
static size_t line_of(const char *s, double room, double size)
{
    size_t space = 0, joint = 0, i = 0;
    for (double at = 0; s[i]; i++) {
        unsigned char c = (unsigned char)s[i];
        at += width_of(c) * size;
        if (at > room && i && (c < 0x80 || c >= 0xc0))
            return space ? space : joint ? joint : i;
        if (c == ' ')
            space = i + 1;
        if (strchr("-_/.,", c))
            joint = i + 1;
    }
    return i;
}

void topt_svg_lines(struct topt_svg *v, double size, const char *attributes,
                    const char *words)
{
    while (*words) {
        size_t n = line_of(words, v->right - v->left, size);
        put_words(&v->t, v->left, v->y + size, attributes, words, n);
        v->y += size + 5;
        words += n;
    }
}

void topt_svg_head(struct topt_svg *v, const char *title, const char *subtitle)
{
    v->y = 12;
    /* Bold letters are wider. */
    double right = v->right;
    v->right = v->left + (right - v->left) / 1.13;
    topt_svg_lines(v, 16, "class=\"ink\" font-size=\"16\" font-weight=\"600\"", title);
    v->right = right;
    topt_svg_lines(v, 12, "class=\"soft\"", subtitle);
    v->y += 6;
}

void topt_svg_key(struct topt_svg *v, double swatch, const char *name, double *at,
                  double *ret_x)
{
    double length = swatch + 6 + topt_svg_length(name);
    if (*at > 0 && *at + length > v->right) {
        v->y += KEY;
        *at = 0;
    }
    *ret_x = *at > 0 ? *at : v->left;
    *at = *ret_x + length + 16;
    topt_svg_words(&v->t, *ret_x + swatch + 6, v->y + 4, "class=\"soft\"", name);
}

char *topt_svg_done(struct topt_svg *v, const char *title, const char *description,
                    const char *style)
{
    struct topt_text t = {0};
    topt_text_add(&t,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                  "width=\"%.0f\" height=\"%.0f\" role=\"img\" aria-labelledby=\"t d\" "
                  "font-family=\"system-ui,sans-serif\" font-size=\"12\">\n<title "
                  "id=\"t\">",
                  v->width, v->y, v->width, v->y);
    topt_svg_escape(&t, title);
    topt_text_add(&t, "</title>\n<desc id=\"d\">");
    topt_svg_escape(&t, description);
    topt_text_add(&t,
                  "</desc>\n<style>%s</style>\n"
                  "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n",
                  style, v->width, v->y);
    topt_text_put(&t, v->t.s ? v->t.s : "", v->t.len);
    topt_text_add(&t, "</svg>\n");
    t.oom |= v->t.oom;
    topt_text_fini(&v->t);
    if (t.oom)
        topt_text_fini(&t);
    return t.s;
}
