/* layout_graph.c - the graph of layouts without names.
 *
 * A layout is a vertex; an arc is a single collective, or the local slice. */
#include "layout_graph.h"
#include "topt_array.h"

#include <stdlib.h>

/* A state taken apart, while its moves are listed. */
struct view {
    struct topt_layout_graph *a;
    uint64_t state, shape;
    int32_t shape_number;
    int n[TOPT_MAX_RANK];                           /* groups that split each dimension */
    int8_t group[TOPT_MAX_RANK][TOPT_STATE_GROUPS]; /* outermost first */
    uint32_t replicated, partial;                   /* as sets */
};

void topt_layout_graph_fini(struct topt_layout_graph *a)
{
    free(a->vertex);
    free(a->slot);
    free(a->shape);
    free(a->shape_slot);
    free(a->class);
    free(a->arc);
    *a = (struct topt_layout_graph){.ngroups = a->ngroups, .ndims = a->ndims};
}

int64_t topt_layout_graph_bytes(const struct topt_layout_graph *a)
{
    return (int64_t)sizeof *a->vertex * a->vertex_cap +
           (int64_t)sizeof *a->class * a->class_cap +
           (int64_t)sizeof *a->arc * a->arc_cap;
}

/* ---- numbers of states and shapes -------------------------------------------------- */

static uint32_t hash_of(uint64_t x)
{
    return (uint32_t)((x * 0x9e3779b97f4a7c15u) >> 32);
}

static int32_t *slot_of(const struct topt_layout_graph *a, uint64_t s)
{
    uint32_t h = hash_of(s) & (uint32_t)(a->nslots - 1);
    while (a->slot[h] >= 0 && a->vertex[a->slot[h]].state != s)
        h = (h + 1) & (uint32_t)(a->nslots - 1);
    return &a->slot[h];
}

static int32_t *shape_slot_of(const struct topt_layout_graph *a, uint64_t s)
{
    uint32_t h = hash_of(s) & (uint32_t)(a->nshape_slots - 1);
    while (a->shape_slot[h] >= 0 && a->shape[a->shape_slot[h]] != s)
        h = (h + 1) & (uint32_t)(a->nshape_slots - 1);
    return &a->shape_slot[h];
}

static int32_t *new_slots(int32_t **slot, int n)
{
    int32_t *grown = malloc((size_t)n * sizeof *grown);
    if (!grown)
        return NULL;
    memset(grown, 0xff, (size_t)n * sizeof *grown);
    free(*slot);
    return *slot = grown;
}

static int vertices_grow(struct topt_layout_graph *a)
{
    int cap = a->vertex_cap ? 2 * a->vertex_cap : 64;
    if (TOPT_RESIZE(a->vertex, cap) || !new_slots(&a->slot, 2 * cap))
        return -1;
    a->vertex_cap = cap;
    a->nslots = 2 * cap;
    for (int i = 0; i < a->nvertices; i++)
        *slot_of(a, a->vertex[i].state) = i;
    return 0;
}

static int shapes_grow(struct topt_layout_graph *a)
{
    int cap = a->shape_cap ? 2 * a->shape_cap : 64;
    if (TOPT_RESIZE(a->shape, cap) || !new_slots(&a->shape_slot, 2 * cap))
        return -1;
    a->shape_cap = cap;
    a->nshape_slots = 2 * cap;
    for (int i = 0; i < a->nshapes; i++)
        *shape_slot_of(a, a->shape[i]) = i;
    return 0;
}

static int32_t shape_number(struct topt_layout_graph *a, uint64_t shape)
{
    if (a->nshapes == a->shape_cap && shapes_grow(a)) {
        a->failed = 1;
        return 0;
    }
    int32_t *slot = shape_slot_of(a, shape);
    if (*slot < 0) {
        a->shape[a->nshapes] = shape;
        *slot = a->nshapes++;
    }
    return *slot;
}

static uint64_t in_dim(uint32_t set, int d)
{
    return (uint64_t)set << (TOPT_STATE_GROUPS * d);
}

static uint64_t shape_of(const struct topt_layout_graph *a, uint64_t state)
{
    uint64_t shape = 0;
    for (int g = 0; g < a->ngroups; g++)
        if (topt_state_at(state, g) < TOPT_MAX_RANK)
            shape |= in_dim(1u << g, topt_state_at(state, g));
    return shape;
}

