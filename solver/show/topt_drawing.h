/* topt_drawing.h - curves and frontiers drawn.
 *
 * Thread safety: reentrant; documents are only read. */
#ifndef TOPT_DRAWING_H
#define TOPT_DRAWING_H

#include <jansson.h>

/* The curve of topt_plan drawn for a terminal of 'width' columns; freed by
 * caller. */
char *topt_plot_curve(const json_t *curve, int width);
/* The frontier of topt_plan_frontier drawn the same way. */
char *topt_plot_frontier(const json_t *frontier, int width);
/* Both as SVG that stands alone, the same bytes for the same document; freed by the
 * caller, NULL when out of memory. */
char *topt_svg_curve(const json_t *curve);
char *topt_svg_frontier(const json_t *frontier);

/* What topt_plan_compare answers: a table with a clause for each system that says why it is
 * where it is; and times and memory as bars, SVG as the others. */
char *topt_compare_text(const json_t *compare);
char *topt_svg_compare(const json_t *compare);

#endif
