/* symmetry_bound.c - a lower bound on the time of a redistribution, equal for all
 * layouts that a permutation of like axes maps onto each other.
 *
 * Axes of one level and one size are alike.  Forgetting which of them does what turns
 * a layout into its orbit: the axes of a dimension become a word whose letters are
 * kinds of axes, outermost first, and of partial and replicated axes only counts are
 * left.  A collective becomes a step between orbits that takes as long, since its time
 * follows from how many axes of each kind it varies along and from the size of blocks.
 * So the shortest path between two orbits is no longer than the shortest path between
 * any two of their layouts (an abstraction that keeps every path: Holte, Mkadmi,
 * Zimmer and MacDonald, Speeding up problem solving by abstraction, 1996), and there
 * are few orbits. */
#include "topt_symmetry_bound.h"

#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "topt_array.h"

enum {
    KINDS = TOPT_MAX_AXES, /* of axes, at most */
    WORD_BITS = 12,
    WORDS = 1 << WORD_BITS,
    /* 7 axes have 2,000 orbits in two dimensions: paths between all take half a
     * second. */
    MOST_AXES = 7,
    NONE = -1
};

/* Axes that are alike. */
struct kind {
    int n, size, node;
    uint64_t unit; /* that a sum of one counts in an orbit */
};

/* Axes that split a dimension.  Words begin with the empty one. */
struct word {
    int32_t before; /* without the last letter */
    int32_t next[KINDS];
    int8_t last, n;
    uint8_t count[KINDS];
    int64_t parts;
};

struct arc {
    int32_t to;
    int64_t ns;
};

struct topt_symmetry_bound {
    const struct topt_hw *hw;
    struct topt_mesh mesh;
    struct topt_shape shape;
    uint32_t dims;
    int64_t element_bytes;
    int nkinds, kind_of[TOPT_MAX_AXES];
    struct kind kind[KINDS];
    struct word *word;
    int nwords, word_cap;
    /* Orbits: WORD_BITS a dimension, and above them what is partial. */
    uint64_t *orbit;
    int n, cap;
    int32_t *slot; /* hash of these; NONE: free */
    int nslots;
    int32_t *first; /* arc, by orbit */
    struct arc *arc;
    int narcs, arc_cap;
    int64_t **far; /* to each, by orbit; NULL: not known yet */
    struct topt_heap heap;
};

/* ---- names ------------------------------------------------------------------------- */

static int comes_before(const struct topt_layout *l, int a, int b)
{
    return l->at[a] != l->at[b] ? l->at[a] < l->at[b] : l->pos[a] < l->pos[b];
}

void topt_orbit_first(const struct topt_mesh *m, struct topt_layout *l)
{
    for (int a = 1; a < m->naxes; a++)
        for (int i = a;
             i > 0 && topt_mesh_alike(m, i - 1, i) && comes_before(l, i, i - 1); i--) {
            int8_t at = l->at[i], pos = l->pos[i];
            l->at[i] = l->at[i - 1];
            l->pos[i] = l->pos[i - 1];
            l->at[i - 1] = at;
            l->pos[i - 1] = pos;
        }
}

static void find_kinds(struct topt_symmetry_bound *o)
{
    const struct topt_mesh *m = &o->mesh;
    uint64_t unit = (uint64_t)1 << WORD_BITS * TOPT_MAX_RANK;
    for (int a = 0; a < m->naxes; a++) {
        if (!a || !topt_mesh_alike(m, a - 1, a))
            o->kind[o->nkinds++] =
                (struct kind){.size = m->size[a], .node = a < m->node_axes};
        o->kind[o->nkinds - 1].n++;
        o->kind_of[a] = o->nkinds - 1;
    }
    for (int k = 0; k < o->nkinds; k++) {
        o->kind[k].unit = unit;
        unit *= (uint64_t)o->kind[k].n + 1;
    }
}

/* ---- words ------------------------------------------------------------------------- */

static int32_t add_word(struct topt_symmetry_bound *o, int32_t before, int letter)
{
    if (o->nwords == WORDS || TOPT_ROOM(o->word, o->nwords, o->word_cap, 64))
        return NONE;
    struct word w = {.before = NONE, .last = NONE, .parts = 1};
    if (before != NONE) {
        w = o->word[before];
        w.before = before;
        w.last = (int8_t)letter;
        w.n++;
        w.count[letter]++;
        w.parts *= o->kind[letter].size;
        o->word[before].next[letter] = o->nwords;
    }
    memset(w.next, 0xff, sizeof w.next);
    o->word[o->nwords] = w;
    return o->nwords++;
}

