/* shortest_paths.c - the shortest path from one layout to another, without names.
 *
 * Layouts of a tensor are the vertices of a graph whose arcs are single collectives
 * (or the free local slice); a redistribution is a shortest path (TensorOpt, section
 * 4.3).  The graph is in layout_graph.c, the cost of a move in move_costs.c, and the
 * lower bound on what is left to the targets in path_bound.c.
 *
 * One search a source finds the paths to all of its targets by A* (Hart, Nilsson and
 * Raphael, 1968): it settles next the layout with the least sum of its path and the
 * bound to the nearest open target.  A target that the search has passed is closed;
 * the bounds to the others are larger, and an entry of the heap that rests on a closed
 * target is computed again when its turn comes.
 *
 * A target is closed only when all entries of the heap cost more.  Then every layout
 * on any path of the same cost is settled, and among these paths the choice is the
 * same, whatever else was asked beside it.
 *
 * On a small graph with many targets, multi_source.c finds all paths from many sources
 * at once instead. */
#include "shortest_paths.h"

#include <stdlib.h>

#include "path_bound.h"
#include "heap.h"
#include "multi_source.h"
#include "topt_array.h"

enum {
    NONE = TOPT_GRAPH_NONE,
    DONE = 1, /* in a stamp */
    /* under the same costs: bounds for fewer would cost more than they save */
    FEW_QUESTIONS = 8,
    KEPT = 4 /* structs of costs: repeated callers ask about these */
};

/* The largest size of all graphs together before they are dropped. */
static const int64_t GRAPH_BYTES = 128 << 20;

/* The path to a layout in the search at hand. */
struct reached {
    int64_t key;
    uint32_t stamp; /* of the source, DONE where it is settled; else nothing is known */
    int32_t prev;
};

/* The bound of a layout under the costs at hand. */
struct vertex {
    int64_t rest;       /* lower bound to the nearest open target */
    int32_t nearest;    /* number of that target */
    uint32_t seen;      /* stamp of the source: the bound is known */
    uint32_t open;      /* stamp of the source: this is an open target */
    uint32_t projected; /* stamp of the costs: 'place' is known */
    struct topt_path_projection place;
};

/* Costs, and when they were used last. */
struct kept {
    struct topt_move_costs *costs; /* NULL: none yet */
    uint64_t used;
};

struct topt_paths {
    struct topt_collective_times *times;
    struct kept kept[KEPT];
    uint64_t used;
    struct topt_move_costs *costs; /* one of those */
    struct topt_path_bound *bound; /* NULL: not needed yet */
    struct topt_multi_source *lanes;
    struct topt_arena *arena;
    struct topt_layout_graph graph[TOPT_STATE_GROUPS + 1][TOPT_MAX_RANK + 1];

    /* questions under the same costs */
    struct topt_layout_graph *on;
    uint32_t costs_stamp;
    int use_bound, bound_ready; /* searches relax_arc by bounds; these are known */
    struct vertex *vertex;      /* by layout, as the next */
    struct reached *from;
    int nvertices;

    /* the search */
    struct topt_heap heap;
    uint32_t stamp;
    int32_t *target; /* those that are open */
    struct topt_path_projection *place;
    int ntargets, target_cap;
    int64_t nearest, farthest; /* of the open targets, as far as is known */
    int failed;                /* memory was short */
};

struct topt_time topt_paths_time(struct topt_paths *w, enum topt_collective c, int nodes,
                                 int per_node, int64_t bytes)
{
    return topt_collective_times_of(w->times, c, nodes, per_node, bytes);
}

int64_t topt_state_bytes(const struct topt_path_source *w, uint64_t s)
{
    int64_t split[TOPT_MAX_RANK] = {1, 1, 1, 1}, bytes = w->bytes;
    for (int g = 0; g < w->ngroups; g++)
        if (topt_state_at(s, g) < TOPT_MAX_RANK)
            split[topt_state_at(s, g)] *= w->size[g];
    for (int d = 0; d < w->ndims; d++) {
        int64_t count = w->count[d] < 0 ? -w->count[d] : w->count[d];
        bytes = count ? bytes * ((count + split[d] - 1) / split[d]) : bytes / split[d];
    }
    return bytes;
}

/* ---- what is known of layouts ------------------------------------------------------ */

static int vertices_fit(struct topt_paths *w)
{
    size_t n = (size_t)w->on->vertex_cap, old = (size_t)w->nvertices;
    if (TOPT_RESIZE(w->vertex, n) || TOPT_RESIZE(w->from, n))
        return -1;
    memset(w->vertex + old, 0, (n - old) * sizeof *w->vertex);
    memset(w->from + old, 0, (n - old) * sizeof *w->from);
    w->nvertices = (int)n;
    return 0;
}

