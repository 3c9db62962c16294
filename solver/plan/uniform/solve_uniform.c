/* solve_uniform.c - a variant of the uniform space answered from the memo of its problem, which gets what
 * is missing. */
#include "solve_uniform.h"
#include "grid.h"
#include "hidden.h"
#include "lifetimes.h"
#include "memo.h"
#include "problem.h"
#include "solve.h"
#include "topt_progress.h"

#include <stdlib.h>
#include <string.h>

int topt_uniform_has_memo(const struct topt_grid_search *s, enum topt_goal goal)
{
    const struct topt_request *r = s->request;
    return s->planning->memo && s->space == TOPT_SPACE_UNIFORM && s->alike &&
           (!r->algorithm || !strcmp(r->algorithm, "ft")) && !r->max_work && !r->pin &&
           goal != TOPT_GOAL_FRONTIER;
}

int topt_uniform_assume(struct topt_grid_search *s, struct topt_degrees *v,
                        struct topt_error *err)
{
    return topt_uniform_lifetimes(s, v, err) || topt_uniform_hidden(s, v, err) ? -1 : 0;
}

struct lookup {
    struct topt_grid_search *s;
    const struct topt_search_options *o;
    struct topt_degrees *degrees;
    struct topt_memo_entry *x;
    struct topt_problem *p; /* owned; NULL where nothing was missing */
    struct topt_error *err;
};

/* ---- what is missing --------------------------------------------------------------- */

static int make_problem(struct lookup *l)
{
    if (l->p)
        return 0;
    topt_grid_tell_progress(l->s, l->degrees);
    l->s->planning->memo->searches++;
    return topt_grid_problem(l->s, l->degrees, &l->p, l->err);
}

static int price(struct lookup *l)
{
    struct topt_memo_entry *x = l->x;
    if (topt_uniform_assume(l->s, l->degrees, l->err) || make_problem(l))
        return -1;
    x->degrees = *l->degrees;
    x->some = topt_problem_has_choices(l->p);
    if (x->some)
        x->least = topt_problem_lower_bound(l->p);
    topt_problem_stats(l->p, &x->stats);
    x->priced = 1;
    return 0;
}

/* Searches of all that fits are exact, whatever was asked for. */
static struct topt_search_options widest(const struct lookup *l, int64_t memory_limit)
{
    struct topt_search_options o = *l->o;
    o.memory_limit = memory_limit;
    o.time_limit = o.max_work = 0;
    o.epsilon = 0;
    o.known = NULL;
    o.nknown = 0;
    return o;
}

/* The fastest that the device can hold, or, 'below' that one, all of the frontier.  1
 * where the search was not exact, so that it is of this question alone. */
static int search(struct lookup *l, enum topt_goal goal, int64_t limit,
                  struct topt_memo_points *ret)
{
    struct topt_search_options o = widest(l, limit);
    struct topt_solutions found = {.certificate = topt_certificate_exact()};
    if (make_problem(l) ||
        (goal == TOPT_GOAL_FASTEST ? topt_solve_fastest(l->p, &o, &found, l->err)
                                   : topt_solve_frontier(l->p, &o, &found, l->err)))
        return -1;
    int rc = topt_memo_take(l->s->planning->memo, &found, ret);
    topt_solutions_fini(&found);
    return rc < 0 ? topt_nomem(l->err, "the search") : rc;
}

/* See that a part is known: 0, 1 where its search was not exact, -1. */

static int find_fastest(struct lookup *l)
{
    return l->x->fastest.known
               ? 0
               : search(l, TOPT_GOAL_FASTEST, topt_hw_memory_bytes(l->s->request->hw),
                        &l->x->fastest);
}

/* What takes less memory than the fastest that the device can hold. */
static int find_below(struct lookup *l)
{
    struct topt_memo_entry *x = l->x;
    if (!x->fastest.n || x->below.known)
        return 0;
    int64_t limit = x->fastest.at[0].memory_bytes - 1;
    if (limit < x->least.memory || limit < 1) {
        x->below.known = 1;
        return 0;
    }
    return search(l, TOPT_GOAL_FRONTIER, limit, &x->below);
}

static int find_least(struct lookup *l)
{
    struct topt_memo_entry *x = l->x;
    struct topt_solutions found = {.certificate = topt_certificate_exact()};
    if (x->least_memory_known)
        return 0;
    struct topt_search_options o = widest(l, 0);
    if (make_problem(l) || topt_solve_least(l->p, &o, 0, &found, l->err))
        return -1;
    int rc = found.stopped || !found.certificate.exact ||
             found.certificate.bound_bytes < INT64_MAX;
    if (!rc) {
        x->least_memory_known = 1 + (found.n > 0);
        if (found.n)
            x->least_memory =
                (struct topt_cost){found.at[0].memory_bytes, found.at[0].time_ns};
    }
    topt_solutions_fini(&found);
    return rc;
}

