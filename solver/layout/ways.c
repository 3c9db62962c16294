/* ways.c - the cheapest way from one layout to another, without names.
 *
 * Layouts of a tensor are the nodes of a graph whose edges are single collectives (or the
 * free local slice); a redistribution is a shortest path (TensorOpt, section 4.3).
 *
 * Which moves there are depends on the number of groups and dimensions alone, so the graph is
 * made once for each, as far as anybody comes (an atlas); what a move costs is looked up.
 * A Dijkstra run from a source is kept, as a tree, and goes on where it stopped when the next
 * target is asked for. */
#include "ways.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* A move that there is from a layout. */
struct arc {
    int32_t to;
    uint8_t kind, groups;
    uint8_t dim; /* of a permutation */
};

struct spot {
    uint64_t state;
    int32_t first, narcs; /* narcs NONE: not made yet */
};

/* All layouts of so many groups and dimensions that were come to, and their moves. */
struct atlas {
    int ngroups, ndims;
    struct spot *spot;
    int nspots, cap;
    int32_t *slot; /* hash of states */
    int nslots;
    struct arc *arc;
    int narcs, arc_cap;
    int failed; /* memory was short */
};

/* A layout as seen from a source. */
struct node {
    int64_t cost;
    int64_t bytes; /* of the largest block */
    int32_t prev;
    int16_t nmoves;
    uint8_t seen, done;
    uint8_t kind;   /* of the move that leads here */
    uint8_t groups; /* that it varies along */
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
    struct atlas *atlas;
    uint32_t *across;  /* by set of groups: nodes << 16 | devices of each */
    struct node *node; /* by spot */
    int nnodes;
    struct entry *heap; /* where it goes on */
    int nheap, heap_cap;
};

/* A collective that was priced before; a later one takes its place. */
struct timed {
    int64_t bytes; /* 0: none yet */
    uint32_t across, collective;
    struct topt_time time;
};

/* Trees are forgotten together where they hold more nodes: some 200 MB. */
enum { BUCKETS = 4096, TIMED = 8192, MAX_TREE_NODES = 6 << 20 };

struct topt_ways {
    const struct topt_hw *hw;
    int per_node; /* devices of a node */
    struct atlas atlas[TOPT_WAY_GROUPS + 1][TOPT_MAX_RANK + 1];
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
    free(t->across);
    free(t->node);
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
    for (int g = 0; g <= TOPT_WAY_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++) {
            free(w->atlas[g][d].spot);
            free(w->atlas[g][d].slot);
            free(w->atlas[g][d].arc);
        }
    free(w);
}

void topt_ways_stats(const struct topt_ways *w, struct topt_route_stats *ret)
{
    *ret = w->stats;
}

static struct topt_time time_of(struct topt_ways *w, enum topt_collective c,
                                uint32_t across, int64_t bytes)
{
    uint64_t h = topt_mix((uint64_t)bytes, (uint64_t)across << 8 | (uint64_t)c);
    struct timed *t = &w->timed[h % TIMED];
    if (t->bytes != bytes || t->across != across || t->collective != c || !bytes) {
        int nodes = (int)(across >> 16), per_node = (int)(across & 0xffff);
        struct topt_group g = {nodes, per_node, w->per_node / per_node};
        *t = (struct timed){bytes, across, c, topt_hw_collective(w->hw, c, g, bytes)};
    }
    return t->time;
}

struct topt_time topt_ways_time(struct topt_ways *w, enum topt_collective c, int nodes,
                                int per_node, int64_t bytes)
{
    return time_of(w, c, (uint32_t)nodes << 16 | (uint32_t)per_node, bytes);
}

/* ---- the atlas --------------------------------------------------------------------------- */

static uint32_t hash_state(uint64_t s)
{
    return (uint32_t)((s * 0x9e3779b97f4a7c15u) >> 32);
}

static int32_t *slot_of(const struct atlas *a, uint64_t s)
{
    uint32_t h = hash_state(s) & (uint32_t)(a->nslots - 1);
    while (a->slot[h] != NONE && a->spot[a->slot[h]].state != s)
        h = (h + 1) & (uint32_t)(a->nslots - 1);
    return &a->slot[h];
}