/* Make room for new layouts of the graph. */
static void fit(struct topt_paths *w)
{
    w->failed |= w->nvertices < w->on->nvertices && vertices_fit(w);
}

/* The number of a layout, which may be new. */
static int32_t number(struct topt_paths *w, uint64_t state)
{
    int32_t vertex = topt_layout_graph_number(w->on, state);
    fit(w);
    w->failed |= vertex == NONE;
    return w->failed ? NONE : vertex;
}

static const struct topt_path_projection *place_of(struct topt_paths *w, int32_t vertex)
{
    struct vertex *x = &w->vertex[vertex];
    if (x->projected != w->costs_stamp)
        w->failed |= topt_path_bound_project(w->bound, w->on->vertex[vertex].state,
                                             &x->place) != 0;
    x->projected = w->costs_stamp;
    return &x->place;
}

static int known(const struct topt_paths *w, int32_t vertex)
{
    return (w->from[vertex].stamp & ~(uint32_t)DONE) == w->stamp;
}

/* ---- the search -------------------------------------------------------------------- */

static int is_open(const struct topt_paths *w, int32_t target)
{
    return w->vertex[target].open == w->stamp;
}

/* Does its bound rest on a target that was closed since?  Bounds to others are larger. */
static int is_stale(const struct topt_paths *w, int32_t vertex)
{
    return w->vertex[vertex].seen != w->stamp || !is_open(w, w->vertex[vertex].nearest);
}

/* The estimate that A* sorts by: the path so far and the last known bound. */
static int64_t estimate(const struct topt_paths *w, int32_t vertex)
{
    return topt_key_sum(w->from[vertex].key, w->vertex[vertex].rest);
}

/* Put a layout into the heap. */
static void push(struct topt_paths *w, int32_t vertex)
{
    struct vertex *x = &w->vertex[vertex];
    if (is_stale(w, vertex)) {
        int nearest = 0;
        x->rest = w->use_bound
                      ? topt_path_bound_of(w->bound, place_of(w, vertex), &nearest)
                      : 0;
        x->nearest = w->target[nearest];
        x->seen = w->stamp;
        w->failed |= x->rest < 0;
    }
    int64_t key = estimate(w, vertex);
    if (key <= w->farthest)
        w->failed |= topt_heap_push(&w->heap, key, vertex) != 0;
}

/* The key of the path to the i-th open target, as far as is known. */
static int64_t way_to(const struct topt_paths *w, int i)
{
    return known(w, w->target[i]) ? w->from[w->target[i]].key : TOPT_KEY_FAR;
}

/* Update the nearest and the farthest open target. */
static void update_targets(struct topt_paths *w)
{
    w->nearest = TOPT_KEY_FAR;
    w->farthest = 0;
    for (int i = 0; i < w->ntargets; i++) {
        int64_t key = way_to(w, i);
        w->nearest = key < w->nearest ? key : w->nearest;
        w->farthest = key > w->farthest ? key : w->farthest;
    }
}

/* Break ties: prefer the predecessor that is cheaper, then first in the order of
 * states. */
static int comes_earlier(const struct topt_paths *w, int32_t prev, int32_t than)
{
    int64_t key = w->from[prev].key, other = w->from[than].key;
    return key != other ? key < other
                        : w->on->vertex[prev].state < w->on->vertex[than].state;
}

static inline void relax_arc(struct topt_paths *w, int32_t at, int64_t key,
                             int32_t vertex)
{
    struct reached *x = &w->from[vertex];
    if (known(w, vertex)) {
        if (x->key < key) /* as that of all settled ones */
            return;
        if (x->key == key) {
            if (comes_earlier(w, at, x->prev))
                x->prev = at;
            return;
        }
    }
    *x = (struct reached){key, w->stamp, at};
    if (is_open(w, vertex))
        update_targets(w);
    push(w, vertex);
}

static void settle(struct topt_paths *w, int32_t vertex)
{
    struct topt_move_classes m = topt_move_costs_moves(w->costs, vertex);
    const int64_t *step = topt_move_costs_keys(w->costs);
    const struct topt_layout_graph *a = w->on;
    int64_t here = w->from[vertex].key;
    w->failed |= topt_move_costs_failed(w->costs);
    fit(w);
    if (w->failed)
        return;
    w->from[vertex].stamp |= DONE;
    for (int32_t i = m.first; i < m.first + m.n; i++) {
        const struct topt_move_class *c = &a->class[i];
        int64_t key = topt_key_sum(here, step[i]);
        if (step[i] == NONE)
            continue;
        for (int k = 0; k < c->narcs; k++)
            relax_arc(w, vertex, key, a->arc[c->arc + k]);
    }
}

