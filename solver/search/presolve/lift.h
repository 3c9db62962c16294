/* lift.h - strategies of a condensed problem as those of the problem it came of.
 * Internal to this folder.  Thread safety: the condensed problem is only read. */
#ifndef TOPT_SEARCH_LIFT_H
#define TOPT_SEARCH_LIFT_H

#include "block_elimination.h"

/* Add the points of 'from', a frontier of the condensed problem, to 'into', one of the
 * original. */
int topt_lift(const struct condensed *c, struct topt_frontier *from,
              struct topt_frontier *into, struct topt_error *err) TOPT_MUST_CHECK;

#endif
