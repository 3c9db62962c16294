/* space.h - the configurations that a space lists of an operator or a hub.  Private to
 * plan/free. */
#ifndef TOPT_SPACE_H
#define TOPT_SPACE_H

#include "free.h"

/* Dimensions that axes may be given to. */
struct topt_splits {
    int ndims;
    enum topt_split split[TOPT_MAX_OPDIMS];
    int64_t count[TOPT_MAX_OPDIMS];
    uint8_t even[TOPT_MAX_OPDIMS]; /* only into parts that divide the count */
};

struct topt_splits topt_splits_of_op(const struct topt_op *op);

struct topt_splits topt_splits_of_tensor(const struct topt_model *m, int tensor);

/* The dimension of samples; -1: none. */
int topt_splits_batch(const struct topt_splits *s);

struct topt_config_list {
    int n;
    struct topt_config *config; /* owned */
};

/* All configurations of the space, in a fixed order. */
int topt_space_configs(const struct topt_mesh *mesh, const struct topt_splits *splits,
                       const struct topt_space_options *options,
                       struct topt_config_list *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