static int open_variant(struct lookup *l, struct topt_grid_search *s,
                        const struct topt_search_options *o, struct topt_degrees *degrees,
                        struct topt_error *err)
{
    *l = (struct lookup){.s = s, .o = o, .degrees = degrees, .err = err};
    l->x = topt_memo_entry(s->planning->memo, s->mesh.nodes, s->mesh.per_node, degrees);
    if (!l->x)
        return topt_nomem(err, "the search");
    if (!l->x->priced)
        return price(l);
    *degrees = l->x->degrees;
    return 0;
}

/* ---- what is asked ----------------------------------------------------------------- */

static int beyond(int64_t value, int64_t limit)
{
    return limit && value > limit;
}

static int within(const struct topt_uniform_question *q, int64_t memory, int64_t time)
{
    if (q->goal == TOPT_GOAL_LEAST)
        return !q->memory_limit || memory < q->memory_limit;
    return !beyond(memory, q->memory_limit) && !beyond(time, q->time_limit);
}

/* Search for this question alone. */
static int answer_alone(struct lookup *l, const struct topt_uniform_question *q,
                        struct topt_solutions *ret)
{
    struct topt_search_options o = *l->o;
    o.memory_limit = q->memory_limit;
    o.time_limit = q->time_limit;
    if (make_problem(l) ||
        (q->goal == TOPT_GOAL_FASTEST
             ? topt_solve_fastest(l->p, &o, ret, l->err)
             : topt_solve_least(l->p, &o, q->memory_limit, ret, l->err)))
        return -1;
    for (int i = 0; i < ret->n; i++)
        ret->at[i].degrees = *l->degrees;
    return 0;
}

static int read_point(struct lookup *l, struct topt_memo_point *p,
                      struct topt_solutions *ret)
{
    struct topt_solution s = {p->memory_bytes, p->time_ns,
                              topt_strategy_copy(p->strategy), *l->degrees, p};
    if (!s.strategy)
        return topt_nomem(l->err, "the search");
    ret->certificate.bound_ns = s.time_ns;
    if (!topt_solutions_append(ret, &s, 1, l->err))
        return 0;
    topt_strategy_destroy(s.strategy);
    return -1;
}

/* Of what takes less memory than the fastest nothing is as fast. */
static int answer_fastest(struct lookup *l, const struct topt_uniform_question *q,
                          struct topt_solutions *ret)
{
    const struct topt_memo_points *fast = &l->x->fastest, *below = &l->x->below;
    int rc = find_fastest(l), i;
    if (rc)
        return rc;
    topt_search_stats_add(&ret->certificate.stats, &fast->work);
    if (!fast->n || beyond(fast->at[0].time_ns, q->time_limit))
        return 0;
    if (!beyond(fast->at[0].memory_bytes, q->memory_limit))
        return read_point(l, &fast->at[0], ret);
    if ((rc = find_below(l)))
        return rc;
    topt_search_stats_add(&ret->certificate.stats, &below->work);
    for (i = below->n - 1; i >= 0; i--)
        if (!beyond(below->at[i].memory_bytes, q->memory_limit))
            break;
    return i >= 0 && !beyond(below->at[i].time_ns, q->time_limit)
               ? read_point(l, &below->at[i], ret)
               : 0;
}

/* Its strategy is never asked for. */
static int answer_least(struct lookup *l, const struct topt_uniform_question *q,
                        struct topt_solutions *ret)
{
    int rc = find_least(l);
    struct topt_solution s = {l->x->least_memory.memory, l->x->least_memory.time, NULL,
                              *l->degrees, NULL};
    if (rc || l->x->least_memory_known < 2 || !within(q, s.memory_bytes, s.time_ns))
        return rc;
    return topt_solutions_append(ret, &s, 1, l->err);
}

static int answer(struct lookup *l, const struct topt_uniform_question *q,
                  struct topt_solutions *ret)
{
    const struct topt_memo_entry *x = l->x;
    topt_problem_stats_add(&l->s->stats, &x->stats);
    l->s->stats.routes = -1; /* of one variant it is not known */
    if (!x->some || !within(q, x->least.memory, x->least.time))
        return 0;
    int rc =
        q->goal == TOPT_GOAL_LEAST ? answer_least(l, q, ret) : answer_fastest(l, q, ret);
    if (rc <= 0)
        return rc;
    topt_solutions_fini(ret);
    return answer_alone(l, q, ret);
}

int topt_uniform_solve(struct topt_grid_search *s, const struct topt_search_options *o,
                       const struct topt_uniform_question *q,
                       struct topt_degrees *degrees, struct topt_solutions *ret,
                       struct topt_error *err)
{
    struct lookup l;
    *ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    int rc = open_variant(&l, s, o, degrees, err) || answer(&l, q, ret);
    topt_problem_destroy(l.p);
    return rc ? -1 : 0;
}
