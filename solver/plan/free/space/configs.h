/* configs.h - the configurations that a space lists of an operator or a hub (space.c), and what other
 * systems, and a framework's tensor parallelism, leave out of them (restrict.c).  Private to plan/free. */
#ifndef TOPT_CONFIGS_H
#define TOPT_CONFIGS_H

#include "free.h"

/* Dimensions that axes may be given to. */
struct topt_splits {
    /* 'expert': the dimension of experts with parameters of their own, or -1 */
    int ndims, expert;
    enum topt_split split[TOPT_MAX_OPDIMS];
    int64_t count[TOPT_MAX_OPDIMS];
    uint8_t even[TOPT_MAX_OPDIMS]; /* only into parts that divide the count */
};

struct topt_splits topt_splits_of_op(const struct topt_op *op);

struct topt_splits topt_splits_of_tensor(const struct topt_model *m, int tensor);

/* The first axis that tensor parallelism has of an operator, whose dimension of experts is given (-1: none). */
int topt_first_tensor_axis(const struct topt_space_options *o, int expert);

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

/* A system's restriction of a space; a function that is NULL restricts nothing.  Each says
 * whether its arguments are allowed and sees nothing else, so that configurations of one
 * class are treated alike. */
struct topt_restriction {
    int levels; /* of enum topt_zero that are allowed beside none, as bits */
    int (*splits)(const struct topt_space_options *o, const struct topt_mesh *mesh,
                  const struct topt_splits *splits, const struct topt_config *c);
    int (*op)(const struct topt_space_options *o, const struct topt_mesh *mesh,
              const struct topt_op *op, const struct topt_config *c);
    int (*hub)(const struct topt_mesh *mesh, const struct topt_hub *h);
    int (*edge)(const struct topt_mesh *mesh, const struct topt_edge_end *from,
                const struct topt_edge_end *to, enum topt_keep keep);
};

/* May a problem have this?  A hub gets TOPT_HUB_SUM where the framework's tensor parallelism
 * has it. */
int topt_allows_op(const struct topt_space_options *o, const struct topt_mesh *mesh,
                   const struct topt_op *op, const struct topt_config *c);

int topt_allows_hub(const struct topt_space_options *o, const struct topt_mesh *mesh,
                    int tensor, const struct topt_splits *splits, struct topt_hub *h);

int topt_allows_edge(const struct topt_space_options *o, const struct topt_mesh *mesh,
                     const struct topt_edge_end *from, const struct topt_edge_end *to,
                     enum topt_keep keep);

#endif
