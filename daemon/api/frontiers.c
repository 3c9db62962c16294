/* frontiers.c - see frontiers.h. */
#include "frontiers.h"

#include <stdlib.h>
#include <string.h>

#include "topt_log.h"
#include "topt_pack.h"

enum { MOST_FRONTIERS = 64 << 20 }; /* bytes of what is kept of one problem */

static struct store_key problem_of(const struct operation *o)
{
    return (struct store_key){o->model_id, o->hw_id, o->problem};
}

char *frontiers_get(struct server *s, const struct operation *o)
{
    const struct store_key key = problem_of(o);
    struct topt_error err = {0};
    void *packed = NULL;
    size_t len, n;
    char *text = NULL;
    if (store_get_frontier(s->store, &key, &packed, &len, &err) > 0 &&
        topt_unpack(packed, len, MOST_FRONTIERS, &text, &n, &err) < 0)
        text = NULL;
    free(packed);
    return text;
}

void frontiers_put(struct server *s, const struct operation *o, const char *text)
{
    const struct store_key key = problem_of(o);
    struct topt_error err = {0};
    void *packed = NULL;
    size_t len, n = strlen(text);
    if (n > MOST_FRONTIERS || topt_pack(text, n, &packed, &len, &err) < 0)
        return;
    if (store_put_frontier(s->store, &key, packed, len, &err) < 0)
        topt_log(TOPT_LOG_DEBUG, "search %s: frontiers are not kept: %s", o->model_id,
                 err.text);
    free(packed);
}

/* ---- the rest, behind a question ------------------------------------------------------------- */

struct rest {
    struct server *server;
    struct job *job;
};

static void ended(void *ctx)
{
    struct rest *rest = ctx;
    job_release(rest->job);
    atomic_store(&rest->server->completing, false);
    free(rest);
}

/* A copy of the question that asks for all of its problem; NULL without memory. */
static struct operation *rest_of(const struct operation *plan)
{
    struct operation *o = operation_create(OPERATION_COMPLETE);
    if (!o)
        return NULL;
    o->query = plan->query;
    char **const to[] = {&o->model_id, &o->model_name, &o->model,  &o->hw_id,
                         &o->hw,       &o->text,       &o->problem};
    const char *const from[] = {plan->model_id, plan->model_name, plan->model,
                                plan->hw_id,    plan->hw,         plan->text,
                                plan->problem};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        if (!(*to[i] = strdup(from[i]))) {
            operation_destroy(o);
            return NULL;
        }
    return o;
}

/* Hand the job to the workers; 0, or -1 where they don't take it. */
static int submit_rest(struct server *s, struct operation *o, const struct job_kind *kind)
{
    const struct config *c = s->config;
    struct topt_error err = {0};
    struct topt_text key = {0};
    struct rest *rest = malloc(sizeof *rest);
    int shared;
    topt_text_add(&key, "complete %s %s %s", o->model_id, o->hw_id, o->problem);
    if (!rest || key.oom) {
        topt_text_fini(&key);
        operation_destroy(o);
        free(rest);
        return -1;
    }
    rest->server = s;
    struct jobs_work work = {.key = key.s,
                             .data = o,
                             .kind = kind,
                             .uid = LANES_NOBODY,
                             .lane = LANE_SEARCH,
                             .cost = LANES_LATER};
    if (jobs_submit(s->jobs, &work, &rest->job, &shared, &err) != JOBS_TAKEN) {
        free(rest);
        return -1;
    }
    job_notify(rest->job, c->search_limit * 1000, ended, rest);
    return 0;
}

void frontiers_complete(struct server *s, const struct operation *plan,
                        const struct job_kind *kind)
{
    struct jobs_counts n;
    jobs_count(s->jobs, &n);
    if (n.queued || n.submit_queued || atomic_exchange(&s->completing, true))
        return;
    struct operation *o = rest_of(plan);
    if (!o || submit_rest(s, o, kind) < 0)
        atomic_store(&s->completing, false);
}

int frontiers_run(struct server *s, const struct job_run *run, struct operation *o,
                  struct topt_error *err)
{
    const struct config *c = s->config;
    const struct operation_limits limits = {(int)c->threads, c->max_table_bytes};
    struct operation_answer found;
    char *kept = frontiers_get(s, o);
    int rc = operation_search(s->pool, run, o, &limits, kept, &found, err);
    if (rc == 0 && found.frontiers)
        frontiers_put(s, o, found.frontiers);
    topt_log(TOPT_LOG_DEBUG, "frontiers of %s: %s", o->model_id,
             rc < 0            ? err->text
             : found.frontiers ? "complete"
                               : "nothing was missing");
    free(kept);
    if (rc == 0)
        free(found.frontiers);
    return rc;
}
