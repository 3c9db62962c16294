/* problem.h - a model on a mesh as a combinatorial problem.  Private to plan/.
 *
 * Nodes are the operators and the hubs of tensors with several consumers; configurations come
 * from the named space, costs from the lowering.  Memory is a sum plus two caps (lower/total.c),
 * so a problem is solved once per pair of caps that matters, and the union is reduced. */
#ifndef TOPT_PROBLEM_H
#define TOPT_PROBLEM_H

#include "topt_plan.h"

/* ---- space.c: which configurations ------------------------------------------------------- */

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
    /* Samples, heads and features are split into equal parts only; the vocabulary, that of many rows, is not held to it. */
    int even;
    int64_t vocab;
    int sequence;
    const struct topt_blocks *blocks; /* of the model; NULL: as if there were none */
    int alike;                        /* blocks of a kind choose alike, else freely */
    /* Levels of enum topt_zero, as bits, where an operator can; uniform: the one for all. */
    int zero;
    enum topt_recompute {
        TOPT_RECOMPUTE_NONE,
        TOPT_RECOMPUTE_ALL, /* every operator that may be */
        TOPT_RECOMPUTE_FREE /* each chooses */
    } recompute;
    /* Moves cost floors until that matters, and so many entries of tables are priced exactly at first
     * (settle.c, sift.c); only the fastest or the frontier may be asked for.  0: all is priced exactly. */
    int floors;
    /* With floors, in the full space: configurations that differ only by which of alike axes do what are listed once,
     * and a move costs what it takes at least between any of those (layout/orbit.c).  A problem that has a strategy for no
     * more than each of the space's, of which only the fastest may be asked for. */
    int orbits;
    /* What is listed instead of a space: the configurations of a problem with orbits, which stays until this one is made.
     * 'every': and those which they stand for. */
    const struct topt_problem *among;
    int every;
    int threads;        /* that look for routes; prices do not depend on it */
    int64_t max_bytes;  /* of its tables; 0: TOPT_PROBLEM_MAX_BYTES */
    int keep_dominated; /* list configurations that others of their classes beat */
    struct topt_progress *progress; /* told how many were priced; may be NULL */
    const struct topt_restriction *restriction; /* of another system; NULL: none */
    /* one_mesh: bit a says that a dimension of the device mesh starts at axis a */
    uint32_t mesh_starts;
};

/* What a problem's tables may take where nobody says: most machines have that to spare. */
#define TOPT_PROBLEM_MAX_BYTES ((int64_t)4 << 30)

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

/* ---- problem.c ---------------------------------------------------------------------------- */

struct topt_problem; /* opaque */

struct topt_problem_stats {
    int64_t nodes, configs, layouts, edge_entries;
    /* The work of pricing: what is alike is priced once. */
    int64_t priced_configs; /* of operators and hubs */
    int64_t priced_entries; /* of tables, by classes of both ends */
    int64_t priced_moves;   /* of tensors of one shape, by layouts of both ends */
    int64_t routes;         /* of a shape's router; not of one problem */
};
/* Sums, and the larger number of layouts. */
void topt_problem_stats_add(struct topt_problem_stats *into,
                            const struct topt_problem_stats *from);

/* Price a model on a mesh.  LIMIT, before anything large is made, where its tables would take more
 * than the options allow: the line says which operators' choices they are, and what to do. */
