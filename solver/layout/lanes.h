/* lanes.h - the cheapest ways from many sources at once.  Private to layout/. */
#ifndef TOPT_LANES_H
#define TOPT_LANES_H

#include "tariff.h"

/* So many sources are searched from together. */
enum { TOPT_LANES = 16 };

/* Make the ways to some layouts as cheap as those by one layout and a step; where any lane gets cheaper they
 * are fresh.  What this processor has for that, the best last; for tests. */
typedef void topt_lower_fn(double (*way)[TOPT_LANES], uint8_t *fresh, const int32_t *to,
                           int n, const double *here, double step);
enum { TOPT_LOWERS = 2 };
int topt_lanes_lowers(topt_lower_fn *ret[TOPT_LOWERS]);

struct topt_lanes;
struct topt_lanes *topt_lanes_create(void);
void topt_lanes_destroy(struct topt_lanes *l);
/* Before atlases are begun anew. */
void topt_lanes_forget(struct topt_lanes *l);
/* Is it worth while for so many questions of TOPT_LANES sources at most? */
int topt_lanes_suit(const struct topt_way_source *s, int questions);
/* Answer questions of TOPT_LANES sources at most, those of one source being neighbours, under the tariff
 * of all, between layouts of 'atlas'.  Steps are in 'arena'.  Those whose way takes more than an
 * hour are left without an answer.  -1: memory was short. */
int topt_lanes_answer(struct topt_lanes *l, struct topt_tariff *t,
                      struct topt_atlas *atlas, struct topt_way_question *const *question,
                      int n, struct topt_arena *arena,
                      struct topt_route_stats *stats) TOPT_MUST_CHECK;

#endif
