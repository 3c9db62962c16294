/* frontiers.c - the frontiers of one problem: made complete, asked, written down and read. */
#include "topt_frontiers.h"
#include "algorithm.h"
#include "ask.h"
#include "gpu_count.h"
#include "fewest.h"
#include "variant_cache.h"
#include "planning.h"
#include "request.h"
#include "topt_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct topt_frontiers {
    char problem[TOPT_ID];
    struct topt_variant_cache *cache;
};

int topt_frontiers_keeps(const struct topt_request *r)
{
    return r->space == TOPT_SPACE_UNIFORM && r->blocks != TOPT_BLOCKS_FREE &&
           !r->max_work && !r->pin &&
           topt_request_limit(r) <= topt_hw_memory_bytes(r->hw) &&
           (!r->algorithm || !strcmp(r->algorithm, "ft"));
}

/* ---- which problem ----------------------------------------------------------------- */

static json_t *settings_json(const struct topt_settings *s)
{
    return json_pack("[i, i, I, i, i, i, i, i, I, I, I, i, i, i, i]", s->dtype,
                     s->optimizer, (json_int_t)s->granule_bytes, s->gradient_f32,
                     s->state_bf16, s->shard_f32, s->gather, s->by_unit,
                     (json_int_t)s->pool_numbers, (json_int_t)s->bucket_numbers,
                     (json_int_t)s->vocab_multiple, s->allocator_permille, s->accounting,
                     s->overlap, s->eager);
}

int topt_frontiers_problem(const struct topt_request *r, char ret[TOPT_ID],
                           struct topt_error *err)
{
    struct topt_settings s = topt_request_settings(r);
    json_t *doc = json_pack(
        "{s:o, s:o, s:o, s:s, s:i, s:i, s:I, s:I}", "model", topt_model_to_json(r->model),
        "hw", topt_hw_to_json(r->hw), "settings", settings_json(&s), "framework",
        r->framework ? r->framework->name : "", "sequence", r->sequence_splits,
        "positions", topt_request_positions(r), "max_entries", (json_int_t)r->max_entries,
        "max_table_bytes", (json_int_t)r->max_table_bytes);
    int rc = doc ? topt_json_id(doc, 'f', ret) : -1;
    json_decref(doc);
    return rc ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for frontiers") : 0;
}

static int not_cached(struct topt_error *err)
{
    return topt_fail(
        err, TOPT_ERR_INVAL,
        "frontiers are kept of the uniform space, where blocks choose alike, "
        "limits are the device's or less, and work is not limited");
}

static int same_problem(const char *problem, const struct topt_request *r,
                        struct topt_error *err)
{
    char own[TOPT_ID];
    if (!topt_frontiers_keeps(r))
        return not_cached(err);
    if (topt_frontiers_problem(r, own, err))
        return -1;
    return strcmp(problem, own)
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "these are frontiers of problem %s, and %s is asked for",
                           problem, own)
               : 0;
}

/* ---- made -------------------------------------------------------------------------- */

/* Takes what is kept over; NULL without memory. */
static struct topt_frontiers *wrap(const char *problem, struct topt_variant_cache *cache)
{
    struct topt_frontiers *f = calloc(1, sizeof *f);
    if (!f || !cache) {
        topt_variant_cache_destroy(cache);
        free(f);
        return NULL;
    }
    snprintf(f->problem, sizeof f->problem, "%s", problem);
    f->cache = cache;
    return f;
}

int topt_frontiers_create(const struct topt_request *r, struct topt_frontiers **ret,
                          struct topt_error *err)
{
    char problem[TOPT_ID];
    if (!topt_frontiers_keeps(r))
        return not_cached(err);
    if (topt_frontiers_problem(r, problem, err))
        return -1;
    *ret = wrap(problem, topt_variant_cache_create());
    return *ret ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for frontiers");
}

