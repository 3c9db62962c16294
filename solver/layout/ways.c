/* ways.c - the cheapest way from one layout to another, without names.
 *
 * Layouts of a tensor are the nodes of a graph whose edges are single collectives (or the
 * free local slice); a redistribution is a shortest path (TensorOpt, section 4.3).
 *
 * A Dijkstra run from a source is kept, as a tree, and goes on where it stopped when the next
 * target is asked for. */
#include "ways.h"

#include <stdlib.h>
#include <string.h>

#include "topt_arena.h"

enum { NONE = -1 };

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

/* One Dijkstra run: a tree of cheapest moves from a source, grown as far as it was asked. */
struct tree {
    struct tree *next;
    uint64_t hash;
    struct topt_way_source source;
    struct node *node;
    int nnodes, cap;
    int32_t *slot; /* hash of states */
    int nslots;
    struct entry *heap; /* where it goes on */
    int nheap, heap_cap;
};

/* A collective that was priced before; a later one takes its place. */
struct timed {
    int64_t bytes; /* 0: none yet */
    int32_t nodes, per_node;
    uint32_t collective;
    struct topt_time time;
};

/* Trees are forgotten together where they hold more nodes: some 300 MB. */
enum { BUCKETS = 4096, TIMED = 8192, MAX_TREE_NODES = 1 << 22 };

struct topt_ways {
    const struct topt_hw *hw;
    int per_node; /* devices of a node */
    struct tree *trees[BUCKETS];
    int64_t ntree_nodes; /* of all trees */
    struct timed timed[TIMED];
    struct topt_route_stats stats;
};

struct topt_ways *topt_ways_create(const struct topt_hw *hw, const struct topt_mesh *mesh)
{
    struct topt_ways *w = calloc(1, sizeof *w);
    if (w) {
        w->hw = hw;
        w->per_node = mesh->per_node;
    }
    return w;
}

static void tree_destroy(struct tree *t)
{
    free(t->node);
    free(t->slot);
    free(t->heap);
    free(t);
}

static void forget_trees(struct topt_ways *w)
{
    for (int b = 0; b < BUCKETS; b++)
        for (struct tree *t = w->trees[b], *next; t; t = next) {
            next = t->next;
            tree_destroy(t);
        }
    memset(w->trees, 0, sizeof w->trees);
    w->ntree_nodes = 0;
}

void topt_ways_destroy(struct topt_ways *w)
{
    if (!w)
        return;
    forget_trees(w);
    free(w);
}

void topt_ways_stats(const struct topt_ways *w, struct topt_route_stats *ret)
{
    *ret = w->stats;
}

struct topt_time topt_ways_time(struct topt_ways *w, enum topt_collective c, int nodes,
                                int per_node, int64_t bytes)
{
    uint64_t h =
        topt_mix(topt_mix((uint64_t)bytes, (uint64_t)nodes << 32 | (uint32_t)per_node),
                 (uint64_t)c);
    struct timed *t = &w->timed[h % TIMED];
    if (t->bytes != bytes || t->nodes != nodes || t->per_node != per_node ||
        t->collective != c || !bytes) {
        struct topt_group g = {nodes, per_node, w->per_node / per_node};
        *t = (struct timed){bytes, nodes, per_node, c,
                            topt_hw_collective(w->hw, c, g, bytes)};
    }
    return t->time;
}

/* ---- states ---------------------------------------------------------------------------- */

/* Groups of dimension 'dim' in order; returns how many. */
static int order_of(const struct tree *t, uint64_t s, int dim, int ret[TOPT_WAY_GROUPS])
{
    int n = 0;
    for (int g = 0; g < t->source.ngroups; g++)
        if (topt_way_at(s, g) == dim) {
            ret[topt_way_pos(s, g)] = g;
            n++;
        }
    return n;
}

