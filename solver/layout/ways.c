/* ways.c - the cheapest way from one layout to another, without names.
 *
 * Layouts of a tensor are the nodes of a graph whose edges are single collectives (or the
 * free local slice); a redistribution is a shortest path (TensorOpt, section 4.3).  The graph is
 * in atlas.c; what a move costs is looked up.
 *
 * Two searches meet (bidirectional Dijkstra: Pohl, Bi-directional Search, 1971).  One goes forward
 * from the source, and is kept for all its targets; for each of them another goes backward.
 *
 *      source  o---->-----.  what forward has settled:    .----<----o  target
 *               \          |  its cost is known           |        /
 *                o-->------|  <- - - - - front - - - - -> |-----<-o
 *
 * What forward has not settled costs at least what it would settle next, its front.  So backward
 * need not pass through what forward has settled, and leaves what is, with the front,
 * beyond the cheapest way that is known.  When nothing is left, that way is the cheapest, and every
 * layout on any way that is as cheap is settled on one side or the other.  Then forward goes on
 * along these alone, as backward knows what is left from there (finish): so it finds the same way
 * as if it had searched alone. */
#include "ways.h"

#include <stdlib.h>

#include "atlas.h"

enum {
    SETS = 1 << TOPT_WAY_GROUPS,
    TIMED = 8192,
    NONE = TOPT_ATLAS_NONE,
    KINDS = TOPT_MOVE_ALL_REDUCE + 1
};

/* What a way costs is one number, a key: nanoseconds, then moves (a slice of each group is one) in the
 * last bits.  Nothing is farther than FAR, which is more than three months. */
enum { MOVE_BITS = 8 };
static const int64_t FAR = (int64_t)1 << 61;

/* What the atlases of a topt_ways may take before they are begun anew, as a sum. */
static const int64_t ATLAS_BYTES = 128 << 20;

/* What one search knows of a layout. */
struct label {
    int64_t key;
    uint32_t stamp;       /* that of the search; else nothing is known */
    uint8_t done, passed; /* settled; passed through at the end */
};

/* A layout as both searches see it. */
struct seen {
    struct label from, to;
};

/* Where forward comes from. */
struct origin {
    int32_t prev;
    uint16_t groups;
    uint8_t kind; /* of the move from there */
};

/* As it was pushed: what gets cheaper is pushed again, and the dearer entry is skipped. */
struct entry {
    int64_t key;
    int32_t spot; /* or ~n: the n-th class of moves that wait */
};

struct heap {
    struct entry *at;
    int n, cap;
};

/* Gathers backward to a spot, looked at when it is their turn. */
struct waiting {
    int32_t spot, class;
};

/* A collective that was priced before; a later one takes its place. */
struct timed {
    int64_t bytes; /* 0: none yet */
    uint32_t across, collective;
    struct topt_time time;
};

/* What is known of a shape of blocks from a source. */
struct block {
    uint32_t stamp; /* that of the source */
    int32_t row;    /* of its bytes */
    uint8_t whole;  /* dimensions whose parts are equal, as bits */
};

/* All layouts of as many groups and dimensions. */
struct map {
    struct topt_atlas atlas;
    struct seen *seen; /* by spot */
    struct origin *origin;
    int nseen;
    struct block *block; /* by shape */
    int nblocks;
};

struct topt_ways {
    const struct topt_hw *hw;
    int per_node; /* devices of a node */
    struct topt_arena *arena;
    struct map map[TOPT_WAY_GROUPS + 1][TOPT_MAX_RANK + 1];
    struct timed timed[TIMED];
    struct topt_route_stats stats;

    /* the source, and what follows from it by set of groups */
    struct topt_way_source source;
    struct map *on;
    int64_t targets;
    uint32_t stamp, partial; /* groups that are, in the source */
    int nacross;
    uint32_t across[SETS];             /* nodes << 16 | devices of each */
    uint16_t across_of[SETS];          /* which of these a set spans */
    int64_t rest[SETS];                /* 'bytes' of the source, split by a set */
    int64_t part[TOPT_MAX_RANK][SETS]; /* count of the largest part of a dimension */
    uint8_t whole[SETS];               /* dimensions whose parts are equal, as bits */