/* Close the targets that are cheaper than every entry of the heap. */
static void close_before(struct topt_paths *w, int64_t key)
{
    for (int i = 0; i < w->ntargets;) {
        if (way_to(w, i) >= key) {
            i++;
            continue;
        }
        w->vertex[w->target[i]].open = 0;
        if (w->use_bound)
            topt_path_bound_remove_target(w->bound, i);
        w->target[i] = w->target[--w->ntargets];
    }
    update_targets(w);
}

static void search(struct topt_paths *w)
{
    while (w->heap.n && w->ntargets && !w->failed) {
        if (w->heap.at[0].key > w->nearest) {
            close_before(w, w->heap.at[0].key);
            continue;
        }
        struct topt_heap_entry e = topt_heap_pop(&w->heap);
        int32_t vertex = e.vertex;
        if ((w->from[vertex].stamp & DONE) || e.key != estimate(w, vertex))
            continue; /* it was pushed again */
        if (is_stale(w, vertex))
            push(w, vertex);
        else
            settle(w, vertex);
    }
}

/* ---- questions --------------------------------------------------------------------- */

struct topt_paths *topt_paths_create(const struct topt_hw *hw,
                                     const struct topt_mesh *mesh)
{
    struct topt_paths *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->times = topt_collective_times_create(hw, mesh);
    w->lanes = topt_multi_source_create();
    w->arena = topt_arena_create(0);
    if (w->times && w->lanes && w->arena)
        return w;
    topt_paths_destroy(w);
    return NULL;
}

