/* low.h - products in types of few bits.  See low.c.  Private to lower/. */
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

/* One cast copy of a tensor with its scales, in thousandths of it. */
int topt_low_cast_permille(const struct topt_settings *s);

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

/* The operator whose product reads what an instruction all-gathers of a tensor between operators: the instruction's own
 * of a value, the tensor's producer of its gradient; -1: the instruction is no such gather. */
int topt_gathered_for(const struct topt_model *m, const struct topt_buffer *b,
                      const struct topt_instr *i);

#endif
