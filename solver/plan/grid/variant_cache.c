/* variant_cache.c - what was found out about the variants of one problem's grids: held in order,
 * and written down.
 *
 * In a document a variant is a row of numbers.  Counts of work, which most variants of a
 * grid have alike, stand in a table of their own, named by number. */
#include "variant_cache.h"
#include "strategy_code.h"
#include "topt_array.h"
#include "topt_json.h"

#include <stdlib.h>
#include <string.h>

/* ---- held -------------------------------------------------------------------------- */

struct topt_variant_cache *topt_variant_cache_create(void)
{
    return calloc(1, sizeof(struct topt_variant_cache));
}

static void points_fini(struct topt_cached_points *p)
{
    for (int i = 0; i < p->n; i++)
        json_decref(p->at[i].checked);
    free(p->at);
}

static void variant_destroy(struct topt_cached_variant *v)
{
    points_fini(&v->fastest);
    points_fini(&v->below);
    free(v);
}

static void grid_destroy(struct topt_cached_grid *g)
{
    for (int i = 0; i < g->n; i++)
        variant_destroy(g->at[i]);
    free(g->at);
    free(g);
}

void topt_variant_cache_destroy(struct topt_variant_cache *k)
{
    if (!k)
        return;
    topt_variant_cache_destroy(k->lora);
    for (int i = 0; i < k->n; i++)
        grid_destroy(k->at[i]);
    free(k->at);
    topt_strategy_codes_fini(&k->strategies);
    free(k);
}

struct topt_variant_cache *topt_variant_cache_lora(struct topt_variant_cache *k)
{
    if (!k->lora)
        k->lora = topt_variant_cache_create();
    return k->lora;
}

struct topt_cached_grid *topt_cached_grid(struct topt_variant_cache *k, int nodes,
                                          int per_node)
{
    int at = 0;
    while (at < k->n && (k->at[at]->nodes < nodes ||
                         (k->at[at]->nodes == nodes && k->at[at]->per_node < per_node)))
        at++;
    if (at < k->n && k->at[at]->nodes == nodes && k->at[at]->per_node == per_node)
        return k->at[at];
    struct topt_cached_grid *g = calloc(1, sizeof *g);
    if (!g || TOPT_RESIZE(k->at, k->n + 1)) {
        free(g);
        return NULL;
    }
    *g = (struct topt_cached_grid){.nodes = nodes, .per_node = per_node};
    memmove(k->at + at + 1, k->at + at, (size_t)(k->n - at) * sizeof(*k->at));
    k->at[at] = g;
    k->n++;
    return g;
}

static int order(const struct topt_variant *a, const struct topt_variant *b)
{
    if (a->micro_batches != b->micro_batches)
        return a->micro_batches < b->micro_batches ? -1 : 1;
    if (a->cut != b->cut)
        return a->cut - b->cut;
    return a->zero != b->zero ? a->zero - b->zero : a->recompute - b->recompute;
}

struct topt_cached_variant *topt_cached_variant(struct topt_cached_grid *g,
                                                const struct topt_variant *v)
{
    int lo = 0, hi = g->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (order(&g->at[mid]->variant, v) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < g->n && !order(&g->at[lo]->variant, v))
        return g->at[lo];
    struct topt_cached_variant *made = calloc(1, sizeof *made);
    if (!made || TOPT_ROOM(g->at, g->n, g->cap, 16)) {
        free(made);
        return NULL;
    }
    made->variant = *v;
    memmove(g->at + lo + 1, g->at + lo, (size_t)(g->n - lo) * sizeof *g->at);
    g->at[lo] = made;
    g->n++;
    return made;
}

/* ---- written ----------------------------------------------------------------------- */

/* Numbers of a row, and what may stand behind them: the least memory, the fastest, what takes
 * less than that. */
enum { COUNTS = 7, ROW = 12, LEAST_MEMORY = ROW, FASTEST, BELOW };

/* The number of a row of counts in the table, added where it is new. */
static json_int_t row_of(json_t *table, const int64_t *count)
{
    json_t *row = json_array(), *have;
    size_t i;
    for (int k = 0; k < COUNTS; k++)
        json_array_append_new(row, json_integer(count[k]));
    json_array_foreach(table, i, have) if (json_equal(have, row)) break;
    if (i == json_array_size(table))
        json_array_append(table, row);
    json_decref(row);
    return (json_int_t)i;
}

static json_int_t pricing_of(json_t *table, const struct topt_problem_stats *s)
{
    return row_of(table, (const int64_t[COUNTS]){s->nodes, s->configs, s->layouts,
                                                 s->edge_entries, s->priced_configs,
                                                 s->priced_entries, s->priced_moves});
}