/* All of as many letters as there are axes. */
static int list_words(struct topt_symmetry_bound *o)
{
    if (add_word(o, NONE, 0) == NONE)
        return -1;
    for (int32_t i = 0; i < o->nwords; i++)
        for (int k = 0; k < o->nkinds; k++)
            if (o->word[i].count[k] < o->kind[k].n && add_word(o, i, k) == NONE)
                return -1;
    return 0;
}

static int32_t word_of(uint64_t orbit, int dim)
{
    return (int32_t)(orbit >> WORD_BITS * dim) & (WORDS - 1);
}

static uint64_t put_word(uint64_t orbit, int dim, int32_t word)
{
    uint64_t mask = (uint64_t)(WORDS - 1) << WORD_BITS * dim;
    return (orbit & ~mask) | (uint64_t)word << WORD_BITS * dim;
}

static int sums_of(const struct topt_symmetry_bound *o, uint64_t orbit, int kind)
{
    uint64_t n = (uint64_t)o->kind[kind].n + 1;
    return (int)(orbit / o->kind[kind].unit % n);
}

/* ---- orbits ------------------------------------------------------------------------ */

static int32_t *slot_of(const struct topt_symmetry_bound *o, uint64_t orbit)
{
    uint32_t mask = (uint32_t)o->nslots - 1;
    uint32_t h = (uint32_t)((orbit * 0x9e3779b97f4a7c15u) >> 32) & mask;
    while (o->slot[h] >= 0 && o->orbit[o->slot[h]] != orbit)
        h = (h + 1) & mask;
    return &o->slot[h];
}

static int orbits_grow(struct topt_symmetry_bound *o)
{
    int cap = o->cap ? 2 * o->cap : 256;
    if (TOPT_RESIZE(o->orbit, cap) || TOPT_RESIZE(o->slot, 2 * cap))
        return -1;
    o->cap = cap;
    o->nslots = 2 * cap;
    memset(o->slot, 0xff, (size_t)o->nslots * sizeof *o->slot);
    for (int i = 0; i < o->n; i++)
        *slot_of(o, o->orbit[i]) = i;
    return 0;
}

static int add_orbit(struct topt_symmetry_bound *o, uint64_t orbit)
{
    if (o->n == o->cap && orbits_grow(o))
        return -1;
    *slot_of(o, orbit) = o->n;
    o->orbit[o->n++] = orbit;
    return 0;
}

/* Sums of what 'left' axes are of kinds from 'kind' on, the others being copies. */
static int list_sums(struct topt_symmetry_bound *o, int kind, const int *left,
                     uint64_t orbit)
{
    if (kind == o->nkinds)
        return add_orbit(o, orbit);
    for (int n = 0; n <= left[kind]; n++)
        if (list_sums(o, kind + 1, left, orbit + (uint64_t)n * o->kind[kind].unit))
            return -1;
    return 0;
}

/* Enumerate the placements of 'left' axes in dimensions from 'dim' on. */
static int list_orbits(struct topt_symmetry_bound *o, int dim, const int *left,
                       uint64_t orbit)
{
    if (dim == TOPT_MAX_RANK)
        return list_sums(o, 0, left, orbit);
    for (int32_t i = 0; i < (o->dims >> dim & 1 ? o->nwords : 1); i++) {
        int rest[KINDS], fits = 1;
        for (int k = 0; k < o->nkinds; k++) {
            rest[k] = left[k] - o->word[i].count[k];
            fits &= rest[k] >= 0;
        }
        if (fits && list_orbits(o, dim + 1, rest, put_word(orbit, dim, i)))
            return -1;
    }
    return 0;
}

static int list_all(struct topt_symmetry_bound *o)
{
    int left[KINDS];
    for (int k = 0; k < o->nkinds; k++)
        left[k] = o->kind[k].n;
    return list_orbits(o, 0, left, 0);
}

