/* move_costs.h - the cost of moves between the layouts of one tensor.  Private to
 * layout/.
 *
 * Sources that differ only by the layout they begin with have the same costs.  Blocks
 * of the same size share a row of times. */
#ifndef TOPT_MOVE_COSTS_H
#define TOPT_MOVE_COSTS_H

#include "layout_graph.h"
#include "collective_times.h"

/* A path's cost is one number, a key: nanoseconds, then moves (a slice of each group is one)
 * in the last bits.  No path is longer than FAR, which is more than three months. */
enum { TOPT_KEY_BITS = 8 };
#define TOPT_KEY_FAR ((int64_t)1 << 61)

static inline int topt_key_moves(int64_t key)
{
    return (int)(key & ((1 << TOPT_KEY_BITS) - 1));
}

static inline int64_t topt_key_sum(int64_t a, int64_t b)
{
    return a + b < TOPT_KEY_FAR ? a + b : TOPT_KEY_FAR;
}

struct topt_move_costs;
/* Borrows 'times', which the caller keeps. */
struct topt_move_costs *topt_move_costs_create(struct topt_collective_times *times);
void topt_move_costs_destroy(struct topt_move_costs *t);
/* Are these the costs of a source, wherever it begins? */
int topt_move_costs_is(const struct topt_move_costs *t,
                       const struct topt_path_source *source);
/* Forget the source, before the graph is dropped. */
void topt_move_costs_end(struct topt_move_costs *t);
/* Begin the costs of a source, in 'graph', which lists its moves when they are asked
 * for. */
void topt_move_costs_begin(struct topt_move_costs *t,
                           const struct topt_path_source *source,
                           struct topt_layout_graph *graph);
/* Moves from a layout, with a key for each class in topt_move_costs_keys(): of each of
 * its moves, or NONE where there are none for this source.  Where memory is short
 * there are none, and topt_move_costs_failed(). */
struct topt_move_classes topt_move_costs_moves(struct topt_move_costs *t, int32_t vertex);
/* Keys by class of moves, valid until more moves are asked for. */
const int64_t *topt_move_costs_keys(const struct topt_move_costs *t);
/* The row of blocks of a shape (sets by dimension), and in '*ret_whole' the dimensions
 * whose parts are equal, as bits; then the key of a move along 'groups' that sends
 * such blocks, or gathers them. */
int32_t topt_move_costs_row(struct topt_move_costs *t, uint64_t shape,
                            uint32_t *ret_whole);
int64_t topt_move_costs_row_key(struct topt_move_costs *t, int32_t row,
                                enum topt_move_kind kind, uint32_t groups);
int topt_move_costs_failed(const struct topt_move_costs *t);

#endif