static json_int_t work_of(json_t *table, const struct topt_search_stats *s)
{
    return row_of(table,
                  (const int64_t[COUNTS]){s->products, s->points, s->tables, s->shared,
                                          s->bands, s->peak_bytes, s->max_frontier});
}

static json_t *point_json(const struct topt_cached_point *p)
{
    json_t *o = json_pack("[I, I, i]", (json_int_t)p->memory_bytes,
                          (json_int_t)p->time_ns, p->strategy);
    if (p->checked)
        json_array_append(o, p->checked);
    return o;
}

/* [] where nothing is known. */
static json_t *points_json(const struct topt_cached_points *p, json_t *counts)
{
    json_t *o = json_array();
    if (p->known)
        json_array_append_new(o, json_integer(work_of(counts, &p->work)));
    for (int i = 0; i < p->n; i++)
        json_array_append_new(o, point_json(&p->at[i]));
    return o;
}

static json_t *variant_json(const struct topt_cached_variant *x, json_t *counts)
{
    const struct topt_variant *v = &x->variant;
    json_t *row = json_pack(
        "[I, i, i, i, I, i, i, i, I, I, I, i]", (json_int_t)v->micro_batches, v->cut,
        v->zero, v->recompute, (json_int_t)v->apart_bytes, v->late_permille,
        v->hidden_ppm, x->some, (json_int_t)x->least.memory, (json_int_t)x->least.time,
        pricing_of(counts, &x->stats), x->least_memory_known);
    if (x->least_memory_known || x->fastest.known)
        json_array_append_new(row, x->least_memory_known == 2
                                       ? json_pack("[I, I]",
                                                   (json_int_t)x->least_memory.memory,
                                                   (json_int_t)x->least_memory.time)
                                       : json_array());
    if (x->fastest.known) {
        json_array_append_new(row, points_json(&x->fastest, counts));
        json_array_append_new(row, points_json(&x->below, counts));
    }
    return row;
}

static json_t *grid_json(const struct topt_cached_grid *g, json_t *counts)
{
    json_t *variants = json_array();
    for (int i = 0; i < g->n; i++)
        if (g->at[i]->priced)
            json_array_append_new(variants, variant_json(g->at[i], counts));
    return json_pack("{s:i, s:i, s:o}", "nodes", g->nodes, "gpus_per_node", g->per_node,
                     "variants", variants);
}

json_t *topt_variant_cache_to_json(const struct topt_variant_cache *k)
{
    json_t *grids = json_array(), *counts = json_array();
    for (int i = 0; i < k->n; i++)
        json_array_append_new(grids, grid_json(k->at[i], counts));
    json_t *doc = json_pack("{s:o, s:o}", "counts", counts, "grids", grids);
    if (!doc)
        return NULL;
    topt_strategy_codes_write(&k->strategies, doc);
    if (k->lora)
        json_object_set_new(doc, "lora", topt_variant_cache_to_json(k->lora));
    return doc;
}

/* ---- read -------------------------------------------------------------------------- */

struct reader {
    struct topt_variant_cache *k;
    const json_t *counts;
};

