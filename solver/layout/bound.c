/* bound.c - what a way costs at least.
 *
 * Forget all but a few groups, a part: layouts become the few that these can have, and a move becomes
 * theirs, or none where it leaves them as they are.  With the least that any move costs which looks
 * like it, whatever the others do, a shortest path between those is never dearer than the way itself
 * (pattern databases: Culberson and Schaeffer, 1998).  Parts are of one level, since what is
 * due between nodes costs most and is hidden, in a search, by all that can be done inside a node
 * for as much.  The largest of all parts' counts.
 *
 * It is consistent: it never falls by more than the move takes.  So A* settles a layout once. */
#include "bound.h"

#include <stdlib.h>

#include "heap.h"

enum {
    NONE = TOPT_ATLAS_NONE,
    KINDS = TOPT_MOVE_ALL_REDUCE + 1,
    MOST = 4, /* groups of a part */
    SETS = 1 << MOST,
    SHAPES = 625 /* of MOST groups: each in a dimension, or in none */
};

/* Larger bounds are this, so that all are whole numbers. */
static const double MOST_KEY = 4503599627370496.0; /* 2 ** 52 */

struct part {
    int first, n; /* groups */
    struct topt_atlas *atlas;
    int64_t least[KINDS][SHAPES][SETS]; /* of a permutation by dimension, not set */
    int64_t *key;                       /* by class of moves */
    int64_t *path;                      /* of the search */
    double *far;                        /* from a layout to each, a row */
    double *due;                        /* from a layout to the targets, a row */
    uint32_t *far_stamp, *due_stamp;    /* by row: it is there */
    int nkeys, nspots;
    int64_t ndue;
    uint16_t *target;
    int target_cap;
};

struct topt_bound {
    struct topt_atlas atlas[MOST + 1][TOPT_MAX_RANK + 1];
    struct part part[TOPT_BOUND_PARTS];
    int nparts, ngroups, ndims;
    int ntargets, width;
    uint32_t stamp, aim;
    struct topt_heap heap;
};

struct topt_bound *topt_bound_create(void)
{
    return calloc(1, sizeof(struct topt_bound));
}

static void part_fini(struct part *p)
{
    free(p->key);
    free(p->path);
    free(p->far);
    free(p->due);
    free(p->far_stamp);
    free(p->due_stamp);
    free(p->target);
}

