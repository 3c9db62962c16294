/* topt_drawing.h - drawings of curves, frontiers and comparisons.
 *
 * Thread safety: reentrant; documents are only read. */
#ifndef TOPT_DRAWING_H
#define TOPT_DRAWING_H

#include <jansson.h>

/* Draw the curve of topt_plan for a terminal of 'width' columns.  The caller frees the text. */
char *topt_plot_curve(const json_t *curve, int width);
/* Draw the frontier of topt_plan_frontier in the same way. */
char *topt_plot_frontier(const json_t *frontier, int width);
/* Draw both as self-contained SVG, the same bytes for the same document.  The caller frees it; NULL without
 * memory. */
char *topt_svg_curve(const json_t *curve);
char *topt_svg_frontier(const json_t *frontier);

/* The answer of topt_plan_compare: a table with the reason for each system's place, and times and memory as
 * bars in SVG. */
char *topt_compare_text(const json_t *compare);
char *topt_svg_compare(const json_t *compare);

/* The schedule of pipeline stages, of a "topt-simulation/1" that has stages: as SVG, and in the trace-event format
 * with the bubbles between passes.  Freed by the caller; NULL without memory. */
char *topt_svg_stages(const json_t *simulation, const char *title);
char *topt_trace_stages(const json_t *simulation);

#endif