static int atlas_grow(struct atlas *a)
{
    int cap = a->cap ? 2 * a->cap : 64;
    struct spot *spot = realloc(a->spot, (size_t)cap * sizeof *spot);
    if (spot)
        a->spot = spot;
    int32_t *slot = malloc(2 * (size_t)cap * sizeof *slot);
    if (!spot || !slot) {
        free(slot);
        return -1;
    }
    free(a->slot);
    a->slot = slot;
    a->cap = cap;
    a->nslots = 2 * cap;
    memset(slot, 0xff, (size_t)a->nslots * sizeof *slot);
    for (int i = 0; i < a->nspots; i++)
        *slot_of(a, a->spot[i].state) = i;
    return 0;
}

/* The number of a state, new or not; NONE where memory is short. */
static int32_t spot_of(struct atlas *a, uint64_t s)
{
    if (a->nspots == a->cap && atlas_grow(a))
        return NONE;
    int32_t *slot = slot_of(a, s);
    if (*slot == NONE) {
        a->spot[a->nspots] = (struct spot){.state = s, .narcs = NONE};
        *slot = a->nspots++;
    }
    return *slot;
}

static void add_arc(struct atlas *a, enum topt_move_kind kind, uint32_t groups, int dim,
                    uint64_t state)
{
    int32_t to = spot_of(a, state);
    if (a->narcs == a->arc_cap) {
        int cap = a->arc_cap ? 2 * a->arc_cap : 256;
        struct arc *arc = realloc(a->arc, (size_t)cap * sizeof *arc);
        if (arc) {
            a->arc = arc;
            a->arc_cap = cap;
        }
    }
    if (to == NONE || a->narcs == a->arc_cap)
        a->failed = 1;
    else
        a->arc[a->narcs++] =
            (struct arc){to, (uint8_t)kind, (uint8_t)groups, (uint8_t)dim};
}

/* Groups of dimension 'dim' in order; returns how many. */
static int order_of(int ngroups, uint64_t s, int dim, int ret[TOPT_WAY_GROUPS])
{
    int n = 0;
    for (int g = 0; g < ngroups; g++)
        if (topt_way_at(s, g) == dim) {
            ret[topt_way_pos(s, g)] = g;
            n++;
        }
    return n;
}

/* Put the groups of 'set' innermost in 'dim', in group order. */
static uint64_t append(const struct atlas *a, uint64_t s, uint32_t set, int dim)
{
    int order[TOPT_WAY_GROUPS], pos = order_of(a->ngroups, s, dim, order);
    for (; set; set &= set - 1)
        s = topt_way_put(s, __builtin_ctz(set), dim, pos++);
    return s;
}

static void map_partial(struct atlas *a, uint64_t s)
{
    uint32_t partial = 0;
    for (int g = 0; g < a->ngroups; g++)
        if (topt_way_at(s, g) == TOPT_WAY_P)
            partial |= 1u << g;
    for (uint32_t set = partial; set; set = (set - 1) & partial) {
        uint64_t reduced = s;
        for (uint32_t m = set; m; m &= m - 1)
            reduced = topt_way_put(reduced, __builtin_ctz(m), TOPT_WAY_R, 0);
        add_arc(a, TOPT_MOVE_ALL_REDUCE, set, 0, reduced);
        for (int d = 0; d < a->ndims; d++)
            add_arc(a, TOPT_MOVE_REDUCE_SCATTER, set, 0, append(a, s, set, d));
    }
}

static void map_slice(struct atlas *a, uint64_t s)
{
    for (int g = 0; g < a->ngroups; g++)
        for (int d = 0; d < a->ndims; d++)
            if (topt_way_at(s, g) == TOPT_WAY_R)
                add_arc(a, TOPT_MOVE_SLICE, 1u << g, 0, append(a, s, 1u << g, d));
}

