/* multi_source.c - shortest paths from many sources at once.
 *
 * Where the graph is small and paths to most layouts are asked for, the fastest way is
 * to find all paths from up to 16 sources together: each layout has one key a source,
 * the lanes, side by side, so that a move is looked up once for all lanes and keys are
 * compared without branches.
 *
 * Keys are corrected until none changes (Bellman, 1958; Ford, 1956), in sweeps over
 * all layouts.  Layouts with more partial groups come first, since no move leads back
 * to them, then layouts with more replicated groups, since slices come first on most
 * paths.  A layout takes the least key that its incoming moves offer; predecessors
 * whose keys have not changed since the last sweep are passed over.
 *
 * Predecessors are not stored: a path is read backward from its target, along moves
 * whose keys are the difference of the keys at their ends.  The keys of the last few
 * runs are kept, since a caller who asked for some paths of a source often asks for
 * others.
 *
 * Keys are floating-point numbers that hold whole numbers, exact up to 2 ** 53,
 * because processors compare several of those at a time. */
#include "multi_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = TOPT_MULTI_SOURCE_LANES,
    NONE = TOPT_GRAPH_NONE,
    MOST_VERTICES = 4096, /* larger graphs outgrow the caches */
    WORTH = 100,          /* the largest number of layouts for each question */
    KEPT = 4              /* runs */
};

static const double MOST_KEY = 4503599627370496.0; /* 2 ** 52, more than an hour */

typedef double quad __attribute__((vector_size(32)));
typedef int64_t mask __attribute__((vector_size(32)));

/* A function that is compiled for wider vectors too, and taken where the processor has
 * them; sanitizers start after such a choice is made. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                   \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDER_TOO __attribute__((target_clones("avx2", "default")))
#else
#define WIDER_TOO
#endif

/* All layouts of a graph in the order of sweeps, with their incoming moves. */
struct sweep_order {
    int n;
    int32_t *vertex; /* by place in that order */
    int32_t *place;  /* by vertex */
    int32_t *first;  /* of the moves to a place, and one more */
    int32_t *from;   /* of a move: the place, ... */
    int32_t *class;  /* ... and which it is */
};

/* The paths from some sources. */
struct run {
    const struct topt_move_costs *costs; /* NULL: none */
    int n, quads;
    uint64_t from[LANES];
    double *path; /* keys of the paths to a place, 4 * quads of each */
    size_t npaths;
};

struct topt_multi_source {
    struct sweep_order sweep_order[TOPT_STATE_GROUPS + 1][TOPT_MAX_RANK + 1];
    struct run run[KEPT];
    int next; /* the oldest run */
    /* the questions at hand */
    struct topt_move_costs *costs;
    struct topt_layout_graph *graph;
    const struct sweep_order *on;
    /* by move of the sweep_order, under the costs 'priced' (NULL: none): its key, or
     * INFINITY where there is no such move */
    const struct topt_move_costs *priced;
    double *step;
    int32_t nsteps;
    uint16_t *when; /* by place: the sweep in which it got cheaper last */
    int nplaces;
};

struct topt_multi_source *topt_multi_source_create(void)
{
    return calloc(1, sizeof(struct topt_multi_source));
}

static void sweep_order_fini(struct sweep_order *c)
{
    free(c->vertex);
    free(c->place);
    free(c->first);
    free(c->from);
    free(c->class);
    *c = (struct sweep_order){0};
}

void topt_multi_source_drop(struct topt_multi_source *l, const struct topt_move_costs *t)
{
    for (int i = 0; i < KEPT; i++)
        if (l->run[i].costs == t)
            l->run[i].costs = NULL;
    if (l->priced == t)
        l->priced = NULL;
}

