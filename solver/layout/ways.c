/* ways.c - the cheapest way from one layout to another, without names.
 *
 * Layouts of a tensor are the nodes of a graph whose edges are single collectives (or the
 * free local slice); a redistribution is a shortest path (TensorOpt, section 4.3).  The graph is
 * in atlas.c, what a move costs in tariff.c, and in bound.c what is left to the targets at least.
 *
 * One search a source finds the ways to all of its targets: A* (Hart, Nilsson and Raphael, 1968), which
 * settles next the layout whose way, with what is left at least to the nearest target that is still
 * open, is cheapest.  When a target is passed by, it is open no more: bounds to the others
 * are larger, and what waits with an earlier one is looked at again when it is its turn.
 *
 * A target is closed only when all that waits costs more: then every layout on any way that is as
 * cheap is settled, and of these ways the same is taken, whatever was asked beside it.
 *
 * Where there are few layouts and many targets, all ways from many sources are found at once instead
 * (lanes.c). */
#include "ways.h"

#include <stdlib.h>

#include "bound.h"
#include "heap.h"
#include "lanes.h"

enum {
    NONE = TOPT_ATLAS_NONE,
    DONE = 1,          /* in a stamp */
    FEW_QUESTIONS = 8, /* of one tariff: bounds for less would cost more than they save */
    KEPT = 4           /* tariffs: who asks again and again asks of these */
};

/* What atlases may take before they are begun anew, as a sum. */
static const int64_t ATLAS_BYTES = 128 << 20;

/* What the search knows of a layout. */
struct reached {
    int64_t key;
    uint32_t stamp; /* of the source, DONE where it is settled; else nothing is known */
    int32_t prev;
};

/* Of a layout, under this tariff. */
struct spot {
    int64_t rest;    /* to the nearest open target, at least */
    int32_t nearest; /* which was this */
    uint32_t seen;   /* stamps of the source: these are known */
    uint32_t open;   /* it is a target that is open */
    uint32_t placed; /* stamp of the tariff: 'place' is known */
    struct topt_bound_place place;
};

/* A tariff and when it was used last. */
struct kept {
    struct topt_tariff *tariff; /* NULL: none yet */
    uint64_t used;
};

struct topt_ways {
    struct topt_times *times;
    struct kept kept[KEPT];
    uint64_t used;
    struct topt_tariff *tariff; /* one of those */
    struct topt_bound *bound;   /* NULL: not needed yet */
    struct topt_lanes *lanes;
    struct topt_arena *arena;
    struct topt_atlas atlas[TOPT_WAY_GROUPS + 1][TOPT_MAX_RANK + 1];

    /* questions of one tariff */
    struct topt_atlas *on;
    uint32_t tariff_stamp;
    int aims, bounded; /* searches go by bounds; these are known */
    struct spot *spot; /* by layout, as the next */
    struct reached *from;
    int nspots;

    /* the search */
    struct topt_heap heap;
    uint32_t stamp;
    int32_t *target; /* those that are open */
    struct topt_bound_place *place;
    int ntargets, target_cap;
    int64_t nearest, farthest; /* of the open targets, as far as is known */
    int failed;                /* memory was short */
};

