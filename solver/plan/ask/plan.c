/* plan.c - requests for one plan answered, by mode: counts of devices tried, the best
 * plan written down (answer.c), and what the question was. */
#include "best.h"
#include "planning.h"
#include "request.h"
#include "topt_framework.h"
#include "topt_plan.h"
#include "topt_question.h"
#include "topt_rates.h"
#include "topt_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fastest_of_count(struct topt_planning *m, struct topt_best *ret,
                            struct topt_error *err)
{
    const struct topt_request *r = m->request;
    *ret = (struct topt_best){.found = 0};
    for (int i = 0; !ret->found && !ret->stopped && topt_planning_resort(m, &i);) {
        topt_best_fini(ret);
        if (topt_count_solve(m, r->gpus, topt_request_limit(r), 0, TOPT_GOAL_FASTEST, ret,
                             err))
            return -1;
    }
    return 0;
}

/* Can the GPUs share the batch, where the model is not spread over nodes?  That it then
 * is is no answer. */
static int shares_inside_nodes(struct topt_planning *m, int64_t ret_nearest[2])
{
    enum topt_tensor_where where = m->tensor;
    if (m->tensor > TOPT_TENSOR_NODE)
        m->tensor = TOPT_TENSOR_NODE;
    int shares = topt_count_divides_batch(m, m->request->gpus, ret_nearest);
    m->tensor = (enum topt_tensor_where)topt_request_tensor_at(m->request, 0);
    if (!shares) /* by what it is asked for first */
        topt_count_divides_batch(m, m->request->gpus, ret_nearest);
    m->tensor = where;
    return shares;
}

static int mini_time(struct topt_planning *m, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    struct topt_best b;
    int64_t nearest[2];
    char why[160], limit[32];
    if (fastest_of_count(m, &b, err))
        return -1;
    if (!b.found) {
        int gave_up = b.stopped;
        topt_best_fini(&b);
        if (!gave_up && !shares_inside_nodes(m, nearest))
            return topt_answer_indivisible(m, r->gpus, nearest, ret, err);
        int rc = gave_up ? topt_answer_unfinished(m, r->gpus, ret, err)
                         : topt_answer_infeasible(m, r->gpus, 0, ret, err);
        return rc || gave_up ? rc : topt_answer_put_ways(m, r->gpus, *ret, err);
    }
    snprintf(why, sizeof why, "%s on %d GPU%s within %s per GPU",
             b.stopped ? "fastest found so far" : "fastest", b.mesh.devices,
             b.mesh.devices > 1 ? "s" : "",
             topt_show_bytes(topt_request_limit(r), limit, sizeof limit));
    int rc = topt_answer_write(m, &b, why, ret, err);
    topt_best_fini(&b);
    return rc;
}

/* Has it a parameter whose first dimension, experts, has fewer counts than there are
 * ranks to share it? */
static int few_rows(const struct topt_model *m, int64_t ranks)
{
    for (int i = 0; i < m->nops; i++)
        for (int o = 0; o < m->op[i].spec->noperands; o++) {
            const struct topt_operand *x = &m->op[i].operand[o];
            if (x->role == TOPT_PARAM && x->present &&
                topt_operand_rank(&m->op[i], o) > 2 &&
                x->dim[0].count * x->dim[0].unit < ranks)
                return 1;
        }
    return 0;
}

/* A script's duty under a plan of this framework; NULL: none. */
static const char *needs_of(const struct topt_request *r, const json_t *uniform)
{
    int64_t dp = json_integer_value(json_object_get(uniform, "dp"));
    int64_t zero = json_integer_value(json_object_get(uniform, "zero"));
    if (json_integer_value(json_object_get(uniform, "tp")) > 1 &&
        r->framework->tensor_needs)
        return r->framework->tensor_needs;
    if (r->framework->gather == TOPT_GATHER_UNIT && zero >= TOPT_ZERO_GRADIENT &&
        few_rows(r->model, dp))
        return "experts must be sharded along a dimension other than 0, because there "
               "are fewer experts than GPUs (fully_shard's shard_placement_fn; "
               "topt_apply.py does it)";
    return NULL;
}

/* The question that is answered, and a script's duty under the plan. */
static void put_question(const struct topt_request *r, json_t *answer)
{
    const json_t *uniform = json_object_get(answer, "uniform");
    json_t *job = topt_request_job(r);
    if (r->min_efficiency <= 0) /* else the question is another one */
        json_object_set_new(job, "mode", json_string(topt_mode_name(r->mode)));
    json_object_set_new(answer, "job", job);
    json_object_set_new(answer, "assumed", topt_request_assumed(r));
    const char *needs = r->framework ? needs_of(r, uniform) : NULL;
    if (needs)
        json_object_set_new(answer, "needs", json_string(needs));
    topt_rates_put_all(answer);
}

int topt_plan_from(const struct topt_request *r, struct topt_memo *memo, json_t **ret,
                   struct topt_error *err)
{
    struct topt_planning m;
    *ret = NULL;
    if (r->mode == TOPT_PROFILING)
        return topt_answer_curve(r, memo, ret, err);
    if (topt_request_check(r, err) || topt_planning_init(&m, r, err))
        return -1;
    m.memo = memo;
    int rc = r->mode == TOPT_MINI_TIME ? mini_time(&m, ret, err)
                                       : topt_answer_fewest(&m, ret, err);
    topt_planning_fini(&m);
    if (!rc)
        put_question(r, *ret);
    return rc;
}

int topt_plan(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    struct topt_memo *memo = topt_memo_create();
    *ret = NULL;
    if (!memo)
        return topt_nomem(err, "the plan");
    int rc = topt_plan_from(r, memo, ret, err);
    topt_memo_destroy(memo);
    return rc;
}
