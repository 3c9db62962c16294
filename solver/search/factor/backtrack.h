/* backtrack.h - the strategies of points that a maker made.
 * Internal to this folder.  Thread safety: plan and maker are only read. */
#ifndef TOPT_SEARCH_BACKTRACK_H
#define TOPT_SEARCH_BACKTRACK_H

#include "elimination.h"
#include "make_points.h"
#include "strategies.h"

/* Add the strategies of 'n' points of the plan's answer, numbers among all that were
 * made, to an empty list. */
int topt_backtrack(const struct elimination_plan *plan, const struct maker *made,
                   const uint32_t *point, size_t n, struct strategies *into,
                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
