/* path_bound.c - a lower bound on the cost of a path, as A* needs it.
 *
 * The groups are split into a few parts.  Projected onto one part, layouts become few,
 * and a move becomes a move of the part, or none where it leaves the part as it is.
 * Each projected move costs the least of all moves that project onto it, so a shortest
 * path in the projection never costs more than the path itself (pattern databases:
 * Culberson and Schaeffer, 1998).  A part has groups of one level only, since the cost
 * between nodes dominates, and a search that mixes the levels hides it behind all that
 * can be done inside a node for as much.  The bound is the maximum over the parts.
 *
 * The bound is consistent: along a move it never falls by more than the move costs.
 * So A* settles a layout once. */
#include "path_bound.h"

#include <stdlib.h>

#include "heap.h"

enum {
    NONE = TOPT_GRAPH_NONE,
    KINDS = TOPT_MOVE_ALL_REDUCE + 1,
    MOST = 4, /* groups of a part */
    SETS = 1 << MOST,
    SHAPES = 625 /* of MOST groups: each in a dimension, or in none */
};

/* Bounds are cut off here, so that all of them are exact whole numbers. */
static const double MOST_KEY = 4503599627370496.0; /* 2 ** 52 */

struct part {
    int first, n; /* groups */
    struct topt_layout_graph *graph;
    int64_t least[KINDS][SHAPES][SETS];    /* of a permutation by dimension, not set */
    int64_t *key;                          /* by class of moves */
    int64_t *path;                         /* keys of the search */
    double *distance;                      /* from a vertex to each, a row */
    double *rest;                          /* from a vertex to the targets, a row */
    uint32_t *distance_stamp, *rest_stamp; /* by row: it is known */
    int nkeys, nvertices;
    int64_t nrest;
    uint16_t *target;
    int target_cap;
};

struct topt_path_bound {
    struct topt_layout_graph graph[MOST + 1][TOPT_MAX_RANK + 1];
    struct part part[TOPT_PATH_BOUND_PARTS];
    int nparts, ngroups, ndims;
    int ntargets, width;
    uint32_t stamp, target_stamp;
    struct topt_heap heap;
};

struct topt_path_bound *topt_path_bound_create(void)
{
    return calloc(1, sizeof(struct topt_path_bound));
}

static void part_fini(struct part *p)
{
    free(p->key);
    free(p->path);
    free(p->distance);
    free(p->rest);
    free(p->distance_stamp);
    free(p->rest_stamp);
    free(p->target);
}

