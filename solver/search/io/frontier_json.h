/* frontier_json.h - a frontier as JSON (docs/FORMATS.md).
 * Internal to this folder.  Thread safety: one owner a stream. */
#ifndef TOPT_SEARCH_FRONTIER_JSON_H
#define TOPT_SEARCH_FRONTIER_JSON_H

#include "topt_search.h"

/* Write the frontier with all strategies, alternatives by 'edges', which gives each edge
 * its place (NULL: the problem's); whether the stream took it all is the caller's to ask.
 * -1: NOMEM. */
int topt_frontier_print(FILE *to, const struct topt_search_problem *problem,
                        const int *edges, const struct topt_frontier *f,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
