/* chart_text.h - charts drawn with the characters of a terminal.  Private to plan/. */
#ifndef TOPT_CHART_TEXT_H
#define TOPT_CHART_TEXT_H

#include "chart.h"

/* Lines, steps, marks and vertical rules drawn with characters of a terminal 'width'
 * columns wide, 'height' rows without the axis; freed by the caller, NULL without
 * memory. */
char *topt_chart_text(const struct topt_chart *c, int width, int height);

#endif