int32_t topt_layout_graph_number(struct topt_layout_graph *a, uint64_t state)
{
    if (a->nvertices == a->vertex_cap && vertices_grow(a)) {
        a->failed = 1;
        return TOPT_GRAPH_NONE;
    }
    int32_t *slot = slot_of(a, state);
    if (*slot < 0) {
        struct topt_move_classes none = {.n = TOPT_GRAPH_NONE};
        int32_t shape = shape_number(a, shape_of(a, state));
        if (a->failed)
            return TOPT_GRAPH_NONE;
        a->vertex[a->nvertices] = (struct topt_layout_vertex){state, shape, none};
        *slot = a->nvertices++;
    }
    return *slot;
}

/* ---- listing ----------------------------------------------------------------------- */

static void view_of(struct topt_layout_graph *a, int32_t vertex, struct view *v)
{
    memset(v, 0, sizeof *v);
    v->a = a;
    v->state = a->vertex[vertex].state;
    v->shape_number = a->vertex[vertex].shape;
    v->shape = a->shape[v->shape_number];
    for (int g = 0; g < a->ngroups; g++) {
        int at = topt_state_at(v->state, g);
        if (at == TOPT_STATE_R) {
            v->replicated |= 1u << g;
        } else if (at == TOPT_STATE_P) {
            v->partial |= 1u << g;
        } else {
            v->group[at][topt_state_pos(v->state, g)] = (int8_t)g;
            v->n[at]++;
        }
    }
}

/* A new class, of no moves yet. */
static void begin_class(const struct view *v, enum topt_move_kind kind, uint32_t groups,
                        int32_t shape)
{
    struct topt_layout_graph *a = v->a;
    if (TOPT_ROOM(a->class, a->nclasses, a->class_cap, 256)) {
        a->failed = 1;
        return;
    }
    a->class[a->nclasses++] = (struct topt_move_class){.shape = shape,
                                                       .arc = a->narcs,
                                                       .groups = (uint16_t)groups,
                                                       .kind = (uint8_t)kind};
}

static void add_arc(const struct view *v, uint64_t state)
{
    struct topt_layout_graph *a = v->a;
    if (a->narcs == a->arc_cap) {
        int32_t cap = a->arc_cap < 1 << 29 ? 2 * a->arc_cap + 1024 : 0;
        if (!cap || TOPT_RESIZE(a->arc, cap)) {
            a->failed = 1;
            return;
        }
        a->arc_cap = cap;
    }
    if (a->failed)
        return;
    a->arc[a->narcs++] = topt_layout_graph_number(a, state);
    a->class[a->nclasses - 1].narcs++;
}

/* The shape where a set less splits a dimension. */
static int32_t shape_without(const struct view *v, int d, uint32_t set)
{
    return shape_number(v->a, v->shape & ~in_dim(set, d));
}

static uint64_t replicate(uint64_t s, uint32_t set)
{
    for (; set; set &= set - 1)
        s = topt_state_put(s, __builtin_ctz(set), TOPT_STATE_R, 0);
    return s;
}

/* Put the groups of 'set' innermost in 'd', in group order. */
static uint64_t append(const struct view *v, uint32_t set, int d)
{
    uint64_t s = v->state;
    for (int pos = v->n[d]; set; set &= set - 1)
        s = topt_state_put(s, __builtin_ctz(set), d, pos++);
    return s;
}

static void add_up(const struct view *v)
{
    for (uint32_t set = v->partial; set; set = (set - 1) & v->partial) {
        begin_class(v, TOPT_MOVE_ALL_REDUCE, set, v->shape_number);
        add_arc(v, replicate(v->state, set));
        begin_class(v, TOPT_MOVE_REDUCE_SCATTER, set, v->shape_number);
        for (int d = 0; d < v->a->ndims; d++)
            add_arc(v, append(v, set, d));
    }
}

static void slice(const struct view *v)
{
    for (uint32_t left = v->replicated; left; left &= left - 1) {
        begin_class(v, TOPT_MOVE_SLICE, left & -left, v->shape_number);
        for (int d = 0; d < v->a->ndims; d++)
            add_arc(v, append(v, left & -left, d));
    }
}

