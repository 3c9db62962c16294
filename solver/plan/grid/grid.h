/* grid.h - a request on a grid of nodes x devices, and each of its variants as a
 * problem.  Private to plan/. */
#ifndef TOPT_GRID_H
#define TOPT_GRID_H

#include "algorithm.h"
#include "planning.h"
#include "free.h"

enum topt_goal {
    TOPT_GOAL_FRONTIER,
    TOPT_GOAL_FASTEST, /* only the fastest within the limits */
    TOPT_GOAL_LEAST    /* only the one with the least memory */
};

/* A request on one nodes x devices-per-node shape. */
struct topt_grid_search {
    const struct topt_request *request;
    struct topt_planning *planning; /* borrowed */
    struct topt_mesh mesh;
    struct topt_router *router;
    const struct topt_algorithm *algorithm; /* of another system, or NULL */
    enum topt_space space;
    int alike, factors;
    /* By number of micro-batches, those of variants that were costed: as they are, and those that
     * problems of them are priced by.  Owned. */
    struct topt_grid_settings {
        struct topt_settings settings, searched;
        struct topt_grid_settings *next;
    } * settings;
    /* Problems of which floors are asked (topt_floor_find).  Owned. */
    struct topt_grid_passes {
        struct topt_degrees of;
        struct topt_problem *problem;
        struct topt_stage_units units;
        struct topt_grid_passes *next;
    } * passes;
    /* Does tensor parallelism from an axis on divide the operators, without and with context ranks?  1, -1: no; 0: not known. */
    int8_t divides[TOPT_MAX_AXES + 1][2];
    int ndegrees, degrees_cap;
    struct topt_degrees *degrees;    /* all variants; owned */
    struct topt_problem_stats stats; /* routes: -1 where they were not counted */
    /* Points of other shapes (owned), a frontier: of this one's, those that they are as
     * good as need not be found. */
    struct topt_cost *known;
    int nknown;
    int fastest; /* only the fastest of them is asked for */
    /* Of the grid of a part: where tensor parallelism may lie, the stages, of which it is one, where a host's memory
     * decides what is listed (else 0), and the next of these. */
    enum topt_tensor_where tensor;
    int stages;
    struct topt_grid_search *next;
};

int topt_grid_open(struct topt_grid_search *s, struct topt_planning *m, int nodes,
                   int per_node, enum topt_goal goal,
                   struct topt_error *err) TOPT_MUST_CHECK;

void topt_grid_close(struct topt_grid_search *s);

/* The grid of a part of the devices, which the planning has, opened when it is first asked for. */
int topt_grid_part(struct topt_planning *m, int nodes, int per_node, int stages,
                   struct topt_grid_search **ret, struct topt_error *err) TOPT_MUST_CHECK;
/* ... of one of so many stages: 0 and '*ret' NULL where the devices can't be cut so. */
int topt_grid_stage(struct topt_grid_search *s, int stages, struct topt_grid_search **ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* The settings of a variant as far as topt_stages_exceed reads them. */
struct topt_settings topt_grid_stage_settings(const struct topt_grid_search *s,
                                              const struct topt_degrees *v);

/* The context in which a variant is costed; borrows from the shape. */
int topt_grid_costing(struct topt_grid_search *s, const struct topt_degrees *v,
                      struct topt_costing *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Is a strategy, of whatever space, one of this shape's? */
int topt_grid_holds(const struct topt_grid_search *s, const struct topt_strategy *st);

/* The bytes of a device's own part of parameters, gradients and states that rest on the host. */
int64_t topt_grid_host_bytes(const struct topt_grid_search *s,
                             const struct topt_degrees *v);
/* Do ranks of a stage that shard gradients accumulate them unsharded (settings.unsharded_sums)? */
int topt_grid_accumulates_unsharded(const struct topt_grid_search *s,
                                    const struct topt_degrees *v);
/* A lower bound, in bytes a device, of every strategy of a variant, without looking at
 * operators. */
int64_t topt_grid_least_bytes(struct topt_grid_search *s, const struct topt_degrees *v);
/* A lower bound, in bytes a device, of the stage that holds most, for a variant with stages of the stage's grid
 * 's', of which parameters and states take so much (topt_grid_stays_bytes) and a micro-batch keeps so much in all
 * stages together; with a margin in place of a proof where layers are
 * cut unevenly.  A bound that exceeds 'enough' need not be the largest known. */
int64_t topt_grid_least_stage_bytes(const struct topt_grid_search *s,
                                    const struct topt_degrees *v, int64_t stays_bytes,
                                    int64_t kept_bytes, int64_t enough);

/* Parameters, gradients and states alone, of all stages together, or of one unit, in bytes a device. */
int64_t topt_grid_stays_bytes(const struct topt_grid_search *s,
                              const struct topt_degrees *v);
int64_t topt_grid_unit_stays_bytes(const struct topt_grid_search *s,
                                   const struct topt_degrees *v, int unit);

/* The least time, by link, in which the parameters of one unit come from the ranks that share them out, for forward and again
 * for backward, and in which a micro-batch's gradients go there; 0 where each rank has them, or they move in few bits. */
struct topt_shared_ns {
    int64_t gather[TOPT_LINK_COUNT], again[TOPT_LINK_COUNT], reduce[TOPT_LINK_COUNT];
};
void topt_grid_shared_ns(const struct topt_grid_search *s, const struct topt_degrees *v,
                         int unit, struct topt_shared_ns *ret);

/* Tell whoever watches that a variant of the shape is priced next. */
void topt_grid_tell_progress(const struct topt_grid_search *s,
                             const struct topt_degrees *v);

/* A variant as a problem: whose frontier, fastest or least may be asked for. */
int topt_grid_problem(struct topt_grid_search *s, const struct topt_degrees *v,
                      struct topt_problem **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* ... and as one of which the floor alone is asked (topt_problem_floor). */
int topt_grid_passes(struct topt_grid_search *s, const struct topt_degrees *v,
                     struct topt_problem **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* A variant as a problem with exact prices of everything, for callers that read them. */
int topt_grid_priced(struct topt_grid_search *s, const struct topt_degrees *v,
                     struct topt_problem **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
