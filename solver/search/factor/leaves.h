/* leaves.h - a problem's own costs as factor tables over classes of configurations.
 * Internal to this part.  Thread safety: as factors.h. */
#ifndef TOPT_SEARCH_LEAVES_H
#define TOPT_SEARCH_LEAVES_H

#include "factors.h"

/* The leaves of a problem as its first factors. */
int topt_elimination_leaves(struct elimination_plan *p) TOPT_MUST_CHECK;

#endif
