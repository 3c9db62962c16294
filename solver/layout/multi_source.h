/* multi_source.h - shortest paths from many sources at once.  Private to layout/. */
#ifndef TOPT_MULTI_SOURCE_H
#define TOPT_MULTI_SOURCE_H

#include "move_costs.h"
#include "topt_arena.h"

/* The number of sources of one run. */
enum { TOPT_MULTI_SOURCE_LANES = 16 };

struct topt_multi_source;
struct topt_multi_source *topt_multi_source_create(void);
void topt_multi_source_destroy(struct topt_multi_source *l);
/* Forget all runs, before graphs are dropped; those under some costs, before these
 * change. */
void topt_multi_source_forget(struct topt_multi_source *l);
void topt_multi_source_drop(struct topt_multi_source *l, const struct topt_move_costs *t);
/* Answer questions of TOPT_MULTI_SOURCE_LANES sources at most, those of one source
 * being neighbours, under the costs of all, between layouts of 'graph': those whose
 * sources are known, and where it is worth while the rest.  Steps are in 'arena'.
 * Those whose path takes more than an hour are left without an answer.  -1: memory was
 * short. */
int topt_multi_source_answer(struct topt_multi_source *l, struct topt_move_costs *t,
                             struct topt_layout_graph *graph,
                             struct topt_path_question *const *question, int n,
                             struct topt_arena *arena) TOPT_MUST_CHECK;

#endif