/* Bytes of the largest block; ceilings nest, so the order of groups does not matter. */
static int64_t block_bytes(const struct tree *t, uint64_t s)
{
    int64_t split[TOPT_MAX_RANK] = {1, 1, 1, 1}, bytes = t->source.bytes;
    for (int g = 0; g < t->source.ngroups; g++)
        if (topt_way_at(s, g) < TOPT_MAX_RANK)
            split[topt_way_at(s, g)] *= t->source.size[g];
    for (int d = 0; d < t->source.ndims; d++) {
        int64_t count = t->source.count[d];
        count = count < 0 ? -count : count;
        bytes = count ? bytes * ((count + split[d] - 1) / split[d]) : bytes / split[d];
    }
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
static int heap_push(struct tree *t, int32_t n)
{
    if (t->nheap == t->heap_cap) {
        int cap = t->heap_cap ? 2 * t->heap_cap : 64;
        struct entry *heap = realloc(t->heap, (size_t)cap * sizeof *heap);
        if (!heap)
            return -1;
        t->heap = heap;
        t->heap_cap = cap;
    }
    const struct node *x = &t->node[n];
    struct entry e = {x->cost, x->state, n, x->nmoves};
    int i = t->nheap++;
    for (; i > 0 && before(&e, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = e;
    return 0;
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
    if (!t->nslots)
        return NONE;
    uint32_t h = hash_state(s) & (uint32_t)(t->nslots - 1);
    while (t->slot[h] != NONE && t->node[t->slot[h]].state != s)
        h = (h + 1) & (uint32_t)(t->nslots - 1);
    return t->slot[h];
}

static int32_t node_add(struct tree *t, uint64_t s)
{
    if (t->nnodes == t->cap) {
        int cap = t->cap ? 2 * t->cap : 64;
        struct node *node = realloc(t->node, (size_t)cap * sizeof *node);
        if (!node)
            return NONE;
        t->node = node;
        t->cap = cap;
    }
    if (2 * t->nnodes >= t->nslots && rehash(t, t->nslots ? 2 * t->nslots : 128))
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
    struct topt_ways *w;
    struct tree *t;
    int32_t from; /* node being expanded */
    int failed;
};

/* Time of a collective along 'groups'. */
static int64_t move_ns(const struct run *x, enum topt_move_kind kind, uint32_t groups,
                       int64_t bytes)
{
    int across[2] = {1, 1}; /* nodes, devices of each */
    for (; groups; groups &= groups - 1) {
        int g = __builtin_ctz(groups);
        across[g >= x->t->source.node_groups] *= x->t->source.size[g];
    }
    return topt_ways_time(x->w, topt_move_collective(kind), across[0], across[1], bytes)
        .ns;
}

static void relax(struct run *x, enum topt_move_kind kind, uint32_t groups,
                  uint64_t state)
{
    struct tree *t = x->t;
    int32_t n = node_find(t, state);
    x->w->stats.relaxed++;
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
    int64_t total = from->cost;
    int nmoves = from->nmoves + 1;
    if (kind != TOPT_MOVE_SLICE)
        total += move_ns(x, kind, groups,
                         kind == TOPT_MOVE_ALL_GATHER ? to->bytes : from->bytes);
    if (total > to->cost || (total == to->cost && nmoves >= to->nmoves))
        return;
    to->cost = total;
    to->nmoves = (int16_t)nmoves;
    to->prev = x->from;
    to->kind = (uint8_t)kind;
    to->group = (uint16_t)groups;
    x->failed |= heap_push(t, n);
}

/* Put the groups of 'set' innermost in 'dim', in group order. */
static uint64_t append(const struct tree *t, uint64_t s, uint32_t set, int dim)
{
    int order[TOPT_WAY_GROUPS], pos = order_of(t, s, dim, order);
    for (; set; set &= set - 1)
        s = topt_way_put(s, __builtin_ctz(set), dim, pos++);
    return s;
}

static void expand_partial(struct run *x, uint64_t s)
{
    const struct tree *t = x->t;
    uint32_t partial = 0;
    for (int g = 0; g < t->source.ngroups; g++)
        if (topt_way_at(s, g) == TOPT_WAY_P)
            partial |= 1u << g;
    for (uint32_t set = partial; set; set = (set - 1) & partial) {
        uint64_t reduced = s;
        for (uint32_t m = set; m; m &= m - 1)
            reduced = topt_way_put(reduced, __builtin_ctz(m), TOPT_WAY_R, 0);
        relax(x, TOPT_MOVE_ALL_REDUCE, set, reduced);
        for (int d = 0; d < t->source.ndims; d++)
            relax(x, TOPT_MOVE_REDUCE_SCATTER, set, append(t, s, set, d));
    }
}

static void expand_slice(struct run *x, uint64_t s)
{
    const struct tree *t = x->t;
    for (int g = 0; g < t->source.ngroups; g++)
        for (int d = 0; d < t->source.ndims; d++)
            if (topt_way_at(s, g) == TOPT_WAY_R)
                relax(x, TOPT_MOVE_SLICE, 1u << g, append(t, s, 1u << g, d));
}

/* Gather, or hand to another dimension, the innermost 1, 2, ... groups of each dimension. */
static void expand_suffix(struct run *x, uint64_t s)
{
    const struct tree *t = x->t;
    for (int d = 0; d < t->source.ndims; d++) {
        int order[TOPT_WAY_GROUPS], n = order_of(t, s, d, order);
        uint32_t set = 0;
        for (int k = n - 1; k >= 0; k--) {
            set |= 1u << order[k];
            uint64_t gathered = s;
            for (int i = k; i < n; i++)
                gathered = topt_way_put(gathered, order[i], TOPT_WAY_R, 0);
            relax(x, TOPT_MOVE_ALL_GATHER, set, gathered);
            for (int e = 0; e < t->source.ndims; e++) {
                if (e == d)
                    continue;
                int other[TOPT_WAY_GROUPS], pos = order_of(t, s, e, other);
                uint64_t moved = s;
                for (int i = k; i < n; i++)
                    moved = topt_way_put(moved, order[i], e, pos++);
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
            if (topt_way_pos(made, order[i]) != i)
                set |= 1u << order[i];
        if (set)
            relax(x, TOPT_MOVE_PERMUTE, set, made);
        return;
    }
    for (uint32_t m = left; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        permute_from(x, s, d, order, n, topt_way_put(made, order[i], d, pos),
                     left & ~(1u << i), pos + 1);
    }
}

/* Other orders of a dimension's axes, where all blocks are of one size. */
static void expand_permute(struct run *x, uint64_t s)
{
    const struct tree *t = x->t;
    for (int d = 0; d < t->source.ndims; d++) {
        int order[TOPT_WAY_GROUPS], n = order_of(t, s, d, order);
        int64_t product = 1, count = t->source.count[d];
        for (int i = 0; i < n; i++)
            product *= t->source.size[order[i]];
        if (n >= 2 && n <= 4 && count >= 0 && count % product == 0)
            permute_from(x, s, d, order, n, s, (1u << n) - 1, 0);
    }
}

static void expand(struct run *x)
{
    uint64_t s = x->t->node[x->from].state;
    x->t->node[x->from].done = 1;
    x->w->stats.settled++;
    expand_partial(x, s);
    expand_slice(x, s);
    expand_suffix(x, s);
    expand_permute(x, s);
}

/* Grow the tree until 'target' is in it; its node, or NONE where memory is short. */
static int32_t reach(struct topt_ways *w, struct tree *t, uint64_t target)
{
    struct run x = {.w = w, .t = t};
    int before = t->nnodes;
    int32_t n = node_find(t, target);
    while (t->nheap && !x.failed && (n == NONE || !t->node[n].done)) {
        x.from = heap_pop(t);
        if (!t->node[x.from].done)
            expand(&x);
        n = n == NONE ? node_find(t, target) : n;
    }
    w->ntree_nodes += t->nnodes - before;
    return x.failed ? NONE : n;
}

/* ---- trees ------------------------------------------------------------------------------- */

static int plant(struct tree *t)
{
    int32_t root = node_add(t, t->source.from);
    if (root == NONE)
        return -1;
    t->node[root].cost = 0;
    return heap_push(t, root);
}

static struct tree *tree_get(struct topt_ways *w, const struct topt_way_source *s,
                             struct topt_error *err)
{
    if (w->ntree_nodes > MAX_TREE_NODES)
        forget_trees(w);
    uint64_t hash = topt_mix_bytes(0, s, sizeof *s), b = hash % BUCKETS;
    for (struct tree *t = w->trees[b]; t; t = t->next)
        if (t->hash == hash && !memcmp(&t->source, s, sizeof *s))
            return t;
    struct tree *t = malloc(sizeof *t);
    if (t)
        *t = (struct tree){.source = *s, .hash = hash, .next = w->trees[b]};
    if (!t || plant(t)) {
        if (t)
            tree_destroy(t);
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution");
        return NULL;
    }
    w->trees[b] = t;
    w->stats.trees++;
    return t;
}

/* Slices that follow each other are one slice. */
static int read_steps(const struct tree *t, int32_t n, struct topt_way_step *step)
{
    int len = t->node[n].nmoves, nsteps = 0;
    for (int i = len - 1; i >= 0; n = t->node[n].prev, i--)
        step[i] = (struct topt_way_step){(enum topt_move_kind)t->node[n].kind,
                                         t->node[n].group, t->node[n].state};
    for (int i = 0; i < len; i++) {
        struct topt_way_step *last = nsteps ? &step[nsteps - 1] : NULL;
        if (last && last->kind == TOPT_MOVE_SLICE && step[i].kind == TOPT_MOVE_SLICE) {
            last->groups |= step[i].groups;
            last->to = step[i].to;
        } else {
            step[nsteps++] = step[i];
        }
    }
    return nsteps;
}

int topt_ways_find(struct topt_ways *w, const struct topt_way *question,
                   struct topt_arena *arena, int64_t *ret_ns, int *ret_nsteps,
                   struct topt_way_step **ret_steps, struct topt_error *err)
{
    struct tree *t = tree_get(w, &question->source, err);
    if (!t)
        return -1;
    int32_t n = reach(w, t, question->to);
    *ret_steps =
        n == NONE ? NULL : TOPT_NEW(arena, t->node[n].nmoves, struct topt_way_step);
    if (!*ret_steps)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution");
    *ret_ns = t->node[n].cost;
    *ret_nsteps = read_steps(t, n, *ret_steps);
    return 0;
}