    /* times of collectives by bytes of blocks: a row for each number of bytes, 'width' long */
    int64_t *row;
    int nrows, row_cap, width;
    int32_t *slot; /* hash of rows; -1: free */
    int nslots;

    /* the searches */
    struct heap from, to;
    uint32_t stamp_to;
    int64_t nfrom, nto; /* settled */
    int32_t *behind;    /* what backward has settled */
    int nbehind, behind_cap;
    struct waiting *waiting;
    int nwaiting, waiting_cap;
    int64_t best; /* of the target's ways so far */
    int64_t front;
    int failed; /* memory was short */
};

/* ---- times of collectives ------------------------------------------------------------------ */

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

/* ---- what follows from a source -------------------------------------------------------------- */

static void set_across(struct topt_ways *w)
{
    const struct topt_way_source *s = &w->source;
    w->across[0] = 1u << 16 | 1;
    w->across_of[0] = 0;
    w->nacross = 1;
    for (uint32_t set = 1; set < 1u << s->ngroups; set++) {
        int g = __builtin_ctz(set), i = 0;
        uint32_t rest = w->across[w->across_of[set & (set - 1)]];
        uint32_t x = g < s->node_groups
                         ? (rest >> 16) * s->size[g] << 16 | (rest & 0xffff)
                         : (rest & 0xffff0000u) | (rest & 0xffff) * s->size[g];
        while (i < w->nacross && w->across[i] != x)
            i++;
        if (i == w->nacross)
            w->across[w->nacross++] = x;
        w->across_of[set] = (uint16_t)i;
    }
}

/* Ceilings nest, so the order of groups does not matter. */
static void set_parts(struct topt_ways *w)
{
    const struct topt_way_source *s = &w->source;
    int64_t split[SETS] = {1};
    for (uint32_t set = 0; set < 1u << s->ngroups; set++) {
        if (set)
            split[set] = split[set & (set - 1)] * s->size[__builtin_ctz(set)];
        w->rest[set] = s->bytes / split[set];
        w->whole[set] = (uint8_t)((1 << s->ndims) - 1);
    }
    for (int d = 0; d < s->ndims; d++) {
        int64_t count = s->count[d] < 0 ? -s->count[d] : s->count[d];
        for (uint32_t set = 0; count && set < 1u << s->ngroups; set++) {
            w->part[d][set] = (count + split[set] - 1) / split[set];
            if (s->count[d] < 0 || count % split[set])
                w->whole[set] &= (uint8_t) ~(1 << d);
        }
    }
}

/* Bytes of the largest block. */
static int64_t block_bytes(const struct topt_ways *w, uint64_t shape)
{
    int64_t parts = 1;
    uint32_t even = 0;
    for (int d = 0; d < w->source.ndims; d++) {
        if (w->source.count[d])
            parts *= w->part[d][topt_atlas_set(shape, d)];
        else
            even |= topt_atlas_set(shape, d);
    }
    return parts * w->rest[even];
}

int64_t topt_way_bytes(const struct topt_way_source *w, uint64_t s)
{
    int64_t split[TOPT_MAX_RANK] = {1, 1, 1, 1}, bytes = w->bytes;
    for (int g = 0; g < w->ngroups; g++)
        if (topt_way_at(s, g) < TOPT_MAX_RANK)
            split[topt_way_at(s, g)] *= w->size[g];
    for (int d = 0; d < w->ndims; d++) {
        int64_t count = w->count[d] < 0 ? -w->count[d] : w->count[d];
        bytes = count ? bytes * ((count + split[d] - 1) / split[d]) : bytes / split[d];
    }
    return bytes;
}

/* ---- rows of times ----------------------------------------------------------------------------- */

static int32_t *row_slot(const struct topt_ways *w, int64_t bytes)
{
    uint32_t mask = (uint32_t)w->nslots - 1;
    uint32_t h = (uint32_t)(topt_mix(0, (uint64_t)bytes) >> 32) & mask;
    while (w->slot[h] >= 0 && w->row[(size_t)w->slot[h] * (size_t)w->width] != bytes)
        h = (h + 1) & mask;
    return &w->slot[h];
}

static int rows_grow(struct topt_ways *w)
{
    int cap = 2 * w->nrows + 64;
    int64_t *row = realloc(w->row, (size_t)cap * (size_t)w->width * sizeof *row);
    if (!row)
        return -1;
    w->row = row;
    w->row_cap = cap * w->width;
    return 0;
}

