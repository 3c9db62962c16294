/* orbit.c - what moves between layouts take at least, whatever their axes are called.
 *
 * Forget which of alike axes splits what, and in what order: a layout becomes a share of each level's
 * axes for every dimension, for sums and for copies.  A collective along some of them becomes a step between such shares,
 * which takes as long, since what it takes follows from how many axes it varies along and how large blocks are; a
 * permutation becomes nothing.  So the shortest path between shares is no longer than the cheapest way between layouts
 * (an abstraction that keeps every way: Holte, Mkadmi, Zimmer and MacDonald, Speeding up problem solving by abstraction,
 * 1996), and there are few of them. */
#include "topt_orbits.h"

#include <stdlib.h>
#include <string.h>

#include "heap.h"

enum {
    KINDS = TOPT_MAX_RANK + 2, /* what an axis can do: */
    COPIES = TOPT_MAX_RANK,    /* in no dimension; */
    SUMS,                      /* and partial */
};

/* Axes that are alike. */
struct kin {
    int first, n, size, node;
    int nshares;             /* ways to share them out */
    uint8_t (*share)[KINDS]; /* how many do what */
    int32_t *number;         /* of a share, by its code; -1 */
    int32_t unit[KINDS];     /* of a code, that one axis counts */
};

/* A step from one orbit to another. */
struct arc {
    int32_t to;
    int64_t ns;
};

struct topt_orbits {
    const struct topt_hw *hw;
    struct topt_mesh mesh;
    struct topt_shape shape;
    uint32_t dims; /* that layouts split, as bits */
    int64_t element_bytes;
    int nkin, n; /* n: orbits */
    struct kin kin[TOPT_MAX_AXES];
    int32_t *first; /* arc, by orbit */
    struct arc *arc;
    int narcs, arc_cap;
    int64_t **far; /* to each, by orbit; NULL: not known yet */
    struct topt_heap heap;
};

/* ---- shares ---------------------------------------------------------------------------------- */

static int kind_of(const struct topt_layout *l, int axis)
{
    return l->at[axis] >= 0 ? l->at[axis] : l->at[axis] == TOPT_PARTIAL ? SUMS : COPIES;
}

void topt_orbit_first(const struct topt_mesh *m, struct topt_layout *l)
{
    int8_t pos[TOPT_MAX_RANK] = {0};
    for (int a = 1; a < m->naxes; a++)
        for (int i = a; i > 0 && topt_mesh_alike(m, i - 1, i) && l->at[i] < l->at[i - 1];
             i--) {
            int8_t at = l->at[i];
            l->at[i] = l->at[i - 1];
            l->at[i - 1] = at;
        }
    for (int a = 0; a < m->naxes; a++)
        l->pos[a] = l->at[a] >= 0 ? pos[l->at[a]]++ : 0;
}

static void find_kin(struct topt_orbits *o)
{
    const struct topt_mesh *m = &o->mesh;
    for (int a = 0; a < m->naxes; a++) {
        if (!a || !topt_mesh_alike(m, a - 1, a))
            o->kin[o->nkin++] =
                (struct kin){.first = a, .size = m->size[a], .node = a < m->node_axes};
        o->kin[o->nkin - 1].n++;
    }
}

/* Do axes do this in some layout? */
static int is_kind(const struct topt_orbits *o, int kind)
{
    return kind >= COPIES || o->dims >> kind & 1;
}

/* What 'left' axes of a kin can do from 'kind' on, beside 'share'. */
static void list_shares(const struct topt_orbits *o, struct kin *k, int kind, int left,
                        uint8_t share[KINDS])
{
    if (kind == SUMS) {
        int32_t code = 0;
        share[SUMS] = (uint8_t)left;
        for (int i = 0; i < KINDS; i++)
            code += share[i] * k->unit[i];
        memcpy(k->share[k->nshares], share, KINDS);
        k->number[code] = k->nshares++;
        return;
    }
    for (int i = 0; i <= (is_kind(o, kind) ? left : 0); i++) {
        share[kind] = (uint8_t)i;
        list_shares(o, k, kind + 1, left - i, share);
    }
    share[kind] = 0;
}

static int kin_init(const struct topt_orbits *o, struct kin *k)
{
    uint8_t share[KINDS] = {0};
    int32_t codes = 1;
    for (int i = 0; i < KINDS; i++)
        if (is_kind(o, i)) {
            k->unit[i] = codes;
            codes *= k->n + 1;
        }
    k->number = malloc((size_t)codes * sizeof *k->number);
    k->share = malloc((size_t)codes * sizeof *k->share);
    if (!k->number || !k->share)
        return -1;
    memset(k->number, 0xff, (size_t)codes * sizeof *k->number);
    list_shares(o, k, 0, k->n, share);
    return 0;
}

