/* move_costs.c - the cost of moves between the layouts of one tensor.
 *
 * The time of a move depends on its collective, on how many nodes and devices its groups
 * span, and on the size of a block.  Few sizes occur, so each has a row of times, and an
 * entry of a row is computed when a search first asks for it. */
#include "move_costs.h"
#include "topt_array.h"

#include <stdlib.h>

enum {
    SETS = 1 << TOPT_STATE_GROUPS,
    NONE = TOPT_GRAPH_NONE,
    KINDS = TOPT_MOVE_ALL_REDUCE + 1
};

/* A shape of blocks. */
struct block {
    uint32_t stamp; /* that of the source; else nothing is known */
    int32_t row;    /* of its bytes */
    uint32_t whole; /* dimensions whose parts are equal, as bits */
};

struct topt_move_costs {
    struct topt_collective_times *times;

    /* the source, and what follows from it by set of groups */
    struct topt_path_source source;
    struct topt_layout_graph *graph; /* NULL: none yet */
    uint32_t stamp;
    int nacross;
    uint32_t across[SETS];             /* nodes << 16 | devices of each */
    uint16_t across_of[SETS];          /* which of these a set spans */
    int64_t rest[SETS];                /* 'bytes' of the source, split by a set */
    int64_t part[TOPT_MAX_RANK][SETS]; /* count of the largest part of a dimension */
    uint8_t whole[SETS];               /* dimensions whose parts are equal, as bits */

    /* times of collectives by bytes of blocks: a row for each number of bytes, 'width'
     * long */
    int64_t *row;
    int nrows, row_cap, width;
    int32_t *slot; /* hash of rows; -1: free */
    int nslots;
    struct block *block; /* by shape */
    int nblocks;

    int64_t *key;   /* by class of moves */
    uint32_t *have; /* stamp, by layout: moves from it have their keys */
    int nkeys, nvertices;
    int failed; /* memory was short */
};

/* ---- what follows from a source ---------------------------------------------------- */

static void set_across(struct topt_move_costs *t)
{
    const struct topt_path_source *s = &t->source;
    t->across[0] = 1u << 16 | 1;
    t->across_of[0] = 0;
    t->nacross = 1;
    for (uint32_t set = 1; set < 1u << s->ngroups; set++) {
        int g = __builtin_ctz(set), i = 0;
        uint32_t rest = t->across[t->across_of[set & (set - 1)]];
        uint32_t x = g < s->node_groups
                         ? (rest >> 16) * s->size[g] << 16 | (rest & 0xffff)
                         : (rest & 0xffff0000u) | (rest & 0xffff) * s->size[g];
        while (i < t->nacross && t->across[i] != x)
            i++;
        if (i == t->nacross)
            t->across[t->nacross++] = x;
        t->across_of[set] = (uint16_t)i;
    }
}

/* Ceilings nest, so the order of groups does not matter. */
static void set_parts(struct topt_move_costs *t)
{
    const struct topt_path_source *s = &t->source;
    int64_t split[SETS] = {1};
    for (uint32_t set = 0; set < 1u << s->ngroups; set++) {
        if (set)
            split[set] = split[set & (set - 1)] * s->size[__builtin_ctz(set)];
        t->rest[set] = s->bytes / split[set];
        t->whole[set] = (uint8_t)((1 << s->ndims) - 1);
    }
    for (int d = 0; d < s->ndims; d++) {
        int64_t count = s->count[d] < 0 ? -s->count[d] : s->count[d];
        for (uint32_t set = 0; count && set < 1u << s->ngroups; set++) {
            t->part[d][set] = (count + split[set] - 1) / split[set];
            if (s->count[d] < 0 || count % split[set])
                t->whole[set] &= (uint8_t) ~(1 << d);
        }
    }
}

/* Bytes of the largest block. */
static int64_t block_bytes(const struct topt_move_costs *t, uint64_t shape)
{
    int64_t parts = 1;
    uint32_t even = 0;
    for (int d = 0; d < t->source.ndims; d++) {
        if (t->source.count[d])
            parts *= t->part[d][topt_layout_graph_set(shape, d)];
        else
            even |= topt_layout_graph_set(shape, d);
    }
    return parts * t->rest[even];
}

