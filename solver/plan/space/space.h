/* space.h - the named spaces.  Private to plan/. */
#ifndef TOPT_SPACE_H
#define TOPT_SPACE_H

#include "topt_choices.h"
#include "topt_lower.h"
#include "topt_progress.h"

struct topt_pins;
struct topt_problem;
struct topt_restriction;
struct topt_tensor_map;

/* Dimensions that axes may be given to. */
struct topt_splits {
    int ndims;
    enum topt_split split[TOPT_MAX_OPDIMS];
    int64_t count[TOPT_MAX_OPDIMS];
    uint8_t even[TOPT_MAX_OPDIMS]; /* only into parts that divide the count */
};

struct topt_splits topt_splits_of_op(const struct topt_op *op);

struct topt_splits topt_splits_of_tensor(const struct topt_model *m, int tensor);

struct topt_space_options {
    enum topt_space space; /* not AUTO */
    int cut;               /* uniform: axes before it are the data axes */
    /* Samples, heads and features are split into equal parts only; the vocabulary, that
     * of many rows, is not held to it. */
    int even;
    int64_t vocab;
    int sequence;
    const struct topt_blocks *blocks; /* of the model; NULL: as if there were none */
    int alike;                        /* blocks of a kind choose alike, else freely */
    /* Levels of enum topt_zero, as bits, where an operator can; uniform: the one for
     * all. */
    int zero;
    enum topt_recompute {
        TOPT_RECOMPUTE_NONE,
        TOPT_RECOMPUTE_ALL, /* every operator that may be */
        TOPT_RECOMPUTE_FREE /* each chooses */
    } recompute;
    /* Moves cost bounds until that matters, and so many entries of tables are priced
     * exactly at first (lazy_pricing.c); only the fastest or the
     * frontier may be asked for.  0: all is priced exactly. */
    int lazy_entries;
    /* With bounds, in the full space: configurations that differ only by which of alike
     * axes do what are listed once, and a move costs what it takes at least between any
     * of those (layout/symmetry_bound.c).  A problem that has a strategy for no more than each of
     * the space's, of which only the fastest may be asked for. */
    int orbits;
    /* Configurations that are listed instead of a space: those of a problem with orbits,
     * which stays until this one is made.  'every': and those which they stand for. */
    const struct topt_problem *among;
    int every;
    int threads;       /* that look for routes; prices do not depend on it */
    int64_t max_bytes; /* of its tables; 0: TOPT_PROBLEM_MAX_BYTES */
    /* Counted work of the request so far, to which pricing adds its own, and where pricing ends
     * as if it were canceled; NULL, 0: it is not counted, or does not end. */
    int64_t *work, max_work;
    int keep_dominated; /* list configurations that others of their classes beat */
    struct topt_progress *progress;             /* counts those priced; may be NULL */
    const struct topt_restriction *restriction; /* of another system; NULL: none */
    /* Uniform: what tensor axes take of each operator, as the framework has it; NULL: any. */
    const struct topt_tensor_map *tensor;
    const struct topt_pins *pins; /* of the model; NULL: none */
    int sums_stay; /* memory counts a sum that is due as if it stayed, whole (papers) */
    /* one_mesh: bit a says that a dimension of the device mesh starts at axis a */
    uint32_t mesh_starts;
};

struct topt_config_list {
    int n;
    struct topt_config *config; /* owned */
};

/* All configurations of the space, in a fixed order. */
int topt_space_configs(const struct topt_mesh *mesh, const struct topt_splits *splits,
                       const struct topt_space_options *options,
                       struct topt_config_list *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Is every choice of splits in a strategy one that the space lists? */
int topt_space_holds(const struct topt_model *m, const struct topt_mesh *mesh,
                     const struct topt_space_options *options,
                     const struct topt_strategy *s);

/* AUTO resolved for a number of devices. */
enum topt_space topt_space_resolve(enum topt_space s, int devices);

#endif
