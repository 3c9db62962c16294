/* operator.h - an operator's part of a program: its own buffers, kernels and
 * exchanges.  Private to lower/. */
#ifndef TOPT_OPERATOR_H
#define TOPT_OPERATOR_H

#include "fragment.h"

/* Allocate what an operator has from start to end: parameters, gradients, optimizer
 * state, data. */
int topt_op_init(const struct topt_fragments *f, int op, const struct topt_config *c,
                 struct topt_op_buffers *b);
/* Inputs are in b->value; makes the output, the saved and the work buffers. */
int topt_op_forward(const struct topt_fragments *f, int op, const struct topt_config *c,
                    enum topt_pass pass, struct topt_op_buffers *b);
/* b->grad of the output is given; makes gradients of inputs that need one and adds to
 * those of the parameters. */
int topt_op_backward(const struct topt_fragments *f, int op, const struct topt_config *c,
                     struct topt_op_buffers *b);

#endif
