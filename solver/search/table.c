/* table.c - factor tables, and the one step that makes a new table of two.
 *
 * Entries of a new table do not depend on each other, so threads take runs of them from a
 * counter and fill buffers of their own; then the buffers are copied together in the order
 * of the entries.  An entry is always made by the same code from the same inputs, so the
 * table does not depend on the number of threads, and neither do the counts.
 *
 * Points over the memory limit are never kept, where the limit of a table is what the rest
 * of the problem leaves: the limit less the lightest point of every part that is not in the
 * table yet.  The bound of the parts is fixed at the start, so that equal recipes still give
 * equal tables. */
#include "bounds.h"

#include <stdlib.h>
#include <string.h>

#define NBUCKETS     4096
#define WORTH_WAKING 4096 /* sources in a step below which the caller works alone */

uint64_t topt_hash(const void *data, size_t len, uint64_t h)
{
    const unsigned char *p = data;
    uint64_t word;
    for (; len >= 8; len -= 8, p += 8) {
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    for (; len; len--, p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h ^ (h >> 32);
}

int topt_tables_init(struct tables *ts, const struct topt_search_options *options,
                     struct topt_error *err)
{
    int n = options->threads > 1 ? options->threads : 1;
    *ts = (struct tables){.options = options, .shrink = 1};
    ts->max_bytes = options->max_bytes ? options->max_bytes : TOPT_SEARCH_MAX_BYTES;
    ts->pool = topt_pool_create(n, err);
    if (!ts->pool)
        return -1;
    ts->merge = calloc((size_t)n, sizeof *ts->merge);
    ts->bucket = calloc(NBUCKETS, sizeof *ts->bucket);
    if (!ts->merge || !ts->bucket)
        return topt_search_nomem(err);
    for (int i = 0; i < n; i++)
        ts->merge[i] = (struct merge){.options = options, .max_bytes = ts->max_bytes};
    return 0;
}

static void free_table(struct table *t)
{
    free(t->first);
    free(t->cost);
    free(t->back);
    free(t->recipe);
    free(t);
}

void topt_tables_fini(struct tables *ts)
{
    for (int i = 0; ts->merge && i < topt_pool_threads(ts->pool); i++)
        topt_merge_fini(&ts->merge[i]);
    topt_pool_destroy(ts->pool);
    for (size_t i = 0; i < ts->nall; i++)
        free_table(ts->all[i]);
    free(ts->all);
    free(ts->merge);
    free(ts->bucket);
}

int topt_tables_account(struct tables *ts, int64_t bytes, struct topt_error *err)
{
    if (bytes > ts->max_bytes - ts->bytes)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "the search needs more than %lld bytes; give a memory limit, an "
                         "epsilon or fewer configurations",
                         (long long)ts->max_bytes);
    ts->bytes += bytes;
    if (ts->bytes > ts->stats.peak_bytes)
        ts->stats.peak_bytes = ts->bytes;
    return 0;
}

static int remember(struct tables *ts, struct table *t)
{
    if (ts->nall == ts->cap_all) {
        size_t cap = ts->cap_all ? 2 * ts->cap_all : 256;
        struct table **all = realloc(ts->all, cap * sizeof(*all));
        if (!all)
            return -1;
        ts->all = all;
        ts->cap_all = cap;
    }
    t->id = (int)ts->nall;
    ts->all[ts->nall++] = t;
    return 0;
}

static int64_t bytes_of(int64_t nentries, uint32_t npoints)
{
    return (nentries + 1) * (int64_t)sizeof(uint32_t) +
           npoints * (int64_t)(sizeof(struct topt_cost) + sizeof(struct back));
}

/* A table without arrays. */
static struct table *add_bare(struct tables *ts, int64_t nentries, struct topt_error *err)
{
    struct table *t = calloc(1, sizeof *t);
    if (!t || remember(ts, t)) {
        free(t);
        topt_search_nomem(err);
        return NULL;
    }
    t->nentries = nentries;
    t->growth = 1;
    return t;
}

static int add_arrays(struct tables *ts, struct table *t, uint32_t npoints,
                      struct topt_error *err)
{
    size_t n = npoints ? npoints : 1;
    if (topt_tables_account(ts, bytes_of(t->nentries, npoints), err))
        return -1;
    t->npoints = npoints;
    t->first = calloc((size_t)t->nentries + 1, sizeof *t->first);
    t->cost = malloc(n * sizeof *t->cost);
    t->back = malloc(n * sizeof *t->back);
    if (!t->first || !t->cost || !t->back)
        return topt_search_nomem(err);
    ts->stats.tables++;
    ts->stats.points += npoints;
    return 0;
}

struct table *topt_tables_add(struct tables *ts, int64_t nentries, uint32_t npoints,
                              struct topt_error *err)
{
    struct table *t = add_bare(ts, nentries, err);
    return t && !add_arrays(ts, t, npoints, err) ? t : NULL;
}

int topt_tables_make_empty(struct tables *ts, struct table *t, struct topt_error *err)
{
    return add_arrays(ts, t, 0, err);
}

void topt_tables_forget(struct tables *ts, struct table *t)
{
    if (t->cost)
        ts->bytes -= t->npoints * (int64_t)sizeof *t->cost;
    free(t->cost);
    t->cost = NULL;
}

void topt_tables_unmake(struct tables *ts, struct table *t)
{
    topt_tables_forget(ts, t);
    if (t->first)
        ts->bytes -=
            bytes_of(t->nentries, t->npoints) - t->npoints * (int64_t)sizeof *t->cost;
    free(t->first);
    free(t->back);
    t->first = NULL;
    t->back = NULL;
    t->npoints = 0;
}

void topt_tables_release(struct tables *ts, struct table *t)
{
    if (--t->refs || t->leaf || t->planned || !t->narrow || t->hits || !t->recipe)
        return;
    struct table **link = &ts->bucket[t->hash % NBUCKETS];
    while (*link && *link != t)
        link = &(*link)->next;
    if (!*link)
        return;
    *link = t->next;
    topt_tables_forget(ts, t);
}

/* ---- building ---- */

struct job {
    struct tables *ts;
    const struct step *step;
    const struct table *made; /* NULL: not planned */
    int64_t chunk;
    atomic_llong next;
    atomic_int failed;
    uint64_t *at;     /* by entry: where in its thread's buffer */
    uint32_t *count;  /* by entry */
    uint16_t *worker; /* by entry */
};

static struct run entry_of(const struct table *t, int64_t e)
{
    return (struct run){t->cost + t->first[e], t->first[e + 1] - t->first[e], t->first[e],
                        t->first_bound + e};
}

void topt_step_entries(const struct step *s, int64_t x, int64_t *ret_a, int64_t *ret_b)
{
    int64_t ea = 0, eb = 0;
    const int32_t *off = s->kfirst; /* dimensions stand before it, last one nearest */
    for (int d = s->ndims - 1; d >= 0; d--) {
        off -= 2 * s->size[d];
        int64_t at = x % s->size[d];
        x /= s->size[d];
        ea += off[at];
        eb += off[s->size[d] + at];
    }
    *ret_a = ea;
    *ret_b = eb;
}

static int build_entry(const struct job *job, struct merge *m, int64_t e)
{
    static const struct topt_cost zero;
    const struct step *s = job->step;
    const struct bounds *bounds = job->ts->bounds;
    int64_t ea, eb;
    int group = (int)(e % s->ngroups);
    if (bounds && !topt_bounds_of_entry(bounds, job->made->first_bound + e, m))
        return 0;
    topt_step_entries(s, e / s->ngroups, &ea, &eb);
    for (int32_t k = s->kfirst[group]; k < s->kfirst[group + 1]; k++) {
        struct run b = {&zero, 1, 0, 0};
        if (s->b)
            b = entry_of(s->b, eb + s->kb[k]);
        if (topt_merge_add(m, entry_of(s->a, ea + s->ka[k]), b))
            return -1;
    }
    return topt_merge_run(m);
}

static void build_entries(void *ctx, int worker)
{
    struct job *job = ctx;
    struct merge *m = &job->ts->merge[worker];
    int64_t n = job->step->nentries;
    for (;;) {
        int64_t from = atomic_fetch_add(&job->next, job->chunk);
        int64_t to = from + job->chunk < n ? from + job->chunk : n;
        for (int64_t e = from; e < to; e++) {
            size_t start = m->n;
            if (atomic_load_explicit(&job->failed, memory_order_relaxed))
                return;
            if (build_entry(job, m, e)) {
                atomic_store(&job->failed, 1);
                return;
            }
            job->at[e] = start;
            job->count[e] = (uint32_t)(m->n - start);
            job->worker[e] = (uint16_t)worker;
        }
        if (to >= n)
            return;
    }
}

/* The least points that the step looks at, to tell whether threads are worth waking. */
static double effort(const struct step *s)
{
    double k = (double)s->kfirst[s->ngroups] / s->ngroups;
    double a = (double)s->a->npoints / (double)s->a->nentries;
    double b = s->b ? (double)s->b->npoints / (double)s->b->nentries : 1;
    return (double)s->nentries * k * (a > b ? a : b);
}

static int job_error(const struct tables *ts, struct topt_error *err)
{
    enum topt_err worst = TOPT_OK;
    int too_big = 0;
    for (int i = 0; i < topt_pool_threads(ts->pool); i++) {
        const struct merge *m = &ts->merge[i];
        /* Canceled and out of memory say more than an overflow elsewhere. */
        if (m->failed && (worst == TOPT_OK || m->failed != TOPT_ERR_LIMIT))
            worst = m->failed;
        too_big |= m->too_big;
    }
    if (worst == TOPT_ERR_CANCELED)
        return topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled");
    if (worst == TOPT_ERR_NOMEM)
        return topt_search_nomem(err);
    if (too_big)
        return topt_fail(err, TOPT_ERR_LIMIT, "the search needs more than %lld bytes",
                         (long long)ts->max_bytes);
    return topt_search_overflow(err);
}

static void copy_together(struct tables *ts, const struct job *job, struct table *t)
{
    uint32_t at = 0;
    for (int64_t e = 0; e < t->nentries; e++) {
        const struct merge *m = &ts->merge[job->worker[e]];
        uint32_t n = job->count[e];
        t->first[e] = at;
        if (n) {
            memcpy(t->cost + at, m->cost + job->at[e], n * sizeof *t->cost);
            memcpy(t->back + at, m->back + job->at[e], n * sizeof *t->back);
        }
        at += n;
        if (n > (uint32_t)ts->stats.max_frontier)
            ts->stats.max_frontier = (int)n;
    }
    t->first[t->nentries] = at;
}

static void prepare(struct tables *ts, const struct step *s, int64_t least)
{
    int64_t limit = INT64_MAX, given = ts->options->memory_limit;
    if (given)
        limit = given - (ts->least - least);
    for (int i = 0; i < topt_pool_threads(ts->pool); i++) {
        struct merge *m = &ts->merge[i];
        m->n = 0;
        m->products = 0;
        m->failed = TOPT_OK;
        m->too_big = 0;
        m->limit = limit;
        m->slowest = INT64_MAX;
        m->nbounds = 0;
        m->shrink = s->trim ? ts->shrink : 1;
    }
}

/* The threads' entries into the table, or into a new one. */
static struct table *collect(struct tables *ts, const struct job *job, struct table *t,
                             struct topt_error *err)
{
    uint64_t total = 0;
    for (int i = 0; i < topt_pool_threads(ts->pool); i++) {
        total += ts->merge[i].n;
        ts->stats.products += ts->merge[i].products;
    }
    if (total >= UINT32_MAX) {
        topt_fail(err, TOPT_ERR_LIMIT, "a table of %llu points; at most %u",
                  (unsigned long long)total, UINT32_MAX);
        return NULL;
    }
    if (!t)
        t = add_bare(ts, job->step->nentries, err);
    if (!t || add_arrays(ts, t, (uint32_t)total, err))
        return NULL;
    copy_together(ts, job, t);
    return t;
}

/* What is known of a table before it is made. */
static void describe(const struct tables *ts, const struct step *s, struct table *t)
{
    double ga = s->a->growth, gb = s->b ? s->b->growth : 1;
    t->least = s->a->least + (s->b ? s->b->least : 0);
    t->narrow = s->ndims + (s->ngroups > 1) <= 1;
    t->growth = (ga > gb ? ga : gb) * (s->trim ? 1 / ts->shrink : 1);
}

/* Make the table of a step: 'made' where it was planned, else a new one. */
static struct table *build(struct tables *ts, const struct step *s, struct table *made,
                           struct topt_error *err)
{
    struct job job = {.ts = ts, .step = s, .made = made};
    struct table *t = NULL;
    int threads = topt_pool_threads(ts->pool);
    size_t n = (size_t)s->nentries + 1;
    int64_t least = s->a->least + (s->b ? s->b->least : 0);
    job.chunk = s->nentries / (16 * threads) + 1;
    job.at = calloc(n, sizeof *job.at);
    job.count = calloc(n, sizeof *job.count);
    job.worker = calloc(n, sizeof *job.worker);
    if (!job.at || !job.count || !job.worker) {
        topt_search_nomem(err);
        goto out;
    }
    prepare(ts, s, least);
    if (threads > 1 && effort(s) >= WORTH_WAKING)
        topt_pool_run(ts->pool, build_entries, &job);
    else
        build_entries(&job, 0);
    if (atomic_load(&job.failed)) {
        job_error(ts, err);
        goto out;
    }
    t = collect(ts, &job, made, err);
    if (t)
        describe(ts, s, t);
out:
    free(job.at);
    free(job.count);
    free(job.worker);
    return t;
}

static struct table *plan(struct tables *ts, const struct step *s, struct topt_error *err)
{
    struct table *t = add_bare(ts, s->nentries, err);
    if (!t)
        return NULL;
    describe(ts, s, t);
    t->how = *s;
    t->planned = 1;
    return t;
}

int topt_tables_make(struct tables *ts, struct table *t, struct topt_error *err)
{
    if (topt_search_canceled(ts->options))
        return topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled");
    return build(ts, &t->how, t, err) ? 0 : -1;
}

struct table *topt_tables_build(struct tables *ts, struct step *s, struct topt_error *err)
{
    size_t bytes = s->recipe_len * sizeof *s->recipe;
    uint64_t h = topt_hash(s->recipe, bytes, 1);
    for (struct table *t = ts->bucket[h % NBUCKETS]; t; t = t->next)
        if (t->hash == h && t->recipe_len == s->recipe_len &&
            !memcmp(t->recipe, s->recipe, bytes)) {
            free(s->recipe);
            s->recipe = NULL;
            t->hits++;
            t->refs++;
            ts->stats.shared++;
            return t;
        }
    struct table *t = NULL;
    if (topt_search_canceled(ts->options))
        topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled");
    else
        t = ts->planning ? plan(ts, s, err) : build(ts, s, NULL, err);
    if (!t) {
        free(s->recipe);
        s->recipe = NULL;
        return NULL;
    }
    t->hash = h;
    t->recipe = s->recipe;
    t->recipe_len = s->recipe_len;
    t->refs = 1;
    t->next = ts->bucket[h % NBUCKETS];
    ts->bucket[h % NBUCKETS] = t;
    s->recipe = NULL;
    return t;
}