int topt_symmetry_bound_orbit(const struct topt_symmetry_bound *o,
                              const struct topt_layout *l)
{
    uint64_t orbit = 0;
    for (int d = 0; d < TOPT_MAX_RANK; d++) {
        int8_t axes[TOPT_MAX_AXES];
        int32_t word = 0;
        int n = topt_layout_axes_of(l, d, axes);
        for (int i = 0; i < n; i++)
            word = o->word[word].next[o->kind_of[axes[i]]];
        orbit = put_word(orbit, d, word);
    }
    for (uint32_t sums = topt_layout_partial_mask(l); sums; sums &= sums - 1)
        orbit += o->kind[o->kind_of[__builtin_ctz(sums)]].unit;
    return *slot_of(o, orbit);
}

/* ---- steps ------------------------------------------------------------------------- */

/* An orbit while steps from it are listed. */
struct view {
    struct topt_symmetry_bound *o;
    uint64_t orbit;
    int failed;
};

/* Bytes of the largest block. */
static int64_t block(const struct topt_symmetry_bound *o, uint64_t orbit)
{
    int64_t bytes = o->element_bytes;
    for (int d = 0; d < o->shape.ndim; d++) {
        int64_t parts = o->word[word_of(orbit, d)].parts, n = o->shape.dim[d].count;
        bytes *= (n + parts - 1) / parts * o->shape.dim[d].unit;
    }
    return bytes;
}

static int64_t time_of(const struct topt_symmetry_bound *o, enum topt_move_kind kind,
                       const uint8_t *count, int64_t bytes)
{
    struct topt_group g = {1, 1, 1};
    for (int k = 0; k < o->nkinds; k++)
        for (int n = 0; n < count[k]; n++)
            *(o->kind[k].node ? &g.nodes : &g.per_node) *= o->kind[k].size;
    g.siblings = o->mesh.per_node / g.per_node;
    return topt_hw_collective_ns(o->hw, topt_move_collective(kind), g, bytes);
}

static void add_arc(struct view *v, uint64_t to, int64_t ns)
{
    struct topt_symmetry_bound *o = v->o;
    if (TOPT_ROOM(o->arc, o->narcs, o->arc_cap, 1024)) {
        v->failed = 1;
        return;
    }
    o->arc[o->narcs++] = (struct arc){*slot_of(o, to), ns};
}

static void add_step(struct view *v, enum topt_move_kind kind, const uint8_t *count,
                     uint64_t to)
{
    uint64_t sent = kind == TOPT_MOVE_ALL_GATHER ? to : v->orbit;
    add_arc(v, to, time_of(v->o, kind, count, block(v->o, sent)));
}

/* The letters of 'word' beyond its first 'n', appended to another in their order. */
static int32_t append_rest(const struct topt_symmetry_bound *o, int32_t to, int32_t word,
                           int n)
{
    const struct word *w = &o->word[word];
    return w->n > n ? o->word[append_rest(o, to, w->before, n)].next[w->last] : to;
}

/* The innermost axes of a dimension are gathered, or handed over to another. */
static void leave_dim(struct view *v, int dim)
{
    const struct topt_symmetry_bound *o = v->o;
    int32_t all = word_of(v->orbit, dim), rest = all;
    uint8_t count[KINDS] = {0};
    while (o->word[rest].n) {
        count[o->word[rest].last]++;
        rest = o->word[rest].before;
        uint64_t to = put_word(v->orbit, dim, rest);
        add_step(v, TOPT_MOVE_ALL_GATHER, count, to);
        for (int d = 0; d < o->shape.ndim; d++)
            if (d != dim && o->dims >> d & 1)
                add_step(v, TOPT_MOVE_ALL_TO_ALL, count,
                         put_word(to, d,
                                  append_rest(o, word_of(to, d), all, o->word[rest].n)));
    }
}

/* The next choice of some of each kind; 0 after the last. */
static int next_count(const struct topt_symmetry_bound *o, const uint8_t *most,
                      uint8_t *count)
{
    for (int k = 0; k < o->nkinds; k++) {
        if (count[k] < most[k]) {
            count[k]++;
            return 1;
        }
        count[k] = 0;
    }
    return 0;
}

