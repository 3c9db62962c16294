/* narrow.h - a problem without configurations that another of their operator always beats.
 * Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_NARROW_H
#define TOPT_SEARCH_NARROW_H

#include "search_common.h"

struct narrowed {
    struct topt_search_problem problem; /* borrows the original's tables */
    const int32_t **config; /* by operator: its configurations' numbers in the original */
    int64_t work;           /* pairs of entries compared */
    struct topt_arena *arena;
};

/* The frontier of 'ret->problem' is that of 'p', and alternatives have the same numbers. */
int topt_narrow(const struct topt_search_problem *p,
                const struct topt_search_options *options, struct narrowed *ret,
                struct topt_error *err) TOPT_MUST_CHECK;
/* The problem without the configurations that 'keep' (by operator, by configuration) does not
 * mark; every edge has classes of its own. */
int topt_narrow_to(const struct topt_search_problem *p, char *const *keep,
                   struct narrowed *ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_narrow_fini(struct narrowed *n);

#endif