/* Gather the innermost 1, 2, ... groups of a dimension. */
static void gather(const struct view *v, int d)
{
    uint32_t set = 0;
    for (int k = v->n[d] - 1; k >= 0; k--) {
        set |= 1u << v->group[d][k];
        begin_class(v, TOPT_MOVE_ALL_GATHER, set, shape_without(v, d, set));
        add_arc(v, replicate(v->state, set));
    }
}

/* All-to-all: hand the innermost 1, 2, ... groups of dimension 'd' to 'e'. */
static void hand_over(const struct view *v, int d, int e)
{
    uint32_t set = 0;
    for (int k = v->n[d] - 1; k >= 0; k--) {
        uint64_t s = v->state;
        set |= 1u << v->group[d][k];
        for (int i = k; i < v->n[d]; i++)
            s = topt_state_put(s, v->group[d][i], e, v->n[e] + i - k);
        begin_class(v, TOPT_MOVE_ALL_TO_ALL, set, v->shape_number);
        add_arc(v, s);
    }
}

/* Places of a dimension that some orders of its groups displace, and those that stand
 * still between them. */
struct reordering {
    int dim;
    uint32_t places, between;
};

static void begin_reordering(const struct view *v, const struct reordering *r)
{
    uint32_t set = 0;
    for (uint32_t m = r->places; m; m &= m - 1)
        set |= 1u << v->group[r->dim][__builtin_ctz(m)];
    begin_class(v, TOPT_MOVE_PERMUTE, set, v->shape_number);
    v->a->class[v->a->nclasses - 1].dim = (uint8_t)r->dim;
}

/* A class of its own for an order in which groups stand between those that are
 * displaced.  Of four places two stand between only where the ends are exchanged, so
 * for all the same comes to stand outside. */
static void begin_parted(const struct view *v, const struct reordering *r, uint64_t to)
{
    begin_reordering(v, r);
    struct topt_move_class *c = &v->a->class[v->a->nclasses - 1];
    int first = __builtin_ctz(r->between);
    for (uint32_t m = r->between; m; m &= m - 1)
        c->between |= (uint16_t)(1u << v->group[r->dim][__builtin_ctz(m)]);
    for (uint32_t m = r->places; m; m &= m - 1) {
        int place = __builtin_ctz(m), g = v->group[r->dim][place];
        int next = topt_state_pos(to, g);
        if (place > first && next < first)
            c->in |= (uint16_t)(1u << g);
        if (place < first && next > first)
            c->out |= (uint16_t)(1u << g);
    }
}

/* Orders of a dimension's groups that displace all of the places, and no others. */
static void displace(const struct view *v, const struct reordering *r, uint32_t left,
                     int place, uint64_t s)
{
    int n = v->n[r->dim];
    while (place < n && !(r->places >> place & 1))
        place++;
    if (place == n) {
        if (r->between)
            begin_parted(v, r, s);
        add_arc(v, s);
    }
    for (uint32_t m = place < n ? left & ~(1u << place) : 0; m; m &= m - 1) {
        int to = __builtin_ctz(m);
        displace(v, r, left & ~(1u << to), place + 1,
                 topt_state_put(s, v->group[r->dim][place], r->dim, to));
    }
}

/* Other orders of a dimension's groups. */
static void reorder(const struct view *v, int d)
{
    int n = v->n[d] <= TOPT_GRAPH_REORDERED ? v->n[d] : 0;
    for (uint32_t places = 3; places < 1u << n; places++) {
        if (!(places & (places - 1)))
            continue;
        uint32_t ends = (2u << (31 - __builtin_clz(places))) - (places & -places);
        struct reordering r = {d, places, ends & ~places};
        if (!r.between)
            begin_reordering(v, &r);
        displace(v, &r, places, 0, v->state);
    }
}

uint32_t topt_layout_graph_groups(const struct topt_move_class *c, const uint16_t *size)
{
    int64_t in = 1, out = 1;
    for (uint32_t m = c->in; m; m &= m - 1)
        in *= size[__builtin_ctz(m)];
    for (uint32_t m = c->out; m; m &= m - 1)
        out *= size[__builtin_ctz(m)];
    return c->groups | (in != out ? c->between : 0u);
}

