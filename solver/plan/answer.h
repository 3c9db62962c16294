/* answer.h - one shape of a request, searched.  Private to plan/ and its tests. */
#ifndef TOPT_ANSWER_H
#define TOPT_ANSWER_H

#include "problem.h"

/* A request on one nodes x devices-per-node shape. */
struct topt_shape_search {
    const struct topt_request *request;
    struct topt_settings settings;
    struct topt_mesh mesh;
    struct topt_router *router;
    struct topt_costing costing;
    enum topt_space space;
    struct topt_problem_stats stats;
};

int topt_shape_open(struct topt_shape_search *s, const struct topt_request *r, int nodes,
                    int per_node, struct topt_error *err) TOPT_MUST_CHECK;
void topt_shape_close(struct topt_shape_search *s);
/* Problems of the shape: one, or one for each cut of the axes in the uniform space. */
int topt_shape_cuts(const struct topt_shape_search *s);
int topt_shape_problem(struct topt_shape_search *s, int cut, struct topt_problem **ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
/* The frontier of the shape, or only its fastest point within 'limit'. */
int topt_shape_solve(struct topt_shape_search *s, int64_t limit, int fastest,
                     struct topt_solutions *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The next shape of 'gpus' devices after '*nodes' (start from 0); 0 when there is none. */
int topt_next_shape(const struct topt_hw *hw, int64_t gpus, int *nodes, int *per_node);
int64_t topt_request_limit(const struct topt_request *r);
/* Counts a request asks for, ascending; owned by the caller. */
int topt_request_counts(const struct topt_request *r, int64_t **ret, int *ret_n,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