static int read_integers(const json_t *row, int n, int64_t *ret)
{
    for (int i = 0; i < n; i++) {
        const json_t *v = json_array_get(row, (size_t)i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return -1;
        ret[i] = json_integer_value(v);
    }
    return 0;
}

static int read_counts(const struct reader *r, int64_t number, int64_t ret[COUNTS])
{
    return read_integers(json_array_get(r->counts, (size_t)number), COUNTS, ret);
}

static int read_point(const struct reader *r, const json_t *o,
                      struct topt_cached_point *ret)
{
    int64_t x[3];
    json_t *checked = json_array_get(o, 3);
    if (read_integers(o, 3, x) || x[2] >= r->k->strategies.n || json_array_size(o) > 4 ||
        (checked && !json_is_object(checked)))
        return -1;
    *ret = (struct topt_cached_point){x[0], x[1], (int)x[2], json_incref(checked)};
    return 0;
}

static int in_order(const struct topt_cached_points *x)
{
    for (int i = 1; i < x->n; i++)
        if (x->at[i].memory_bytes <= x->at[i - 1].memory_bytes ||
            x->at[i].time_ns >= x->at[i - 1].time_ns)
            return 0;
    return 1;
}

static int read_points(const struct reader *r, const json_t *list,
                       struct topt_cached_points *ret)
{
    int64_t at, c[COUNTS];
    size_t n = json_array_size(list);
    if (!n)
        return json_is_array(list) ? 0 : -1;
    if (read_integers(list, 1, &at) || read_counts(r, at, c) ||
        !(ret->at = calloc(n, sizeof *ret->at)))
        return -1;
    ret->work = (struct topt_search_stats){c[0], c[1], c[2], c[3], c[4], c[5], (int)c[6]};
    for (; (size_t)ret->n + 1 < n; ret->n++)
        if (read_point(r, json_array_get(list, 1 + (size_t)ret->n), &ret->at[ret->n]))
            return -1;
    ret->known = 1;
    return in_order(ret) ? 0 : -1;
}

static int read_found(const struct reader *r, const json_t *row,
                      struct topt_cached_variant *x)
{
    int64_t c[2] = {0, 0};
    size_t n = json_array_size(row);
    if (x->least_memory_known == 2 &&
        read_integers(json_array_get(row, LEAST_MEMORY), 2, c))
        return -1;
    x->least_memory = (struct topt_cost){c[0], c[1]};
    if (n <= FASTEST)
        return n > ROW || !x->least_memory_known ? 0 : -1;
    return n == BELOW + 1 && !read_points(r, json_array_get(row, FASTEST), &x->fastest) &&
                   !read_points(r, json_array_get(row, BELOW), &x->below) &&
                   x->fastest.known && x->fastest.n < 2
               ? 0
               : -1;
}

static int read_variant(const struct reader *r, struct topt_cached_grid *g,
                        const json_t *row)
{
    int64_t x[ROW], c[COUNTS];
    if (read_integers(row, ROW, x) || x[1] > TOPT_MAX_AXES || x[2] >= TOPT_ZERO_COUNT ||
        x[3] > 1 || x[5] > 1000 || x[6] > 1000000 || x[7] > 1 || x[11] > 2 ||
        read_counts(r, x[10], c))
        return -1;
    struct topt_variant v = {.micro_batches = x[0],
                             .cut = (int)x[1],
                             .zero = (int)x[2],
                             .recompute = (int)x[3],
                             .apart_bytes = x[4],
                             .late_permille = (int)x[5],
                             .hidden_ppm = (int)x[6]};
    struct topt_cached_variant *made = topt_cached_variant(g, &v);
    if (!made || made->priced)
        return -1;
    made->priced = 1;
    made->some = (int)x[7];
    made->least = (struct topt_cost){x[8], x[9]};
    made->stats =
        (struct topt_problem_stats){c[0], c[1], c[2], c[3], c[4], c[5], c[6], 0};
    made->least_memory_known = (int)x[11];
    return read_found(r, row, made);
}

static int read_grid(const struct reader *r, const json_t *o, struct topt_error *err)
{
    static const char *const allowed[] = {"nodes", "gpus_per_node", "variants", NULL};
    int64_t nodes, per_node;
    const json_t *variants;
    if (topt_json_only(o, "grids", allowed, err) ||
        topt_json_int(o, "grids", "nodes", 1, 1 << 14, &nodes, err) ||
        topt_json_int(o, "grids", "gpus_per_node", 1, 1 << 14, &per_node, err) ||
        topt_json_array(o, "grids", "variants", &variants, err))
        return -1;
    struct topt_cached_grid *g = topt_cached_grid(r->k, (int)nodes, (int)per_node);
    if (!g)
        return topt_nomem(err, "frontiers");
    for (size_t i = 0; i < json_array_size(variants); i++)
        if (read_variant(r, g, json_array_get(variants, i)))
            return topt_fail(err, TOPT_ERR_INVAL, "%lld nodes of %lld: variants[%zu]",
                             (long long)nodes, (long long)per_node, i);
    return 0;
}

static int read_all(const json_t *doc, struct topt_variant_cache *k,
                    struct topt_error *err)
{
    struct reader r = {.k = k};
    const json_t *grids, *lora = json_object_get(doc, "lora");
    if (topt_strategy_codes_read(doc, &k->strategies, err) ||
        topt_json_array(doc, "", "counts", &r.counts, err) ||
        topt_json_array(doc, "", "grids", &grids, err))
        return -1;
    for (size_t i = 0; i < json_array_size(grids); i++)
        if (read_grid(&r, json_array_get(grids, i), err))
            return -1;
    if (lora && json_object_get(lora, "lora"))
        return topt_fail(err, TOPT_ERR_INVAL, "lora.lora: there is none");
    return lora ? topt_variant_cache_read(lora, &k->lora, err) : 0;
}

int topt_variant_cache_read(const json_t *doc, struct topt_variant_cache **ret,
                            struct topt_error *err)
{
    struct topt_variant_cache *k = topt_variant_cache_create();
    if (!k)
        return topt_nomem(err, "frontiers");
    if (read_all(doc, k, err)) {
        topt_variant_cache_destroy(k);
        return -1;
    }
    *ret = k;
    return 0;
}
