/* lift.h - strategies of a condensed problem as those of the problem it came of.
 * Internal to this folder.  Thread safety: the condensed problem is only read. */
#ifndef TOPT_SEARCH_LIFT_H
#define TOPT_SEARCH_LIFT_H

#include "condense.h"

/* A strategy of the condensed problem as one of the original: configurations by operator, then
 * alternatives by edge.  'before' (NULL: none) is one whose original 'choice' holds when this is
 * called: neighbours on a frontier have much in common.  'stack' has room for
 * topt_lift_stack() numbers. */
void topt_lift(const struct condensed *c, const int32_t *strategy, const int32_t *before,
               int64_t *stack, int32_t *choice);
size_t topt_lift_stack(const struct condensed *c);

#endif
