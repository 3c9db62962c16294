/* free.h - the free spaces: which configurations an operator has, what they cost, and which of them
 * make the fastest strategy, the one of least memory, or the frontier.
 *
 *     topt_problem_create       a model on a mesh as a combinatorial problem     free/space, free/price
 *     topt_solve_fastest        its fastest strategy within limits               free/solve
 *     topt_solve_least          the one that needs least memory
 *     topt_solve_frontier       every trade-off of memory against time
 *
 * Private to plan/, which sees nothing else of these folders, and nothing else of solver/search. */
#ifndef TOPT_FREE_H
#define TOPT_FREE_H

#include "degrees.h"
#include "topt_choices.h"
#include "topt_lower.h"
#include "topt_progress.h"
#include "topt_search.h"

struct topt_pins;
struct topt_problem;
struct topt_tensor_map;

/* ---- spaces ------------------------------------------------------------------------ */

/* Restrictions that other systems put on a space (free/space/restrict.c). */
struct topt_restriction;
extern const struct topt_restriction topt_restrict_batch, topt_restrict_hybrid,
    topt_restrict_spread, topt_restrict_outputs, topt_restrict_named,
    topt_restrict_renamed, topt_restrict_one_channel;

struct topt_space_options {
    enum topt_space space; /* not AUTO */
    int cut; /* uniform: axes before it are the data axes, axes from it on tensor axes */
    int context_axes; /* uniform: so many axes before 'cut' are context axes, no data axes */
    const struct topt_tensor_map *context; /* what these take; NULL: there are none */
    /* Uniform: of operators with experts, these take the last data axes and the first tensor axes. */
    struct topt_expert_axes expert;
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
    int whole_axes; /* uniform: of the data axes those that it does not shard along */
    enum topt_recompute {
        TOPT_RECOMPUTE_NONE,
        TOPT_RECOMPUTE_ALL, /* every operator that 'modules' say */
        TOPT_RECOMPUTE_FREE /* each chooses */
    } recompute;
    int modules; /* ALL: bits of enum topt_recompute_module */
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
    int passes;        /* its floor alone is asked of it, and it can't be searched */
    int threads;       /* that look for routes; prices do not depend on it */
    int64_t max_bytes; /* of its tables; 0: 4 GiB */
    /* Counted work of the request so far, to which pricing adds its own, and where pricing ends
     * as if it were canceled; NULL, 0: it is not counted, or does not end. */
    int64_t *work, max_work;
    struct topt_progress *progress;             /* counts those priced; may be NULL */
    const struct topt_restriction *restriction; /* of another system; NULL: none */
    /* Uniform: what tensor axes take of each operator, as the framework has it; NULL: any. */
    const struct topt_tensor_map *tensor;
    const struct topt_pins *pins; /* of the model; NULL: none */
    int sums_stay; /* memory counts a sum that is due as if it stayed, whole (papers) */
    /* one_mesh: bit a says that a dimension of the device mesh starts at axis a */
    uint32_t mesh_starts;
};

/* When prices begin as bounds (lazy_entries); the unit, and the row of tests/bench/questions.txt
 * that this is there for: run that row after changing it.  No exact answer depends on them. */
enum {
    /* Layouts of a tensor of three dimensions from which on finding paths between layouts
     * takes longer than all else; 8b-frontier-64 (400 of
     * them; 2 nodes of 8 have 80).  In the full space, where which axes do what is
     * chosen, too; gpt3-64-full (4,096; 70b-full-16 has 256, and is faster by exact
     * prices). */
    MANY_LAYOUTS = 128,
    MANY_FULL_LAYOUTS = 512,
    /* Entries that are priced exactly at first then; 8b-frontier-64. */
    PRICED_FIRST = 2048,
};

/* Is every choice of splits in a strategy one that the space lists? */
int topt_space_holds(const struct topt_model *m, const struct topt_mesh *mesh,
                     const struct topt_space_options *options,
                     const struct topt_strategy *s);

/* Is each pin possible for each of its operators in a space on some mesh, as far as these have
 * been seen?  Marks in 'seen', by operator. */
