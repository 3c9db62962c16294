/* caps_bound.h - what can be as fast as is wanted, by scalarised passes under caps.
 * Private to plan/. */
#ifndef TOPT_CAPS_BOUND_H
#define TOPT_CAPS_BOUND_H

#include "bound_levels.h"
#include "solve_context.h"

struct caps_bound {
    struct solve_context context; /* of the problem */
    /* Slower strategies are of no interest; INT64_MAX: nothing is known, and a guess is
     * made. */
    int64_t aim;
    double bound; /* ns: nothing that fits is faster; a survey only raises it */
    /* The balance of memory and time by which the bound is best lies between these, of
     * which one fits and one does not.  Both 0: not known.  That of a part is hardly
     * another than that of the whole, so they are kept from one survey to the next. */
    struct topt_cost fast, small; /* small: of less memory */
    /* Levels go from 'begin', that of the nearest, to 'end', where what matters ends
     * (ns). */
    int64_t begin, end;
};

/* Look at all strategies that fit.  '*ret_some': can any be as fast as is wanted?  Then
 * 'levels', which are the problem's and beyond at first, say how near each configuration
 * is.  LIMIT where the problem can't be weighed. */
int topt_caps_bound(struct caps_bound *s, struct bound_levels *levels, int *ret_some,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* After that: the level of what is no slower than 'aim'. */
int topt_caps_bound_level(const struct caps_bound *s, int64_t aim);

#endif
