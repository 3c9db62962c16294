/* low.h - what frameworks do otherwise than in bf16, one after the other, and by AdamW: products in types of few bits
 * (low.c), communication of tensor parallelism beside products (beside.c), the optimizer Muon (muon.c).  Private to
 * lower/. */
#ifndef TOPT_LOW_H
#define TOPT_LOW_H

#include "topt_lower.h"

/* So many thousandths of a number, without overflow. */
static inline int64_t topt_permille(int64_t of, int64_t thousandths)
{
    return of / 1000 * thousandths + of % 1000 * thousandths / 1000;
}

/* Do the operator's products run in few bits? */
int topt_low_runs(const struct topt_settings *s, const struct topt_model *m, int op);

/* The bytes of both copies of so many numbers of a weight. */
int64_t topt_low_parameter_bytes(const struct topt_settings *s, int64_t numbers);

/* What moves of a tensor that is gathered for an operator's products, in thousandths of it. */
int topt_low_moved_permille(const struct topt_settings *s, const struct topt_model *m,
                            int op);

/* What is kept for backward of an operator's input, in thousandths of the tensor. */
int topt_low_kept_permille(const struct topt_settings *s, const struct topt_model *m,
                           int op, int input);

/* The casts of an operator's direction on a local box: bytes moved, kernels started. */
struct topt_low_casts {
    int64_t bytes;
    int kernels;
};
struct topt_low_casts topt_low_casts(const struct topt_settings *s,
                                     const struct topt_op *o, const int64_t *len,
                                     int backward);

/* Set an end's beside_ns, of an operator's result ('made') or input. */
void topt_beside_set(const struct topt_costing *k, int op, const struct topt_config *c,
                     int made, struct topt_edge_end *ret);

/* The operator for whose product an instruction gathers a buffer, of a tensor between operators: of a value that at hand,
 * of a gradient the maker; -1: it does not. */
int topt_gathered_for(const struct topt_model *m, const struct topt_buffer *b,
                      const struct topt_instr *i);

/* The time of an instruction that moves, where it takes 'ns' alone. */
int64_t topt_beside_move(const struct topt_costing *k, const struct topt_program *p,
                         const struct topt_instr *i, int64_t ns);

/* Is the operand a matrix of a layer, or of each of its experts?  AdamW updates embeddings, the head and vectors. */
int topt_muon_updates(const struct topt_settings *s, const struct topt_model *m, int op,
                      int operand);

/* The time of making a device's part of an operand orthogonal: 'len' is the operator's local box, 'numbers' the part's. */
int64_t topt_muon_ns(const struct topt_costing *k, int op, int operand,
                     const int64_t *len, int64_t numbers);

#endif