static void forget(struct topt_paths *w)
{
    for (int g = 0; g <= TOPT_STATE_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            topt_layout_graph_fini(&w->graph[g][d]);
    for (int i = 0; i < KEPT; i++)
        if (w->kept[i].costs)
            topt_move_costs_end(w->kept[i].costs);
    if (w->lanes)
        topt_multi_source_forget(w->lanes);
    free(w->vertex);
    free(w->from);
    w->vertex = NULL;
    w->from = NULL;
    w->nvertices = 0;
    w->stamp = w->costs_stamp = 0;
}

static int64_t graph_bytes(const struct topt_paths *w)
{
    int64_t bytes = 0;
    for (int g = 0; g <= TOPT_STATE_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            bytes += topt_layout_graph_bytes(&w->graph[g][d]);
    return bytes;
}

void topt_paths_destroy(struct topt_paths *w)
{
    if (!w)
        return;
    forget(w);
    for (int i = 0; i < KEPT; i++)
        topt_move_costs_destroy(w->kept[i].costs);
    topt_path_bound_destroy(w->bound);
    topt_multi_source_destroy(w->lanes);
    topt_collective_times_destroy(w->times);
    topt_arena_destroy(w->arena);
    free(w->heap.at);
    free(w->target);
    free(w->place);
    free(w);
}

/* Reuse the struct of costs that was not used for longest. */
static int take_costs(struct topt_paths *w, const struct topt_path_source *s)
{
    struct kept *x = &w->kept[0];
    for (int i = 1; i < KEPT; i++)
        if (w->kept[i].used < x->used)
            x = &w->kept[i];
    if (!x->costs && !(x->costs = topt_move_costs_create(w->times)))
        return -1;
    topt_multi_source_drop(w->lanes, x->costs);
    topt_move_costs_begin(x->costs, s, w->on);
    x->used = ++w->used;
    w->costs = x->costs;
    return 0;
}

/* Find the costs of a source, if they are kept. */
static int find_costs(struct topt_paths *w, const struct topt_path_source *s)
{
    for (int i = 0; i < KEPT; i++)
        if (w->kept[i].costs && topt_move_costs_is(w->kept[i].costs, s)) {
            w->kept[i].used = ++w->used;
            w->costs = w->kept[i].costs;
            return 1;
        }
    return 0;
}

static int begin_costs(struct topt_paths *w, const struct topt_path_source *s)
{
    if (w->stamp > UINT32_MAX / 2 || graph_bytes(w) > GRAPH_BYTES)
        forget(w);
    w->on = &w->graph[s->ngroups][s->ndims];
    w->on->ngroups = s->ngroups;
    w->on->ndims = s->ndims;
    w->costs_stamp++;
    w->failed = w->bound_ready = 0;
    return find_costs(w, s) ? 0 : take_costs(w, s);
}

static int targets_fit(struct topt_paths *w, int n)
{
    if (n <= w->target_cap)
        return 0;
    if (TOPT_RESIZE(w->target, n) || TOPT_RESIZE(w->place, n))
        return -1;
    w->target_cap = n;
    return 0;
}

/* Begin a search from a source to the targets of its questions. */
static int begin_source(struct topt_paths *w, struct topt_path_question *const *question,
                        int n)
{
    if (targets_fit(w, n))
        return -1;
    w->stamp += 2;
    w->heap.n = 0;
    w->ntargets = n;
    for (int i = 0; i < n; i++) {
        w->target[i] = number(w, question[i]->to);
        if (w->failed)
            return -1;
        w->vertex[w->target[i]].open = w->stamp;
        if (w->use_bound)
            w->place[i] = *place_of(w, w->target[i]);
    }
    int32_t root = number(w, question[0]->source.from);
    if (w->failed || (w->use_bound && topt_path_bound_set_targets(w->bound, w->place, n)))
        return -1;
    w->from[root] = (struct reached){0, w->stamp, NONE};
    update_targets(w);
    push(w, root);
    return w->failed ? -1 : 0;
}

static int read_steps(const struct topt_paths *w, const uint16_t *size, int32_t vertex,
                      struct topt_path_step *step)
{
    int32_t stop[1 << TOPT_KEY_BITS];
    int len = topt_key_moves(w->from[vertex].key);
    for (int i = len; i >= 0; vertex = w->from[vertex].prev, i--)
        stop[i] = vertex;
    return topt_layout_graph_steps(w->on, size, stop, len, step);
}

static int answer(struct topt_paths *w, struct topt_path_question *q)
{
    int32_t vertex = number(w, q->to);
    if (w->failed || !known(w, vertex))
        return -1;
    int64_t key = w->from[vertex].key;
    q->path.step = TOPT_NEW(w->arena, topt_key_moves(key), struct topt_path_step);
    if (!q->path.step)
        return -1;
    q->path.ns = key < TOPT_KEY_FAR ? key >> TOPT_KEY_BITS : TOPT_ROUTE_FAR;
    q->path.nsteps = read_steps(w, q->source.size, vertex, q->path.step);
    return 0;
}

/* The bound takes much memory, and many searches do without. */
static int begin_bound(struct topt_paths *w, const struct topt_path_source *s)
{
    if (!w->bound && !(w->bound = topt_path_bound_create()))
        return -1;
    w->bound_ready = 1;
    return topt_path_bound_begin(w->bound, w->costs, s);
}

/* Answer the questions of one source. */
static int answer_source(struct topt_paths *w, struct topt_path_question *const *question,
                         int n)
{
    if (w->use_bound && !w->bound_ready && begin_bound(w, &question[0]->source))
        return -1;
    if (begin_source(w, question, n))
        return -1;
    search(w);
    for (int i = 0; i < n; i++)
        if (answer(w, question[i]))
            return -1;
    return 0;
}

static int is_source_after(struct topt_path_question *const *question, int i)
{
    return i > 0 && question[i]->source.from != question[i - 1]->source.from;
}

/* Hand questions to the multi-source search, as many sources at a time as it has
 * lanes. */
static int ask_lanes(struct topt_paths *w, struct topt_path_question *const *question,
                     int n)
{
    for (int i = 0, end; i < n; i = end) {
        int sources = 1;
        for (end = i + 1; end < n; end++)
            if (is_source_after(question, end) && ++sources > TOPT_MULTI_SOURCE_LANES)
                break;
        if (topt_multi_source_answer(w->lanes, w->costs, w->on, question + i, end - i,
                                     w->arena))
            return -1;
    }
    return 0;
}

static int count_open(struct topt_path_question *const *question, int n)
{
    int open = 0;
    for (int i = 0; i < n; i++)
        open += !question[i]->path.step;
    return open;
}

int topt_paths_answer(struct topt_paths *w, struct topt_path_question *const *question,
                      int n)
{
    for (int i = 0; i < n; i++)
        question[i]->path.step = NULL;
    int bad = n && (begin_costs(w, &question[0]->source) || ask_lanes(w, question, n));
    int open = bad ? 0 : count_open(question, n);
    w->use_bound = open >= FEW_QUESTIONS;
    for (int i = 0, end; i < n && open && !bad; i = end) {
        for (end = i + 1; end < n && !is_source_after(question, end);)
            end++;
        bad =
            count_open(question + i, end - i) && answer_source(w, question + i, end - i);
    }
    return bad ? -1 : 0;
}
