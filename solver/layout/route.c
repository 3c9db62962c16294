/* route.c - the cheapest way from one layout to another.
 *
 * Layouts of a tensor are the nodes of a graph whose edges are single collectives (or the
 * free local slice); a redistribution is a shortest path (TensorOpt, section 4.3).  What a
 * path may pass through: dimensions that the source or the target splits; partial sums only
 * where the source has them.
 *
 * Axes of one level and of one size are interchangeable: a pair of layouts is routed as the
 * one of its like whose axes are in order, and the path is renamed back.
 *
 * A Dijkstra run from a source is kept and goes on where it stopped when the next target is
 * asked for.  On many axes neighbours that behave alike in source and target are merged into
 * one, and axes whose dimension does not change at all stand still; a run then serves the
 * targets for which that comes out alike.
 *
 *      state: 8 bits a group of axes   [ at:4 | pos:4 ]    at 15 replicate, 14 partial */
#include "topt_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_arena.h"

enum { MAX_GROUPS = 8, TREE_AXES = 4, AT_R = 15, AT_P = 14, NONE = -1 };

struct node {
    uint64_t state;
    int64_t cost;
    int64_t bytes; /* of the largest block */
    int32_t prev;
    int16_t nmoves;
    uint8_t done;
    uint8_t kind;   /* of the move that leads here */
    uint16_t group; /* bit mask of groups that it varies along */
};

/* A node as it was pushed to the heap. */
struct entry {
    int64_t cost;
    uint64_t state;
    int32_t node;
    int16_t nmoves;
};

/* One Dijkstra run: a tree of cheapest moves from 'from', grown as far as it was asked. */
struct tree {
    struct tree *next;
    struct topt_shape shape;
    int element_bytes;
    struct topt_layout from;
    uint32_t dims; /* bit mask of dimensions passed through */
    int ngroups;
    uint32_t mask[MAX_GROUPS];
    int size[MAX_GROUPS];
    uint32_t frozen;
    struct node *node;
    int nnodes, cap;
    int32_t *slot; /* hash of states */
    int nslots;
    struct entry *heap; /* where it goes on */
    int nheap, heap_cap;
};

struct found {
    struct found *next;
    uint64_t hash;
    struct topt_shape shape;
    int element_bytes;
    struct topt_layout from, to;
    struct topt_path path;
};

/* A collective that was priced before; a later one takes its place. */
struct timed {
    int64_t bytes; /* 0: none yet */
    uint32_t axes, collective;
    struct topt_time time;
};

/* Trees are forgotten together where they hold more nodes: some 300 MB. */
enum { BUCKETS = 4096, TIMED = 8192, MAX_TREE_NODES = 1 << 22 };

struct topt_router {
    const struct topt_hw *hw;
    struct topt_mesh mesh;
    struct topt_arena *arena;
    struct tree *trees[BUCKETS];
    int64_t ntree_nodes; /* of all trees */
    struct timed timed[TIMED];
    struct found **paths; /* a power of two of buckets, as many as paths or more */
    size_t npaths, nbuckets;
};

struct topt_router *topt_router_create(const struct topt_hw *hw,
                                       const struct topt_mesh *mesh)
{
    struct topt_router *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->hw = hw;
    r->mesh = *mesh;
    r->nbuckets = 256;
    r->arena = topt_arena_create(0);
    r->paths = calloc(r->nbuckets, sizeof *r->paths);
    if (!r->arena || !r->paths) {
        topt_arena_destroy(r->arena);
        free(r->paths);
        free(r);
        return NULL;
    }
    return r;
}

static void tree_destroy(struct tree *t)
{
    free(t->node);
    free(t->slot);
    free(t->heap);
    free(t);
}

static void forget_trees(struct topt_router *r)
{
    for (int b = 0; b < BUCKETS; b++)
        for (struct tree *t = r->trees[b], *next; t; t = next) {
            next = t->next;
            tree_destroy(t);
        }
    memset(r->trees, 0, sizeof r->trees);
    r->ntree_nodes = 0;
}

