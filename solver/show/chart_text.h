/* chart_text.h - charts drawn with the characters of a terminal.  Private to show/. */
#ifndef TOPT_CHART_TEXT_H
#define TOPT_CHART_TEXT_H

#include "chart.h"

/* Draw lines, steps, marks and vertical rules for a terminal of 'width' columns, in 'height' rows plus
 * the axis.  The caller frees the text; NULL without memory. */
char *topt_chart_text(const struct topt_chart *c, int width, int height);

#endif
