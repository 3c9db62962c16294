/* algorithm.h - searches of other systems as restrictions of ours.  Private to plan/.
 *
 * A system that may say less than we can searches a part of the same space: some configurations,
 * some ways between them, one goal.  So each is a row of a table, its plan is a plan of ours,
 * costed by the same fragments and checked and run like any other. */
#ifndef TOPT_ALGORITHM_H
#define TOPT_ALGORITHM_H

#include "problem.h"

/* What a system leaves out of a space; a function that is NULL leaves out nothing.  Each says
 * whether something is allowed and sees only what it is given, so that configurations of one
 * class are treated alike. */
struct topt_restriction {
    int (*op)(const struct topt_space_options *o, const struct topt_mesh *mesh,
              const struct topt_op *op, const struct topt_config *c);
    int (*hub)(const struct topt_space_options *o, const struct topt_mesh *mesh,
               const struct topt_splits *splits, const struct topt_hub *h);
    int (*edge)(const struct topt_mesh *mesh, const struct topt_edge_end *from,
                const struct topt_edge_end *to, enum topt_keep keep);
};

struct topt_algorithm {
    const char *name, *means;
    const struct topt_restriction *restriction; /* NULL: none */
    int factors;   /* bits of enum topt_factor that it may search */
    int always;    /* ... and those that it does search even where nobody asked */
    int zero;      /* levels of enum topt_zero it knows, as bits; 0: all */
    int one_mesh;  /* one device mesh for all operators: a variant for each */
    int alike;     /* blocks of a kind choose alike unless they are told to be free */
    int time_only; /* it takes the fastest, which fits or not */
    int fused;     /* gradients are all-reduced in buckets, beside backward */
};

extern const struct topt_fusion topt_horovod; /* its fusion buffer and cycle */

/* The row of other systems, or NULL: a search of solver/search, or unknown. */
const struct topt_algorithm *topt_algorithm_find(const char *name);
const struct topt_algorithm *topt_algorithm_at(int i); /* NULL past the end */
/* The row of the table of searches that does it. */
const char *topt_algorithm_search(const char *name);

/* restrict.c */
extern const struct topt_restriction topt_restrict_batch, topt_restrict_spread,
    topt_restrict_named, topt_restrict_one_channel;

/* May a problem have this? */
int topt_allows_op(const struct topt_space_options *o, const struct topt_mesh *mesh,
                   const struct topt_op *op, const struct topt_config *c);
int topt_allows_hub(const struct topt_space_options *o, const struct topt_mesh *mesh,
                    const struct topt_splits *splits, const struct topt_hub *h);
int topt_allows_edge(const struct topt_space_options *o, const struct topt_mesh *mesh,
                     const struct topt_edge_end *from, const struct topt_edge_end *to,
                     enum topt_keep keep);

#endif
