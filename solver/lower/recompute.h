/* recompute.h - which operators run again in backward, and which tensors that makes
 * again.  Private to lower/. */
#ifndef TOPT_RECOMPUTE_H
#define TOPT_RECOMPUTE_H

#include "topt_lower.h"

int topt_has_backward(const struct topt_model *m, int op);
/* Does the backward pass of an operator read the value of that input? */
int topt_reads_back(const struct topt_model *m, int op, int input);
/* Is a tensor recomputed in its hub, in place of being kept there? */
int topt_is_recomputed(const struct topt_model *m, const struct topt_strategy *s,
                       int tensor);
/* The facts about a model that recomputation needs; empty until a strategy recomputes. */
struct topt_recomputation {
    uint8_t *may; /* by operator: it may recompute */
    int any;      /* the last strategy that was checked recomputes */
};
/* Checks that all operators which recompute may do so.  'r' starts as zero, and serves further strategies. */
int topt_recompute_check(const struct topt_model *m, const struct topt_settings *settings,
                         const struct topt_strategy *s, struct topt_recomputation *r,
                         struct topt_error *err) TOPT_MUST_CHECK;
void topt_recomputation_fini(struct topt_recomputation *r);

#endif