static int slots_grow(struct topt_ways *w)
{
    int n = w->nslots ? 2 * w->nslots : 256;
    int32_t *slot = realloc(w->slot, (size_t)n * sizeof *slot);
    if (!slot)
        return -1;
    w->slot = slot;
    w->nslots = n;
    memset(slot, 0xff, (size_t)n * sizeof *slot);
    for (int i = 0; i < w->nrows; i++)
        *row_slot(w, w->row[(size_t)i * (size_t)w->width]) = i;
    return 0;
}

static void rows_clear(struct topt_ways *w)
{
    w->nrows = 0;
    w->width = 1 + KINDS * w->nacross;
    if (w->nslots)
        memset(w->slot, 0xff, (size_t)w->nslots * sizeof *w->slot);
}

/* The row of so many bytes; 0 where memory is short. */
static int row_of(struct topt_ways *w, int64_t bytes)
{
    if ((2 * w->nrows >= w->nslots && slots_grow(w)) ||
        ((w->nrows + 1) * w->width > w->row_cap && rows_grow(w))) {
        w->failed = 1;
        return 0;
    }
    int32_t *slot = row_slot(w, bytes);
    if (*slot < 0) {
        int64_t *row = &w->row[(size_t)w->nrows * (size_t)w->width];
        row[0] = bytes;
        for (int i = 1; i < w->width; i++)
            row[i] = -1;
        *slot = w->nrows++;
    }
    return *slot;
}

/* What is known of a shape of blocks, which may be new to this source. */
static void block_fill(struct topt_ways *w, struct block *b, int32_t shape)
{
    uint64_t s = w->on->atlas.shape[shape];
    b->stamp = w->stamp;
    b->row = row_of(w, block_bytes(w, s));
    b->whole = 0;
    for (int d = 0; d < w->source.ndims; d++)
        b->whole = (uint8_t)(b->whole | (w->whole[topt_atlas_set(s, d)] & 1 << d));
}

static inline const struct block *block_of(struct topt_ways *w, int32_t shape)
{
    struct block *b = &w->on->block[shape];
    if (b->stamp != w->stamp)
        block_fill(w, b, shape);
    return b;
}

/* The key of one move. */
static int64_t price(struct topt_ways *w, enum topt_move_kind kind, uint32_t groups,
                     int64_t bytes)
{
    uint32_t across = w->across[w->across_of[groups]];
    int64_t ns = time_of(w, topt_move_collective(kind), across, bytes).ns;
    return ns < FAR >> MOVE_BITS ? (ns << MOVE_BITS) + 1 : FAR;
}

/* The key of each move of a class; NONE where there are none for this source. */
static inline int64_t key_of(struct topt_ways *w, const struct topt_atlas_class *c)
{
    if (c->kind == TOPT_MOVE_SLICE)
        return 1;
    const struct block *b = block_of(w, c->shape);
    if (c->kind == TOPT_MOVE_PERMUTE && !(b->whole >> c->dim & 1))
        return NONE;
    int64_t *row = &w->row[(size_t)b->row * (size_t)w->width];
    int64_t *key = &row[1 + c->kind * w->nacross + w->across_of[c->groups]];
    if (*key < 0)
        *key = price(w, (enum topt_move_kind)c->kind, c->groups, row[0]);
    return *key;
}

/* ---- keys, and what comes next ------------------------------------------------------------------- */

static int moves_of(int64_t key)
{
    return (int)(key & ((1 << MOVE_BITS) - 1));
}

static inline int64_t sum(int64_t a, int64_t b)
{
    return a + b < FAR ? a + b : FAR;
}

static void heap_push(struct topt_ways *w, struct heap *h, int64_t key, int32_t spot)
{
    if (h->n == h->cap) {
        int cap = h->cap ? 2 * h->cap : 256;
        struct entry *at = realloc(h->at, (size_t)cap * sizeof *at);
        if (!at) {
            w->failed = 1;
            return;
        }
        h->at = at;
        h->cap = cap;
    }
    int i = h->n++;
    for (; i > 0 && key < h->at[(i - 1) / 4].key; i = (i - 1) / 4)
        h->at[i] = h->at[(i - 1) / 4];
    h->at[i] = (struct entry){key, spot};
}

