/* multi_source.h - the cheapest paths from many sources at once.  Private to layout/. */
#ifndef TOPT_MULTI_SOURCE_H
#define TOPT_MULTI_SOURCE_H

#include "move_costs.h"
#include "topt_arena.h"

/* So many sources are searched from together. */
enum { TOPT_MULTI_SOURCE_LANES = 16 };

/* Moves that lead to a layout. */
struct topt_arcs_in {
    int n;
    const int32_t *from; /* numbers of layouts */
    const double *step;  /* their keys */
    const uint16_t *when;
    int since; /* those from layouts whose 'when' is less are left out */
};

/* Make the paths to a layout as cheap as those by others and a step; 1 where any got cheaper.  Layouts have 4 * quads
 * keys each, in the order of their numbers.  What this processor has for that, the best last; for tests. */
typedef int topt_relax_fn(double *to, const double *path, const struct topt_arcs_in *by,
                          int quads);
enum { TOPT_RELAXATIONS = 2 };
int topt_multi_source_relaxations(topt_relax_fn *ret[TOPT_RELAXATIONS]);

struct topt_multi_source;
struct topt_multi_source *topt_multi_source_create(void);
void topt_multi_source_destroy(struct topt_multi_source *l);
/* Before graphs are begun anew; before a costs is. */
void topt_multi_source_forget(struct topt_multi_source *l);
void topt_multi_source_drop(struct topt_multi_source *l, const struct topt_move_costs *t);
/* Answer questions of TOPT_MULTI_SOURCE_LANES sources at most, those of one source being neighbours, under the costs
 * of all, between layouts of 'graph': those whose sources are known, and where it is worth while the rest.  Steps
 * are in 'arena'.  Those whose path takes more than an hour are left without an answer.  -1: memory was short. */
int topt_multi_source_answer(struct topt_multi_source *l, struct topt_move_costs *t,
                             struct topt_layout_graph *graph,
                             struct topt_path_question *const *question, int n,
                             struct topt_arena *arena) TOPT_MUST_CHECK;

#endif