int topt_problem_create(const struct topt_costing *k,
                        const struct topt_space_options *options,
                        struct topt_problem **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
void topt_problem_destroy(struct topt_problem *p);
void topt_problem_stats(const struct topt_problem *p, struct topt_problem_stats *ret);

/* Bytes in flight: of an operator's or a move's own, and of a tensor that waits meanwhile. */
struct topt_caps {
    int64_t transient, crossing;
};

/* The search problem under one pair of caps (negative: none), borrowed until the next call
 * with other caps.  Nothing allowed gives an operator without configurations. */
const struct topt_search_problem *
topt_problem_under(struct topt_problem *p, int64_t transient_cap, int64_t crossing_cap);
/* From now on memory is time and time is memory, or not. */
void topt_problem_exchange(struct topt_problem *p, int exchanged);

/* A point of a search under the current caps as a strategy (owned), and the caps it really
 * needs. */
struct topt_strategy *topt_problem_strategy(const struct topt_problem *p,
                                            const struct topt_search_point *point);
void topt_problem_caps(const struct topt_problem *p,
                       const struct topt_search_point *point, int64_t *ret_transient,
                       int64_t *ret_crossing);
int topt_problem_crossing(const struct topt_problem *p); /* W */
/* Operators of the search are nodes of the model: mark those of one, in 'mark' by operator,
 * then by tensor (its hub). */
void topt_problem_mark(const struct topt_problem *p, int search_op, uint8_t *mark);
int topt_problem_nodes(const struct topt_problem *p); /* operators and tensors */
/* Caps that every strategy needs. */
struct topt_caps topt_problem_least_caps(const struct topt_problem *p);
/* Largest cap below the given one that changes anything, or -1. */
int64_t topt_problem_next_transient(const struct topt_problem *p, int64_t below);
int64_t topt_problem_next_crossing(const struct topt_problem *p, int64_t below);
/* Smallest cap above the given one that changes anything, or INT64_MAX. */
int64_t topt_problem_transient_above(const struct topt_problem *p, int64_t above);
int64_t topt_problem_crossing_above(const struct topt_problem *p, int64_t above);

/* What a point takes beside its memory and its caps: what is made again of the largest block of a kind, where the
 * point has the mean of all (problem_impl.h); 0 where blocks choose alike.  -1: no memory. */
int64_t topt_problem_excess(const struct topt_problem *p,
                            const struct topt_search_point *point);

/* Is a strategy charged here what it costs?  Where recomputation is free to choose, one that
 * chooses none is not: a problem without recomputation has it for less. */
int topt_problem_charges(const struct topt_problem *p, const struct topt_strategy *s);

/* Has every operator something to choose?  (One choice for a whole model may fit some operator
 * nowhere, and then there is no strategy.) */
int topt_problem_some(const struct topt_problem *p);

/* A random strategy of a space that has some (seeded state advanced). */
struct topt_strategy *topt_problem_random(const struct topt_problem *p, uint64_t *seed);

/* ---- frontier.c: the union over caps --------------------------------------------------------- */

/* What is chosen for the whole model, outside of any problem. */
struct topt_variant {
    int64_t micro_batches;
    int cut, zero;        /* uniform: data axes; level of sharding for all.  Else 0 */
    int recompute;        /* may operators be recomputed?  uniform: are all? */
    uint32_t mesh_starts; /* of systems with one device mesh, else 0 */
    int64_t apart_bytes;  /* as of settings */
    int late_permille;    /* the same */
};

struct topt_solution {
    int64_t memory_bytes, time_ns;
    struct topt_strategy *strategy;
    struct topt_variant variant; /* of the one who posed the problem */
};

/* What a search claims of its answer. */
struct topt_claim {
    int exact;
    double epsilon; /* achieved, of times (topt_search.h); infinite: nothing is proven */
    /* Where only the fastest was wanted: no strategy within the limits is faster, INT64_MAX
     * where none fits. */
    int64_t floor_ns;
    /* Where the least memory was wanted: no strategy needs less, INT64_MAX where that is what was found.  (Of blocks that
     * choose freely what is made again is searched by its mean, and what was found may need more.) */
    int64_t floor_bytes;
    /* By operator, then by tensor (its hub): was it decided by heuristic?  NULL: none. */
    uint8_t *decided;
    int nnodes;
    struct topt_search_stats stats;
};
struct topt_claim topt_claim_exact(void); /* of a search that has nothing to look at */
/* What is claimed of both answers together; takes nothing of 'from'. */
int topt_claim_merge(struct topt_claim *into, const struct topt_claim *from,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* Where only the fastest was wanted and takes 'best_ns': how far it may be from the truth. */
double topt_claim_epsilon(const struct topt_claim *c, int64_t best_ns);
/* Of the lightest nothing else is claimed than that it is, and not even that where operators were
 * decided by heuristic. */
void topt_claim_of_least(struct topt_claim *c);
void topt_claim_fini(struct topt_claim *c);

struct topt_solutions {
    int n;
    struct topt_solution *at; /* memory ascending, time strictly descending */
    struct topt_claim claim;
    int stopped; /* what was not looked at, nothing is known of */
    int ncaps;   /* pairs of caps that were solved */
    struct topt_caps *caps;
};

/* Below these no strategy of the problem is: the sums of what is least for each choice. */
struct topt_cost topt_problem_bound(const struct topt_problem *p);

/* The strategy with the least memory, into an empty 'ret' (none where nothing needs less than
 * 'below'; 0: no bound).  Where the options stop it, CANCELED. */
int topt_problem_least(struct topt_problem *p, const struct topt_search_options *options,
                       int64_t below, struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* The fastest strategy within the limits of 'options', of those the one that needs least (with
 * a tolerance: any within it); none where none fits.  Stopped, or out of work, it is the best that
 * was found, and the claim says what nothing is faster than. */
int topt_problem_fastest(struct topt_problem *p,
                         const struct topt_search_options *options,
                         struct topt_solutions *ret,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* The frontier of a problem: points above 'memory_limit' (0: none) are left out, and may be where
 * one of options->known is as good.  Stopped, or out of work, it is what was found so far. */
int topt_problem_frontier(struct topt_problem *p,
                          const struct topt_search_options *options,
                          struct topt_solutions *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* Add 'from' to 'into' (which takes its strategies) and reduce. */
int topt_solutions_merge(struct topt_solutions *into, struct topt_solutions *from,
                         struct topt_error *err) TOPT_MUST_CHECK;
void topt_solutions_fini(struct topt_solutions *s);

#endif