/* ---- rows of times ----------------------------------------------------------------- */

static int32_t *row_slot(const struct topt_move_costs *t, int64_t bytes)
{
    uint32_t mask = (uint32_t)t->nslots - 1;
    uint32_t h = (uint32_t)(topt_mix(0, (uint64_t)bytes) >> 32) & mask;
    while (t->slot[h] >= 0 && t->row[(size_t)t->slot[h] * (size_t)t->width] != bytes)
        h = (h + 1) & mask;
    return &t->slot[h];
}

static int rows_grow(struct topt_move_costs *t)
{
    int cap = 2 * t->nrows + 64;
    if (TOPT_RESIZE(t->row, (size_t)cap * (size_t)t->width))
        return -1;
    t->row_cap = cap * t->width;
    return 0;
}

static int slots_grow(struct topt_move_costs *t)
{
    int n = t->nslots ? 2 * t->nslots : 256;
    if (TOPT_RESIZE(t->slot, n))
        return -1;
    t->nslots = n;
    memset(t->slot, 0xff, (size_t)n * sizeof *t->slot);
    for (int i = 0; i < t->nrows; i++)
        *row_slot(t, t->row[(size_t)i * (size_t)t->width]) = i;
    return 0;
}

static void rows_clear(struct topt_move_costs *t)
{
    t->nrows = 0;
    t->width = 1 + KINDS * t->nacross;
    if (t->nslots)
        memset(t->slot, 0xff, (size_t)t->nslots * sizeof *t->slot);
}

/* The row of so many bytes; 0 where memory is short. */
static int row_of(struct topt_move_costs *t, int64_t bytes)
{
    if ((2 * t->nrows >= t->nslots && slots_grow(t)) ||
        ((t->nrows + 1) * t->width > t->row_cap && rows_grow(t))) {
        t->failed = 1;
        return 0;
    }
    int32_t *slot = row_slot(t, bytes);
    if (*slot < 0) {
        int64_t *row = &t->row[(size_t)t->nrows * (size_t)t->width];
        row[0] = bytes;
        for (int i = 1; i < t->width; i++)
            row[i] = -1;
        *slot = t->nrows++;
    }
    return *slot;
}

/* ---- keys -------------------------------------------------------------------------- */

static int blocks_fit(struct topt_move_costs *t)
{
    size_t n = (size_t)t->graph->shape_cap, old = (size_t)t->nblocks;
    if (TOPT_RESIZE(t->block, n))
        return -1;
    memset(t->block + old, 0, (n - old) * sizeof *t->block);
    t->nblocks = (int)n;
    return 0;
}

int32_t topt_move_costs_row(struct topt_move_costs *t, uint64_t shape,
                            uint32_t *ret_whole)
{
    *ret_whole = 0;
    for (int d = 0; d < t->source.ndims; d++)
        *ret_whole |= t->whole[topt_layout_graph_set(shape, d)] & 1u << d;
    return row_of(t, block_bytes(t, shape));
}

/* The key of one move. */
static int64_t price(struct topt_move_costs *t, enum topt_move_kind kind, uint32_t groups,
                     int64_t bytes)
{
    uint32_t across = t->across[t->across_of[groups]];
    int64_t ns =
        topt_collective_times_of(t->times, topt_move_collective(kind),
                                 (int)(across >> 16), (int)(across & 0xffff), bytes)
            .ns;
    return ns < TOPT_KEY_FAR >> TOPT_KEY_BITS ? (ns << TOPT_KEY_BITS) + 1 : TOPT_KEY_FAR;
}

int64_t topt_move_costs_row_key(struct topt_move_costs *t, int32_t number,
                                enum topt_move_kind kind, uint32_t groups)
{
    int64_t *row = &t->row[(size_t)number * (size_t)t->width];
    int64_t *key = &row[1 + (int)kind * t->nacross + t->across_of[groups]];
    if (*key < 0)
        *key = price(t, kind, groups, row[0]);
    return *key;
}

