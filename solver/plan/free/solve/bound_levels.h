/* bound_levels.h - how near to what is wanted configurations are, and the parts of a
 * problem that are near.  Private to plan/. */
#ifndef TOPT_BOUND_LEVELS_H
#define TOPT_BOUND_LEVELS_H

#include "free.h"
#include "topt_lower.h"
#include "topt_lower_bound.h"

/* Most are for what is very near; the last is what does not matter. */
#define TOPT_LEVELS 4096

#define TOPT_LEVEL_BEYOND (TOPT_LEVELS - 1)

/* By configuration of all families.  Families of one variable have the same levels. */
struct bound_levels {
    struct topt_problem *p;
    uint16_t *of;
};
/* The levels of a family's configurations. */
uint16_t *topt_bound_levels_of(const struct bound_levels *l, int family);

/* Everything is beyond.  Where it fails there is nothing to free. */
int topt_bound_levels_init(struct bound_levels *l, struct topt_problem *p,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Everything is beyond again. */
void topt_bound_levels_clear(struct bound_levels *l);

void topt_bound_levels_fini(struct bound_levels *l);

/* The level of what stands 'part' of the way from the best to the end of what matters. */
int topt_bound_level_of(double part);

/* After topt_lower_bound_within of the problem's weigher: everything by where its
 * lightest strategy stands on the way from 'begin' to 'end', where that is nearer than it
 * is yet. Families of a variable are not yet alike. */
void topt_bound_levels_find(struct bound_levels *l, const struct topt_lower_bound *w,
                            struct topt_cost begin, struct topt_cost end);

/* Families of a variable get the nearest level of all. */
void topt_bound_levels_share(struct bound_levels *l);

/* Entries of all tables that configurations up to a level have; INT64_MAX where memory is
 * short. */
int64_t topt_bound_levels_entries(const struct bound_levels *l, int level);

/* The farthest level with no more entries than that, but the nearest at least. */
int topt_bound_levels_with(const struct bound_levels *l, int64_t entries);

/* The configurations up to a level as a problem (narrowed_problem.c) with exact prices of all
 * moves between them. */
int topt_bound_levels_exact(const struct bound_levels *l, int level,
                            struct topt_problem **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
