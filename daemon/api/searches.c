/* searches.c - what is done for a handler by a worker process: bodies are read, profiles checked,
 * plans searched.
 *
 * The last act of a search is to store what it found (model, plan and answer together), so a plan
 * is pinned before anybody hears of it, and fresh, cached and polled answers are one path. */
#include "answers.h"
#include "operation.h"
#include "topt_clock.h"
#include "server.h"
#include "topt_log.h"

#include <stdio.h>
#include <stdlib.h>

/* One choice for the whole model is found in milliseconds. */
enum metrics_lane lane_of(const struct topt_query *q)
{
    return q->kind == TOPT_QUERY_PLAN && cost_is_uniform(q) ? METRICS_SUBMIT
                                                            : METRICS_SEARCH;
}

static int search(struct server *s, const struct job_run *run, struct operation *x,
                  struct store_answer *ret, struct topt_error *err)
{
    const struct config *c = s->config;
    const struct operation_limits limits = {(int)c->threads, c->max_table_bytes};
    int searched = 1;
    int64_t start = topt_clock_ns();
    int rc = operation_search(s->pool, run, x, &limits, ret, &searched, err);
    ret->search_ns = topt_clock_ns() - start;
    atomic_fetch_add(searched ? &s->metrics.searches : &s->metrics.remembered, 1);
    metrics_search(&s->metrics, lane_of(&x->query),
                   rc == 0 ? ret->feasible ? METRICS_FOUND : METRICS_NOTHING_FITS
                   : err->code == TOPT_ERR_CANCELED ? METRICS_CANCELED
                                                    : METRICS_SEARCH_FAILED,
                   ret->search_ns / 1000000);
    if (rc == 0 && searched)
        cost_learn(&s->costs, &x->query, (double)ret->search_ns / 1e9);
    return rc;
}

static int run_plan(struct server *s, const struct job_run *run, struct operation *x,
                    struct topt_error *err)
{
    const struct store_key key = answer_key(x);
    const struct store_doc model = {x->model_id, x->model_name, x->model};
    const struct store_answer *known;
    struct store_answer a = {0};
    enum store_kept kept = STORE_ALL;
    int rc = answer_known(s, x, &a, &known, err); /* since it was asked? */
    if (rc == 0) {
        rc = search(s, run, x, &a, err);
        if (rc == 0)
            rc = store_publish(s->store, &key, &model, &a, x->uid, &kept, err);
        if (rc == 0 && kept == STORE_NOTHING)
            topt_log(TOPT_LOG_WARN, "search %s: answered, but not stored: %s",
                     x->model_id, err->text);
    }
    if (rc < 0) {
        atomic_fetch_add(&s->metrics.failed, 1);
        topt_log(TOPT_LOG_INFO, "search %s: %s: %s", x->model_id,
                 topt_err_name(err->code), err->text);
    } else {
        topt_log(TOPT_LOG_INFO, "search %s: %s in %lld ms", x->model_id,
                 a.plan_id    ? a.plan_id
                 : a.feasible ? "answered"
                              : "no plan",
                 (long long)(a.search_ns / 1000000));
    }
    if (rc >= 0 && kept != STORE_ALL) { /* the operation gives it */
        x->found = a;
        x->is_pinned = kept != STORE_NOTHING;
    } else {
        store_answer_fini(&a);
    }
    return rc < 0 ? -1 : 0;
}

static int run_operation(void *server, const struct job_run *run, void *operation,
                         struct topt_error *err)
{
    struct server *s = server;
    struct operation *o = operation;
    return o->kind == OPERATION_PLAN ? run_plan(s, run, o, err)
                                     : operation_run(s->pool, run, o, err);
}

const struct job_kind operation_kind = {run_operation, operation_trim, operation_destroy};