/* Sums end along some axes: everywhere, or scattered, in the order of axes. */
static void add_up(struct view *v)
{
    const struct topt_symmetry_bound *o = v->o;
    uint8_t sums[KINDS] = {0}, count[KINDS] = {0};
    for (int k = 0; k < o->nkinds; k++)
        sums[k] = (uint8_t)sums_of(o, v->orbit, k);
    while (next_count(o, sums, count)) {
        uint64_t to = v->orbit;
        for (int k = 0; k < o->nkinds; k++)
            to -= count[k] * o->kind[k].unit;
        add_step(v, TOPT_MOVE_ALL_REDUCE, count, to);
        for (int d = 0; d < o->shape.ndim; d++) {
            int32_t word = word_of(to, d);
            for (int k = 0; k < o->nkinds; k++)
                for (int n = 0; n < count[k]; n++)
                    word = o->word[word].next[k];
            if (o->dims >> d & 1)
                add_step(v, TOPT_MOVE_REDUCE_SCATTER, count, put_word(to, d, word));
        }
    }
}

/* Copies along an axis of a kind: what neither splits nor is partial. */
static int copies_of(const struct topt_symmetry_bound *o, uint64_t orbit, int kind)
{
    int n = o->kind[kind].n - sums_of(o, orbit, kind);
    for (int d = 0; d < o->shape.ndim; d++)
        n -= o->word[word_of(orbit, d)].count[kind];
    return n;
}

static void slice(struct view *v)
{
    const struct topt_symmetry_bound *o = v->o;
    for (int k = 0; k < o->nkinds; k++)
        for (int d = 0; d < o->shape.ndim && copies_of(o, v->orbit, k); d++)
            if (o->dims >> d & 1)
                add_arc(v, put_word(v->orbit, d, o->word[word_of(v->orbit, d)].next[k]),
                        0);
}

/* A lower bound of the time in which some axes change places, with whatever others of the
 * dimension. */
static int64_t least_permuting(const struct topt_symmetry_bound *o, const uint8_t *count,
                               const uint8_t *most, int64_t bytes)
{
    int64_t least = INT64_MAX;
    uint8_t more[KINDS] = {0};
    do {
        int beside = 1;
        for (int k = 0; k < o->nkinds; k++)
            beside &= more[k] >= count[k];
        int64_t ns = beside ? time_of(o, TOPT_MOVE_PERMUTE, more, bytes) : INT64_MAX;
        least = ns < least ? ns : least;
    } while (next_count(o, most, more));
    return least;
}

/* Letters of a word that are others at the same place of one as long. */
static void count_moved(const struct topt_symmetry_bound *o, int32_t a, int32_t b,
                        uint8_t *count)
{
    for (; o->word[a].n; a = o->word[a].before, b = o->word[b].before)
        if (o->word[a].last != o->word[b].last)
            count[o->word[a].last]++;
}

/* Other orders of a dimension's axes, where its parts are equal. */
static void reorder(struct view *v, int dim)
{
    const struct topt_symmetry_bound *o = v->o;
    int32_t from = word_of(v->orbit, dim);
    const struct word *w = &o->word[from];
    if (o->shape.dim[dim].count % w->parts)
        return;
    for (int32_t i = 0; i < o->nwords; i++) {
        uint8_t count[KINDS] = {0};
        if (i == from || memcmp(o->word[i].count, w->count, sizeof w->count) != 0)
            continue;
        count_moved(o, from, i, count);
        add_arc(v, put_word(v->orbit, dim, i),
                least_permuting(o, count, w->count, block(o, v->orbit)));
    }
}

static int list_steps(struct topt_symmetry_bound *o)
{
    o->first = malloc(((size_t)o->n + 1) * sizeof *o->first);
    o->far = calloc((size_t)o->n, sizeof *o->far);
    if (!o->first || !o->far)
        return -1;
    o->first[0] = 0;
    for (int i = 0; i < o->n; i++) {
        struct view v = {.o = o, .orbit = o->orbit[i]};
        for (int d = 0; d < o->shape.ndim; d++) {
            leave_dim(&v, d);
            reorder(&v, d);
        }
        add_up(&v);
        slice(&v);
        o->first[i + 1] = o->narcs;
        if (v.failed)
            return -1;
    }
    return 0;
}

/* ---- paths ------------------------------------------------------------------------- */

static int leave(struct topt_symmetry_bound *o, int64_t *far, struct topt_heap_entry e)
{
    for (int i = o->first[e.vertex]; i < o->first[e.vertex + 1]; i++) {
        const struct arc *a = &o->arc[i];
        if (e.key + a->ns >= far[a->to])
            continue;
        far[a->to] = e.key + a->ns;
        if (topt_heap_push(&o->heap, far[a->to], a->to))
            return -1;
    }
    return 0;
}

