/* operator.h - an operator's part of a program: its own buffers, kernels and
 * exchanges.  Private to lower/. */
#ifndef TOPT_OPERATOR_H
#define TOPT_OPERATOR_H

#include "fragment.h"

/* Allocates the buffers that an operator has throughout: parameters, gradients, optimizer
 * state, data. */
int topt_op_init(const struct topt_fragments *f, int op, const struct topt_config *c,
                 struct topt_op_buffers *b);
/* Makes the output, the saved and the work buffers from the inputs in b->value. */
int topt_op_forward(const struct topt_fragments *f, int op, const struct topt_config *c,
                    enum topt_pass pass, struct topt_op_buffers *b);
/* Makes the gradients of inputs that need one from b->grad of the output, and adds to those
 * of the parameters. */
int topt_op_backward(const struct topt_fragments *f, int op, const struct topt_config *c,
                     struct topt_op_buffers *b);

#endif
