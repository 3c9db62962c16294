/* plot.h - what drawings of curves and of frontiers share: reading their documents.
 * Private to plan/. */
#ifndef TOPT_PLOT_H
#define TOPT_PLOT_H

#include <jansson.h>
#include <stdint.h>

#include "chart.h"
#include "topt_text.h"

/* The legend of a time's or a speed's band. */
#define TOPT_PLOT_MARGIN "margin of the prediction"

/* "batch 8, sequence 128, f32, adam" of either document. */
void topt_plot_job(struct topt_text *t, const json_t *doc);
/* The band of a point's time; the time itself where the document says none. */
void topt_plot_time_band(const json_t *point, double *ret_low, double *ret_high);
/* Between what and what the time and the memory of the fastest that fits may be; nothing
 * where the document has no band. */
void topt_plot_band_words(struct topt_text *t, const json_t *point);
/* A limit is drawn if the values from 'lo' to 'hi' are still to be told apart then. */
int topt_plot_near(double limit, double lo, double hi);
/* The text, to be freed; NULL, and nothing left behind, where memory ran out. */
char *topt_plot_done(struct topt_text *t);

/* A picture of charts below texts, which are given up; NULL where memory ran out. */
struct topt_plot_texts {
    struct topt_text title, subtitle, footnote, description;
};
char *topt_plot_svg(struct topt_plot_texts *texts, const struct topt_chart *c, int n);

#endif