void topt_path_bound_destroy(struct topt_path_bound *b)
{
    if (!b)
        return;
    for (int n = 0; n <= MOST; n++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            topt_layout_graph_fini(&b->graph[n][d]);
    for (int i = 0; i < TOPT_PATH_BOUND_PARTS; i++)
        part_fini(&b->part[i]);
    free(b->heap.at);
    free(b);
}

/* ---- the least that moves cost ----------------------------------------------------- */

/* A shape of a part's groups, as a number: digits are their dimensions. */
static int shape_code(const struct part *p, uint64_t shape, int first, int ndims)
{
    int code = 0;
    for (int g = 0; g < p->n; g++) {
        int at = ndims;
        for (int d = 0; d < ndims; d++)
            at = topt_layout_graph_set(shape, d) >> (first + g) & 1 ? d : at;
        code = code * (ndims + 1) + at;
    }
    return code;
}

static void lower(int64_t *least, int64_t key)
{
    if (key < *least)
        *least = key;
}

/* Project a move along 'groups' onto each part. */
static void lower_parts(struct topt_path_bound *b, const int *code,
                        enum topt_move_kind kind, uint32_t groups, int dim, int64_t key)
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

/* Moves of any of the groups that split dimension 'd'. */
static void moves_in(struct topt_path_bound *b, struct topt_move_costs *t,
                     const int *code, int32_t row, uint32_t in, int d, int even)
{
    int reorders = even && __builtin_popcount(in) <= TOPT_GRAPH_REORDERED;
    for (uint32_t set = in; set; set = (set - 1) & in) {
        lower_parts(b, code, TOPT_MOVE_ALL_TO_ALL, set, d,
                    topt_move_costs_row_key(t, row, TOPT_MOVE_ALL_TO_ALL, set));
        if (reorders && set & (set - 1))
            lower_parts(b, code, TOPT_MOVE_PERMUTE, set, d,
                        topt_move_costs_row_key(t, row, TOPT_MOVE_PERMUTE, set));
    }
}

static void moves_out(struct topt_path_bound *b, struct topt_move_costs *t,
                      const int *code, int32_t row, uint32_t rest)
{
    static const enum topt_move_kind kind[] = {
        TOPT_MOVE_ALL_REDUCE, TOPT_MOVE_REDUCE_SCATTER, TOPT_MOVE_ALL_GATHER};
    for (uint32_t set = rest; set; set = (set - 1) & rest)
        for (int i = 0; i < 3; i++)
            lower_parts(b, code, kind[i], set, 0,
                        topt_move_costs_row_key(t, row, kind[i], set));
}

static void bound_shape(struct topt_path_bound *b, struct topt_move_costs *t,
                        uint64_t shape)
{
    int code[TOPT_PATH_BOUND_PARTS];
    uint32_t whole, split = 0;
    int32_t row = topt_move_costs_row(t, shape, &whole);
    if (topt_move_costs_failed(t))
        return;
    for (int i = 0; i < b->nparts; i++)
        code[i] = shape_code(&b->part[i], shape, b->part[i].first, b->ndims);
    for (int d = 0; d < b->ndims; d++) {
        uint32_t in = topt_layout_graph_set(shape, d);
        moves_in(b, t, code, row, in, d, whole >> d & 1);
        split |= in;
    }
    moves_out(b, t, code, row, ((1u << b->ngroups) - 1) & ~split);
}

/* Extend a shape by all shapes that the groups from 'g' on can have. */
static void bound_shapes(struct topt_path_bound *b, struct topt_move_costs *t, int g,
                         uint64_t shape)
{
    if (g == b->ngroups) {
        bound_shape(b, t, shape);
        return;
    }
    for (int d = 0; d <= b->ndims; d++)
        bound_shapes(b, t, g + 1,
                     d < b->ndims ? shape | (uint64_t)1 << (TOPT_STATE_GROUPS * d + g)
                                  : shape);
}

/* ---- parts ------------------------------------------------------------------------- */

/* Set the costs of all shapes of these groups to infinity; most parts have fewer than
 * MOST groups. */
static void forget(struct part *p, int ndims)
{
    size_t shapes = 1;
    for (int g = 0; g < p->n; g++)
        shapes *= (size_t)ndims + 1;
    for (int k = 0; k < KINDS; k++)
        memset(p->least[k], 0x3f, shapes * sizeof p->least[k][0]);
}

static void split_level(struct topt_path_bound *b, int first, int end)
{
    for (; first < end; first += MOST) {
        struct part *p = &b->part[b->nparts++];
        p->first = first;
        p->n = end - first < MOST ? end - first : MOST;
        p->graph = &b->graph[p->n][b->ndims];
        p->graph->ngroups = p->n;
        p->graph->ndims = b->ndims;
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
    int n = p->graph->nvertices;
    if (p->nkeys < p->graph->nclasses) {
        if (GROW(p->key, p->graph->nclasses))
            return -1;
        p->nkeys = p->graph->nclasses;
    }
    if (p->nvertices < n) {
        if (GROW(p->path, n) || GROW(p->distance, (size_t)n * (size_t)n) ||
            GROW(p->distance_stamp, n) || GROW(p->rest_stamp, n))
            return -1;
        p->nvertices = n;
    }
    return 0;
}

static void set_keys(const struct topt_path_bound *b, struct part *p)
{
    for (int i = 0; i < p->graph->nclasses; i++) {
        const struct topt_move_class *c = &p->graph->class[i];
        int code = shape_code(p, p->graph->shape[c->shape], 0, b->ndims);
        int set = c->kind == TOPT_MOVE_PERMUTE ? c->dim : c->groups;
        p->key[i] = c->kind == TOPT_MOVE_SLICE ? 1 : p->least[c->kind][code][set];
    }
}

int topt_path_bound_begin(struct topt_path_bound *b, struct topt_move_costs *t,
                          const struct topt_path_source *source)
{
    b->stamp++;
    b->nparts = 0;
    b->ngroups = source->ngroups;
    b->ndims = source->ndims;
    split_level(b, 0, source->node_groups);
    split_level(b, source->node_groups, source->ngroups);
    bound_shapes(b, t, 0, 0);
    if (topt_move_costs_failed(t))
        return -1;
    for (int i = 0; i < b->nparts; i++) {
        if (topt_layout_graph_list_all(b->part[i].graph) || part_fit(&b->part[i]))
            return -1;
        set_keys(b, &b->part[i]);
    }
    return 0;
}

/* ---- where layouts are ------------------------------------------------------------- */

/* Project a state onto a part. */
static uint64_t state_in(const struct part *p, uint64_t state)
{
    uint64_t s = 0;
    for (int g = 0; g < p->n; g++) {
        int at = topt_state_at(state, p->first + g), pos = 0;
        for (int k = 0; k < p->n && at < TOPT_STATE_P; k++)
            pos +=
                topt_state_at(state, p->first + k) == at &&
                topt_state_pos(state, p->first + k) < topt_state_pos(state, p->first + g);
        s = topt_state_put(s, g, at, pos);
    }
    return s;
}

int topt_path_bound_project(struct topt_path_bound *b, uint64_t state,
                            struct topt_path_projection *ret)
{
    for (int i = 0; i < b->nparts; i++) {
        int32_t vertex =
            topt_layout_graph_number(b->part[i].graph, state_in(&b->part[i], state));
        if (vertex == NONE)
            return -1;
        ret->at[i] = (uint16_t)vertex;
    }
    return 0;
}

/* ---- paths of a part --------------------------------------------------------------- */

static int leave(struct topt_path_bound *b, const struct part *p,
                 struct topt_heap_entry e)
{
    const struct topt_layout_graph *a = p->graph;
    struct topt_move_classes m = a->vertex[e.vertex].out;
    if (p->path[e.vertex] < e.key)
        return 0;
    for (int32_t i = m.first; i < m.first + m.n; i++) {
        const struct topt_move_class *c = &a->class[i];
        int64_t key = topt_key_sum(e.key, p->key[i]);
        for (int k = 0; k < c->narcs; k++) {
            int32_t vertex = a->arc[c->arc + k];
            if (key >= p->path[vertex])
                continue;
            p->path[vertex] = key;
            if (topt_heap_push(&b->heap, key, vertex))
                return -1;
        }
    }
    return 0;
}

/* Shortest paths from one vertex to all others (Dijkstra); NULL where memory is short. */
static const double *distances_from(struct topt_path_bound *b, struct part *p, int from)
{
    int n = p->graph->nvertices;
    double *distance = &p->distance[(size_t)from * (size_t)n];
    if (p->distance_stamp[from] == b->stamp)
        return distance;
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
        distance[s] = (double)p->path[s] < MOST_KEY ? (double)p->path[s] : MOST_KEY;
    p->distance_stamp[from] = b->stamp;
    return distance;
}

/* ---- targets ----------------------------------------------------------------------- */

int topt_path_bound_set_targets(struct topt_path_bound *b,
                                const struct topt_path_projection *target, int n)
{
    b->target_stamp++;
    b->ntargets = n;
    b->width = n;
    for (int i = 0; i < b->nparts; i++) {
        struct part *p = &b->part[i];
        int64_t nrest = (int64_t)b->width * p->nvertices;
        if ((p->nrest < nrest && GROW(p->rest, nrest)) ||
            (p->target_cap < n && GROW(p->target, n)))
            return -1;
        p->nrest = p->nrest < nrest ? nrest : p->nrest;
        p->target_cap = n > p->target_cap ? n : p->target_cap;
        for (int k = 0; k < n; k++)
            p->target[k] = target[k].at[i];
    }
    return 0;
}

static const double *rest_from(struct topt_path_bound *b, struct part *p, int from)
{
    double *rest = &p->rest[(size_t)from * (size_t)b->width];
    if (p->rest_stamp[from] == b->target_stamp)
        return rest;
    const double *distance = distances_from(b, p, from);
    for (int k = 0; distance && k < b->ntargets; k++)
        rest[k] = distance[p->target[k]];
    p->rest_stamp[from] = b->target_stamp;
    return distance ? rest : NULL;
}

void topt_path_bound_remove_target(struct topt_path_bound *b, int i)
{
    int last = --b->ntargets;
    for (int k = 0; k < b->nparts; k++) {
        struct part *p = &b->part[k];
        p->target[i] = p->target[last];
        for (int s = 0; s < p->graph->nvertices; s++)
            if (p->rest_stamp[s] == b->target_stamp) {
                double *rest = &p->rest[(size_t)s * (size_t)b->width];
                rest[i] = rest[last];
            }
    }
}

int64_t topt_path_bound_of(struct topt_path_bound *b,
                           const struct topt_path_projection *from, int *ret_target)
{
    const double *rest[TOPT_PATH_BOUND_PARTS];
    double least = 2 * MOST_KEY;
    *ret_target = 0;
    for (int i = 0; i < b->nparts; i++)
        if (!(rest[i] = rest_from(b, &b->part[i], from->at[i])))
            return -1;
    for (int k = 0; b->nparts && k < b->ntargets; k++) {
        double most = rest[0][k];
        for (int i = 1; i < b->nparts; i++)
            most = rest[i][k] > most ? rest[i][k] : most;
        if (most < least) {
            least = most;
            *ret_target = k;
        }
    }
    return b->nparts ? (int64_t)least : 0;
}