static struct entry heap_pop(struct heap *h)
{
    struct entry top = h->at[0], last = h->at[--h->n];
    int i = 0;
    for (;;) {
        int c = 4 * i + 1, end = c + 4 < h->n ? c + 4 : h->n;
        if (c >= h->n)
            break;
        for (int k = c + 1; k < end; k++)
            c = h->at[k].key < h->at[c].key ? k : c;
        if (h->at[c].key >= last.key)
            break;
        h->at[i] = h->at[c];
        i = c;
    }
    h->at[i] = last;
    return top;
}

static const struct label *known_from(const struct topt_ways *w, const struct seen *x)
{
    return x->from.stamp == w->stamp ? &x->from : NULL;
}

static const struct label *known_to(const struct topt_ways *w, const struct seen *x)
{
    return x->to.stamp == w->stamp_to ? &x->to : NULL;
}

static int done_from(const struct topt_ways *w, const struct seen *x)
{
    return x->from.stamp == w->stamp && x->from.done;
}

static int done_to(const struct topt_ways *w, const struct seen *x)
{
    return x->to.stamp == w->stamp_to && x->to.done;
}

/* ---- one move --------------------------------------------------------------------------------------- */

/* A way through what both sides know. */
static void meet(struct topt_ways *w, const struct seen *x)
{
    int64_t key = sum(x->from.key, x->to.key);
    if (key < w->best)
        w->best = key;
}

static void set_label(struct label *x, uint32_t stamp, int64_t key)
{
    *x = (struct label){.key = key, .stamp = stamp};
}

/* Of equal ways the one whose last stop is cheapest, then first. */
static int comes_earlier(const struct topt_ways *w, int32_t prev, int32_t than)
{
    const struct map *m = w->on;
    int64_t ns = m->seen[prev].from.key, other = m->seen[than].from.key;
    return ns != other ? ns < other
                       : m->atlas.spot[prev].state < m->atlas.spot[than].state;
}

/* Forward from 'at' to 'spot'; whether that is as cheap as anything known. */
static int go_forward(struct topt_ways *w, int32_t at, const struct topt_atlas_class *c,
                      int64_t key, int32_t spot)
{
    struct seen *x = &w->on->seen[spot];
    const struct label *f = known_from(w, x);
    if (f && f->key < key) /* as that of all who are settled */
        return 0;
    struct origin *origin = &w->on->origin[spot];
    if (f && f->key == key) {
        if (!comes_earlier(w, at, origin->prev))
            return 1;
    } else {
        set_label(&x->from, w->stamp, key);
        heap_push(w, &w->from, key, spot);
        if (known_to(w, x))
            meet(w, x);
    }
    *origin = (struct origin){at, c->groups, c->kind};
    return 1;
}

static void go_backward(struct topt_ways *w, int64_t key, int32_t spot)
{
    struct seen *x = &w->on->seen[spot];
    const struct label *f = known_from(w, x), *t = known_to(w, x);
    if (f && sum(key, f->key) < w->best)
        w->best = sum(key, f->key);
    if ((f && f->done) || (t && key >= t->key) || w->best < sum(key, w->front))
        return;
    set_label(&x->to, w->stamp_to, key);
    heap_push(w, &w->to, key, spot);
}

/* ---- all moves from a layout, or to it -------------------------------------------------------------- */

static int spots_fit(struct map *m)
{
    size_t n = (size_t)m->atlas.spot_cap, old = (size_t)m->nseen;
    struct seen *seen = realloc(m->seen, n * sizeof *seen);
    if (seen)
        m->seen = seen;
    struct origin *origin = realloc(m->origin, n * sizeof *origin);
    if (origin)
        m->origin = origin;
    if (!seen || !origin)
        return -1;
    memset(seen + old, 0, (n - old) * sizeof *seen);
    m->nseen = (int)n;
    return 0;
}

static int blocks_fit(struct map *m)
{
    size_t n = (size_t)m->atlas.shape_cap, old = (size_t)m->nblocks;
    struct block *block = realloc(m->block, n * sizeof *block);
    if (!block)
        return -1;
    memset(block + old, 0, (n - old) * sizeof *block);
    m->block = block;
    m->nblocks = (int)n;
    return 0;
}

