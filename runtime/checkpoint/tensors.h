/* tensors.h - inside checkpoints: the tensors that training stays with, and who writes which
 * block. */
#ifndef TOPT_CHECKPOINT_TENSORS_H
#define TOPT_CHECKPOINT_TENSORS_H

#include "session.h"

/* A parameter or a state of the optimizer of a program. */
struct topt_stay {
    int buffer;
    char name[200]; /* "h0.mlp.w", "h0.mlp.w.state1": the same in every plan */
};

/* In order of their instructions; owned by the caller. */
int topt_stays(const struct topt_program *p, struct topt_stay **ret, int *ret_n,
               struct topt_error *err) TOPT_MUST_CHECK;
/* Is it of a model's weights, as files of them have it: a parameter, or a running statistic? */
int topt_stay_is_weight(const struct topt_program *p, int buffer);
/* Box of a rank's block, in elements. */
struct topt_box topt_stay_box(const struct topt_program *p, int buffer, int rank);
/* By rank: which of the ranks that hold the same block writes it; they take turns. */
int topt_stay_writers(const struct topt_program *p, int buffer, int *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* Extents of a block in a file, where several tables are one after the other; how many. */
int topt_stay_extents(const struct topt_shape *s, const struct topt_box *b,
                      int64_t ret[TOPT_MAX_RANK]);
/* The whole tensor in elements: units of 1. */
struct topt_shape topt_stay_shape(const struct topt_program *p, int buffer);
const char *topt_stay_dtype(const struct topt_program *p, int buffer); /* "F32" */

#endif