void topt_router_destroy(struct topt_router *r)
{
    if (!r)
        return;
    forget_trees(r);
    topt_arena_destroy(r->arena);
    free(r->paths);
    free(r);
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

struct topt_time topt_router_time(struct topt_router *r, enum topt_collective c,
                                  uint32_t axes, int64_t bytes)
{
    uint64_t h = mix(mix((uint64_t)bytes, axes), (uint64_t)c);
    struct timed *t = &r->timed[h % TIMED];
    if (t->bytes != bytes || t->axes != axes || t->collective != c || !bytes)
        *t = (struct timed){
            bytes, axes, c,
            topt_hw_collective(r->hw, c, topt_mesh_group(&r->mesh, axes), bytes)};
    return t->time;
}

/* ---- states ---------------------------------------------------------------------------- */

static int at_of(uint64_t s, int g)
{
    return (int)(s >> (8 * g + 4) & 15);
}

static int pos_of(uint64_t s, int g)
{
    return (int)(s >> (8 * g) & 15);
}

static uint64_t put(uint64_t s, int g, int at, int pos)
{
    uint64_t byte = (uint64_t)(at << 4 | pos);
    return (s & ~((uint64_t)255 << (8 * g))) | byte << (8 * g);
}

/* Groups of dimension 'dim' in order; returns how many. */
static int order_of(const struct tree *t, uint64_t s, int dim, int ret[MAX_GROUPS])
{
    int n = 0;
    for (int g = 0; g < t->ngroups; g++)
        if (at_of(s, g) == dim) {
            ret[pos_of(s, g)] = g;
            n++;
        }
    return n;
}

static uint64_t state_of(const struct tree *t, const struct topt_layout *l)
{
    uint64_t s = 0;
    for (int g = 0; g < t->ngroups; g++) {
        int axis = __builtin_ctz(t->mask[g]);
        int at = l->at[axis];
        s = put(s, g, at == TOPT_REPLICATE ? AT_R : at == TOPT_PARTIAL ? AT_P : at, 0);
    }
    for (int d = 0; d < TOPT_MAX_RANK; d++) {
        int8_t axes[TOPT_MAX_AXES];
        int n = topt_layout_axes_of(l, d, axes), pos = 0;
        for (int i = 0; i < n; i++)
            for (int g = 0; g < t->ngroups; g++)
                if (__builtin_ctz(t->mask[g]) == axes[i])
                    s = put(s, g, d, pos++);
    }
    return s;
}

static struct topt_layout layout_of(const struct tree *t, uint64_t s)
{
    struct topt_layout l = topt_layout_replicated();
    for (int g = 0; g < t->ngroups; g++)
        if (at_of(s, g) == AT_P)
            for (uint32_t m = t->mask[g]; m; m &= m - 1)
                l.at[__builtin_ctz(m)] = TOPT_PARTIAL;
    for (int d = 0; d < TOPT_MAX_RANK; d++) {
        int order[MAX_GROUPS], n = order_of(t, s, d, order), pos = 0;
        for (int i = 0; i < n; i++)
            for (uint32_t m = t->mask[order[i]]; m; m &= m - 1) {
                int axis = __builtin_ctz(m);
                l.at[axis] = (int8_t)d;
                l.pos[axis] = (int8_t)pos++;
            }
    }
    return l;
}

/* Bytes of the largest block; ceilings nest, so the order of axes does not matter. */
static int64_t block_bytes(const struct tree *t, uint64_t s)
{
    int64_t split[TOPT_MAX_RANK] = {1, 1, 1, 1}, bytes = t->element_bytes;
    for (int g = 0; g < t->ngroups; g++)
        if (at_of(s, g) < TOPT_MAX_RANK)
            split[at_of(s, g)] *= t->size[g];
    for (int d = 0; d < t->shape.ndim; d++)
        bytes *= (t->shape.dim[d].count + split[d] - 1) / split[d] * t->shape.dim[d].unit;
    return bytes;
}

/* ---- nodes, heap ------------------------------------------------------------------------ */

static int before(const struct entry *x, const struct entry *y)
{
    if (x->cost != y->cost)
        return x->cost < y->cost;
    if (x->nmoves != y->nmoves)
        return x->nmoves < y->nmoves;
    return x->state < y->state;
}

/* An entry keeps the cost it was pushed with: a node that gets cheaper is pushed again, and
 * its dearer entry is skipped when it comes, since the node is done by then. */
static void heap_push(struct tree *t, int32_t n)
{
    const struct node *x = &t->node[n];
    struct entry e = {x->cost, x->state, n, x->nmoves};
    int i = t->nheap++;
    for (; i > 0 && before(&e, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = e;
}

static int32_t heap_pop(struct tree *t)
{
    struct entry top = t->heap[0], last = t->heap[--t->nheap];
    int i = 0;
    for (;;) {
        int c = 2 * i + 1;
        if (c >= t->nheap)
            break;
        if (c + 1 < t->nheap && before(&t->heap[c + 1], &t->heap[c]))
            c++;
        if (!before(&t->heap[c], &last))
            break;
        t->heap[i] = t->heap[c];
        i = c;
    }
    t->heap[i] = last;
    return top.node;
}

static uint32_t hash_state(uint64_t s)
{
    return (uint32_t)((s * 0x9e3779b97f4a7c15u) >> 32);
}

static int rehash(struct tree *t, int nslots)
{
    int32_t *slot = malloc((size_t)nslots * sizeof *slot);
    if (!slot)
        return -1;
    memset(slot, 0xff, (size_t)nslots * sizeof *slot);
    for (int i = 0; i < t->nnodes; i++) {
        uint32_t h = hash_state(t->node[i].state) & (uint32_t)(nslots - 1);
        while (slot[h] != NONE)
            h = (h + 1) & (uint32_t)(nslots - 1);
        slot[h] = i;
    }
    free(t->slot);
    t->slot = slot;
    t->nslots = nslots;
    return 0;
}

static int32_t node_find(const struct tree *t, uint64_t s)
{
    uint32_t h = hash_state(s) & (uint32_t)(t->nslots - 1);
    while (t->slot[h] != NONE && t->node[t->slot[h]].state != s)
        h = (h + 1) & (uint32_t)(t->nslots - 1);
    return t->slot[h];
}

static int32_t node_add(struct tree *t, uint64_t s)
{
    if (t->nnodes == t->cap) {
        int cap = t->cap ? 2 * t->cap : 256;
        struct node *node = realloc(t->node, (size_t)cap * sizeof *node);
        if (!node)
            return NONE;
        t->node = node;
        t->cap = cap;
    }
    if (2 * t->nnodes >= t->nslots && rehash(t, t->nslots ? 2 * t->nslots : 512))
        return NONE;
    int32_t n = t->nnodes++;
    t->node[n] = (struct node){
        .state = s, .cost = INT64_MAX, .bytes = block_bytes(t, s), .prev = NONE};
    uint32_t h = hash_state(s) & (uint32_t)(t->nslots - 1);
    while (t->slot[h] != NONE)
        h = (h + 1) & (uint32_t)(t->nslots - 1);
    t->slot[h] = n;
    return n;
}

/* ---- relaxing --------------------------------------------------------------------------- */

struct run {
    struct topt_router *r;
    struct tree *t;
    int32_t from; /* node being expanded */
    int failed;
};

static uint32_t axes_of(const struct tree *t, uint32_t groups)
{
    uint32_t mask = 0;
    for (; groups; groups &= groups - 1)
        mask |= t->mask[__builtin_ctz(groups)];
    return mask;
}

static void relax(struct run *x, enum topt_move_kind kind, uint32_t groups,
                  uint64_t state)
{
    struct tree *t = x->t;
    int64_t cost = 0;
    int32_t n = t->nslots ? node_find(t, state) : NONE;
    if (n != NONE && t->node[n].done)
        return;
    if (n == NONE)
        n = node_add(t, state);
    if (n == NONE) {
        x->failed = 1;
        return;
    }
    const struct node *from = &t->node[x->from];
    struct node *to = &t->node[n];
    if (kind != TOPT_MOVE_SLICE) {
        const struct node *sized = kind == TOPT_MOVE_ALL_GATHER ? to : from;
        cost = topt_router_time(x->r, topt_move_collective(kind), axes_of(t, groups),
                                sized->bytes)
                   .ns;
    }
    int64_t total = from->cost + cost;
    int nmoves = from->nmoves + 1;
    if (total > to->cost || (total == to->cost && nmoves >= to->nmoves))
        return;
    to->cost = total;
    to->nmoves = (int16_t)nmoves;
    to->prev = x->from;
    to->kind = (uint8_t)kind;
    to->group = (uint16_t)groups;
    if (t->nheap == t->heap_cap) {
        int cap = t->heap_cap ? 2 * t->heap_cap : 256;
        struct entry *heap = realloc(t->heap, (size_t)cap * sizeof *heap);
        if (!heap) {
            x->failed = 1;
            return;
        }
        t->heap = heap;
        t->heap_cap = cap;
    }
    heap_push(t, n);
}

/* Put the groups of 'set' innermost in 'dim', in group order. */
static uint64_t append(const struct tree *t, uint64_t s, uint32_t set, int dim)
{
    int order[MAX_GROUPS], pos = order_of(t, s, dim, order);
    for (; set; set &= set - 1)
        s = put(s, __builtin_ctz(set), dim, pos++);
    return s;
}

static void expand_partial(struct run *x, uint64_t s)
{
    const struct tree *t = x->t;
    uint32_t partial = 0;
    for (int g = 0; g < t->ngroups; g++)
        if (at_of(s, g) == AT_P)
            partial |= 1u << g;
    for (uint32_t set = partial; set; set = (set - 1) & partial) {
        uint64_t reduced = s;
        for (uint32_t m = set; m; m &= m - 1)
            reduced = put(reduced, __builtin_ctz(m), AT_R, 0);
        relax(x, TOPT_MOVE_ALL_REDUCE, set, reduced);
        for (int d = 0; d < t->shape.ndim; d++)
            if (t->dims >> d & 1)
                relax(x, TOPT_MOVE_REDUCE_SCATTER, set, append(t, s, set, d));
    }
}

static void expand_slice(struct run *x, uint64_t s)
{
    const struct tree *t = x->t;
    for (int g = 0; g < t->ngroups; g++)
        for (int d = 0; d < t->shape.ndim; d++)
            if (at_of(s, g) == AT_R && t->dims >> d & 1 && !(t->frozen >> g & 1))
                relax(x, TOPT_MOVE_SLICE, 1u << g, append(t, s, 1u << g, d));
}

/* Gather, or hand to another dimension, the innermost 1, 2, ... groups of each dimension. */
static void expand_suffix(struct run *x, uint64_t s)
{
    const struct tree *t = x->t;
    for (int d = 0; d < t->shape.ndim; d++) {
        int order[MAX_GROUPS], n = order_of(t, s, d, order);
        uint32_t set = 0;
        for (int k = n - 1; k >= 0 && !(t->frozen >> order[k] & 1); k--) {
            set |= 1u << order[k];
            uint64_t gathered = s;
            for (int i = k; i < n; i++)
                gathered = put(gathered, order[i], AT_R, 0);
            relax(x, TOPT_MOVE_ALL_GATHER, set, gathered);
            for (int e = 0; e < t->shape.ndim; e++) {
                if (e == d || !(t->dims >> e & 1))
                    continue;
                int other[MAX_GROUPS], pos = order_of(t, s, e, other);
                uint64_t moved = s;
                for (int i = k; i < n; i++)
                    moved = put(moved, order[i], e, pos++);
                relax(x, TOPT_MOVE_ALL_TO_ALL, set, moved);
            }
        }
    }
}

static void permute_from(struct run *x, uint64_t s, int d, const int *order, int n,
                         uint64_t made, uint32_t left, int pos)
{
    if (pos == n) {
        uint32_t set = 0;
        for (int i = 0; i < n; i++)
            if (pos_of(made, order[i]) != i)
                set |= 1u << order[i];
        if (set)
            relax(x, TOPT_MOVE_PERMUTE, set, made);
        return;
    }
    for (uint32_t m = left; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        permute_from(x, s, d, order, n, put(made, order[i], d, pos), left & ~(1u << i),
                     pos + 1);
    }
}

/* Other orders of a dimension's axes, where all blocks are of one size. */
static void expand_permute(struct run *x, uint64_t s)
{
    const struct tree *t = x->t;
    for (int d = 0; d < t->shape.ndim; d++) {
        int order[MAX_GROUPS], n = order_of(t, s, d, order);
        int64_t product = 1;
        for (int i = 0; i < n; i++)
            product *= t->size[order[i]];
        if (n >= 2 && n <= 4 && t->shape.dim[d].count % product == 0)
            permute_from(x, s, d, order, n, s, (1u << n) - 1, 0);
    }
}

static void expand(struct run *x)
{
    uint64_t s = x->t->node[x->from].state;
    x->t->node[x->from].done = 1;
    expand_partial(x, s);
    expand_slice(x, s);
    expand_suffix(x, s);
    expand_permute(x, s);
}

/* Grow the tree until 'target' is in it; its node, or NONE where memory is short. */
static int32_t reach(struct topt_router *r, struct tree *t, uint64_t target)
{
    struct run x = {.r = r, .t = t};
    int before = t->nnodes;
    int32_t n = node_find(t, target);
    while (t->nheap && !x.failed && (n == NONE || !t->node[n].done)) {
        x.from = heap_pop(t);
        if (!t->node[x.from].done)
            expand(&x);
        n = n == NONE ? node_find(t, target) : n;
    }
    r->ntree_nodes += t->nnodes - before;
    return x.failed ? NONE : n;
}

/* ---- runs and paths ---------------------------------------------------------------------- */

static uint64_t mix_bytes(uint64_t h, const void *p, size_t n)
{
    const char *c = p;
    for (uint64_t x = 0; n; x = 0) {
        size_t k = n < sizeof x ? n : sizeof x;
        memcpy(&x, c, k);
        h = mix(h, x);
        c += k;
        n -= k;
    }
    return h;
}

static uint64_t hash_pair(const struct topt_shape *s, int element_bytes,
                          const struct topt_layout *from, const struct topt_layout *to)
{
    uint64_t h =
        mix_bytes((uint64_t)element_bytes, s->dim, sizeof s->dim[0] * (size_t)s->ndim);
    h = mix_bytes(h, from, sizeof *from);
    return to ? mix_bytes(h, to, sizeof *to) : h;
}

static int same_shape(const struct topt_shape *a, const struct topt_shape *b)
{
    return a->ndim == b->ndim &&
           !memcmp(a->dim, b->dim, sizeof a->dim[0] * (size_t)a->ndim);
}

static uint32_t dims_of(const struct topt_layout *a, const struct topt_layout *b)
{
    uint32_t dims = 0;
    for (int i = 0; i < TOPT_MAX_AXES; i++) {
        if (a->at[i] >= 0)
            dims |= 1u << a->at[i];
        if (b->at[i] >= 0)
            dims |= 1u << b->at[i];
    }
    return dims;
}

/* May axis a+1 move together with axis a in this layout? */
static int follows(const struct topt_layout *l, int a)
{
    return l->at[a] == l->at[a + 1] && (l->at[a] < 0 || l->pos[a] + 1 == l->pos[a + 1]);
}

static int make_groups(const struct topt_router *r, struct tree *t,
                       const struct topt_layout *from, const struct topt_layout *to,
                       int merge, struct topt_error *err)
{
    for (int a = 0; a < r->mesh.naxes; a++) {
        int joins = merge && a > 0 && a != r->mesh.node_axes && follows(from, a - 1) &&
                    follows(to, a - 1);
        if (!joins && t->ngroups == MAX_GROUPS)
            return topt_fail(err, TOPT_ERR_LIMIT,
                             "a redistribution over more than %d groups of axes",
                             MAX_GROUPS);
        int g = joins ? t->ngroups - 1 : t->ngroups++;
        t->mask[g] |= 1u << a;
        t->size[g] = (t->size[g] ? t->size[g] : 1) * r->mesh.size[a];
    }
    return 0;
}

/* Groups that stand still: replicated on both sides, or in a dimension that does not change. */
static uint32_t standing(const struct tree *t, uint64_t a, uint64_t b)
{
    uint32_t still = 0;
    for (int g = 0; g < t->ngroups; g++) {
        int same = at_of(a, g) == at_of(b, g) && pos_of(a, g) == pos_of(b, g);
        if (!same || at_of(a, g) == AT_P)
            continue;
        if (at_of(a, g) == AT_R) {
            still |= 1u << g;
            continue;
        }
        int x[MAX_GROUPS], y[MAX_GROUPS];
        int n = order_of(t, a, at_of(a, g), x), m = order_of(t, b, at_of(b, g), y);
        int outer_same = n == m;
        for (int i = 0; outer_same && i < n; i++)
            outer_same = x[i] == y[i];
        if (outer_same)
            still |= 1u << g;
    }
    return still;
}

static int same_tree(const struct tree *a, const struct tree *b)
{
    return a->element_bytes == b->element_bytes && a->dims == b->dims &&
           a->frozen == b->frozen && a->ngroups == b->ngroups &&
           !memcmp(a->mask, b->mask, sizeof a->mask) &&
           same_shape(&a->shape, &b->shape) && topt_layout_equal(&a->from, &b->from);
}

static int plant(struct tree *t)
{
    int32_t root;
    t->heap_cap = 256;
    t->heap = malloc((size_t)t->heap_cap * sizeof *t->heap);
    if (!t->heap || (root = node_add(t, state_of(t, &t->from))) == NONE)
        return -1;
    t->node[root].cost = 0;
    heap_push(t, root);
    return 0;
}

/* The tree that a pair belongs to, new or of an earlier pair with the same source, the same
 * groups of axes and the same that stand still. */
static struct tree *tree_get(struct topt_router *r, const struct topt_shape *s,
                             int element_bytes, const struct topt_layout *from,
                             const struct topt_layout *to, struct topt_error *err)
{
    int merge = r->mesh.naxes > TREE_AXES;
    struct tree key = {.shape = *s,
                       .element_bytes = element_bytes,
                       .from = *from,
                       .dims = dims_of(from, to)};
    if (make_groups(r, &key, from, to, merge, err))
        return NULL;
    if (merge)
        key.frozen = standing(&key, state_of(&key, from), state_of(&key, to));
    if (r->ntree_nodes > MAX_TREE_NODES)
        forget_trees(r);
    uint64_t b = hash_pair(s, element_bytes, from, NULL) % BUCKETS;
    for (struct tree *t = r->trees[b]; t; t = t->next)
        if (same_tree(t, &key))
            return t;
    struct tree *t = malloc(sizeof *t);
    if (t)
        *t = key;
    if (!t || plant(t)) {
        if (t)
            tree_destroy(t);
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution");
        return NULL;
    }
    t->next = r->trees[b];
    r->trees[b] = t;
    return t;
}

/* Slices that follow each other are one slice. */
static int merges(const struct topt_move *last, const struct topt_move *m)
{
    return last && m->kind == TOPT_MOVE_SLICE && last->kind == TOPT_MOVE_SLICE;
}

/* The moves from the source to node 'n', in order. */
static int read_path(struct topt_arena *arena, const struct tree *t, int32_t n,
                     struct topt_path *p, struct topt_error *err)
{
    int len = t->node[n].nmoves;
    int32_t *chain = TOPT_NEW(arena, len, int32_t);
    struct topt_move *move = TOPT_NEW(arena, len, struct topt_move);
    if (!chain || !move)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution");
    *p = (struct topt_path){.move = move, .time_ns = t->node[n].cost};
    for (int i = len; i > 0; n = t->node[n].prev)
        chain[--i] = n;
    for (int i = 0; i < len; i++) {
        const struct node *x = &t->node[chain[i]];
        struct topt_move m = {.kind = (enum topt_move_kind)x->kind,
                              .axes = axes_of(t, x->group),
                              .from = layout_of(t, t->node[x->prev].state),
                              .to = layout_of(t, x->state)};
        struct topt_move *last = p->nmoves ? &move[p->nmoves - 1] : NULL;
        if (merges(last, &m)) {
            last->axes |= m.axes;
            last->to = m.to;
        } else {
            move[p->nmoves++] = m;
        }
    }
    return 0;
}

/* Keep a path for the next who asks; where memory is short chains grow longer instead. */
static void remember(struct topt_router *r, struct found *f)
{
    if (r->npaths == r->nbuckets) {
        size_t n = 4 * r->nbuckets;
        struct found **paths = calloc(n, sizeof *paths);
        for (size_t b = 0; paths && b < r->nbuckets; b++)
            for (struct found *x = r->paths[b], *next; x; x = next) {
                next = x->next;
                x->next = paths[x->hash & (n - 1)];
                paths[x->hash & (n - 1)] = x;
            }
        if (paths) {
            free(r->paths);
            r->paths = paths;
            r->nbuckets = n;
        }
    }
    f->next = r->paths[f->hash & (r->nbuckets - 1)];
    r->paths[f->hash & (r->nbuckets - 1)] = f;
    r->npaths++;
}

/* ---- interchangeable axes ----------------------------------------------------------------- */

/* Axis 'a' of a pair is before 'b' where it is in an earlier dimension or place of the source,
 * then of the target. */
static int axis_before(const struct topt_layout *from, const struct topt_layout *to,
                       int a, int b)
{
    if (from->at[a] != from->at[b])
        return from->at[a] < from->at[b];
    if (from->pos[a] != from->pos[b])
        return from->pos[a] < from->pos[b];
    if (to->at[a] != to->at[b])
        return to->at[a] < to->at[b];
    return to->pos[a] < to->pos[b];
}

static int interchangeable(const struct topt_mesh *m, int a, int b)
{
    return m->size[a] == m->size[b] && (a < m->node_axes) == (b < m->node_axes);
}

/* The pair's axes in order: ret[i] is the axis that comes to place i.  Equal axes are
 * neighbours in a mesh.  Returns whether any moves. */
static int order_axes(const struct topt_mesh *m, const struct topt_layout *from,
                      const struct topt_layout *to, int8_t ret[TOPT_MAX_AXES])
{
    int moved = 0;
    for (int a = 0; a < m->naxes; a++) {
        int i = a;
        for (; i > 0 && interchangeable(m, ret[i - 1], a) &&
               axis_before(from, to, a, ret[i - 1]);
             i--)
            ret[i] = ret[i - 1];
        ret[i] = (int8_t)a;
        moved |= i != a;
    }
    return moved;
}

static struct topt_layout in_order(const struct topt_mesh *m, const struct topt_layout *l,
                                   const int8_t *order)
{
    struct topt_layout x = topt_layout_replicated();
    for (int i = 0; i < m->naxes; i++) {
        x.at[i] = l->at[order[i]];
        x.pos[i] = l->pos[order[i]];
    }
    return x;
}

static struct topt_layout renamed(const struct topt_mesh *m, const struct topt_layout *l,
                                  const int8_t *order)
{
    struct topt_layout x = topt_layout_replicated();
    for (int i = 0; i < m->naxes; i++) {
        x.at[order[i]] = l->at[i];
        x.pos[order[i]] = l->pos[i];
    }
    return x;
}

static int rename_path(struct topt_router *r, const struct topt_path *p,
                       const int8_t *order, struct topt_path *ret, struct topt_error *err)
{
    struct topt_move *move = TOPT_NEW(r->arena, p->nmoves, struct topt_move);
    if (!move)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution");
    for (int k = 0; k < p->nmoves; k++) {
        const struct topt_move *m = &p->move[k];
        move[k] = (struct topt_move){.kind = m->kind,
                                     .from = renamed(&r->mesh, &m->from, order),
                                     .to = renamed(&r->mesh, &m->to, order)};
        for (int i = 0; i < r->mesh.naxes; i++)
            if (m->axes >> i & 1)
                move[k].axes |= 1u << order[i];
    }
    *ret = (struct topt_path){p->nmoves, move, p->time_ns};
    return 0;
}

/* ---- the question --------------------------------------------------------------------------- */

static int search_path(struct topt_router *r, struct found *f, struct topt_error *err)
{
    struct tree *t = tree_get(r, &f->shape, f->element_bytes, &f->from, &f->to, err);
    if (!t)
        return -1;
    int32_t n = reach(r, t, state_of(t, &f->to));
    return n == NONE ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution")
                     : read_path(r->arena, t, n, &f->path, err);
}

static int find_path(struct topt_router *r, struct found *f, struct topt_error *err)
{
    int8_t order[TOPT_MAX_AXES];
    const struct topt_path *like;
    if (topt_layout_equal(&f->from, &f->to))
        return 0;
    if (!order_axes(&r->mesh, &f->from, &f->to, order))
        return search_path(r, f, err);
    struct topt_layout from = in_order(&r->mesh, &f->from, order);
    struct topt_layout to = in_order(&r->mesh, &f->to, order);
    return topt_router_path(r, &f->shape, f->element_bytes, &from, &to, &like, err)
               ? -1
               : rename_path(r, like, order, &f->path, err);
}

int topt_router_path(struct topt_router *r, const struct topt_shape *s, int element_bytes,
                     const struct topt_layout *from, const struct topt_layout *to,
                     const struct topt_path **ret, struct topt_error *err)
{
    uint64_t hash = hash_pair(s, element_bytes, from, to);
    for (struct found *f = r->paths[hash & (r->nbuckets - 1)]; f; f = f->next)
        if (f->hash == hash && f->element_bytes == element_bytes &&
            topt_layout_equal(&f->from, from) && topt_layout_equal(&f->to, to) &&
            same_shape(&f->shape, s)) {
            *ret = &f->path;
            return 0;
        }
    struct found *f = TOPT_NEW(r->arena, 1, struct found);
    if (!f)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution");
    *f = (struct found){.hash = hash,
                        .shape = *s,
                        .element_bytes = element_bytes,
                        .from = *from,
                        .to = *to};
    if (find_path(r, f, err))
        return -1;
    remember(r, f);
    *ret = &f->path;
    return 0;
}
