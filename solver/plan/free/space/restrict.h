/* restrict.h - what other systems, and a framework's tensor parallelism, leave out of a space.
 * Private to plan/free. */
#ifndef TOPT_RESTRICT_H
#define TOPT_RESTRICT_H

#include "space.h"

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
