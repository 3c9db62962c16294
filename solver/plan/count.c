/* count.c - a number of devices: every nodes x devices-per-node shape that the hardware allows,
 * and the best plan over all of them. */
#include <stdlib.h>
#include <string.h>

#include "answer.h"

enum { MAX_DEVICES = 1 << 14 };

int topt_next_shape(const struct topt_hw *hw, int64_t gpus, int *nodes, int *per_node)
{
    for (int n = *nodes + 1; n <= topt_hw_max_nodes(hw) && n <= gpus; n++)
        if (gpus % n == 0 && gpus / n <= topt_hw_gpus_per_node(hw)) {
            *nodes = n;
            *per_node = (int)(gpus / n);
            return 1;
        }
    return 0;
}

int topt_no_shape(const struct topt_request *r, int64_t gpus, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_INVAL,
                     "%lld GPUs can't be had on '%s': at most %d nodes of %d",
                     (long long)gpus, topt_hw_name(r->hw), topt_hw_max_nodes(r->hw),
                     topt_hw_gpus_per_node(r->hw));
}

int topt_request_check(const struct topt_request *r, struct topt_error *err)
{
    if (!topt_hw_has_dtype(r->hw, r->settings.dtype))
        return topt_fail(err, TOPT_ERR_INVAL, "'%s' says nothing of the speed of %s",
                         topt_hw_name(r->hw), topt_dtype_name(r->settings.dtype));
    if (r->gpus < 0 || r->gpus > MAX_DEVICES || r->max_gpus < 0 || r->memory_limit < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "GPUs and memory must be positive");
    if (r->mode == TOPT_MINI_TIME && r->gpus == 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "mini-time needs a number of GPUs (at least 1)");
    return 0;
}

int topt_request_factors(const struct topt_request *r, enum topt_space space)
{
    int factors = r->factors;
    if (factors == TOPT_FACTORS_AUTO)
        factors = r->settings.accounting == TOPT_ACCOUNTING_PAPER ? 0
                  : space == TOPT_SPACE_UNIFORM                   ? TOPT_FACTORS_ALL
                                                                  : TOPT_FACTOR_ZERO;
    return r->micro_batches ? factors & ~TOPT_FACTOR_MICRO : factors;
}

int64_t topt_request_limit(const struct topt_request *r)
{
    return r->memory_limit ? r->memory_limit : topt_hw_memory_bytes(r->hw);
}

int topt_request_counts(const struct topt_request *r, int64_t **ret, int *ret_n,
                        struct topt_error *err)
{
    int64_t all = (int64_t)topt_hw_max_nodes(r->hw) * topt_hw_gpus_per_node(r->hw);
    int64_t max = r->max_gpus && r->max_gpus < all ? r->max_gpus : all;
    int64_t *list = malloc(((size_t)max + (size_t)r->ngpu_list + 1) * sizeof *list);
    int n = 0;
    if (!list)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the counts");
    for (int i = 0; i < r->ngpu_list; i++)
        list[n++] = r->gpu_list[i];
    for (int64_t c = 1; !r->ngpu_list && c <= max; c = r->pow2_counts ? 2 * c : c + 1) {
        int nodes = 0, per_node = 0;
        if (topt_next_shape(r->hw, c, &nodes, &per_node))
            list[n++] = c;
    }
    *ret = list;
    *ret_n = n;
    return 0;
}

/* Parameters, gradients, optimizer state and what backward reads, each once, spread evenly. */
int64_t topt_count_least_bytes(const struct topt_micros *m, int64_t gpus)
{
    const struct topt_request *r = m->request;
    enum topt_space space = topt_space_resolve(r->space, (int)gpus);
    double bytes = (double)m->parameters * topt_parameter_bytes(&r->settings);
    if (!(topt_request_factors(r, space) & TOPT_FACTOR_RECOMPUTE))
        bytes += m->activation_bytes / (double)m->at[m->n - 1].batches;
    return (int64_t)(bytes * (1 - 1e-9) / (double)gpus);
}

/* ---- the best of a count ------------------------------------------------------------------- */

void topt_best_fini(struct topt_best *b)
{
    topt_strategy_destroy(b->solution.strategy);
    topt_claim_fini(&b->claim);
    memset(b, 0, sizeof *b);
}

static int better(const struct topt_solution *a, const struct topt_best *b,
                  enum topt_goal goal)
{
    const struct topt_solution *c = &b->solution;
    if (!b->found)
        return 1;
    if (goal == TOPT_GOAL_LEAST)
        return a->memory_bytes < c->memory_bytes;
    return a->time_ns < c->time_ns ||
           (a->time_ns == c->time_ns && a->memory_bytes < c->memory_bytes);
}

static void take(struct topt_best *b, const struct topt_shape_search *s,
                 struct topt_solution *solution)
{
    topt_strategy_destroy(b->solution.strategy);
    b->found = 1;
    b->mesh = s->mesh;
    b->space = s->space;
    b->alike = s->alike;
    b->solution = *solution;
    b->stats = s->stats;
    solution->strategy = NULL;
}

static int solve_shape(struct topt_micros *m, int nodes, int per_node, int64_t limit,
                       enum topt_goal goal, struct topt_best *ret, struct topt_error *err)
{
    struct topt_shape_search s;
    struct topt_solutions all = {0};
    int64_t memory = limit, time = 0;
    if (ret->found && goal == TOPT_GOAL_LEAST)
        memory = ret->solution.memory_bytes;
    else if (ret->found)
        time = ret->solution.time_ns;
    int rc = topt_shape_open(&s, m, nodes, per_node, err) ||
             topt_shape_solve(&s, goal, memory, time, &all, err) ||
             topt_claim_merge(&ret->claim, &all.claim, err);
    ret->stopped |= all.stopped;
    if (!rc && all.n > 0 && better(&all.at[0], ret, goal))
        take(ret, &s, &all.at[0]);
    topt_solutions_fini(&all);
    topt_shape_close(&s);
    return rc;
}

int topt_count_solve(struct topt_micros *m, int64_t gpus, int64_t limit,
                     enum topt_goal goal, struct topt_best *ret, struct topt_error *err)
{
    int nodes = 0, per_node = 0, shapes = 0;
    *ret = (struct topt_best){.claim = topt_claim_exact()};
    for (; topt_next_shape(m->request->hw, gpus, &nodes, &per_node); shapes++)
        if (solve_shape(m, nodes, per_node, limit, goal, ret, err)) {
            topt_best_fini(ret);
            return -1;
        }
    ret->claim.epsilon = topt_claim_epsilon(&ret->claim, ret->solution.time_ns);
    return shapes ? 0 : topt_no_shape(m->request, gpus, err);
}