void topt_frontiers_destroy(struct topt_frontiers *f)
{
    if (!f)
        return;
    topt_variant_cache_destroy(f->cache);
    free(f);
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the lightest on so many needs; INT64_MAX where there is nothing. */
static int least_of(struct topt_planning *m, int64_t gpus, int64_t *ret,
                    struct topt_error *err)
{
    struct topt_best b;
    if (topt_count_solve(m, gpus, 0, TOPT_GOAL_LEAST, &b, err))
        return -1;
    *ret = b.found ? b.solution.memory_bytes : INT64_MAX;
    topt_best_fini(&b);
    return 0;
}

/* All of one count: what is tried first, and what is tried where that does not fit. */
static int complete_count(struct topt_planning *m, struct topt_reach *ret,
                          struct topt_error *err)
{
    int64_t most = ret->most, least;
    for (int i = 0, where; (where = topt_request_tensor_at(m->request, i)) >= 0; i++) {
        m->tensor = (enum topt_tensor_where)where;
        if (!topt_count_divides_batch(m, ret->gpus, NULL))
            continue;
        if (topt_count_complete(m, ret->gpus, most, err) ||
            least_of(m, ret->gpus, &least, err))
            return -1;
        most = at_most(most, least - 1);
        if (i == 0)
            ret->most = most;
    }
    return 0;
}

static int complete_all(struct topt_planning *m, const int64_t *count, int n,
                        struct topt_error *err)
{
    struct topt_reach *of = calloc((size_t)n + 1, sizeof *of);
    int rc = of ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for frontiers");
    for (int i = 0; i < n && !rc; i++) {
        of[i] = (struct topt_reach){count[i], topt_hw_memory_bytes(m->request->hw)};
        rc = complete_count(m, &of[i], err);
    }
    rc = rc || topt_fewest_complete(m, of, n, err);
    free(of);
    return rc ? -1 : 0;
}

int topt_frontiers_complete(struct topt_frontiers *f, const struct topt_request *r,
                            struct topt_error *err)
{
    struct topt_planning m;
    int64_t *count;
    int n;
    if (same_problem(f->problem, r, err) || topt_request_check(r, err) ||
        topt_request_counts(r, &count, &n, err))
        return -1;
    int rc = topt_planning_init(&m, r, err);
    if (!rc) {
        m.cache = f->cache;
        rc = complete_all(&m, count, n, err);
        topt_planning_fini(&m);
    }
    free(count);
    return rc;
}

/* ---- asked ------------------------------------------------------------------------- */

int topt_frontiers_answer(struct topt_frontiers *f, const struct topt_request *r,
                          json_t **ret, struct topt_error *err)
{
    *ret = NULL;
    return same_problem(f->problem, r, err) ? -1
                                            : topt_answer_plan(r, f->cache, ret, err);
}

int64_t topt_frontiers_searches(const struct topt_frontiers *f)
{
    return f->cache->searches + (f->cache->lora ? f->cache->lora->searches : 0);
}

int topt_frontiers_grew(const struct topt_frontiers *f)
{
    return f->cache->grew || (f->cache->lora && f->cache->lora->grew);
}

/* ---- documents --------------------------------------------------------------------- */

json_t *topt_frontiers_to_json(const struct topt_frontiers *f)
{
    json_t *doc = json_pack("{s:s, s:s, s:s}", "format", "topt-frontiers/1", "version",
                            TOPT_VERSION, "problem", f->problem);
    json_t *cache = topt_variant_cache_to_json(f->cache);
    if (doc && cache)
        json_object_update(doc, cache);
    json_decref(cache);
    return doc;
}

int topt_frontiers_from_json(const json_t *doc, struct topt_frontiers **ret,
                             struct topt_error *err)
{
    static const char *const allowed[] = {"format",  "version", "problem",
                                          "counts",  "grids",   "strategies",
                                          "symbols", "lora",    NULL};
    const char *version, *problem;
    struct topt_variant_cache *cache;
    if (topt_json_format(doc, "frontiers", err) ||
        topt_json_only(doc, "", allowed, err) ||
        topt_json_string(doc, "", "version", &version, err) ||
        topt_json_string(doc, "", "problem", &problem, err))
        return -1;
    if (strcmp(version, TOPT_VERSION))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "these frontiers were made by topt %.20s, this is " TOPT_VERSION,
                         version);
    if (topt_variant_cache_read(doc, &cache, err))
        return -1;
    *ret = wrap(problem, cache);
    return *ret ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for frontiers");
}