static int find_far(struct topt_symmetry_bound *o, int from, int64_t *far)
{
    for (int i = 0; i < o->n; i++)
        far[i] = TOPT_ROUTE_FAR;
    far[from] = 0;
    o->heap.n = 0;
    if (topt_heap_push(&o->heap, 0, from))
        return -1;
    while (o->heap.n) {
        struct topt_heap_entry e = topt_heap_pop(&o->heap);
        if (e.key == far[e.vertex] && leave(o, far, e))
            return -1;
    }
    return 0;
}

int64_t topt_symmetry_bound_ns(struct topt_symmetry_bound *o, int from, int to)
{
    if (!o->far[from]) {
        int64_t *far = malloc((size_t)o->n * sizeof *far);
        if (!far || find_far(o, from, far)) {
            free(far);
            return -1;
        }
        o->far[from] = far;
    }
    return o->far[from][to];
}

/* ---- all of a shape ---------------------------------------------------------------- */

int topt_orbits_few(const struct topt_mesh *mesh)
{
    return mesh->naxes <= MOST_AXES;
}

struct topt_symmetry_bound *topt_symmetry_bound_create(const struct topt_hw *hw,
                                                       const struct topt_mesh *mesh,
                                                       const struct topt_shape *s,
                                                       uint32_t dims, int element_bytes)
{
    struct topt_symmetry_bound *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    *o = (struct topt_symmetry_bound){.hw = hw,
                                      .mesh = *mesh,
                                      .shape = *s,
                                      .dims = dims,
                                      .element_bytes = element_bytes};
    find_kinds(o);
    if (!list_words(o) && !list_all(o) && !list_steps(o))
        return o;
    topt_symmetry_bound_destroy(o);
    return NULL;
}

void topt_symmetry_bound_destroy(struct topt_symmetry_bound *o)
{
    if (!o)
        return;
    for (int i = 0; o->far && i < o->n; i++)
        free(o->far[i]);
    free(o->word);
    free(o->orbit);
    free(o->slot);
    free(o->first);
    free(o->arc);
    free(o->far);
    free(o->heap.at);
    free(o);
}

/* ---- all shapes -------------------------------------------------------------------- */

struct topt_symmetry_bounds {
    const struct topt_hw *hw;
    struct topt_mesh mesh;
    struct topt_symmetry_bound **at;
    int n;
};

struct topt_symmetry_bounds *topt_symmetry_bounds_create(const struct topt_hw *hw,
                                                         const struct topt_mesh *mesh)
{
    struct topt_symmetry_bounds *s = calloc(1, sizeof *s);
    if (s) {
        s->hw = hw;
        s->mesh = *mesh;
    }
    return s;
}

void topt_symmetry_bounds_destroy(struct topt_symmetry_bounds *s)
{
    for (int i = 0; s && i < s->n; i++)
        topt_symmetry_bound_destroy(s->at[i]);
    if (s)
        free(s->at);
    free(s);
}

static int is_of(const struct topt_symmetry_bound *o, const struct topt_shape *s,
                 uint32_t dims, int element_bytes)
{
    return o->element_bytes == element_bytes && !(dims & ~o->dims) &&
           o->shape.ndim == s->ndim &&
           !memcmp(o->shape.dim, s->dim, (size_t)s->ndim * sizeof *s->dim);
}

struct topt_symmetry_bound *topt_symmetry_bounds_of(struct topt_symmetry_bounds *s,
                                                    const struct topt_shape *shape,
                                                    uint32_t dims, int element_bytes)
{
    for (int i = 0; i < s->n; i++)
        if (is_of(s->at[i], shape, dims, element_bytes))
            return s->at[i];
    struct topt_symmetry_bound *o;
    if (TOPT_RESIZE(s->at, s->n + 1) ||
        !(o = topt_symmetry_bound_create(s->hw, &s->mesh, shape, dims, element_bytes)))
        return NULL;
    return s->at[s->n++] = o;
}

uint32_t topt_orbit_dims(const struct topt_mesh *m, const struct topt_layout *l)
{
    uint32_t dims = 0;
    for (int a = 0; a < m->naxes; a++)
        dims |= l->at[a] >= 0 ? 1u << l->at[a] : 0;
    return dims;
}