/* Find the entry of a shape of blocks, which may be new to this source. */
static const struct block *block_of(struct topt_move_costs *t, int32_t shape)
{
    if (shape >= t->nblocks && blocks_fit(t)) {
        t->failed = 1;
        return NULL;
    }
    struct block *b = &t->block[shape];
    if (b->stamp != t->stamp) {
        b->stamp = t->stamp;
        b->row = topt_move_costs_row(t, t->graph->shape[shape], &b->whole);
    }
    return t->failed ? NULL : b;
}

static int64_t key_of(struct topt_move_costs *t, const struct topt_move_class *c)
{
    if (c->kind == TOPT_MOVE_SLICE)
        return 1;
    const struct block *b = block_of(t, c->shape);
    if (!b || (c->kind == TOPT_MOVE_PERMUTE && !(b->whole >> c->dim & 1)))
        return NONE;
    uint32_t groups =
        c->between ? topt_layout_graph_groups(c, t->source.size) : c->groups;
    return topt_move_costs_row_key(t, b->row, (enum topt_move_kind)c->kind, groups);
}

static int keys_fit(struct topt_move_costs *t)
{
    if (TOPT_RESIZE(t->key, t->graph->class_cap))
        return -1;
    t->nkeys = t->graph->class_cap;
    return 0;
}

static int vertices_fit(struct topt_move_costs *t)
{
    size_t n = (size_t)t->graph->vertex_cap, old = (size_t)t->nvertices;
    if (TOPT_RESIZE(t->have, n))
        return -1;
    memset(t->have + old, 0, (n - old) * sizeof *t->have);
    t->nvertices = (int)n;
    return 0;
}

static void set_keys(struct topt_move_costs *t, int32_t vertex)
{
    struct topt_layout_graph *a = t->graph;
    if (topt_layout_graph_list_out(a, vertex) ||
        (t->nkeys < a->nclasses && keys_fit(t)) ||
        (t->nvertices < a->nvertices && vertices_fit(t))) {
        t->failed = 1;
        return;
    }
    struct topt_move_classes m = a->vertex[vertex].out;
    for (int32_t i = m.first; i < m.first + m.n; i++)
        t->key[i] = key_of(t, &a->class[i]);
    t->have[vertex] = t->stamp;
}

struct topt_move_classes topt_move_costs_moves(struct topt_move_costs *t, int32_t vertex)
{
    if (vertex >= t->nvertices || t->have[vertex] != t->stamp)
        set_keys(t, vertex);
    return t->failed ? (struct topt_move_classes){0, 0} : t->graph->vertex[vertex].out;
}

const int64_t *topt_move_costs_keys(const struct topt_move_costs *t)
{
    return t->key;
}

/* ---- sources, one after the other -------------------------------------------------- */

struct topt_move_costs *topt_move_costs_create(struct topt_collective_times *times)
{
    struct topt_move_costs *t = calloc(1, sizeof *t);
    if (t)
        t->times = times;
    return t;
}

void topt_move_costs_destroy(struct topt_move_costs *t)
{
    if (!t)
        return;
    free(t->row);
    free(t->slot);
    free(t->block);
    free(t->key);
    free(t->have);
    free(t);
}

int topt_move_costs_is(const struct topt_move_costs *t,
                       const struct topt_path_source *source)
{
    return t->graph && !t->failed && topt_path_same_costs(&t->source, source);
}

void topt_move_costs_end(struct topt_move_costs *t)
{
    t->graph = NULL;
}

void topt_move_costs_begin(struct topt_move_costs *t,
                           const struct topt_path_source *source,
                           struct topt_layout_graph *graph)
{
    if (++t->stamp == 0) { /* it has wrapped */
        free(t->block);
        free(t->have);
        t->block = NULL;
        t->have = NULL;
        t->nblocks = t->nvertices = 0;
        t->stamp = 1;
    }
    t->source = *source;
    t->graph = graph;
    t->failed = 0;
    set_across(t);
    set_parts(t);
    rows_clear(t);
}

int topt_move_costs_failed(const struct topt_move_costs *t)
{
    return t->failed;
}
