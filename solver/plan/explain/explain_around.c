/* explain_around.c - why not fewer GPUs, and what more would buy: the neighbouring counts
 * asked what the plan was asked. */
#include "explain_parts.h"
#include "ask.h"
#include "planning.h"
#include "request.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_json.h"
#include "topt_question.h"

#include <stdlib.h>

/* The request that the plan answers, as far as its document says. */
static int request_of(const struct topt_plan_doc *p, const json_t *doc,
                      const struct topt_explain_options *o, struct topt_request *r,
                      struct topt_error *err)
{
    const char *space = json_string_value(json_object_get(doc, "space"));
    const char *blocks = json_string_value(json_object_get(doc, "blocks"));
    topt_request_init(r);
    r->model = p->model;
    r->hw = p->hw;
    r->mode = TOPT_MINI_TIME;
    r->settings = p->settings;
    r->memory_limit = topt_json_whole_at(doc, "memory_limit");
    r->algorithm = json_string_value(json_object_get(doc, "algorithm"));
    r->epsilon = json_number_value(json_object_get(doc, "epsilon"));
    r->threads = o->threads;
    r->progress = o->progress;
    r->cancel = o->cancel;
    const char *framework = json_string_value(json_object_get(doc, "framework"));
    r->counts = framework ? TOPT_COUNTS_WHOLE : TOPT_COUNTS_ANY;
    if (framework && topt_framework_find(framework, &r->framework, err))
        return -1;
    if ((space && topt_space_parse(space, &r->space, err)) ||
        (blocks && topt_blocks_parse(blocks, &r->blocks, err)))
        return -1;
    if (r->space == TOPT_SPACE_UNIFORM)
        return 0;
    for (int i = 0; i < p->model->nops; i++)
        if (p->strategy->config[i].recompute)
            r->factors = TOPT_FACTOR_ZERO | TOPT_FACTOR_RECOMPUTE;
    r->micro_batches = p->settings.micro_batches;
    return 0;
}

/* The counts that are asked about, ascending: the nearest ones that the request tries and
 * that can share the batch, and twice as many.  Returns how many, or -1. */
static int counts_of(const struct topt_request *r, int64_t gpus, int64_t ret[3],
                     struct topt_error *err)
{
    int64_t *count = NULL, fewer = 0, more = 0, twice = 0;
    struct topt_planning m;
    int all = 0, n = 0;
    if (topt_planning_init(&m, r, err))
        return -1;
    int rc = topt_request_counts(r, &count, &all, err);
    for (int i = 0; !rc && i < all; i++) {
        if (!topt_count_divides_batch(&m, count[i], NULL))
            continue;
        if (count[i] < gpus)
            fewer = count[i];
        if (count[i] > gpus && !more)
            more = count[i];
        if (count[i] == 2 * gpus)
            twice = count[i];
    }
    topt_planning_fini(&m);
    free(count);
    const int64_t near[] = {fewer, more, twice != more ? twice : 0};
    for (int i = 0; i < 3; i++)
        if (near[i])
            ret[n++] = near[i];
    return rc ? -1 : n;
}

json_t *topt_explain_around_json(const struct topt_plan_doc *p, const json_t *doc,
                                 const struct topt_explain_options *o,
                                 struct topt_error *err)
{
    struct topt_request r;
    int64_t count[3];
    int n =
        request_of(p, doc, o, &r, err) ? -1 : counts_of(&r, p->mesh.devices, count, err);
    if (n < 0)
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *answer;
        r.gpus = count[i];
        if (topt_plan(&r, &answer, err)) {
            json_decref(list);
            return NULL;
        }
        json_t *fits = json_object_get(answer, "feasible");
        const json_t *what =
            json_is_true(fits) ? answer : json_object_get(answer, "nearest");
        json_array_append_new(
            list, json_pack("{s:I, s:O, s:I, s:I, s:I}", "gpus", (json_int_t)count[i],
                            "feasible", fits, "memory_limit",
                            (json_int_t)(r.memory_limit ? r.memory_limit
                                                        : topt_hw_memory_bytes(p->hw)),
                            "memory_bytes",
                            (json_int_t)topt_json_whole_at(what, "memory_bytes"),
                            "time_ns", (json_int_t)topt_json_whole_at(what, "time_ns")));
        json_decref(answer);
    }
    return list;
}

static void put_infeasible(struct topt_text *t, const json_t *answer)
{
    char a[32], b[32];
    int64_t need = topt_json_whole_at(answer, "memory_bytes"),
            limit = topt_json_whole_at(answer, "memory_limit");
    if (json_is_null(json_object_get(answer, "feasible")))
        topt_text_add(t, "it was not found to fit\n");
    else
        topt_text_add(
            t, "does not fit: it would need at least %s a GPU, %s more than there is\n",
            topt_show_bytes(need, a, sizeof a),
            topt_show_bytes(need - limit, b, sizeof b));
}

static void put_feasible(struct topt_text *t, const struct topt_plan_doc *p,
                         const json_t *answer, int64_t gpus)
{
    char a[32], b[32];
    int64_t ns = topt_json_whole_at(answer, "time_ns");
    double times = (double)p->time_ns / (double)ns;
    double devices = (double)gpus / p->mesh.devices;
    topt_text_add(
        t, "%s a step and %s a GPU: ", topt_show_ns(ns, a, sizeof a),
        topt_show_bytes(topt_json_whole_at(answer, "memory_bytes"), b, sizeof b));
    if (gpus > p->mesh.devices)
        topt_text_add(t, "%.2f times as fast with %.3g times the GPUs (%.0f %% kept)\n",
                      times, devices, 100 * times / devices);
    else
        topt_text_add(t, "it fits too, and takes %.2f times as long\n", 1 / times);
}

void topt_explain_around(struct topt_text *t, const struct topt_plan_doc *p,
                         const json_t *doc, const json_t *around)
{
    size_t i;
    json_t *x;
    /* Parts that are pinned are those of one number. */
    topt_text_add(t, "\nOther numbers of GPUs%s:\n",
                  json_object_get(doc, "pins") ? ", where nothing is pinned" : "");
    json_array_foreach(around, i, x)
    {
        int64_t gpus = topt_json_whole_at(x, "gpus");
        topt_text_add(t, "  %lld GPU%s: ", (long long)gpus, gpus > 1 ? "s" : "");
        if (json_is_true(json_object_get(x, "feasible")))
            put_feasible(t, p, x, gpus);
        else
            put_infeasible(t, x);
    }
}
