/* plan_check.c - every plan is costed again from scratch and lowered before it is given out.
 *
 * The search knows tables; this knows only the model, the strategy and the fragments.  Of
 * many strategies each is evaluated (topt_lower.h), and the first by the plain code as
 * well, which the evaluator must agree with.  Threads take a run of neighbours each, which
 * differ in little. */
#include "plan_check.h"
#include "grid.h"
#include "planning.h"
#include "free.h"
#include "topt_minmax.h"
#include "topt_pool.h"

#include <stdlib.h>

static const char checking[] = "checking strategies";

/* Is that what the search says, and does the program fit in it? */
static int hold(const struct topt_costing *k, const struct topt_strategy_cost *cost,
                int64_t peak, int64_t memory_bytes, int64_t time_ns,
                struct topt_error *err)
{
    if (cost->memory_bytes != memory_bytes || cost->time_ns != time_ns)
        return topt_fail(
            err, TOPT_ERR_INTERNAL,
            "check: the search says %lld bytes, %lld ns; the plan costs %lld, %lld",
            (long long)memory_bytes, (long long)time_ns, (long long)cost->memory_bytes,
            (long long)cost->time_ns);
    /* Our runtime's program is no measure for another system. */
    if (k->settings->accounting == TOPT_ACCOUNTING_RUN &&
        k->settings->gather == TOPT_GATHER_OPERATOR &&
        !topt_settings_scheduled(k->settings) && peak > memory_bytes)
        return topt_fail(err, TOPT_ERR_INTERNAL,
                         "check: the program needs %lld bytes, the plan says %lld",
                         (long long)peak, (long long)memory_bytes);
    return 0;
}

int topt_plan_check(const struct topt_costing *k, const struct topt_strategy *s,
                    int64_t memory_bytes, int64_t time_ns,
                    struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                    struct topt_error *err)
{
    struct topt_program *program;
    if (topt_cost_strategy(k, s, ret_cost, err) ||
        topt_lower(k->model, k->mesh, k->settings, s, k->router, 0, &program, err))
        return topt_wrap(err, "check");
    *ret_peak = k->settings->stages > 1 ? ret_cost->memory_bytes : program->peak_bytes;
    topt_program_destroy(program);
    return hold(k, ret_cost, *ret_peak, memory_bytes, time_ns, err);
}

/* ---- groups of unlike devices ------------------------------------------------------- */

int64_t topt_group_limit(const struct topt_request *r, int group)
{
    int64_t has = topt_hw_memory_bytes(topt_hw_group(r->hw, group));
    return r->memory_limit ? topt_min(has, r->memory_limit) : has;
}

int topt_neediest_group(const struct topt_request *r, const struct topt_group_costs *g)
{
    int worst = 0;
    double most = 0;
    for (int i = 0; i < g->n; i++) {
        double part = (double)g->of[i].memory_bytes / (double)topt_group_limit(r, i);
        worst = part > most ? i : worst;
        most = part > most ? part : most;
    }
    return worst;
}

int topt_groups_fit(const struct topt_request *r, const struct topt_group_costs *g)
{
    int need = topt_neediest_group(r, g);
    return g->of[need].memory_bytes <= topt_group_limit(r, need);
}

/* ---- many -------------------------------------------------------------------------- */

/* A checker of strategies under the costing of one model and one number of micro-batches. */
struct checker {
    struct topt_costing k;
    struct topt_evaluator *evaluator;
    int checked; /* one by the plain code */
    struct checker *next;
};

static int check_one(struct checker *c, const struct topt_solution *s,
                     struct topt_checked *ret, struct topt_error *err)
{
    struct topt_strategy_cost cost;
    int64_t peak = 0;
    if (topt_evaluate_strategy(c->evaluator, s->strategy, &ret->cost, &ret->peak_bytes,
                               err))
        return topt_wrap(err, "check");
    if (c->k.settings->stages > 1) /* no rank runs the program of all layers */
        ret->peak_bytes = ret->cost.memory_bytes;
    if (hold(&c->k, &ret->cost, ret->peak_bytes, s->memory_bytes, s->time_ns, err))
        return -1;
    if (c->checked)
        return 0;
    if (topt_plan_check(&c->k, s->strategy, s->memory_bytes, s->time_ns, &cost, &peak,
                        err))
        return -1;
    c->checked = 1;
    return peak == ret->peak_bytes
               ? 0
               : topt_fail(err, TOPT_ERR_INTERNAL,
                           "check: the program needs %lld bytes, the evaluator says %lld",
                           (long long)peak, (long long)ret->peak_bytes);
}