/* Gather, or hand to another dimension, the innermost 1, 2, ... groups of each dimension. */
static void map_suffix(struct atlas *a, uint64_t s)
{
    for (int d = 0; d < a->ndims; d++) {
        int order[TOPT_WAY_GROUPS], n = order_of(a->ngroups, s, d, order);
        uint32_t set = 0;
        for (int k = n - 1; k >= 0; k--) {
            set |= 1u << order[k];
            uint64_t gathered = s;
            for (int i = k; i < n; i++)
                gathered = topt_way_put(gathered, order[i], TOPT_WAY_R, 0);
            add_arc(a, TOPT_MOVE_ALL_GATHER, set, 0, gathered);
            for (int e = 0; e < a->ndims; e++) {
                if (e == d)
                    continue;
                int other[TOPT_WAY_GROUPS], pos = order_of(a->ngroups, s, e, other);
                uint64_t moved = s;
                for (int i = k; i < n; i++)
                    moved = topt_way_put(moved, order[i], e, pos++);
                add_arc(a, TOPT_MOVE_ALL_TO_ALL, set, 0, moved);
            }
        }
    }
}

static void permute_from(struct atlas *a, int d, const int *order, int n, uint64_t made,
                         uint32_t left, int pos)
{
    if (pos == n) {
        uint32_t set = 0;
        for (int i = 0; i < n; i++)
            if (topt_way_pos(made, order[i]) != i)
                set |= 1u << order[i];
        if (set)
            add_arc(a, TOPT_MOVE_PERMUTE, set, d, made);
        return;
    }
    for (uint32_t m = left; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        permute_from(a, d, order, n, topt_way_put(made, order[i], d, pos),
                     left & ~(1u << i), pos + 1);
    }
}

/* Other orders of a dimension's axes. */
static void map_permute(struct atlas *a, uint64_t s)
{
    for (int d = 0; d < a->ndims; d++) {
        int order[TOPT_WAY_GROUPS], n = order_of(a->ngroups, s, d, order);
        if (n >= 2 && n <= 4)
            permute_from(a, d, order, n, s, (1u << n) - 1, 0);
    }
}

static int map_spot(struct atlas *a, int32_t n)
{
    int first = a->narcs;
    uint64_t s = a->spot[n].state;
    map_partial(a, s);
    map_slice(a, s);
    map_suffix(a, s);
    map_permute(a, s);
    if (a->failed)
        return -1;
    a->spot[n].first = first;
    a->spot[n].narcs = a->narcs - first;
    return 0;
}

/* ---- states ---------------------------------------------------------------------------- */

/* Counts of split parts by dimension. */
static void splits_of(const struct topt_way_source *w, uint64_t s,
                      int64_t split[TOPT_MAX_RANK])
{
    for (int d = 0; d < TOPT_MAX_RANK; d++)
        split[d] = 1;
    for (int g = 0; g < w->ngroups; g++)
        if (topt_way_at(s, g) < TOPT_MAX_RANK)
            split[topt_way_at(s, g)] *= w->size[g];
}

/* Ceilings nest, so the order of groups does not matter. */
int64_t topt_way_bytes(const struct topt_way_source *w, uint64_t s)
{
    int64_t split[TOPT_MAX_RANK], bytes = w->bytes;
    splits_of(w, s, split);
    for (int d = 0; d < w->ndims; d++) {
        int64_t count = w->count[d];
        count = count < 0 ? -count : count;
        bytes = count ? bytes * ((count + split[d] - 1) / split[d]) : bytes / split[d];
    }
    return bytes;
}

/* Dimensions whose blocks are of one size, as bits: they may be permuted. */
static uint32_t permutable(const struct topt_way_source *w, uint64_t s)
{
    int64_t split[TOPT_MAX_RANK];
    uint32_t dims = 0;
    splits_of(w, s, split);
    for (int d = 0; d < w->ndims; d++)
        dims |= (uint32_t)(w->count[d] >= 0 && w->count[d] % split[d] == 0) << d;
    return dims;
}

/* ---- growing a tree ------------------------------------------------------------------------ */

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
    struct entry e = {x->cost, t->atlas->spot[n].state, n, x->nmoves};
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

