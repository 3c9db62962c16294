/* chart_svg.h - charts drawn as SVG.  Private to plan/. */
#ifndef TOPT_CHART_SVG_H
#define TOPT_CHART_SVG_H

#include "chart.h"

/* What stands above and below charts, and what is read out: borrowed texts. */
struct topt_caption {
    const char *title, *subtitle, *footnote, *description;
};
/* One picture of 'n' charts, below one another; freed by the caller, NULL without
 * memory. */
char *topt_chart_svg(const struct topt_caption *caption, const struct topt_chart *c,
                     int n);

#endif
