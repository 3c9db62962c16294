/* improve.h - a plan improved by a MILP over shapes and starts.  Thread safety: reentrant. */
#ifndef TOPT_ALLOCATE_IMPROVE_H
#define TOPT_ALLOCATE_IMPROVE_H

#include "layout.h"

/* From the plan 'from' to another in 'ret', which keeps what was promised, too, but need not
 * be better: 1; 0 where there is none; -1 without memory. */
int improve(const struct round *r, const struct topt_alloc_solver *solver,
            const struct layout *from, struct layout *ret);

#endif