void topt_multi_source_forget(struct topt_multi_source *l)
{
    for (int g = 0; g <= TOPT_STATE_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            sweep_order_fini(&l->sweep_order[g][d]);
    for (int i = 0; i < KEPT; i++)
        l->run[i].costs = NULL;
    l->priced = NULL;
}

void topt_multi_source_destroy(struct topt_multi_source *l)
{
    if (!l)
        return;
    topt_multi_source_forget(l);
    for (int i = 0; i < KEPT; i++)
        free(l->run[i].path);
    free(l->step);
    free(l->when);
    free(l);
}

/* Layouts with k of the groups in dimensions: which ones, in what order, cut into
 * dimensions where; others are replicated or sums. */
static int64_t count_layouts(int groups, int dims)
{
    int64_t all = 0, paths = 1; /* of k groups in dimensions */
    for (int k = 0; k <= groups; k++) {
        all += paths << (groups - k);
        paths = paths * (groups - k) * (dims + k) / (k + 1);
    }
    return all;
}

/* Is a run worth its cost for so many questions? */
static int is_worth_while(const struct topt_path_source *s, int questions)
{
    int64_t n = count_layouts(s->ngroups, s->ndims);
    return n <= MOST_VERTICES && n <= (int64_t)WORTH * questions;
}

/* ---- sweep orders ------------------------------------------------------------------ */

/* Not by number, which depends on what was asked before. */
struct ranked {
    int rank;
    int32_t vertex;
    uint64_t state;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->rank != y->rank ? x->rank - y->rank
                              : (x->state > y->state) - (x->state < y->state);
}

static int rank_of(const struct topt_layout_graph *a, int32_t vertex)
{
    int rank = 0;
    for (int g = 0; g < a->ngroups; g++) {
        int at = topt_state_at(a->vertex[vertex].state, g);
        rank -= at == TOPT_STATE_P ? TOPT_STATE_GROUPS + 1 : at == TOPT_STATE_R;
    }
    return rank;
}

static int put_in_order(struct sweep_order *c, const struct topt_layout_graph *a)
{
    struct ranked *r = malloc((size_t)c->n * sizeof *r);
    if (!r)
        return -1;
    for (int i = 0; i < c->n; i++)
        r[i] = (struct ranked){rank_of(a, i), i, a->vertex[i].state};
    qsort(r, (size_t)c->n, sizeof *r, by_rank);
    for (int i = 0; i < c->n; i++) {
        c->vertex[i] = r[i].vertex;
        c->place[r[i].vertex] = i;
    }
    free(r);
    return 0;
}

/* Sort the moves by where they lead to: count, then put. */
static void list_arcs_in(struct sweep_order *c, const struct topt_layout_graph *a)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t p = 0; p < c->n; p++) {
            struct topt_move_classes m = a->vertex[c->vertex[p]].out;
            for (int32_t i = m.first; i < m.first + m.n; i++)
                for (int k = 0; k < a->class[i].narcs; k++) {
                    int32_t to = c->place[a->arc[a->class[i].arc + k]];
                    if (!pass) {
                        c->first[to]++;
                        continue;
                    }
                    c->from[--c->first[to]] = p;
                    c->class[c->first[to]] = i;
                }
        }
        for (int p = 1; !pass && p <= c->n; p++)
            c->first[p] += c->first[p - 1];
    }
}

static int make_sweep_order(struct sweep_order *c, struct topt_layout_graph *a)
{
    if (topt_layout_graph_list_all(a))
        return -1;
    c->n = a->nvertices;
    c->vertex = malloc((size_t)c->n * sizeof *c->vertex);
    c->place = malloc((size_t)c->n * sizeof *c->place);
    c->first = calloc((size_t)c->n + 1, sizeof *c->first);
    c->from = malloc((size_t)a->narcs * sizeof *c->from + 1);
    c->class = malloc((size_t)a->narcs * sizeof *c->class + 1);
    if (!c->vertex || !c->place || !c->first || !c->from || !c->class ||
        put_in_order(c, a)) {
        sweep_order_fini(c);
        return -1;
    }
    list_arcs_in(c, a);
    return 0;
}

/* ---- sweeps ------------------------------------------------------------------------ */

/* Moves that lead to a layout. */
struct arcs_in {
    int n;
    const int32_t *from; /* places of layouts */
    const double *step;  /* keys of the moves */
    const uint16_t *when;
    int since; /* moves from layouts whose 'when' is less are left out */
};

/* Make the paths to a layout as cheap as those by its predecessors and a move; 1 where
 * any got cheaper.  A layout has 4 * quads keys.  The compiler makes vector
 * instructions of them, and keeps 'best' in registers, as 'quads' is known where this is put. */
static inline __attribute__((always_inline)) int
relax_quads(double *to, const double *path, const struct arcs_in *by, int quads)
{
    quad best[LANES / 4], new;
    mask any = {0, 0, 0, 0};
    memcpy(best, to, (size_t)quads * sizeof *best);
    for (int i = 0; i < by->n; i++) {
        const double *at = path + (size_t)by->from[i] * 4 * (size_t)quads;
        if (by->when[by->from[i]] < by->since)
            continue;
        for (int k = 0; k < quads; k++) {
            memcpy(&new, at + 4 * k, sizeof new);
            new += by->step[i];
            mask less = new < best[k];
            best[k] = (quad)((less & (mask) new) | (~less & (mask)best[k]));
            any |= less;
        }
    }
    memcpy(to, best, (size_t)quads * sizeof *best);
    return (any[0] | any[1] | any[2] | any[3]) != 0;
}

