/* together.c - all groups together in the questions about a number of devices: a row of
 * comparisons, and frontiers.
 *
 * Memory differs between groups; a point needs what its neediest group needs of a device. */
#include <stdlib.h>

#include "unequal_parts.h"
#include "topt_json.h"
#include "topt_minmax.h"
#include "topt_text.h"

/* The cost of shares: the slowest group's time and the neediest's memory. */
struct totals {
    int64_t time_ns, memory_bytes, compute_ns, micro_batches, limit;
    int nodes;
    json_t *band; /* owned */
    char *words;  /* owned */
};

static void totals_fini(struct totals *t)
{
    json_decref(t->band);
    free(t->words);
}

/* The totals of groups that have plans of their own. */
static int totals_of_own_plans(struct topt_unequal *u, const struct topt_shares *s,
                               struct totals *ret, struct topt_text *words,
                               struct topt_error *err)
{
    int64_t slowest = -1;
    topt_text_add(words, "rows by speed");
    for (int i = 0; i < u->n; i++) {
        const struct topt_group_plan *p;
        if (topt_group_plan(u, i, s->rows[i], s->where, s->share[i], &p, err))
            return -1;
        ret->memory_bytes = topt_max(ret->memory_bytes, p->memory_bytes);
        if (p->time_ns > slowest) {
            slowest = p->time_ns;
            ret->compute_ns = p->compute_ns;
            ret->micro_batches = p->micro_batches;
            json_decref(ret->band);
            ret->band = json_incref(json_object_get(p->answer, "band"));
        }
        topt_text_add(words, "; %s %lld: %s", topt_hw_name(u->group[i].hw),
                      (long long)s->rows[i], topt_json_words_at(p->answer, "strategy"));
    }
    return 0;
}

/* The totals of one strategy for all groups. */
static void totals_of_joint_plan(const struct topt_unequal *u, const struct topt_joint *j,
                                 struct totals *ret, struct topt_text *words)
{
    const json_t *predicted = json_object_get(j->plan, "predicted");
    const json_t *settings = json_object_get(j->plan, "settings");
    ret->time_ns = j->time_ns;
    ret->compute_ns = j->costs.of[j->costs.slowest].sum.compute_ns;
    ret->micro_batches = topt_max(1, topt_json_whole_at(settings, "micro_batches"));
    ret->band = json_incref(json_object_get(predicted, "band"));
    topt_text_add(words, "shares of one strategy:");
    for (int i = 0; i < u->n; i++) {
        ret->memory_bytes = topt_max(ret->memory_bytes, j->costs.of[i].memory_bytes);
        topt_text_add(words, "%s %s %.1f %%", i ? "," : "", topt_hw_name(u->group[i].hw),
                      100 * j->share[i]);
    }
    topt_text_add(words, "; %s", topt_json_words_at(j->plan, "strategy"));
}

static int find_totals(struct topt_unequal *u, const struct topt_shares *s,
                       struct totals *ret, struct topt_error *err)
{
    struct topt_text words = {0};
    struct topt_joint j;
    *ret = (struct totals){.time_ns = s->time_ns, .limit = topt_most_limit(u)};
    for (int i = 0; i < u->n; i++) {
        const struct topt_unequal_group *g = &u->group[i];
        ret->nodes += (g->devices - 1) / topt_hw_gpus_per_node(g->hw) + 1;
    }
    if (topt_joint_find(u, s, &j, err))
        return -1;
    int rc = 0;
    if (j.time_ns < s->time_ns)
        totals_of_joint_plan(u, &j, ret, &words);
    else
        rc = totals_of_own_plans(u, s, ret, &words, err);
    json_decref(j.plan);
    ret->words = words.s;
    return rc;
}

/* ---- a row -------------------------------------------------------------------------- */

static json_t *row_json(const struct totals *t, const struct topt_unequal *u)
{
    return json_pack(
        "{s:b, s:I, s:I, s:I, s:I, s:I, s:b, s:i, s:i, s:s, s:I}", "feasible", 1,
        "memory_bytes", (json_int_t)t->memory_bytes, "time_ns", (json_int_t)t->time_ns,
        "compute_ns", (json_int_t)t->compute_ns, "network_ns",
        (json_int_t)(t->time_ns - t->compute_ns), "overlapped_ns", (json_int_t)t->time_ns,
        "overlaps", 0, "nodes", t->nodes, "gpus_per_node", u->devices / t->nodes,
        "strategy", t->words ? t->words : "", "memory_limit", (json_int_t)t->limit);
}