int topt_orbits_number(const struct topt_orbits *o, const struct topt_layout *l)
{
    int number = 0;
    for (int i = 0; i < o->nkin; i++) {
        const struct kin *k = &o->kin[i];
        int32_t code = 0;
        for (int a = k->first; a < k->first + k->n; a++)
            code += k->unit[kind_of(l, a)];
        number = number * k->nshares + k->number[code];
    }
    return number;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* An orbit taken apart, and some axes of each kin. */
struct step {
    const uint8_t *share[TOPT_MAX_AXES];
    uint8_t taken[TOPT_MAX_AXES];
    int from, to; /* kinds */
};

/* Bytes of the largest block. */
static int64_t block(const struct topt_orbits *o, const struct step *s, int after)
{
    int64_t bytes = o->element_bytes;
    for (int d = 0; d < o->shape.ndim; d++) {
        int64_t parts = 1, count = o->shape.dim[d].count;
        for (int i = 0; i < o->nkin; i++) {
            int n = s->share[i][d];
            if (after)
                n += (d == s->to) * s->taken[i] - (d == s->from) * s->taken[i];
            while (n-- > 0)
                parts *= o->kin[i].size;
        }
        bytes *= (count + parts - 1) / parts * o->shape.dim[d].unit;
    }
    return bytes;
}

static struct topt_group group_of(const struct topt_orbits *o, const struct step *s)
{
    struct topt_group g = {1, 1, 1};
    for (int i = 0; i < o->nkin; i++)
        for (int n = 0; n < s->taken[i]; n++)
            *(o->kin[i].node ? &g.nodes : &g.per_node) *= o->kin[i].size;
    g.siblings = o->mesh.per_node / g.per_node;
    return g;
}

static int64_t time_of(const struct topt_orbits *o, const struct step *s)
{
    enum topt_move_kind kind =
        s->from == SUMS
            ? s->to == COPIES ? TOPT_MOVE_ALL_REDUCE : TOPT_MOVE_REDUCE_SCATTER
        : s->to == COPIES ? TOPT_MOVE_ALL_GATHER
                          : TOPT_MOVE_ALL_TO_ALL;
    if (s->from == COPIES)
        return 0; /* a slice */
    return topt_hw_collective_ns(o->hw, topt_move_collective(kind), group_of(o, s),
                                 block(o, s, kind == TOPT_MOVE_ALL_GATHER));
}

static int add_arc(struct topt_orbits *o, const struct step *s)
{
    if (o->narcs == o->arc_cap) {
        int cap = o->arc_cap ? 2 * o->arc_cap : 1024;
        struct arc *grown = realloc(o->arc, (size_t)cap * sizeof *grown);
        if (!grown)
            return -1;
        o->arc = grown;
        o->arc_cap = cap;
    }
    int32_t to = 0;
    for (int i = 0; i < o->nkin; i++) {
        const struct kin *k = &o->kin[i];
        int32_t code = s->taken[i] * (k->unit[s->to] - k->unit[s->from]);
        for (int x = 0; x < KINDS; x++)
            code += s->share[i][x] * k->unit[x];
        to = to * k->nshares + k->number[code];
    }
    o->arc[o->narcs++] = (struct arc){to, time_of(o, s)};
    return 0;
}

/* The next set of axes that do what the step takes them from; 0 after the last. */
static int next_taken(const struct topt_orbits *o, struct step *s)
{
    for (int i = 0; i < o->nkin; i++) {
        if (s->taken[i] < s->share[i][s->from]) {
            s->taken[i]++;
            return 1;
        }
        s->taken[i] = 0;
    }
    return 0;
}

/* Slices take nothing, so one axis at a time will do. */
static int is_wanted(const struct topt_orbits *o, const struct step *s)
{
    int n = 0;
    for (int i = 0; i < o->nkin; i++)
        n += s->taken[i];
    return s->from != COPIES || n == 1;
}

/* Nothing becomes a sum. */
static int add_steps(struct topt_orbits *o, int orbit)
{
    struct step s = {.from = 0};
    for (int i = o->nkin - 1; i >= 0; i--) {
        s.share[i] = o->kin[i].share[orbit % o->kin[i].nshares];
        orbit /= o->kin[i].nshares;
    }
    for (s.from = 0; s.from < KINDS; s.from++)
        for (s.to = 0; s.to < SUMS; s.to++)
            while (s.to != s.from && is_kind(o, s.to) && next_taken(o, &s))
                if (is_wanted(o, &s) && add_arc(o, &s))
                    return -1;
    return 0;
}

static int list_steps(struct topt_orbits *o)
{
    o->first = malloc(((size_t)o->n + 1) * sizeof *o->first);
    o->far = calloc((size_t)o->n, sizeof *o->far);
    if (!o->first || !o->far)
        return -1;
    o->first[0] = 0;
    for (int i = 0; i < o->n; i++) {
        if (add_steps(o, i))
            return -1;
        o->first[i + 1] = o->narcs;
    }
    return 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static int leave(struct topt_orbits *o, int64_t *far, struct topt_heap_entry e)
{
    for (int i = o->first[e.spot]; i < o->first[e.spot + 1]; i++) {
        const struct arc *a = &o->arc[i];
        if (e.key + a->ns >= far[a->to])
            continue;
        far[a->to] = e.key + a->ns;
        if (topt_heap_push(&o->heap, far[a->to], a->to))
            return -1;
    }
    return 0;
}

static int find_far(struct topt_orbits *o, int from, int64_t *far)
{
    for (int i = 0; i < o->n; i++)
        far[i] = TOPT_ROUTE_FAR;
    far[from] = 0;
    o->heap.n = 0;
    if (topt_heap_push(&o->heap, 0, from))
        return -1;
    while (o->heap.n) {
        struct topt_heap_entry e = topt_heap_pop(&o->heap);
        if (e.key == far[e.spot] && leave(o, far, e))
            return -1;
    }
    return 0;
}

int64_t topt_orbits_ns(struct topt_orbits *o, int from, int to)
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

/* ---- all of a shape -------------------------------------------------------------------------- */

struct topt_orbits *topt_orbits_create(const struct topt_hw *hw,
                                       const struct topt_mesh *mesh,
                                       const struct topt_shape *s, uint32_t dims,
                                       int element_bytes)
{
    struct topt_orbits *o = calloc(1, sizeof *o);
    int bad = !o;
    if (o) {
        *o = (struct topt_orbits){.hw = hw,
                                  .mesh = *mesh,
                                  .shape = *s,
                                  .dims = dims,
                                  .element_bytes = element_bytes,
                                  .n = 1};
        find_kin(o);
    }
    for (int i = 0; !bad && i < o->nkin; i++) {
        bad = kin_init(o, &o->kin[i]);
        o->n *= o->kin[i].nshares;
    }
    if (!bad && !list_steps(o))
        return o;
    topt_orbits_destroy(o);
    return NULL;
}

void topt_orbits_destroy(struct topt_orbits *o)
{
    for (int i = 0; o && i < o->nkin; i++) {
        free(o->kin[i].number);
        free(o->kin[i].share);
    }
    for (int i = 0; o && o->far && i < o->n; i++)
        free(o->far[i]);
    if (!o)
        return;
    free(o->first);
    free(o->arc);
    free(o->far);
    free(o->heap.at);
    free(o);
}

/* ---- all shapes ------------------------------------------------------------------------------ */

struct topt_orbit_set {
    const struct topt_hw *hw;
    struct topt_mesh mesh;
    struct topt_orbits **at;
    int n;
};

struct topt_orbit_set *topt_orbit_set_create(const struct topt_hw *hw,
                                             const struct topt_mesh *mesh)
{
    struct topt_orbit_set *s = calloc(1, sizeof *s);
    if (s) {
        s->hw = hw;
        s->mesh = *mesh;
    }
    return s;
}

void topt_orbit_set_destroy(struct topt_orbit_set *s)
{
    for (int i = 0; s && i < s->n; i++)
        topt_orbits_destroy(s->at[i]);
    if (s)
        free(s->at);
    free(s);
}

static int is_of(const struct topt_orbits *o, const struct topt_shape *s, uint32_t dims,
                 int element_bytes)
{
    return o->element_bytes == element_bytes && !(dims & ~o->dims) &&
           o->shape.ndim == s->ndim &&
           !memcmp(o->shape.dim, s->dim, (size_t)s->ndim * sizeof *s->dim);
}

struct topt_orbits *topt_orbit_set_of(struct topt_orbit_set *s,
                                      const struct topt_shape *shape, uint32_t dims,
                                      int element_bytes)
{
    for (int i = 0; i < s->n; i++)
        if (is_of(s->at[i], shape, dims, element_bytes))
            return s->at[i];
    struct topt_orbits **at =
        realloc(s->at, ((size_t)s->n + 1) * sizeof(struct topt_orbits *));
    if (!at)
        return NULL;
    s->at = at;
    at[s->n] = topt_orbits_create(s->hw, &s->mesh, shape, dims, element_bytes);
    return at[s->n] ? at[s->n++] : NULL;
}

uint32_t topt_orbit_dims(const struct topt_mesh *m, const struct topt_layout *l)
{
    uint32_t dims = 0;
    for (int a = 0; a < m->naxes; a++)
        dims |= l->at[a] >= 0 ? 1u << l->at[a] : 0;
    return dims;
}

int64_t topt_orbit_set_ns(struct topt_orbit_set *s, const struct topt_shape *shape,
                          int element_bytes, const struct topt_layout *from,
                          const struct topt_layout *to)
{
    if (topt_layout_equal(from, to))
        return 0;
    uint32_t dims = topt_orbit_dims(&s->mesh, from) | topt_orbit_dims(&s->mesh, to);
    struct topt_orbits *o = topt_orbit_set_of(s, shape, dims, element_bytes);
    return o ? topt_orbits_ns(o, topt_orbits_number(o, from), topt_orbits_number(o, to))
             : -1;
}