/* The checkers of points, made once: by shape, and for each shape by settings. */
struct shapes {
    struct topt_planning *micros;
    struct open_shape {
        struct topt_grid_search s;
        struct checker *checkers;
        struct open_shape *next;
    } * open;
};

static struct open_shape *shape_of(struct shapes *shapes, const struct topt_placed *p,
                                   struct topt_error *err)
{
    for (struct open_shape *o = shapes->open; o; o = o->next)
        if (o->s.mesh.nodes == p->nodes)
            return o;
    struct open_shape *o = calloc(1, sizeof *o);
    if (!o) {
        topt_nomem(err, checking);
        return NULL;
    }
    o->next = shapes->open;
    shapes->open = o;
    return topt_grid_open(&o->s, shapes->micros, p->nodes, p->per_node, TOPT_GOAL_FASTEST,
                          err)
               ? NULL
               : o;
}

static struct checker *checker_of(struct open_shape *o, const struct topt_degrees *v,
                                  struct topt_error *err)
{
    struct topt_costing k;
    if (topt_grid_costing(&o->s, v, &k, err))
        return NULL;
    for (struct checker *c = o->checkers; c; c = c->next)
        if (c->k.settings == k.settings && c->k.model == k.model)
            return c; /* context ranks have a model of their own */
    struct checker *c = calloc(1, sizeof *c);
    if (!c) {
        topt_nomem(err, checking);
        return NULL;
    }
    c->k = k;
    if (!(c->evaluator = topt_evaluator_create(&c->k, 1, err))) {
        free(c);
        return NULL;
    }
    c->next = o->checkers;
    return o->checkers = c;
}

static void shapes_fini(struct shapes *shapes)
{
    for (struct open_shape *o = shapes->open, *next; o; o = next) {
        next = o->next;
        for (struct checker *c = o->checkers, *after; c; c = after) {
            after = c->next;
            topt_evaluator_destroy(c->evaluator);
            free(c);
        }
        topt_grid_close(&o->s);
        free(o);
    }
}

static int check_point(struct shapes *shapes, const struct topt_placed *p,
                       struct topt_checked *ret, struct topt_error *err)
{
    struct open_shape *s = shape_of(shapes, p, err);
    struct checker *c = s ? checker_of(s, &p->s.degrees, err) : NULL;
    if (!c || check_one(c, &p->s, ret, err))
        return -1;
    TOPT_PROGRESS_ONE(shapes->micros->request->progress, checked);
    return 0;
}

/* ---- by several threads ------------------------------------------------------------ */

enum { WORTH_A_THREAD = 64 }; /* points */

struct team {
    struct topt_planning *micros;
    const struct topt_placed *at;
    struct topt_checked *ret;
    int n, nworkers;
    struct worker {
        int failed;
        struct topt_error err;
    } * worker;
};

static void check_run(void *ctx, int number)
{
    struct team *t = ctx;
    struct worker *w = &t->worker[number];
    struct shapes shapes = {.micros = t->micros};
    int from = (int)((int64_t)t->n * number / t->nworkers);
    int to = (int)((int64_t)t->n * (number + 1) / t->nworkers);
    for (int i = from; i < to && !w->failed; i++)
        w->failed = check_point(&shapes, &t->at[i], &t->ret[i], &w->err) != 0;
    shapes_fini(&shapes);
}

static int check_by(struct team *t, struct topt_error *err)
{
    struct topt_pool *pool = topt_pool_create(t->nworkers, err);
    if (!pool)
        return -1;
    topt_pool_run(pool, check_run, t);
    topt_pool_destroy(pool);
    for (int i = 0; i < t->nworkers; i++)
        if (t->worker[i].failed) {
            if (err)
                *err = t->worker[i].err; /* that of the first point that fails */
            return -1;
        }
    return 0;
}

int topt_points_check(struct topt_planning *m, const struct topt_placed *at, int n,
                      struct topt_checked *ret, struct topt_error *err)
{
    int most = 1 + n / WORTH_A_THREAD, threads = m->request->threads;
    struct team t = {.micros = m, .at = at, .ret = ret, .n = n};
    t.nworkers = threads < 1 ? 1 : threads < most ? threads : most;
    t.worker = calloc((size_t)t.nworkers, sizeof *t.worker);
    int rc = t.worker ? check_by(&t, err) : topt_nomem(err, checking);
    free(t.worker);
    return rc;
}