WIDER_TOO static int relax(double *to, const double *path, const struct arcs_in *by,
                           int quads)
{
    switch (quads) {
    case 1:
        return relax_quads(to, path, by, 1);
    case 2:
        return relax_quads(to, path, by, 2);
    case 3:
        return relax_quads(to, path, by, 3);
    default:
        return relax_quads(to, path, by, 4);
    }
}

/* The first sweep is the sources themselves; the second goes on from there. */
static void sweep(struct topt_multi_source *l, struct run *r)
{
    const struct sweep_order *c = l->on;
    size_t width = 4 * (size_t)r->quads;
    int any = 1;
    for (int k = 2; any && k <= UINT16_MAX; k++) {
        any = 0;
        for (int p = 0; p < c->n; p++) {
            int32_t i = c->first[p], arcs = c->first[p + 1] - i;
            if (!arcs)
                continue;
            struct arcs_in by = {arcs, c->from + i, l->step + i, l->when, k - 1};
            if (!relax(r->path + (size_t)p * width, r->path, &by, r->quads))
                continue;
            l->when[p] = (uint16_t)k;
            any = 1;
        }
    }
}

/* ---- runs -------------------------------------------------------------------------- */

/* Set the keys of all moves. */
static int set_steps(struct topt_multi_source *l)
{
    const struct sweep_order *c = l->on;
    if (l->priced == l->costs)
        return 0;
    l->priced = NULL;
    if (l->nsteps < c->first[c->n]) {
        free(l->step);
        l->step = malloc((size_t)c->first[c->n] * sizeof *l->step);
        l->nsteps = l->step ? c->first[c->n] : 0;
        if (!l->step)
            return -1;
    }
    for (int p = 0; p < c->n; p++)
        topt_move_costs_moves(l->costs, p);
    if (topt_move_costs_failed(l->costs))
        return -1;
    const int64_t *key = topt_move_costs_keys(l->costs);
    for (int32_t i = 0; i < c->first[c->n]; i++)
        l->step[i] = key[c->class[i]] == NONE ? INFINITY : (double)key[c->class[i]];
    l->priced = l->costs;
    return 0;
}

static int places_fit(struct topt_multi_source *l, int n)
{
    if (l->nplaces >= n)
        return 0;
    free(l->when);
    l->when = malloc((size_t)n * sizeof *l->when);
    l->nplaces = l->when ? n : 0;
    return l->when ? 0 : -1;
}

/* Room for a number of keys, none of which is known. */
static int run_fit(struct run *r, size_t n)
{
    if (r->npaths < n) {
        free(r->path);
        r->path = malloc(n * sizeof *r->path);
        r->npaths = r->path ? n : 0;
    }
    for (size_t i = 0; r->path && i < n; i++)
        r->path[i] = INFINITY;
    return r->path ? 0 : -1;
}

/* Is there a run under these costs? */
static int has_run(const struct topt_multi_source *l, const struct topt_move_costs *t)
{
    int has = 0;
    for (int i = 0; i < KEPT; i++)
        has |= l->run[i].costs == t;
    return has;
}

/* Find the run under these costs that has a source, and its lane; NULL: there is none. */
static const struct run *find_run(const struct topt_multi_source *l, uint64_t from,
                                  int *ret_lane)
{
    for (int i = 0; i < KEPT; i++) {
        const struct run *r = &l->run[i];
        for (int k = 0; r->costs == l->costs && k < r->n; k++)
            if (r->from[k] == from) {
                *ret_lane = k;
                return r;
            }
    }
    return NULL;
}

/* List the sources of questions without an answer. */
static int list_sources(struct topt_path_question *const *question, int n,
                        uint64_t ret[LANES])
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        uint64_t from = question[i]->source.from;
        if (!question[i]->path.step && (!count || from != ret[count - 1]))
            ret[count++] = from;
    }
    return count;
}