/* Make room for what is known of new spots and shapes. */
static void map_fit(struct topt_ways *w)
{
    struct map *m = w->on;
    if ((m->nseen < m->atlas.nspots && spots_fit(m)) ||
        (m->nblocks < m->atlas.nshapes && blocks_fit(m)))
        w->failed = 1;
}

static void leave_forward(struct topt_ways *w)
{
    struct topt_atlas *a = &w->on->atlas;
    struct entry e = heap_pop(&w->from);
    w->failed |= topt_atlas_list_out(a, e.spot) != 0;
    map_fit(w);
    if (w->failed)
        return;
    w->on->seen[e.spot].from.done = 1;
    w->nfrom++;
    w->stats.settled++;
    const struct topt_atlas_class *c = &a->class[a->spot[e.spot].out.first];
    const struct topt_atlas_class *end = c + a->spot[e.spot].out.n;
    for (; c < end; c++) {
        int64_t step = key_of(w, c);
        int64_t key = sum(e.key, step);
        if (step == NONE || (w->targets == 1 && w->best < key))
            continue;
        w->stats.relaxed += c->narcs;
        for (int i = 0; i < c->narcs; i++)
            go_forward(w, e.spot, c, key, a->arc[c->arc + i]);
    }
}

/* Look at a class of moves to a layout. */
static void go_class_back(struct topt_ways *w, int32_t spot, int32_t class, int64_t key)
{
    struct topt_atlas *a = &w->on->atlas;
    w->failed |= topt_atlas_list_class(a, spot, class) != 0;
    map_fit(w);
    if (w->failed)
        return;
    w->stats.relaxed += a->class[class].narcs;
    for (int i = 0; i < a->class[class].narcs; i++)
        go_backward(w, key, a->arc[a->class[class].arc + i]);
}

static void wait(struct topt_ways *w, int32_t spot, int32_t class, int64_t key)
{
    if (w->nwaiting == w->waiting_cap) {
        int cap = w->waiting_cap ? 2 * w->waiting_cap : 64;
        struct waiting *grown = realloc(w->waiting, (size_t)cap * sizeof *grown);
        if (!grown) {
            w->failed = 1;
            return;
        }
        w->waiting = grown;
        w->waiting_cap = cap;
    }
    w->waiting[w->nwaiting++] = (struct waiting){spot, class};
    heap_push(w, &w->to, key, ~(w->nwaiting - 1));
}

static int of_no_use(const struct topt_ways *w, const struct topt_atlas_class *c)
{
    return (c->kind == TOPT_MOVE_ALL_REDUCE || c->kind == TOPT_MOVE_REDUCE_SCATTER) &&
           (c->groups & ~w->partial);
}

static int keep_behind(struct topt_ways *w, int32_t spot)
{
    if (w->nbehind == w->behind_cap) {
        int cap = w->behind_cap ? 2 * w->behind_cap : 256;
        int32_t *behind = realloc(w->behind, (size_t)cap * sizeof *behind);
        if (!behind)
            return -1;
        w->behind = behind;
        w->behind_cap = cap;
    }
    w->behind[w->nbehind++] = spot;
    return 0;
}

static void leave_backward(struct topt_ways *w)
{
    struct topt_atlas *a = &w->on->atlas;
    struct entry e = heap_pop(&w->to);
    if (e.spot < 0) {
        struct waiting x = w->waiting[~e.spot];
        go_class_back(w, x.spot, x.class, e.key);
        return;
    }
    w->failed |= topt_atlas_list_in(a, e.spot) || keep_behind(w, e.spot);
    map_fit(w);
    if (w->failed)
        return;
    w->on->seen[e.spot].to.done = 1;
    w->nto++;
    w->stats.settled++;
    int32_t first = a->spot[e.spot].in.first, end = first + a->spot[e.spot].in.n;
    for (int32_t i = first; i < end; i++) {
        const struct topt_atlas_class *c = &a->class[i];
        int64_t step = of_no_use(w, c) ? NONE : key_of(w, c);
        int64_t key = sum(e.key, step);
        if (step == NONE || w->best < sum(key, w->front))
            continue;
        if (c->kind == TOPT_MOVE_ALL_GATHER)
            wait(w, e.spot, i, key);
        else
            go_class_back(w, e.spot, i, key);
    }
}