/* Nodes for all spots that there are. */
static int tree_fit(struct topt_ways *w, struct tree *t)
{
    int n = t->atlas->cap;
    if (t->nnodes >= t->atlas->nspots)
        return 0;
    struct node *node = realloc(t->node, (size_t)n * sizeof *node);
    if (!node)
        return -1;
    memset(node + t->nnodes, 0, (size_t)(n - t->nnodes) * sizeof *node);
    w->ntree_nodes += n - t->nnodes;
    t->node = node;
    t->nnodes = n;
    return 0;
}

static int relax(struct topt_ways *w, struct tree *t, int32_t at, const struct arc *arc)
{
    const struct node *from = &t->node[at];
    struct node *to = &t->node[arc->to];
    enum topt_move_kind kind = (enum topt_move_kind)arc->kind;
    if (!to->seen) {
        to->seen = 1;
        to->cost = INT64_MAX;
        to->bytes = topt_way_bytes(&t->source, t->atlas->spot[arc->to].state);
    }
    int64_t total = from->cost;
    int nmoves = from->nmoves + 1;
    if (kind != TOPT_MOVE_SLICE)
        total += time_of(w, topt_move_collective(kind), t->across[arc->groups],
                         kind == TOPT_MOVE_ALL_GATHER ? to->bytes : from->bytes)
                     .ns;
    if (total > to->cost || (total == to->cost && nmoves >= to->nmoves))
        return 0;
    to->cost = total;
    to->nmoves = (int16_t)nmoves;
    to->prev = at;
    to->kind = arc->kind;
    to->groups = arc->groups;
    return heap_push(t, arc->to);
}

static int expand(struct topt_ways *w, struct tree *t, int32_t at)
{
    struct atlas *a = t->atlas;
    t->node[at].done = 1;
    w->stats.settled++;
    if ((a->spot[at].narcs == NONE && map_spot(a, at)) || tree_fit(w, t))
        return -1;
    const struct spot *s = &a->spot[at];
    uint32_t dims = permutable(&t->source, s->state);
    w->stats.relaxed += s->narcs;
    for (int i = 0; i < s->narcs; i++) {
        const struct arc *arc = &a->arc[s->first + i];
        if (t->node[arc->to].done ||
            (arc->kind == TOPT_MOVE_PERMUTE && !(dims >> arc->dim & 1)))
            continue;
        if (relax(w, t, at, arc))
            return -1;
    }
    return 0;
}

/* Grow the tree until 'target' is in it; its node, or NONE where memory is short. */
static int32_t reach(struct topt_ways *w, struct tree *t, uint64_t target)
{
    int32_t n = spot_of(t->atlas, target);
    if (n == NONE || tree_fit(w, t))
        return NONE;
    while (t->nheap && !t->node[n].done) {
        int32_t at = heap_pop(t);
        if (!t->node[at].done && expand(w, t, at))
            return NONE;
    }
    return t->node[n].done ? n : NONE;
}

/* ---- trees ------------------------------------------------------------------------------- */

static int plant(struct topt_ways *w, struct tree *t)
{
    const struct topt_way_source *s = &t->source;
    t->atlas = &w->atlas[s->ngroups][s->ndims];
    t->atlas->ngroups = s->ngroups;
    t->atlas->ndims = s->ndims;
    t->across = malloc(((size_t)1 << s->ngroups) * sizeof *t->across);
    int32_t root = spot_of(t->atlas, s->from);
    if (!t->across || root == NONE || tree_fit(w, t))
        return -1;
    t->across[0] = 1u << 16 | 1;
    for (uint32_t set = 1; set < 1u << s->ngroups; set++) {
        int g = __builtin_ctz(set);
        uint32_t rest = t->across[set & (set - 1)];
        t->across[set] = g < s->node_groups
                             ? (rest >> 16) * s->size[g] << 16 | (rest & 0xffff)
                             : (rest & 0xffff0000u) | (rest & 0xffff) * s->size[g];
    }
    t->node[root] =
        (struct node){.bytes = topt_way_bytes(s, s->from), .prev = NONE, .seen = 1};
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
    if (!t || plant(w, t)) {
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
                                         t->node[n].groups, t->atlas->spot[n].state};
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