/* Make a run from these sources in the place of the oldest run. */
static int make_run(struct topt_multi_source *l,
                    struct topt_path_question *const *question, int n)
{
    struct run *r = &l->run[l->next];
    r->costs = NULL;
    r->n = list_sources(question, n, r->from);
    r->quads = (r->n + 3) / 4;
    size_t width = 4 * (size_t)r->quads;
    if (run_fit(r, (size_t)l->on->n * width) || places_fit(l, l->on->n) || set_steps(l))
        return -1;
    memset(l->when, 0, (size_t)l->on->n * sizeof *l->when);
    for (int k = 0; k < r->n; k++) {
        int32_t place = l->on->place[topt_layout_graph_number(l->graph, r->from[k])];
        r->path[(size_t)place * width + (size_t)k] = 0;
        l->when[place] = 1;
    }
    sweep(l, r);
    r->costs = l->costs;
    l->next = (l->next + 1) % KEPT;
    return 0;
}

/* ---- answers ----------------------------------------------------------------------- */

static inline double key_at(const struct run *r, int lane, int32_t place)
{
    return r->path[(size_t)place * 4 * (size_t)r->quads + (size_t)lane];
}

static uint64_t state_at(const struct topt_multi_source *l, int32_t place)
{
    return l->graph->vertex[l->on->vertex[place]].state;
}

/* The last stop before a place: of equal paths the one whose last stop is cheapest,
 * then first. */
static int32_t stop_before(const struct topt_multi_source *l, const struct run *r,
                           int lane, int32_t place)
{
    const struct sweep_order *c = l->on;
    const int64_t *key = topt_move_costs_keys(l->costs);
    double here = key_at(r, lane, place), least = INFINITY;
    int32_t best = NONE;
    for (int32_t i = c->first[place]; i < c->first[place + 1]; i++) {
        int64_t step = key[c->class[i]];
        double at = key_at(r, lane, c->from[i]);
        if (at > least || at >= here || step == NONE || at + (double)step != here)
            continue;
        if (at < least || state_at(l, c->from[i]) < state_at(l, best))
            best = c->from[i];
        least = at;
    }
    return best;
}

static int answer(const struct topt_multi_source *l, const struct run *r, int lane,
                  struct topt_path_question *q, struct topt_arena *arena)
{
    int32_t stop[1 << TOPT_KEY_BITS];
    int32_t place = l->on->place[topt_layout_graph_number(l->graph, q->to)];
    double path = key_at(r, lane, place);
    if (path >= MOST_KEY)
        return 0;
    int len = topt_key_moves((int64_t)path);
    for (int i = len; i >= 0; i--) {
        stop[i] = l->on->vertex[place];
        place = i ? stop_before(l, r, lane, place) : NONE;
    }
    q->path.ns = (int64_t)path >> TOPT_KEY_BITS;
    q->path.step = TOPT_NEW(arena, len, struct topt_path_step);
    if (!q->path.step)
        return -1;
    q->path.nsteps =
        topt_layout_graph_steps(l->graph, q->source.size, stop, len, q->path.step);
    return 0;
}

/* Answer questions whose sources have a run; '*ret_left' counts the others. */
static int answer_known(const struct topt_multi_source *l,
                        struct topt_path_question *const *question, int n,
                        struct topt_arena *arena, int *ret_left)
{
    const struct run *r = NULL;
    int lane = 0;
    *ret_left = 0;
    for (int i = 0; i < n; i++) {
        uint64_t from = question[i]->source.from;
        if (question[i]->path.step)
            continue;
        if (!r || r->from[lane] != from)
            r = find_run(l, from, &lane);
        if (r && answer(l, r, lane, question[i], arena))
            return -1;
        *ret_left += !r;
    }
    return 0;
}

static int begin(struct topt_multi_source *l, struct topt_move_costs *t,
                 struct topt_layout_graph *a)
{
    struct sweep_order *c = &l->sweep_order[a->ngroups][a->ndims];
    l->costs = t;
    l->graph = a;
    l->on = c;
    return c->n ? 0 : make_sweep_order(c, a);
}

int topt_multi_source_answer(struct topt_multi_source *l, struct topt_move_costs *t,
                             struct topt_layout_graph *graph,
                             struct topt_path_question *const *question, int n,
                             struct topt_arena *arena)
{
    const struct topt_path_source *s = &question[0]->source;
    int left = n;
    if (!is_worth_while(s, n) && !has_run(l, t))
        return 0;
    if (begin(l, t, graph) || answer_known(l, question, n, arena, &left))
        return -1;
    if (!left || !is_worth_while(s, left))
        return 0;
    return make_run(l, question, n) || answer_known(l, question, n, arena, &left) ? -1
                                                                                  : 0;
}