struct topt_time topt_ways_time(struct topt_ways *w, enum topt_collective c, int nodes,
                                int per_node, int64_t bytes)
{
    return topt_times_of(w->times, c, nodes, per_node, bytes);
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

/* ---- what is known of layouts ------------------------------------------------------------------- */

static int spots_fit(struct topt_ways *w)
{
    size_t n = (size_t)w->on->spot_cap, old = (size_t)w->nspots;
    struct spot *spot = realloc(w->spot, n * sizeof *spot);
    if (spot)
        w->spot = spot;
    struct reached *from = realloc(w->from, n * sizeof *from);
    if (from)
        w->from = from;
    if (!spot || !from)
        return -1;
    memset(spot + old, 0, (n - old) * sizeof *spot);
    memset(from + old, 0, (n - old) * sizeof *from);
    w->nspots = (int)n;
    return 0;
}

/* Make room for what is known of new layouts. */
static void fit(struct topt_ways *w)
{
    w->failed |= w->nspots < w->on->nspots && spots_fit(w);
}

/* A layout's number, with room for what is known of it. */
static int32_t number(struct topt_ways *w, uint64_t state)
{
    int32_t spot = topt_atlas_number(w->on, state);
    fit(w);
    w->failed |= spot == NONE;
    return w->failed ? NONE : spot;
}

static const struct topt_bound_place *place_of(struct topt_ways *w, int32_t spot)
{
    struct spot *x = &w->spot[spot];
    if (x->placed != w->tariff_stamp)
        w->failed |= topt_bound_place(w->bound, w->on->spot[spot].state, &x->place) != 0;
    x->placed = w->tariff_stamp;
    return &x->place;
}

static int known(const struct topt_ways *w, int32_t spot)
{
    return (w->from[spot].stamp & ~(uint32_t)DONE) == w->stamp;
}

/* ---- the search ------------------------------------------------------------------------------------- */

static int is_open(const struct topt_ways *w, int32_t target)
{
    return w->spot[target].open == w->stamp;
}

/* Is its bound that to a target that was closed since?  Else none to another is smaller. */
static int is_late(const struct topt_ways *w, int32_t spot)
{
    return w->spot[spot].seen != w->stamp || !is_open(w, w->spot[spot].nearest);
}

/* Of a way by there to the nearest open target, at least, as was known last. */
static int64_t key_through(const struct topt_ways *w, int32_t spot)
{
    return topt_key_sum(w->from[spot].key, w->spot[spot].rest);
}

/* Let a layout wait for its turn. */
static void push(struct topt_ways *w, int32_t spot)
{
    struct spot *x = &w->spot[spot];
    if (is_late(w, spot)) {
        int nearest = 0;
        x->rest = w->aims ? topt_bound_of(w->bound, place_of(w, spot), &nearest) : 0;
        x->nearest = w->target[nearest];
        x->seen = w->stamp;
        w->failed |= x->rest < 0;
    }
    int64_t key = key_through(w, spot);
    if (key <= w->farthest)
        w->failed |= topt_heap_push(&w->heap, key, spot) != 0;
}

/* The key of the way to the i-th open target, as far as is known. */
static int64_t way_to(const struct topt_ways *w, int i)
{
    return known(w, w->target[i]) ? w->from[w->target[i]].key : TOPT_KEY_FAR;
}

/* How far the open targets are now. */
static void look_at_targets(struct topt_ways *w)
{
    w->nearest = TOPT_KEY_FAR;
    w->farthest = 0;
    for (int i = 0; i < w->ntargets; i++) {
        int64_t key = way_to(w, i);
        w->nearest = key < w->nearest ? key : w->nearest;
        w->farthest = key > w->farthest ? key : w->farthest;
    }
}

/* Of equal ways the one whose last stop is cheapest, then first. */
static int comes_earlier(const struct topt_ways *w, int32_t prev, int32_t than)
{
    int64_t key = w->from[prev].key, other = w->from[than].key;
    return key != other ? key < other : w->on->spot[prev].state < w->on->spot[than].state;
}

static inline void go(struct topt_ways *w, int32_t at, int64_t key, int32_t spot)
{
    struct reached *x = &w->from[spot];
    if (known(w, spot)) {
        if (x->key < key) /* as that of all who are settled */
            return;
        if (x->key == key) {
            if (comes_earlier(w, at, x->prev))
                x->prev = at;
            return;
        }
    }
    *x = (struct reached){key, w->stamp, at};
    if (is_open(w, spot))
        look_at_targets(w);
    push(w, spot);
}

static void settle(struct topt_ways *w, int32_t spot)
{
    struct topt_atlas_moves m = topt_tariff_moves(w->tariff, spot);
    const int64_t *step = topt_tariff_keys(w->tariff);
    const struct topt_atlas *a = w->on;
    int64_t here = w->from[spot].key;
    w->failed |= topt_tariff_failed(w->tariff);
    fit(w);
    if (w->failed)
        return;
    w->from[spot].stamp |= DONE;
    for (int32_t i = m.first; i < m.first + m.n; i++) {
        const struct topt_atlas_class *c = &a->class[i];
        int64_t key = topt_key_sum(here, step[i]);
        if (step[i] == NONE)
            continue;
        for (int k = 0; k < c->narcs; k++)
            go(w, spot, key, a->arc[c->arc + k]);
    }
}

/* Close the targets that all that waits is dearer than. */
static void close_before(struct topt_ways *w, int64_t key)
{
    for (int i = 0; i < w->ntargets;) {
        if (way_to(w, i) >= key) {
            i++;
            continue;
        }
        w->spot[w->target[i]].open = 0;
        if (w->aims)
            topt_bound_drop(w->bound, i);
        w->target[i] = w->target[--w->ntargets];
    }
    look_at_targets(w);
}

static void search(struct topt_ways *w)
{
    while (w->heap.n && w->ntargets && !w->failed) {
        if (w->heap.at[0].key > w->nearest) {
            close_before(w, w->heap.at[0].key);
            continue;
        }
        struct topt_heap_entry e = topt_heap_pop(&w->heap);
        int32_t spot = e.spot;
        if ((w->from[spot].stamp & DONE) || e.key != key_through(w, spot))
            continue; /* it was pushed again */
        if (is_late(w, spot))
            push(w, spot);
        else
            settle(w, spot);
    }
}

/* ---- questions ---------------------------------------------------------------------------------------- */

struct topt_ways *topt_ways_create(const struct topt_hw *hw, const struct topt_mesh *mesh)
{
    struct topt_ways *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->times = topt_times_create(hw, mesh);
    w->lanes = topt_lanes_create();
    w->arena = topt_arena_create(0);
    if (w->times && w->lanes && w->arena)
        return w;
    topt_ways_destroy(w);
    return NULL;
}

static void forget(struct topt_ways *w)
{
    for (int g = 0; g <= TOPT_WAY_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            topt_atlas_fini(&w->atlas[g][d]);
    for (int i = 0; i < KEPT; i++)
        if (w->kept[i].tariff)
            topt_tariff_end(w->kept[i].tariff);
    if (w->lanes)
        topt_lanes_forget(w->lanes);
    free(w->spot);
    free(w->from);
    w->spot = NULL;
    w->from = NULL;
    w->nspots = 0;
    w->stamp = w->tariff_stamp = 0;
}

static int64_t atlas_bytes(const struct topt_ways *w)
{
    int64_t bytes = 0;
    for (int g = 0; g <= TOPT_WAY_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            bytes += topt_atlas_bytes(&w->atlas[g][d]);
    return bytes;
}

void topt_ways_destroy(struct topt_ways *w)
{
    if (!w)
        return;
    forget(w);
    for (int i = 0; i < KEPT; i++)
        topt_tariff_destroy(w->kept[i].tariff);
    topt_bound_destroy(w->bound);
    topt_lanes_destroy(w->lanes);
    topt_times_destroy(w->times);
    topt_arena_destroy(w->arena);
    free(w->heap.at);
    free(w->target);
    free(w->place);
    free(w);
}

/* The tariff that was not used for longest becomes the source's. */
static int take_tariff(struct topt_ways *w, const struct topt_way_source *s)
{
    struct kept *x = &w->kept[0];
    for (int i = 1; i < KEPT; i++)
        if (w->kept[i].used < x->used)
            x = &w->kept[i];
    if (!x->tariff && !(x->tariff = topt_tariff_create(w->times)))
        return -1;
    topt_lanes_drop(w->lanes, x->tariff);
    topt_tariff_begin(x->tariff, s, w->on);
    x->used = ++w->used;
    w->tariff = x->tariff;
    return 0;
}

/* A source's tariff, if it is known. */
static int find_tariff(struct topt_ways *w, const struct topt_way_source *s)
{
    for (int i = 0; i < KEPT; i++)
        if (w->kept[i].tariff && topt_tariff_is(w->kept[i].tariff, s)) {
            w->kept[i].used = ++w->used;
            w->tariff = w->kept[i].tariff;
            return 1;
        }
    return 0;
}

static int begin_tariff(struct topt_ways *w, const struct topt_way_source *s)
{
    if (w->stamp > UINT32_MAX / 2 || atlas_bytes(w) > ATLAS_BYTES)
        forget(w);
    w->on = &w->atlas[s->ngroups][s->ndims];
    w->on->ngroups = s->ngroups;
    w->on->ndims = s->ndims;
    w->tariff_stamp++;
    w->failed = w->bounded = 0;
    return find_tariff(w, s) ? 0 : take_tariff(w, s);
}

static int targets_fit(struct topt_ways *w, int n)
{
    if (n <= w->target_cap)
        return 0;
    int32_t *target = realloc(w->target, (size_t)n * sizeof *target);
    if (target)
        w->target = target;
    struct topt_bound_place *place = realloc(w->place, (size_t)n * sizeof *place);
    if (place)
        w->place = place;
    w->target_cap = target && place ? n : w->target_cap;
    return target && place ? 0 : -1;
}

/* Aim from a source at the targets of its questions. */
static int begin_source(struct topt_ways *w, struct topt_way_question *const *question,
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
        w->spot[w->target[i]].open = w->stamp;
        if (w->aims)
            w->place[i] = *place_of(w, w->target[i]);
    }
    int32_t root = number(w, question[0]->source.from);
    if (w->failed || (w->aims && topt_bound_aim(w->bound, w->place, n)))
        return -1;
    w->from[root] = (struct reached){0, w->stamp, NONE};
    look_at_targets(w);
    push(w, root);
    return w->failed ? -1 : 0;
}

static int read_steps(const struct topt_ways *w, const uint16_t *size, int32_t spot,
                      struct topt_way_step *step)
{
    int32_t stop[1 << TOPT_KEY_BITS];
    int len = topt_key_moves(w->from[spot].key);
    for (int i = len; i >= 0; spot = w->from[spot].prev, i--)
        stop[i] = spot;
    return topt_atlas_steps(w->on, size, stop, len, step);
}

static int answer(struct topt_ways *w, struct topt_way_question *q)
{
    int32_t spot = number(w, q->to);
    if (w->failed || !known(w, spot))
        return -1;
    int64_t key = w->from[spot].key;
    q->way.step = TOPT_NEW(w->arena, topt_key_moves(key), struct topt_way_step);
    if (!q->way.step)
        return -1;
    q->way.ns = key < TOPT_KEY_FAR ? key >> TOPT_KEY_BITS : TOPT_ROUTE_FAR;
    q->way.nsteps = read_steps(w, q->source.size, spot, q->way.step);
    return 0;
}

/* Bounds are large, and many searches do without. */
static int begin_bound(struct topt_ways *w, const struct topt_way_source *s)
{
    if (!w->bound && !(w->bound = topt_bound_create()))
        return -1;
    w->bounded = 1;
    return topt_bound_begin(w->bound, w->tariff, s);
}

/* Questions of one source; those of its lane that went too far among them. */
static int answer_source(struct topt_ways *w, struct topt_way_question *const *question,
                         int n)
{
    if (w->aims && !w->bounded && begin_bound(w, &question[0]->source))
        return -1;
    if (begin_source(w, question, n))
        return -1;
    search(w);
    for (int i = 0; i < n; i++)
        if (answer(w, question[i]))
            return -1;
    return 0;
}

static int is_source_after(struct topt_way_question *const *question, int i)
{
    return i > 0 && question[i]->source.from != question[i - 1]->source.from;
}

/* Questions of as many sources at a time as there are lanes. */
static int ask_lanes(struct topt_ways *w, struct topt_way_question *const *question,
                     int n)
{
    for (int i = 0, end; i < n; i = end) {
        int sources = 1;
        for (end = i + 1; end < n; end++)
            if (is_source_after(question, end) && ++sources > TOPT_LANES)
                break;
        if (topt_lanes_answer(w->lanes, w->tariff, w->on, question + i, end - i,
                              w->arena))
            return -1;
    }
    return 0;
}

static int count_open(struct topt_way_question *const *question, int n)
{
    int open = 0;
    for (int i = 0; i < n; i++)
        open += !question[i]->way.step;
    return open;
}

int topt_ways_answer(struct topt_ways *w, struct topt_way_question *const *question,
                     int n, struct topt_error *err)
{
    for (int i = 0; i < n; i++)
        question[i]->way.step = NULL;
    int bad = n && (begin_tariff(w, &question[0]->source) || ask_lanes(w, question, n));
    int open = bad ? 0 : count_open(question, n);
    w->aims = open >= FEW_QUESTIONS;
    for (int i = 0, end; i < n && open && !bad; i = end) {
        for (end = i + 1; end < n && !is_source_after(question, end);)
            end++;
        bad =
            count_open(question + i, end - i) && answer_source(w, question + i, end - i);
    }
    return bad ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for a redistribution") : 0;
}
