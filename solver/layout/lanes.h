/* lanes.h - the cheapest ways from many sources at once.  Private to layout/. */
#ifndef TOPT_LANES_H
#define TOPT_LANES_H

#include "tariff.h"

/* So many sources are searched from together. */
enum { TOPT_LANES = 16 };

/* Moves that lead to a layout. */
struct topt_arrivals {
    int n;
    const int32_t *from; /* numbers of layouts */
    const double *step;  /* their keys */
    const uint16_t *when;
    int since; /* those from layouts whose 'when' is less are left out */
};

/* Make the ways to a layout as cheap as those by others and a step; 1 where any got cheaper.  Layouts have 4 * quads
 * keys each, in the order of their numbers.  What this processor has for that, the best last; for tests. */
typedef int topt_lower_fn(double *to, const double *way, const struct topt_arrivals *by,
                          int quads);
enum { TOPT_LOWERS = 2 };
int topt_lanes_lowers(topt_lower_fn *ret[TOPT_LOWERS]);

struct topt_lanes;
struct topt_lanes *topt_lanes_create(void);
void topt_lanes_destroy(struct topt_lanes *l);
/* Before atlases are begun anew; before a tariff is. */
void topt_lanes_forget(struct topt_lanes *l);
void topt_lanes_drop(struct topt_lanes *l, const struct topt_tariff *t);
/* Answer questions of TOPT_LANES sources at most, those of one source being neighbours, under the tariff
 * of all, between layouts of 'atlas': those whose sources are known, and where it is worth while the rest.  Steps
 * are in 'arena'.  Those whose way takes more than an hour are left without an answer.  -1: memory was short. */
int topt_lanes_answer(struct topt_lanes *l, struct topt_tariff *t,
                      struct topt_atlas *atlas, struct topt_way_question *const *question,
                      int n, struct topt_arena *arena) TOPT_MUST_CHECK;

#endif
