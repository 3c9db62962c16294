/* table.c - factor tables: leaves with their costs, and steps that make a new table of
 * two. */
#include "table.h"

#include "factor_tuning.h"
#include "search_common.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

enum {
    NBUCKETS = 4096,
    MAX_PARTS = 1 << 20,
    TABLE_BYTES = 232,
    COLUMNS = TOPT_TILE_COLUMNS
};

int topt_tables_init(struct tables *ts, const struct topt_search_options *options,
                     struct topt_error *err)
{
    *ts = (struct tables){.nentries = 1};
    ts->max_bytes = options->max_bytes ? options->max_bytes : TOPT_SEARCH_MAX_BYTES;
    ts->bucket = calloc(NBUCKETS, sizeof(*ts->bucket));
    return ts->bucket ? 0 : topt_search_nomem(err);
}

void topt_tables_fini(struct tables *ts)
{
    for (size_t i = 0; i < ts->nall; i++) {
        free(ts->all[i]->how.recipe);
        free(ts->all[i]);
    }
    free(ts->all);
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
    ts->stats.peak_bytes = topt_max(ts->stats.peak_bytes, ts->bytes);
    return 0;
}

static int remember(struct tables *ts, struct table *t)
{
    if (TOPT_ROOM(ts->all, ts->nall, ts->cap_all, 256))
        return -1;
    t->id = (int)ts->nall;
    ts->all[ts->nall++] = t;
    return 0;
}

/* A table that takes 'bytes' beside itself, which counts as TABLE_BYTES whatever the
 * layout of its struct. */
static struct table *add(struct tables *ts, int64_t nentries, int64_t bytes,
                         struct topt_error *err)
{
    struct table *t = NULL;
    if (topt_tables_account(ts, bytes + TABLE_BYTES, err))
        return NULL;
    t = calloc(1, sizeof *t);
    if (!t || remember(ts, t)) {
        free(t);
        topt_search_nomem(err);
        return NULL;
    }
    t->nentries = nentries;
    t->first_entry = ts->nentries;
    ts->nentries += nentries;
    ts->stats.tables++;
    return t;
}

struct table *topt_tables_leaf(struct tables *ts, const struct points *points,
                               struct topt_error *err)
{
    int64_t bytes = (points->nentries + 1) * (int64_t)sizeof(uint32_t) +
                    points->n * (int64_t)(sizeof(struct topt_cost) +
                                          (points->choice ? sizeof(int32_t) : 0));
    struct table *t = add(ts, points->nentries, bytes, err);
    if (!t)
        return NULL;
    t->leaf = t->nparts = 1;
    t->npoints = points->n;
    t->single = points->single;
    t->first = points->first;
    t->cost = points->cost;
    t->choice = points->choice;
    ts->stats.points += points->n;
    if ((int)points->max_frontier > ts->stats.max_frontier)
        ts->stats.max_frontier = (int)points->max_frontier;
    return t;
}

int32_t topt_leaf_choice(const struct table *leaf, int64_t point)
{
    if (leaf->choice || leaf->single)
        return leaf->choice ? leaf->choice[point] : 0;
    /* the last entry that begins at it or before */
    int64_t low = 0, high = leaf->nentries;
    while (low + 1 < high) {
        int64_t middle = (low + high) / 2;
        if (leaf->first[middle] <= point)
            low = middle;
        else
            high = middle;
    }
    return (int32_t)(point - leaf->first[low]);
}

