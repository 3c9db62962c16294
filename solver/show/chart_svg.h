/* chart_svg.h - charts drawn as SVG.  Private to show/. */
#ifndef TOPT_CHART_SVG_H
#define TOPT_CHART_SVG_H

#include "chart.h"

/* Title, subtitle and description of a picture: borrowed texts. */
struct topt_caption {
    const char *title, *subtitle, *footnote, *description;
};
/* Draw 'n' charts below one another.  The caller frees the SVG; NULL without memory. */
char *topt_chart_svg(const struct topt_caption *caption, const struct topt_chart *c,
                     int n);

#endif
