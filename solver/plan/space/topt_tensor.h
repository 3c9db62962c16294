/* topt_tensor.h - tensor parallelism as frameworks have it: what a degree does to each operator.
 *
 * A framework splits an operator over its tensor parallel ranks in one way, which follows from
 * the operator's role (common/topt_roles.h) and from a row of rules: nothing of it is searched.
 * Thread safety: constant data, and a finished map is only read. */
#ifndef TOPT_TENSOR_H
#define TOPT_TENSOR_H

#include <stdint.h>

#include "topt_model.h"

struct topt_tensor_rules {
    const char *title;  /* as messages name it */
    const char *source; /* where they were read */
    /* Sequence parallelism: what lies between row and column (norms, residual sums) is split
     * by positions, and sums are scattered over them (Korthikanti et al. 2022). */
    int positions;
    int tied_ends;  /* a table that embedding and head share is split too */
    int split_loss; /* logits stay split by the vocabulary, and the loss is of parts */
    int levels;     /* of sharding (enum topt_zero, as bits) between data ranks; 0: all */
    int experts;    /* each is split by its inner features; 0: they are not split */
    int experts_need_positions;
    /* Context parallelism, no tensor parallelism: ranks have a part of the positions, and attention gathers keys and
     * values, or where it has them in one tensor with queries exchanges positions for heads. */
    int context;
};
extern const struct topt_tensor_rules topt_tensor_pytorch, topt_tensor_megatron,
    topt_tensor_torchtitan, topt_tensor_context;

/* How a model is split by tensor (or context) parallelism, for any degree. */
struct topt_tensor_map {
    const struct topt_tensor_rules *rules; /* NULL: there are none, and no map */
    int positions;
    int8_t *op; /* by operator: the dimension that tensor axes take; -1: none */
    /* By tensor that several read: its dimension, -1, or TOPT_HUB_SUM; TOPT_AS_DATA: as data axes have it. */
    int8_t *hub;
    /* Why no degree above 1 is possible, with the operator and what to do; "": it is. */
    char refused[320];
};

enum { TOPT_AS_DATA = -3 };

/* Rules may be NULL.  'positions': with sequence parallelism, where the rules have it. */
int topt_tensor_map_init(struct topt_tensor_map *map, const struct topt_model *m,
                         const struct topt_tensor_rules *rules, int positions,
                         struct topt_error *err) TOPT_MUST_CHECK;
void topt_tensor_map_fini(struct topt_tensor_map *map);

/* The first operator that 'parts' ranks can't split equally, and its dimension; -1: they can split
 * all.  The vocabulary is padded. */
int topt_tensor_uneven(const struct topt_tensor_map *map, const struct topt_model *m,
                       int64_t parts, int *ret_dim);

#endif
