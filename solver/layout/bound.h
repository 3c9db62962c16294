/* bound.h - what a way costs at least.  Private to layout/. */
#ifndef TOPT_BOUND_H
#define TOPT_BOUND_H

#include "tariff.h"

/* Groups are taken apart into so many parts at most. */
enum { TOPT_BOUND_PARTS = 4 };

/* Where a layout is in each part. */
struct topt_bound_place {
    uint16_t at[TOPT_BOUND_PARTS];
};

struct topt_bound;
struct topt_bound *topt_bound_create(void);
void topt_bound_destroy(struct topt_bound *b);
/* From now on under a source's tariff, which stays with the caller. */
int topt_bound_begin(struct topt_bound *b, struct topt_tariff *t,
                     const struct topt_way_source *source) TOPT_MUST_CHECK;
int topt_bound_place(struct topt_bound *b, uint64_t state,
                     struct topt_bound_place *ret) TOPT_MUST_CHECK;
/* From now on to these targets; then without the i-th, whose number the last one takes. */
int topt_bound_aim(struct topt_bound *b, const struct topt_bound_place *target,
                   int n) TOPT_MUST_CHECK;
void topt_bound_drop(struct topt_bound *b, int i);
/* The key of no way from there to any of them is smaller; negative where memory is short.
 * '*ret_target': which one that is of. */
int64_t topt_bound_of(struct topt_bound *b, const struct topt_bound_place *from,
                      int *ret_target);

#endif
