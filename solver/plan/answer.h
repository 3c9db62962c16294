/* answer.h - one shape of a request, searched.  Private to plan/ and its tests.
 *
 * What is not a choice of single operators is enumerated outside of problems: a variant is one
 * number of micro-batches, whether anything is recomputed, and in the uniform space the cut of
 * the axes and the level of sharding.  Each variant is a problem; the union is reduced. */
#ifndef TOPT_ANSWER_H
#define TOPT_ANSWER_H

#include "problem.h"

/* The models of a request by number of micro-batches, made when asked for. */
struct topt_micros {
    const struct topt_request *request;
    enum topt_tensor_where
        tensor;    /* where tensor parallelism of the uniform space may lie now */
    int64_t heads; /* tensor parallelism divides it; 0: no attention */
    struct topt_parameter_floor parameters;
    double activation_bytes;   /* that backward reads, of the whole batch */
    struct topt_blocks blocks; /* of all of them */
    int64_t work;              /* of searches so far */
    int n;
    struct topt_micro {
        int64_t batches;
        const struct topt_model *model;
        struct topt_model *owned;      /* NULL for the request's own */
        struct topt_settings settings; /* without what is never in memory together */
        /* What one device would make again of it, of a block of each kind and of all blocks. */
        int remade_known;
        int64_t remade, remade_all;
    } * at;
};
/* All divisors of the batch where micro-batches are searched, ascending; one number else. */
int topt_micros_init(struct topt_micros *m, const struct topt_request *r,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_micros_fini(struct topt_micros *m);
/* That with so many, its model made; NULL with an error. */
struct topt_micro *topt_micros_at(struct topt_micros *m, int64_t batches,
                                  struct topt_error *err);

enum topt_goal {
    TOPT_GOAL_FRONTIER,
    TOPT_GOAL_FASTEST, /* only the fastest within the limits */
    TOPT_GOAL_LEAST    /* only the one with the least memory */
};

/* A request on one nodes x devices-per-node shape. */
struct topt_shape_search {
    const struct topt_request *request;
    struct topt_micros *micros; /* borrowed */
    struct topt_mesh mesh;
    struct topt_router *router;
    const struct topt_algorithm *algorithm; /* of another system, or NULL */
    enum topt_space space;
    int alike, factors;
    struct topt_variant_settings { /* those of variants that were costed; owned */
        struct topt_settings settings;
        struct topt_variant_settings *next;
    } * settings;
    int nvariants;
    struct topt_variant *variant;
    struct topt_problem_stats stats;
    /* Points of other shapes (owned), a frontier: of this one's, those that they are as good as
     * need not be found. */
    struct topt_cost *known;
    int nknown;
    int fastest; /* only the fastest of them is asked for */
};

int topt_shape_open(struct topt_shape_search *s, struct topt_micros *m, int nodes,
                    int per_node, enum topt_goal goal,
                    struct topt_error *err) TOPT_MUST_CHECK;
void topt_shape_close(struct topt_shape_search *s);
/* What uniform strategies of another framework never have in memory together, into the variant: what backward makes again,
 * and a block's gradients on their way, are not there while an operator outside of blocks runs (the head and the loss,
 * which take most at once); in a step of one micro-batch no gradients are. */
int topt_shape_apart(struct topt_shape_search *s, struct topt_variant *v,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* The levels of sharding that there are, as bits. */
int topt_variants_levels(const struct topt_shape_search *s);
/* All variants of a grid. */
int topt_variants_list(struct topt_shape_search *s, struct topt_error *err) TOPT_MUST_CHECK;
/* What costs of a variant are taken with; borrows from the shape. */
int topt_shape_costing(struct topt_shape_search *s, const struct topt_variant *v,
                       struct topt_costing *ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Is a strategy, of whatever space, one of this shape's? */
int topt_shape_holds(const struct topt_shape_search *s, const struct topt_strategy *st);
/* What no strategy of a variant can go below, without looking at operators. */
int64_t topt_shape_least_bytes(struct topt_shape_search *s, const struct topt_variant *v);

/* A variant as a problem: whose frontier, fastest or least may be asked for. */
int topt_shape_problem(struct topt_shape_search *s, const struct topt_variant *v,
                       struct topt_problem **ret, struct topt_error *err) TOPT_MUST_CHECK;
/* The same with exact prices of everything, for who reads them. */
int topt_shape_priced(struct topt_shape_search *s, const struct topt_variant *v,
                      struct topt_problem **ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Points of all variants within 'limit' (0: none) and no slower than 'time_limit' (0: none). */
int topt_shape_solve(struct topt_shape_search *s, enum topt_goal goal, int64_t limit,
                     int64_t time_limit, struct topt_solutions *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* ---- count.c: all shapes of a number of devices --------------------------------------------- */

/* The next shape of 'gpus' devices after '*nodes' (start from 0); 0 when there is none. */
int topt_next_shape(const struct topt_hw *hw, int64_t gpus, int *nodes, int *per_node);
/* Those of them that a request may use: of counts that are booked whole, or powers of two, the one with the fewest nodes. */
int topt_request_shape(const struct topt_request *r, int64_t gpus, int *nodes,
                       int *per_node);
int topt_no_shape(const struct topt_request *r, int64_t gpus,
                  struct topt_error *err); /* fails: there is none */
/* Is what is asked possible at all? */
int topt_request_check(const struct topt_request *r,
                       struct topt_error *err) TOPT_MUST_CHECK;
/* Where tensor parallelism is tried at the n-th attempt (0, 1...), each only where nothing fits by those before;
 * -1 past the last. */
int topt_request_tensor(const struct topt_request *r, int n);
/* Does the framework split samples, heads and features into equal parts only? */
int topt_request_even(const struct topt_request *r);
int64_t topt_request_limit(const struct topt_request *r);
/* What is searched beside splits on so many devices. */
int topt_request_factors(const struct topt_request *r, enum topt_space space);
/* A request as of the uniform space, where blocks choose alike, with these factors. */
struct topt_request topt_request_uniform(const struct topt_request *r, int factors);
/* Is the best so far to be the answer? */
int topt_request_stopped(const struct topt_request *r);
/* Counts a request asks for, ascending; owned by the caller. */
int topt_request_counts(const struct topt_request *r, int64_t **ret, int *ret_n,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* Can so many devices take equal shares of the batch, where the framework wants that?  If not, the batches
 * nearest to it that they can share are in 'ret_nearest' (the smaller one 0 where there is none; may be NULL). */
int topt_count_shares(const struct topt_micros *m, int64_t gpus, int64_t ret_nearest[2]);
/* Devices along the axes before 'cut'. */
int64_t topt_data_ranks(const struct topt_mesh *mesh, int cut);
/* The first axis that tensor parallelism may take. */
int topt_tensor_from(const struct topt_mesh *mesh, enum topt_tensor_where where);
/* What no plan on so many devices can go below. */
int64_t topt_count_least_bytes(const struct topt_micros *m, int64_t gpus);

/* The best answer for one count. */
struct topt_best {
    int found;
    struct topt_mesh mesh;
    enum topt_space space;
    int alike;
    struct topt_solution solution; /* strategy owned */
    struct topt_claim claim;       /* of all shapes; epsilon that of the fastest */
    int stopped;
    struct topt_problem_stats stats; /* of the best one's shape */
};
/* The fastest within 'limit' (0: none) or the one with the least memory, over all shapes. */
int topt_count_solve(struct topt_micros *m, int64_t gpus, int64_t limit,
                     enum topt_goal goal, struct topt_best *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_best_fini(struct topt_best *b);

/* ---- answer.c: answers as documents ------------------------------------------------------------ */

/* The checked plan, and why it is the one. */
int topt_answer_write(struct topt_micros *m, const struct topt_best *b, const char *why,
                      json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Nothing was found on so many before the search was stopped. */
int topt_answer_unfinished(const struct topt_request *r, int64_t gpus, json_t **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;
/* Nothing fits on so many: the lightest that there is; 'doubt': of fewer it is not known. */
int topt_answer_infeasible(struct topt_micros *m, int64_t gpus, int doubt, json_t **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;
/* So many can't share the batch (topt_count_shares). */
int topt_answer_unshared(const struct topt_micros *m, int64_t gpus,
                         const int64_t nearest[2], json_t **ret,
                         struct topt_error *err) TOPT_MUST_CHECK;
/* fewest.c: a request of mode mini-parallelism. */
int topt_answer_fewest(struct topt_micros *m, json_t **ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
/* tradeoff.c: the fastest on so many as a point of a curve; NULL where a search was stopped before it knew. */
int topt_count_point(struct topt_micros *m, int64_t gpus, json_t **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Does anything fit, as far as is known?  Where nothing was found but that is not proven (the search was stopped,
 * operators were decided by heuristic), something may.  Written as true, false and null. */
enum topt_fits { TOPT_FITS_NOT, TOPT_FITS, TOPT_FITS_UNKNOWN };
enum topt_fits topt_best_fits(const struct topt_best *b);
/* Of the one with the least memory: what nothing needs less than. */
int64_t topt_best_floor(const struct topt_best *b);
json_t *topt_fits_json(enum topt_fits fits);

/* ---- check.c: points of frontiers checked ------------------------------------------------ */

/* A solution and its mesh. */
struct topt_placed {
    struct topt_solution s;
    int nodes, per_node;
};

/* What checking found a solution to be. */
struct topt_checked {
    struct topt_strategy_cost cost;
    int64_t peak_bytes; /* of its program */
};

/* Each of 'n' solutions costed and followed from scratch, as topt_plan_check does, into 'ret' by
 * number; what they have in common is worked out once.  Points that were searched for with 'm'.
 * By the request's threads; the answer does not depend on how many. */
int topt_points_check(struct topt_micros *m, const struct topt_placed *at, int n,
                      struct topt_checked *ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