void topt_bound_destroy(struct topt_bound *b)
{
    if (!b)
        return;
    for (int n = 0; n <= MOST; n++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            topt_atlas_fini(&b->atlas[n][d]);
    for (int i = 0; i < TOPT_BOUND_PARTS; i++)
        part_fini(&b->part[i]);
    free(b->heap.at);
    free(b);
}

/* ---- the least that moves cost ------------------------------------------------------------------ */

/* A shape of a part's groups, as a number: digits are their dimensions. */
static int shape_code(const struct part *p, uint64_t shape, int first, int ndims)
{
    int code = 0;
    for (int g = 0; g < p->n; g++) {
        int at = ndims;
        for (int d = 0; d < ndims; d++)
            at = topt_atlas_set(shape, d) >> (first + g) & 1 ? d : at;
        code = code * (ndims + 1) + at;
    }
    return code;
}

static void lower(int64_t *least, int64_t key)
{
    if (key < *least)
        *least = key;
}

/* A move along 'groups' whose blocks are of one shape, as each part sees it. */
static void lower_all(struct topt_bound *b, const int *code, enum topt_move_kind kind,
                      uint32_t groups, int dim, int64_t key)
{
    for (int i = 0; i < b->nparts; i++) {
        struct part *p = &b->part[i];
        uint32_t set = groups >> p->first & ((1u << p->n) - 1);
        if (set)
            lower(
                &p->least[kind][code[i]][kind == TOPT_MOVE_PERMUTE ? (uint32_t)dim : set],
                key);
    }
}

/* What may be done with any of the groups that split dimension 'd'. */
static void moves_in(struct topt_bound *b, struct topt_tariff *t, const int *code,
                     int32_t row, uint32_t in, int d, int even)
{
    int reorders = even && __builtin_popcount(in) <= TOPT_ATLAS_REORDERED;
    for (uint32_t set = in; set; set = (set - 1) & in) {
        lower_all(b, code, TOPT_MOVE_ALL_TO_ALL, set, d,
                  topt_tariff_row_key(t, row, TOPT_MOVE_ALL_TO_ALL, set));
        if (reorders && set & (set - 1))
            lower_all(b, code, TOPT_MOVE_PERMUTE, set, d,
                      topt_tariff_row_key(t, row, TOPT_MOVE_PERMUTE, set));
    }
}

static void moves_out(struct topt_bound *b, struct topt_tariff *t, const int *code,
                      int32_t row, uint32_t rest)
{
    static const enum topt_move_kind kind[] = {
        TOPT_MOVE_ALL_REDUCE, TOPT_MOVE_REDUCE_SCATTER, TOPT_MOVE_ALL_GATHER};
    for (uint32_t set = rest; set; set = (set - 1) & rest)
        for (int i = 0; i < 3; i++)
            lower_all(b, code, kind[i], set, 0,
                      topt_tariff_row_key(t, row, kind[i], set));
}

static void look_at_shape(struct topt_bound *b, struct topt_tariff *t, uint64_t shape)
{
    int code[TOPT_BOUND_PARTS];
    uint32_t whole, split = 0;
    int32_t row = topt_tariff_row(t, shape, &whole);
    if (topt_tariff_failed(t))
        return;
    for (int i = 0; i < b->nparts; i++)
        code[i] = shape_code(&b->part[i], shape, b->part[i].first, b->ndims);
    for (int d = 0; d < b->ndims; d++) {
        uint32_t in = topt_atlas_set(shape, d);
        moves_in(b, t, code, row, in, d, whole >> d & 1);
        split |= in;
    }
    moves_out(b, t, code, row, ((1u << b->ngroups) - 1) & ~split);
}

/* All shapes that groups from 'g' on can have beside it. */
static void look_at_shapes(struct topt_bound *b, struct topt_tariff *t, int g,
                           uint64_t shape)
{
    if (g == b->ngroups) {
        look_at_shape(b, t, shape);
        return;
    }
    for (int d = 0; d <= b->ndims; d++)
        look_at_shapes(b, t, g + 1,
                       d < b->ndims ? shape | (uint64_t)1 << (TOPT_WAY_GROUPS * d + g)
                                    : shape);
}

/* ---- parts ------------------------------------------------------------------------------------------ */

/* Nothing is known of the shapes that these groups can have: most parts are smaller than a part may be. */
static void forget(struct part *p, int ndims)
{
    size_t shapes = 1;
    for (int g = 0; g < p->n; g++)
        shapes *= (size_t)ndims + 1;
    for (int k = 0; k < KINDS; k++)
        memset(p->least[k], 0x3f, shapes * sizeof p->least[k][0]);
}

static void split_level(struct topt_bound *b, int first, int end)
{
    for (; first < end; first += MOST) {
        struct part *p = &b->part[b->nparts++];
        p->first = first;
        p->n = end - first < MOST ? end - first : MOST;
        p->atlas = &b->atlas[p->n][b->ndims];
        p->atlas->ngroups = p->n;
        p->atlas->ndims = b->ndims;
        forget(p, b->ndims);
    }
}

static int grow(void **p, size_t n, size_t size)
{
    void *grown = calloc(n, size);
    if (!grown)
        return -1;
    free(*p);
    *p = grown;
    return 0;
}

#define GROW(p, n) grow((void **)&(p), (size_t)(n), sizeof *(p))

static int part_fit(struct part *p)
{
    int n = p->atlas->nspots;
    if (p->nkeys < p->atlas->nclasses) {
        if (GROW(p->key, p->atlas->nclasses))
            return -1;
        p->nkeys = p->atlas->nclasses;
    }
    if (p->nspots < n) {
        if (GROW(p->path, n) || GROW(p->far, (size_t)n * (size_t)n) ||
            GROW(p->far_stamp, n) || GROW(p->due_stamp, n))
            return -1;
        p->nspots = n;
    }
    return 0;
}

static void set_keys(const struct topt_bound *b, struct part *p)
{
    for (int i = 0; i < p->atlas->nclasses; i++) {
        const struct topt_atlas_class *c = &p->atlas->class[i];
        int code = shape_code(p, p->atlas->shape[c->shape], 0, b->ndims);
        int set = c->kind == TOPT_MOVE_PERMUTE ? c->dim : c->groups;
        p->key[i] = c->kind == TOPT_MOVE_SLICE ? 1 : p->least[c->kind][code][set];
    }
}

int topt_bound_begin(struct topt_bound *b, struct topt_tariff *t,
                     const struct topt_way_source *source)
{
    b->stamp++;
    b->nparts = 0;
    b->ngroups = source->ngroups;
    b->ndims = source->ndims;
    split_level(b, 0, source->node_groups);
    split_level(b, source->node_groups, source->ngroups);
    look_at_shapes(b, t, 0, 0);
    if (topt_tariff_failed(t))
        return -1;
    for (int i = 0; i < b->nparts; i++) {
        if (topt_atlas_list_all(b->part[i].atlas) || part_fit(&b->part[i]))
            return -1;
        set_keys(b, &b->part[i]);
    }
    return 0;
}

/* ---- where layouts are ------------------------------------------------------------------------------ */

/* A layout of a part's groups alone. */
static uint64_t state_in(const struct part *p, uint64_t state)
{
    uint64_t s = 0;
    for (int g = 0; g < p->n; g++) {
        int at = topt_way_at(state, p->first + g), pos = 0;
        for (int k = 0; k < p->n && at < TOPT_WAY_P; k++)
            pos += topt_way_at(state, p->first + k) == at &&
                   topt_way_pos(state, p->first + k) < topt_way_pos(state, p->first + g);
        s = topt_way_put(s, g, at, pos);
    }
    return s;
}

int topt_bound_place(struct topt_bound *b, uint64_t state, struct topt_bound_place *ret)
{
    for (int i = 0; i < b->nparts; i++) {
        int32_t spot = topt_atlas_number(b->part[i].atlas, state_in(&b->part[i], state));
        if (spot == NONE)
            return -1;
        ret->at[i] = (uint16_t)spot;
    }
    return 0;
}

/* ---- paths of a part -------------------------------------------------------------------------------- */

static int leave(struct topt_bound *b, const struct part *p, struct topt_heap_entry e)
{
    const struct topt_atlas *a = p->atlas;
    struct topt_atlas_moves m = a->spot[e.spot].out;
    if (p->path[e.spot] < e.key)
        return 0;
    for (int32_t i = m.first; i < m.first + m.n; i++) {
        const struct topt_atlas_class *c = &a->class[i];
        int64_t key = topt_key_sum(e.key, p->key[i]);
        for (int k = 0; k < c->narcs; k++) {
            int32_t spot = a->arc[c->arc + k];
            if (key >= p->path[spot])
                continue;
            p->path[spot] = key;
            if (topt_heap_push(&b->heap, key, spot))
                return -1;
        }
    }
    return 0;
}

/* From one layout to each; NULL where memory is short. */
static const double *far_from(struct topt_bound *b, struct part *p, int from)
{
    int n = p->atlas->nspots;
    double *far = &p->far[(size_t)from * (size_t)n];
    if (p->far_stamp[from] == b->stamp)
        return far;
    for (int s = 0; s < n; s++)
        p->path[s] = TOPT_KEY_FAR;
    p->path[from] = 0;
    b->heap.n = 0;
    if (topt_heap_push(&b->heap, 0, from))
        return NULL;
    while (b->heap.n)
        if (leave(b, p, topt_heap_pop(&b->heap)))
            return NULL;
    for (int s = 0; s < n; s++)
        far[s] = (double)p->path[s] < MOST_KEY ? (double)p->path[s] : MOST_KEY;
    p->far_stamp[from] = b->stamp;
    return far;
}

/* ---- targets ---------------------------------------------------------------------------------------- */

int topt_bound_aim(struct topt_bound *b, const struct topt_bound_place *target, int n)
{
    b->aim++;
    b->ntargets = n;
    b->width = n;
    for (int i = 0; i < b->nparts; i++) {
        struct part *p = &b->part[i];
        int64_t ndue = (int64_t)b->width * p->nspots;
        if ((p->ndue < ndue && GROW(p->due, ndue)) ||
            (p->target_cap < n && GROW(p->target, n)))
            return -1;
        p->ndue = p->ndue < ndue ? ndue : p->ndue;
        p->target_cap = n > p->target_cap ? n : p->target_cap;
        for (int k = 0; k < n; k++)
            p->target[k] = target[k].at[i];
    }
    return 0;
}

static const double *due_from(struct topt_bound *b, struct part *p, int from)
{
    double *due = &p->due[(size_t)from * (size_t)b->width];
    if (p->due_stamp[from] == b->aim)
        return due;
    const double *far = far_from(b, p, from);
    for (int k = 0; far && k < b->ntargets; k++)
        due[k] = far[p->target[k]];
    p->due_stamp[from] = b->aim;
    return far ? due : NULL;
}

void topt_bound_drop(struct topt_bound *b, int i)
{
    int last = --b->ntargets;
    for (int k = 0; k < b->nparts; k++) {
        struct part *p = &b->part[k];
        p->target[i] = p->target[last];
        for (int s = 0; s < p->atlas->nspots; s++)
            if (p->due_stamp[s] == b->aim) {
                double *due = &p->due[(size_t)s * (size_t)b->width];
                due[i] = due[last];
            }
    }
}

int64_t topt_bound_of(struct topt_bound *b, const struct topt_bound_place *from,
                      int *ret_target)
{
    const double *due[TOPT_BOUND_PARTS];
    double least = 2 * MOST_KEY;
    *ret_target = 0;
    for (int i = 0; i < b->nparts; i++)
        if (!(due[i] = due_from(b, &b->part[i], from->at[i])))
            return -1;
    for (int k = 0; b->nparts && k < b->ntargets; k++) {
        double most = due[0][k];
        for (int i = 1; i < b->nparts; i++)
            most = due[i][k] > most ? due[i][k] : most;
        if (most < least) {
            least = most;
            *ret_target = k;
        }
    }
    return b->nparts ? (int64_t)least : 0;
}