int topt_pins_see(const struct topt_pins *p, const struct topt_model *m,
                  const struct topt_mesh *mesh, const struct topt_space_options *o,
                  uint8_t *seen, struct topt_error *err) TOPT_MUST_CHECK;
/* Fails with the first operator that was not marked, and what is possible for it on a mesh. */
int topt_pins_fail(const struct topt_pins *p, const struct topt_model *m,
                   const struct topt_mesh *mesh, const struct topt_space_options *o,
                   const uint8_t *seen, struct topt_error *err) TOPT_MUST_CHECK;

/* ---- problems ---------------------------------------------------------------------- */

/* Price a model on a mesh.  LIMIT, before anything large is made, where its tables would
 * take more than the options allow: the line says which operators' choices they are, and
 * what to do. */
int topt_problem_create(const struct topt_costing *k,
                        const struct topt_space_options *options,
                        struct topt_problem **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

void topt_problem_destroy(struct topt_problem *p);

/* How large a problem is and what pricing it took. */
struct topt_problem_stats {
    int64_t nodes, configs, layouts, edge_entries;
    /* The work of pricing: what is alike is priced once. */
    int64_t priced_configs; /* of operators and hubs */
    int64_t priced_entries; /* of tables, by classes of both ends */
    int64_t priced_moves;   /* of tensors of one shape, by layouts of both ends */
    int64_t routes;         /* of a shape's router; not of one problem */
};

void topt_problem_stats(const struct topt_problem *p, struct topt_problem_stats *ret);

/* Sums, and the larger number of layouts. */
void topt_problem_stats_add(struct topt_problem_stats *into,
                            const struct topt_problem_stats *from);

/* Has every operator something to choose?  (One choice for a whole model may fit some
 * operator nowhere, and then there is no strategy.) */
int topt_problem_has_choices(const struct topt_problem *p);
/* Its strategy, where there is one alone; else NULL, as without memory. */
struct topt_strategy *topt_problem_sole(const struct topt_problem *p);

/* A random strategy of a space that has some (seeded state advanced). */
struct topt_strategy *topt_problem_random(const struct topt_problem *p, uint64_t *seed);

/* A lower bound of memory and one of time, for any strategy and whatever the caps: the sums of
 * what is least for each variable. */
struct topt_cost topt_problem_lower_bound(const struct topt_problem *p);

/* A lower bound of the passes of all micro-batches, for any strategy; bytes and times of what a step does beside
 * passes are left out. */
struct topt_floor {
    int some; /* topt_problem_has_choices() */
    int64_t kept_bytes;
    int64_t most_tokens_ns; /* of all units */
    /* pass[0] leaves out the kernels that add a micro-batch's gradients to those of the micro-batches before, which ranks
     * that shard gradients do not start; pass[1] has them.  'layer_ns' is of the layer (topt_stage_units) that takes least. */
    struct topt_floor_time {
        int64_t ns, layer_ns;
    } pass[2];
    int nunits;
    /* The units in the model's order; owned.  'ns' as in 'pass'; 'pass_ns' of forward and of backward, without these
     * kernels; 'tokens_ns' is the least time, forward and backward, in which tokens go to experts and back, and
     * 'most_tokens_ns' the most of both. */
    struct topt_floor_unit {
        int64_t kept_bytes, ns[2];
        int64_t pass_ns[2], tokens_ns[2], most_tokens_ns;
        int64_t moves_ns[2], most_moves_ns; /* the same of other tensors */
    } * unit;
    /* In which all data ranks of the problem add one number up; who owns the floor sets it. */
    int64_t scalar_ns;
};
/* That of the problem with experts on such axes, of a problem without bounds in its prices; 'units' are its model's. */
int topt_problem_floor(struct topt_problem *p, const struct topt_stage_units *units,
                       struct topt_expert_axes axes, struct topt_floor *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Does the problem price the strategy as what it costs?  Where recomputation is free to choose, one
 * that chooses none is not: a problem without recomputation has it for less. */
int topt_capped_is_exact_for(const struct topt_problem *p, const struct topt_strategy *s);

/* Bytes in flight: of an operator's or a move's own, and of a tensor that waits
 * meanwhile. */
struct topt_caps {
    int64_t transient, crossing;
};

/* The search problem under one pair of caps (negative: none), borrowed until the next
 * call with other caps.  Nothing allowed gives an operator without configurations. */
const struct topt_search_problem *topt_capped_problem(struct topt_problem *p,
                                                      struct topt_caps caps);

/* Bytes of caps: T + W * U. */
int64_t topt_capped_bytes(const struct topt_problem *p, struct topt_caps caps);

/* ---- certificates ------------------------------------------------------------------ */

/* The claims of an answer that many searches gave together. */
struct topt_certificate {
    int exact;
    double epsilon; /* achieved, of times (topt_search.h); infinite: nothing is proven */
    /* Where only the fastest was wanted: no strategy within the limits is faster,
     * INT64_MAX where none fits. */
    int64_t bound_ns;
    /* Where the least memory was wanted: no strategy needs less, INT64_MAX where that is
     * what was found.  (Of blocks that choose freely what is recomputed is searched by
     * its mean, and what was found may need more.) */
    int64_t bound_bytes;
    /* By operator, then by tensor (its hub): was it decided by heuristic?  NULL: none. */
    uint8_t *decided;
    int nnodes;
    struct topt_search_stats stats;
};

/* The certificate of a search that has nothing to look at. */
struct topt_certificate topt_certificate_exact(void);

/* Merge the claims of two answers; takes nothing of 'from'. */
int topt_certificate_merge(struct topt_certificate *into,
                           const struct topt_certificate *from,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Claim neither exactness nor an epsilon; bounds, what was decided and counted work stay. */
void topt_certificate_withdraw(struct topt_certificate *c);

/* Where only the fastest was wanted and takes 'best_ns': how far it may be from the
 * truth. */
double topt_certificate_epsilon(const struct topt_certificate *c, int64_t best_ns);

void topt_certificate_fini(struct topt_certificate *c);

/* ---- solutions --------------------------------------------------------------------- */

struct topt_memo_point;

struct topt_solution {
    int64_t memory_bytes, time_ns;
    struct topt_strategy *strategy;
    struct topt_degrees degrees;  /* of which the problem was made */
    struct topt_memo_point *memo; /* that it is a copy of, borrowed; NULL: none */
};

struct topt_solutions {
    int n;
    struct topt_solution *at; /* memory ascending, time strictly descending */
    struct topt_certificate certificate;
    int stopped; /* what was not looked at, nothing is known of */
    int ncaps;   /* pairs of caps that were solved */
    struct topt_caps *caps;
};

/* Add 'from' to 'into' (which takes its strategies) and reduce. */
int topt_solutions_merge(struct topt_solutions *into, struct topt_solutions *from,
                         struct topt_error *err) TOPT_MUST_CHECK;

void topt_solutions_fini(struct topt_solutions *s);

/* Copies of 'n' more, which take over their strategies. */
int topt_solutions_append(struct topt_solutions *s, const struct topt_solution *more,
                          int n, struct topt_error *err) TOPT_MUST_CHECK;

/* In order, without what others are as good as. */
int topt_solutions_reduce(struct topt_solutions *s,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Only the i-th is left, or (-1) none. */
void topt_solutions_keep(struct topt_solutions *s, int i);

/* Time of the fastest so far, or INT64_MAX. */
int64_t topt_solutions_best(const struct topt_solutions *s);

/* ---- the three questions ----------------------------------------------------------- */

/* The strategy with the least memory, into an empty 'ret' (none where nothing needs less
 * than 'below'; 0: no bound).  Where the options stop it, or it is out of work before that
 * is proven, CANCELED. */
int topt_solve_least(struct topt_problem *p, const struct topt_search_options *options,
                     int64_t below, struct topt_solutions *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The fastest strategy within the limits of 'options', of those the one that needs least
 * (with a tolerance: any within it); none where none fits.  Stopped, or out of work, it
 * is the best that was found, and the certificate says what nothing is faster than. */
int topt_solve_fastest(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* The frontier of a problem: points above 'memory_limit' (0: none) are left out, and may
 * be where one of options->known is as good.  Stopped, or out of work, it is what was
 * found so far. */
int topt_solve_frontier(struct topt_problem *p, const struct topt_search_options *options,
                        struct topt_solutions *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
