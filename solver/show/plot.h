/* plot.h - how drawings read the documents of curves and frontiers.  Private to show/. */
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
/* The error band of a point's time; both ends are the time itself where the document has none. */
void topt_plot_time_band(const json_t *point, double *ret_low, double *ret_high);
/* The error bands of time and memory of the fastest plan that fits; nothing where the document has none. */
void topt_plot_band_words(struct topt_text *t, const json_t *point);
/* Can a limit be drawn without squeezing the values from 'lo' to 'hi' together? */
int topt_plot_near(double limit, double lo, double hi);

/* Draw charts below their texts and free the texts; NULL without memory. */
struct topt_plot_texts {
    struct topt_text title, subtitle, footnote, description;
};
char *topt_plot_svg(struct topt_plot_texts *texts, const struct topt_chart *c, int n);

#endif