static void list_out(const struct view *v)
{
    add_up(v);
    slice(v);
    for (int d = 0; d < v->a->ndims; d++) {
        gather(v, d);
        for (int e = 0; e < v->a->ndims; e++)
            if (e != d)
                hand_over(v, d, e);
    }
    for (int d = 0; d < v->a->ndims; d++)
        reorder(v, d);
}

int topt_layout_graph_list_out(struct topt_layout_graph *a, int32_t vertex)
{
    struct topt_move_classes m = {.first = a->nclasses};
    struct view v;
    if (a->vertex[vertex].out.n >= 0)
        return 0;
    view_of(a, vertex, &v);
    list_out(&v);
    m.n = a->nclasses - m.first;
    a->vertex[vertex].out = m;
    return a->failed ? -1 : 0;
}

/* All layouts are reached from the one where all groups are partial. */
int topt_layout_graph_list_all(struct topt_layout_graph *a)
{
    uint64_t sums = 0;
    for (int g = 0; g < a->ngroups; g++)
        sums = topt_state_put(sums, g, TOPT_STATE_P, 0);
    if (topt_layout_graph_number(a, sums) == TOPT_GRAPH_NONE)
        return -1;
    for (; a->nlisted < a->nvertices; a->nlisted++)
        if (topt_layout_graph_list_out(a, a->nlisted))
            return -1;
    return 0;
}

/* ---- paths through it -------------------------------------------------------------- */

/* How many parts of a dimension stand outside of a group's. */
static int64_t outside(const struct topt_layout_graph *a, const uint16_t *size,
                       uint64_t s, int group)
{
    int64_t n = 1;
    int at = topt_state_at(s, group), place = topt_state_pos(s, group);
    for (int g = 0; g < a->ngroups; g++)
        if (topt_state_at(s, g) == at && topt_state_pos(s, g) < place)
            n *= size[g];
    return n;
}

/* Groups that keep their place in a permutation, but not what stands outside of them. */
static uint32_t shifted(const struct topt_layout_graph *a, const uint16_t *size,
                        uint64_t from, uint64_t to)
{
    uint32_t set = 0;
    for (int g = 0; g < a->ngroups; g++)
        if (topt_state_at(to, g) < TOPT_STATE_P &&
            topt_state_bits(from, g) == topt_state_bits(to, g) &&
            outside(a, size, from, g) != outside(a, size, to, g))
            set |= 1u << g;
    return set;
}

/* The move between two layouts. */
static struct topt_path_step step_between(const struct topt_layout_graph *a,
                                          const uint16_t *size, uint64_t from,
                                          uint64_t to)
{
    struct topt_path_step step = {.to = to};
    for (int g = 0; g < a->ngroups; g++) {
        int at = topt_state_at(from, g), next = topt_state_at(to, g);
        if (topt_state_bits(from, g) == topt_state_bits(to, g))
            continue;
        step.groups |= 1u << g;
        if (at == TOPT_STATE_P)
            step.kind =
                next == TOPT_STATE_R ? TOPT_MOVE_ALL_REDUCE : TOPT_MOVE_REDUCE_SCATTER;
        else if (at == TOPT_STATE_R)
            step.kind = TOPT_MOVE_SLICE;
        else if (next == TOPT_STATE_R)
            step.kind = TOPT_MOVE_ALL_GATHER;
        else
            step.kind = next == at ? TOPT_MOVE_PERMUTE : TOPT_MOVE_ALL_TO_ALL;
    }
    if (step.kind == TOPT_MOVE_PERMUTE)
        step.groups |= shifted(a, size, from, to);
    return step;
}

int topt_layout_graph_steps(const struct topt_layout_graph *a, const uint16_t *size,
                            const int32_t *stop, int len, struct topt_path_step *step)
{
    int nsteps = 0;
    for (int i = 0; i < len; i++) {
        struct topt_path_step *last = nsteps ? &step[nsteps - 1] : NULL;
        struct topt_path_step next =
            step_between(a, size, a->vertex[stop[i]].state, a->vertex[stop[i + 1]].state);
        if (last && last->kind == TOPT_MOVE_SLICE && next.kind == TOPT_MOVE_SLICE) {
            last->groups |= next.groups;
            last->to = next.to;
        } else {
            step[nsteps++] = next;
        }
    }
    return nsteps;
}