/* ---- two searches that meet ------------------------------------------------------------------------- */

/* Skip what was settled before by a cheaper way. */
static int64_t next_from(struct topt_ways *w)
{
    struct heap *h = &w->from;
    while (h->n && w->on->seen[h->at[0].spot].from.done)
        heap_pop(h);
    return h->n ? h->at[0].key : FAR;
}

/* What forward has settled meanwhile is of no use to backward either. */
static int64_t next_to(struct topt_ways *w)
{
    struct heap *h = &w->to;
    while (
        h->n && h->at[0].spot >= 0 &&
        (w->on->seen[h->at[0].spot].to.done || done_from(w, &w->on->seen[h->at[0].spot])))
        heap_pop(h);
    return h->n ? h->at[0].key : FAR;
}

/* Until forward has come to the target (1), or nothing that is not settled can be on a cheapest
 * way (0).  Forward's work is shared by all targets, so it does more. */
static int approach(struct topt_ways *w, int32_t target)
{
    for (;;) {
        if (w->failed || done_from(w, &w->on->seen[target]))
            return 1;
        w->front = next_from(w);
        int64_t behind = next_to(w);
        if (!w->from.n || !w->to.n || w->best < sum(w->front, behind))
            return 0;
        if (w->nfrom <= w->targets * w->nto)
            leave_forward(w);
        else
            leave_backward(w);
    }
}

/* Is a way with this first part a cheapest one, as backward knows what is left? */
static int on_best(const struct topt_ways *w, int64_t key, const struct seen *x)
{
    return done_to(w, x) && !x->to.passed && sum(key, x->to.key) == w->best;
}

static void pass_through(struct topt_ways *w, struct entry e)
{
    const struct topt_atlas *a = &w->on->atlas;
    const struct topt_atlas_class *c = &a->class[a->spot[e.spot].out.first];
    const struct topt_atlas_class *end = c + a->spot[e.spot].out.n;
    for (; c < end; c++) {
        int64_t step = key_of(w, c);
        int64_t key = sum(e.key, step);
        for (int i = 0; i < (step == NONE || w->best < key ? 0 : c->narcs); i++) {
            int32_t spot = a->arc[c->arc + i];
            struct seen *x = &w->on->seen[spot];
            if (!done_to(w, x) || sum(key, x->to.key) != w->best ||
                !go_forward(w, e.spot, c, key, spot) || x->to.passed)
                continue;
            x->to.passed = 1;
            heap_push(w, &w->to, key, spot);
        }
    }
}

/* Go forward on cheapest ways alone: from the front, through what backward has settled. */
static void finish(struct topt_ways *w)
{
    w->to.n = 0;
    for (int i = 0; i < w->nbehind; i++) {
        struct seen *x = &w->on->seen[w->behind[i]];
        const struct label *f = known_from(w, x);
        if (f && !f->done && on_best(w, f->key, x)) {
            x->to.passed = 1;
            heap_push(w, &w->to, f->key, w->behind[i]);
        }
    }
    while (w->to.n && !w->failed) {
        struct entry e = heap_pop(&w->to);
        w->failed |= topt_atlas_list_out(&w->on->atlas, e.spot) != 0;
        map_fit(w);
        if (!w->failed)
            pass_through(w, e);
    }
}

static int reach(struct topt_ways *w, int32_t target)
{
    struct seen *x = &w->on->seen[target];
    const struct label *f = known_from(w, x);
    w->best = f ? f->key : INT64_MAX;
    if (f && f->done)
        return 0;
    w->nbehind = w->nwaiting = w->to.n = 0;
    w->nto = 0;
    w->stamp_to++;
    set_label(&x->to, w->stamp_to, 0);
    heap_push(w, &w->to, 0, target);
    if (!approach(w, target))
        finish(w);
    return w->failed ? -1 : 0;
}

/* ---- questions ---------------------------------------------------------------------------------------- */

struct topt_ways *topt_ways_create(const struct topt_hw *hw, const struct topt_mesh *mesh)
{
    struct topt_ways *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->hw = hw;
    w->per_node = mesh->per_node;
    w->arena = topt_arena_create(0);
    if (w->arena)
        return w;
    topt_ways_destroy(w);
    return NULL;
}