static int answer(const struct topt_request *r, int64_t limit, json_t **ret,
                  struct topt_error *err)
{
    struct topt_unequal u;
    struct topt_shares best;
    struct totals t = {0};
    (void)limit; /* each group has its own */
    *ret = NULL;
    topt_unequal_init(&u, r);
    if (!u.n || r->gpus != u.devices) /* and nothing is owned yet */
        return 0;
    int rc = topt_shares_best(&u, &best, err);
    if (!rc && best.found) {
        rc = find_totals(&u, &best, &t, err);
        *ret = rc ? NULL : row_json(&t, &u);
    }
    totals_fini(&t);
    topt_unequal_fini(&u);
    return rc;
}

const struct topt_system topt_unequal_row = {
    .name = "ft",
    .searches = "shares of the batch and of the model's state for groups of unlike "
                "devices, and the whole space within each; or shares of one strategy",
    .ours = 1,
    .answer = answer};

/* ---- frontiers ---------------------------------------------------------------------- */

static int put_point(json_t *points, const struct totals *t, const struct topt_unequal *u,
                     struct topt_error *err)
{
    json_t *p = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:I}", "memory_bytes",
        (json_int_t)t->memory_bytes, "time_ns", (json_int_t)t->time_ns, "compute_ns",
        (json_int_t)t->compute_ns, "network_ns", (json_int_t)(t->time_ns - t->compute_ns),
        "peak_bytes", (json_int_t)t->memory_bytes, "nodes", t->nodes, "gpus_per_node",
        u->devices / t->nodes, "micro_batches", (json_int_t)t->micro_batches);
    if (p && t->band)
        json_object_set(p, "band", t->band);
    return p && !json_array_append_new(points, p) ? 0 : topt_nomem(err, "a frontier");
}

/* The best within a limit, after it the next one: three tenths less than that needed. */
static int sample(const struct topt_request *r, json_t *points, int64_t *most,
                  struct topt_error *err)
{
    enum { SAMPLES = 6 };
    struct topt_request at = *r;
    int rc = 0, more = 1;
    for (int i = 0; i < SAMPLES && more && !rc; i++) {
        struct topt_unequal u;
        struct topt_shares best;
        struct totals t = {0};
        topt_unequal_init(&u, &at);
        rc = topt_shares_best(&u, &best, err);
        more = !rc && best.found;
        if (more)
            rc = find_totals(&u, &best, &t, err) || put_point(points, &t, &u, err);
        *most = t.limit > *most ? t.limit : *most;
        at.memory_limit = t.memory_bytes / 10 * 7;
        totals_fini(&t);
        topt_unequal_fini(&u);
    }
    return rc ? -1 : 0;
}

static int lighter(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;
    int64_t m =
        topt_json_whole_at(*x, "memory_bytes") - topt_json_whole_at(*y, "memory_bytes");
    int64_t t = topt_json_whole_at(*x, "time_ns") - topt_json_whole_at(*y, "time_ns");
    return m ? (m > 0) - (m < 0) : (t > 0) - (t < 0);
}

/* Merge the points of both that nothing dominates; with equal shares those that every device
 * holds. */
static json_t *reduced(const json_t *equal, const json_t *shared, int64_t limit)
{
    size_t k, n = 0, most = json_array_size(equal) + json_array_size(shared);
    int64_t best = INT64_MAX;
    json_t **at = calloc(most + 1, sizeof *at), *kept, *point;
    if (!at)
        return NULL;
    json_array_foreach(equal, k, point)
    {
        if (topt_json_whole_at(point, "memory_bytes") <= limit)
            at[n++] = point;
    }
    json_array_foreach(shared, k, point)
    {
        at[n++] = point;
    }
    qsort(at, n, sizeof *at, lighter);
    kept = json_array();
    for (k = 0; k < n; k++)
        if (topt_json_whole_at(at[k], "time_ns") < best) {
            best = topt_json_whole_at(at[k], "time_ns");
            json_array_append(kept, at[k]);
        }
    free(at);
    return kept;
}

int topt_unequal_frontier(const struct topt_request *r, json_t **ret,
                          struct topt_error *err)
{
    json_t *doc = NULL, *shared = json_array(), *points = NULL;
    int64_t most = 0;
    *ret = NULL;
    int rc = !shared ? topt_nomem(err, "a frontier")
                     : topt_plan_frontier(r, &doc, err) || sample(r, shared, &most, err);
    if (!rc) {
        points = reduced(json_object_get(doc, "points"), shared,
                         topt_json_whole_at(doc, "memory_limit"));
        rc = points ? 0 : topt_nomem(err, "a frontier");
    }
    json_decref(shared);
    if (rc) {
        json_decref(doc);
        return -1;
    }
    json_object_set_new(doc, "points", points);
    json_object_set_new(doc, "exact", json_false());
    json_object_set_new(doc, "epsilon", json_null());
    if (most)
        json_object_set_new(doc, "memory_limit", json_integer(most));
    *ret = doc;
    return 0;
}
