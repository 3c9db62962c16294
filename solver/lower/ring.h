/* ring.h - keys and values that go around context ranks (settings.ring).  Private to lower/. */
#ifndef TOPT_LOWER_RING_H
#define TOPT_LOWER_RING_H

#include "fragment.h"

/* The ranks that an operand of attention goes around; 1: it does not. */
int64_t topt_ring_ranks(const struct topt_costing *k, const struct topt_op *o,
                        const struct topt_config *c, int operand);

/* Bytes that settings.merge reads and writes beside a kernel, of an operator with a box of 'len'; 0: it merges nothing. */
int64_t topt_merged_bytes(const struct topt_costing *k, const struct topt_op *o,
                          enum topt_kernel kernel, const int64_t *len);

/* Fill in what a consumer, which takes 'attends', hides of the moves of such an operand. */
void topt_ring_end(const struct topt_costing *k, int op, int operand,
                   const struct topt_config *c, const struct topt_fragment_cost *attends,
                   struct topt_edge_end *ret);
/* How long computing waits for a gather that takes 'g'; or in backward, for that and the scattered sum, 'r'; -1:
 * forward. */
int64_t topt_ring_wait(const struct topt_edge_end *to, int64_t g, int64_t r);
/* Set the time of a move, whose basis stays in proportion. */
void topt_move_takes(struct topt_move_cost *m, int64_t ns);
/* The moves to such an end and back ('back': NULL where there are no gradients). */
void topt_ring_moves(const struct topt_edge_end *to, struct topt_move_cost *there,
                     struct topt_move_cost *back);

#endif