static void map_fini(struct map *m)
{
    topt_atlas_fini(&m->atlas);
    free(m->seen);
    free(m->origin);
    free(m->block);
    m->seen = NULL;
    m->origin = NULL;
    m->block = NULL;
    m->nseen = m->nblocks = 0;
}

static void forget_maps(struct topt_ways *w)
{
    for (int g = 0; g <= TOPT_WAY_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            map_fini(&w->map[g][d]);
}

static int64_t map_bytes(const struct topt_ways *w)
{
    int64_t bytes = 0;
    for (int g = 0; g <= TOPT_WAY_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            bytes += topt_atlas_bytes(&w->map[g][d].atlas) +
                     (int64_t)sizeof(struct seen) * w->map[g][d].nseen;
    return bytes;
}

void topt_ways_destroy(struct topt_ways *w)
{
    if (!w)
        return;
    forget_maps(w);
    topt_arena_destroy(w->arena);
    free(w->from.at);
    free(w->to.at);
    free(w->behind);
    free(w->waiting);
    free(w->row);
    free(w->slot);
    free(w);
}

void topt_ways_stats(const struct topt_ways *w, struct topt_route_stats *ret)
{
    ret->trees += w->stats.trees;
    ret->settled += w->stats.settled;
    ret->relaxed += w->stats.relaxed;
}

static int begin(struct topt_ways *w, const struct topt_way_source *source, int targets)
{
    if (w->stamp == UINT32_MAX || w->stamp_to > UINT32_MAX / 2 ||
        map_bytes(w) > ATLAS_BYTES) {
        forget_maps(w);
        w->stamp = w->stamp_to = 0;
    }
    w->source = *source;
    w->on = &w->map[source->ngroups][source->ndims];
    w->on->atlas.ngroups = source->ngroups;
    w->on->atlas.ndims = source->ndims;
    w->targets = targets;
    w->stamp++;
    w->partial = 0;
    w->failed = 0;
    w->from.n = 0;
    w->nfrom = 0;
    for (int g = 0; g < source->ngroups; g++)
        w->partial |= (uint32_t)(topt_way_at(source->from, g) == TOPT_WAY_P) << g;
    set_across(w);
    set_parts(w);
    rows_clear(w);
    w->stats.trees++;
    int32_t root = topt_atlas_number(&w->on->atlas, source->from);
    map_fit(w);
    if (root == NONE || w->failed)
        return -1;
    set_label(&w->on->seen[root].from, w->stamp, 0);
    heap_push(w, &w->from, 0, root);
    return w->failed ? -1 : 0;
}

/* Slices that follow each other are one slice. */
static int read_steps(const struct topt_ways *w, int32_t spot, struct topt_way_step *step)
{
    const struct map *m = w->on;
    int len = moves_of(m->seen[spot].from.key), nsteps = 0;
    for (int i = len - 1; i >= 0; spot = m->origin[spot].prev, i--)
        step[i] =
            (struct topt_way_step){(enum topt_move_kind)m->origin[spot].kind,
                                   m->origin[spot].groups, m->atlas.spot[spot].state};
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

static int answer(struct topt_ways *w, struct topt_way_question *q)
{
    int32_t spot = topt_atlas_number(&w->on->atlas, q->to);
    map_fit(w);
    if (spot == NONE || w->failed || reach(w, spot))
        return -1;
    const struct label *x = known_from(w, &w->on->seen[spot]);
    q->way.step = x ? TOPT_NEW(w->arena, moves_of(x->key), struct topt_way_step) : NULL;
    if (!q->way.step)
        return -1;
    q->way.ns = x->key < FAR ? x->key >> MOVE_BITS : TOPT_ROUTE_FAR;
    q->way.nsteps = read_steps(w, spot, q->way.step);
    return 0;
}

int topt_ways_answer(struct topt_ways *w, struct topt_way_question *const *question,
                     int n, struct topt_error *err)
{
    int bad = n > 0 && begin(w, &question[0]->source, n);
    for (int i = 0; !bad && i < n; i++)
        bad = answer(w, question[i]);
    return bad ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution") : 0;
}