void topt_step_entries(const struct step *s, int64_t x, int64_t *ret_a, int64_t *ret_b)
{
    int64_t ea = s->a->first_entry, eb = s->b ? s->b->first_entry : 0;
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

int topt_step_sees_none(const int32_t *off, int n)
{
    for (int i = 0; i < n; i++)
        if (off[i])
            return 0;
    return 1;
}

/* Is the step a matrix times a matrix?  Sets s->matrix. */
static void find_matrix(struct step *s)
{
    const int32_t *off = s->off;
    int of_b = 0; /* dimensions that only B tells apart */
    s->matrix = 0;
    /* A table without entries does not tell which factor distinguishes its dimensions. */
    if (s->ngroups != 1 || !s->b || s->kfirst[1] < 2 || !s->nentries)
        return;
    for (int d = 0; d < s->ndims; off += 2 * s->size[d++])
        if (s->size[d] > 1) {
            of_b += topt_step_sees_none(off, s->size[d]);
            if (!topt_step_sees_none(off, s->size[d]) &&
                !topt_step_sees_none(off + s->size[d], s->size[d]))
                return;
        }
    s->matrix = of_b > 0;
}

void topt_step_count_values(const struct step *s, int64_t *ret_x, int64_t *ret_y)
{
    const int32_t *off = s->off;
    *ret_x = *ret_y = 1;
    for (int d = 0; d < s->ndims; off += 2 * s->size[d++])
        *(topt_step_sees_none(off, s->size[d]) ? ret_y : ret_x) *= s->size[d];
}

/* Numbers that a scalarised pass of such a step takes. */
static int64_t matrix_room(const struct step *s)
{
    int64_t x, y, k = s->kfirst[1] + COLUMNS;
    topt_step_count_values(s, &x, &y);
    x += COLUMNS;
    y += COLUMNS;
    return x + y + 2 * (x + y) * k + (x + y) / (int64_t)sizeof(double);
}

static int64_t pairs_of(const struct step *s)
{
    return s->ngroups ? s->nentries / s->ngroups * s->kfirst[s->ngroups] : 0;
}

/* Do 'n' offsets count up? */
static int count_up(const int32_t *off, int n)
{
    for (int i = 1; i < n; i++)
        if (off[i] != off[0] + i)
            return 0;
    return 1;
}

/* Which tables the step reads as rows. */
static void keep_rows(struct tables *ts, struct step *s)
{
    int n = s->ngroups == 1 ? s->kfirst[1] : 0;
    s->in_rows =
        s->b && !s->matrix && s->ngroups == 1 && count_up(s->ka, n) && count_up(s->kb, n);
    if (s->in_rows)
        ts->all[s->a->id]->by_rows = ts->all[s->b->id]->by_rows = 1;
}

/* A leaf of single points that a step reads about once as B is weighed while it is
 * read. */
static void keep_weights(struct tables *ts, struct table *t)
{
    const struct step *s = &t->how;
    t->weighed = 1;
    ts->all[s->a->id]->weighed = 1;
    if (s->matrix)
        ts->matrix_room = topt_max(ts->matrix_room, matrix_room(s));
    keep_rows(ts, &t->how);
    if (s->b && (!s->b->single || pairs_of(s) > 2 * s->b->nentries))
        ts->all[s->b->id]->weighed = 1;
}

struct table *topt_tables_step(struct tables *ts, struct step *s, struct topt_error *err)
{
    size_t bytes = s->recipe_len * sizeof *s->recipe;
    uint64_t h = topt_hash(s->recipe, bytes, 1);
    for (struct table *t = ts->bucket[h % NBUCKETS]; t; t = t->next)
        if (t->hash == h && t->how.recipe_len == s->recipe_len &&
            !memcmp(t->how.recipe, s->recipe, bytes)) {
            free(s->recipe);
            s->recipe = NULL;
            ts->stats.shared++;
            return t;
        }
    struct table *t = add(ts, s->nentries, (int64_t)bytes, err);
    if (!t) {
        free(s->recipe);
        s->recipe = NULL;
        return NULL;
    }
    t->how = *s;
    t->nparts = s->a->nparts + (s->b ? s->b->nparts : 0);
    if (t->nparts > MAX_PARTS)
        t->nparts = MAX_PARTS;
    find_matrix(&t->how);
    keep_weights(ts, t);
    t->hash = h;
    t->next = ts->bucket[h % NBUCKETS];
    ts->bucket[h % NBUCKETS] = t;
    ts->npairs += pairs_of(&t->how);
    s->recipe = NULL;
    return t;
}
