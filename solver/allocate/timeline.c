/* timeline.c - see timeline.h.
 *
 * A node is a line: the times at which what is free of it changes, and what is free from
 * there to the next; so is a set of nodes, with the sum of their GPUs.  Where a shape fits on a node for as long as it runs is a list of
 * windows, and the earliest start of several nodes is the first time that lies in as many of
 * their windows. */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#include "topt_array.h"
#include "topt_minmax.h"

enum { FIRST_POINTS = 6, FIRST_WINDOWS = 256 };

struct point {
    int64_t at_s;
    struct topt_alloc_size left;
};

struct line {
    struct point *point;
    size_t n, room;
    int is_own;     /* 'point' is no part of the pool */
    int is_changed; /* since the timeline was last as another one */
};

/* The shape may start on the node at any time from 'from_s' to 'to_s'. */
struct window {
    int64_t from_s, to_s, gpus; /* that are left when it opens */
    size_t node;
};

struct timeline {
    const struct topt_alloc_problem *p;
    struct line *line;  /* of each node, and behind them of each set */
    struct point *pool; /* the first points of all lines */
    size_t nlines;
    size_t *changed, nchanged; /* lines */
    int64_t looked;
    struct window *window;
    int64_t *close; /* of the windows, in order */
    size_t nwindows, room, room_close;
    int failed;
};

int timeline_failed(const struct timeline *t)
{
    return t->failed;
}

void timeline_free(struct timeline *t)
{
    if (!t)
        return;
    for (size_t i = 0; t->line && i < t->nlines; i++)
        if (t->line[i].is_own)
            free(t->line[i].point);
    free(t->line);
    free(t->pool);
    free(t->changed);
    free(t->window);
    free(t->close);
    free(t);
}

/* ---- what is free ------------------------------------------------------------------ */

/* The last point at or before this time. */
static size_t find(const struct line *l, int64_t at_s)
{
    size_t low = 0, high = l->n;
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (l->point[mid].at_s <= at_s)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static int make_room(struct timeline *t, struct line *l)
{
    if (l->n < l->room)
        return 0;
    struct point *more = calloc(2 * l->room, sizeof *more);
    if (!more) {
        t->failed = 1;
        return -1;
    }
    memcpy(more, l->point, l->n * sizeof *more);
    if (l->is_own)
        free(l->point);
    l->point = more;
    l->room *= 2;
    l->is_own = 1;
    return 0;
}

/* The point at just this time, which is made where there is none. */
static size_t split(struct timeline *t, struct line *l, int64_t at_s)
{
    size_t i = find(l, at_s);
    if (l->point[i].at_s >= at_s)
        return i;
    if (make_room(t, l))
        return i;
    memmove(l->point + i + 2, l->point + i + 1, (l->n - i - 1) * sizeof *l->point);
    l->point[i + 1] = (struct point){at_s, l->point[i].left};
    l->n++;
    return i + 1;
}

static int is_same(const struct topt_alloc_size *a, const struct topt_alloc_size *b)
{
    return a->gpus == b->gpus && a->cpus == b->cpus && a->memory_mib == b->memory_mib;
}

/* A point that changes nothing goes. */
static void join(struct line *l, size_t i)
{
    if (!i || i >= l->n || !is_same(&l->point[i - 1].left, &l->point[i].left))
        return;
    memmove(l->point + i, l->point + i + 1, (l->n - i - 1) * sizeof *l->point);
    l->n--;
}

static void change_line(struct timeline *t, size_t line, const struct topt_alloc_size *by,
                        int64_t from_s, int64_t to_s, int sign)
{
    struct line *l = &t->line[line];
    if (from_s >= to_s)
        return;
    if (!l->is_changed)
        t->changed[t->nchanged++] = line;
    l->is_changed = 1;
    size_t first = split(t, l, from_s), last = split(t, l, to_s);
    for (size_t i = first; i < last && !t->failed; i++) {
        l->point[i].left.gpus += sign * by->gpus;
        l->point[i].left.cpus += sign * by->cpus;
        l->point[i].left.memory_mib += sign * by->memory_mib;
    }
    join(l, last);
    join(l, first);
}

/* Of a node and its set. */
static void change(struct timeline *t, size_t node, const struct topt_alloc_size *by,
                   int64_t from_s, int64_t to_s, int sign)
{
    change_line(t, node, by, from_s, to_s, sign);
    if (t->p->reserve_permille)
        change_line(t, t->p->nnodes + (size_t)t->p->node[node].set, by, from_s, to_s,
                    sign);
}

/* What the shape takes of this node. */
static const struct topt_alloc_size *taken(const struct timeline *t, size_t node,
                                           const struct topt_alloc_shape *s)
{
    return s->is_whole ? &t->p->node[node].has : &s->each;
}

void timeline_move(struct timeline *t, const struct topt_alloc_shape *s,
                   const size_t *node, int64_t start_s, int sign)
{
    for (int64_t i = 0; i < s->nodes; i++)
        change(t, node[i], taken(t, node[i], s), start_s, start_s + s->run_s, sign);
}

static void put_point(struct timeline *t, struct line *l, struct point p)
{
    if (!make_room(t, l))
        l->point[l->n++] = p;
}

static void put_nodes(struct timeline *t)
{
    const struct topt_alloc_problem *p = t->p;
    for (size_t i = 0; i < t->nlines; i++) {
        t->line[i].point = t->pool + i * FIRST_POINTS;
        t->line[i].room = FIRST_POINTS;
        put_point(t, &t->line[i],
                  (struct point){p->now_s, i < p->nnodes
                                               ? p->node[i].has
                                               : (struct topt_alloc_size){0, 0, 0}});
    }
    for (size_t i = 0; i < p->nnodes; i++)
        t->line[p->nnodes + (size_t)p->node[i].set].point[0].left.gpus +=
            p->node[i].has.gpus;
}

static int by_time(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

/* GPUs that are free of a set, from what is held of its nodes; 'room' has 2 places for each
 * held. */
static void sum_up(struct timeline *t, size_t set, struct point *room)
{
    const struct topt_alloc_problem *p = t->p;
    struct line *l = &t->line[p->nnodes + set];
    size_t n = 0;
    for (size_t i = 0; i < p->nheld; i++) {
        const struct topt_alloc_held *h = &p->held[i];
        int64_t from = topt_max(h->from_s, p->now_s);
        if ((size_t)p->node[h->node].set != set || from >= h->to_s)
            continue;
        room[n++] = (struct point){from, {-h->takes.gpus, 0, 0}};
        room[n++] = (struct point){h->to_s, {h->takes.gpus, 0, 0}};
    }
    qsort(room, n, sizeof *room, by_time);
    for (size_t i = 0; i < n && !t->failed; i++) {
        struct point next = l->point[l->n - 1];
        next.left.gpus += room[i].left.gpus;
        if (next.at_s == room[i].at_s) {
            l->point[l->n - 1] = next;
        } else {
            next.at_s = room[i].at_s;
            put_point(t, l, next);
        }
    }
}

static int put_held(struct timeline *t)
{
    const struct topt_alloc_problem *p = t->p;
    for (size_t i = 0; !t->failed && i < p->nheld; i++) {
        const struct topt_alloc_held *h = &p->held[i];
        change_line(t, h->node, &h->takes, topt_max(h->from_s, p->now_s), h->to_s, -1);
    }
    if (!p->reserve_permille)
        return 0;
    struct point *room = calloc(2 * p->nheld + 1, sizeof *room);
    for (size_t k = 0; room && k < t->nlines - p->nnodes; k++)
        sum_up(t, k, room);
    free(room);
    return room ? 0 : -1;
}

struct timeline *timeline_new(const struct topt_alloc_problem *p)
{
    struct timeline *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->p = p;
    t->nlines = p->nnodes;
    for (size_t i = 0; i < p->nnodes; i++)
        if (t->nlines <= p->nnodes + (size_t)p->node[i].set)
            t->nlines = p->nnodes + (size_t)p->node[i].set + 1;
    t->line = calloc(t->nlines + 1, sizeof *t->line);
    t->pool = calloc(t->nlines + 1, FIRST_POINTS * sizeof *t->pool);
    t->changed = calloc(t->nlines + 1, sizeof *t->changed);
    t->failed = !t->line || !t->changed || !t->pool;
    if (!t->failed)
        put_nodes(t);
    if (t->failed || put_held(t) || t->failed) {
        timeline_free(t);
        return NULL;
    }
    return t;
}

void timeline_reset(struct timeline *t, const struct timeline *as)
{
    for (size_t i = 0; i < t->nchanged && !t->failed; i++) {
        struct line *l = &t->line[t->changed[i]];
        const struct line *from = &as->line[t->changed[i]];
        l->n = 0;
        l->is_changed = 0;
        for (size_t k = 0; k < from->n && !t->failed; k++)
            put_point(t, l, from->point[k]);
    }
    t->nchanged = 0;
}

int64_t timeline_looked(const struct timeline *t)
{
    return t->looked;
}

int64_t timeline_least(const struct timeline *t, const struct topt_alloc_shape *s,
                       int64_t from_s)
{
    int64_t sum = 0;
    for (size_t k = t->p->nnodes; k < t->nlines; k++) {
        const struct line *l = &t->line[k];
        int64_t least = INT64_MAX;
        if (!s->serves[k - t->p->nnodes])
            continue;
        for (size_t i = find(l, from_s); i < l->n && l->point[i].at_s < from_s + s->run_s;
             i++)
            least = topt_min(least, l->point[i].left.gpus);
        sum += least;
    }
    return sum;
}

/* ---- when a shape fits ------------------------------------------------------------- */

static int has(const struct topt_alloc_size *left, const struct topt_alloc_size *need)
{
    return left->gpus >= need->gpus && left->cpus >= need->cpus &&
           left->memory_mib >= need->memory_mib;
}

static void add_window(struct timeline *t, struct window w)
{
    if (TOPT_ROOM(t->window, t->nwindows, t->room, FIRST_WINDOWS))
        t->failed = 1;
    else
        t->window[t->nwindows++] = w;
}

/* The node's windows that open by 'latest_s'; returns when the first does, or 'latest_s'. */
static int64_t scan(struct timeline *t, size_t node, const struct topt_alloc_shape *s,
                    int64_t from_s, int64_t latest_s)
{
    const struct line *l = &t->line[node];
    const struct topt_alloc_size *need = taken(t, node, s);
    int64_t first = latest_s;
    if (!has(&t->p->node[node].has, need) || !s->serves[t->p->node[node].set])
        return first;
    for (size_t i = find(l, from_s); i < l->n && !t->failed; i++, t->looked++) {
        int64_t opens = topt_max(l->point[i].at_s, from_s);
        if (opens > latest_s)
            break;
        if (!has(&l->point[i].left, need))
            continue;
        size_t end = i + 1;
        while (end < l->n && has(&l->point[end].left, need))
            end++;
        int64_t closes = end == l->n ? INT64_MAX : l->point[end].at_s - s->run_s;
        if (closes >= opens) {
            add_window(t, (struct window){opens, closes, l->point[i].left.gpus, node});
            first = topt_min(first, opens);
            if (s->nodes == 1)
                break;
        }
        i = end;
    }
    return first;
}

static int by_opening(const void *a, const void *b)
{
    const struct window *x = a, *y = b;
    return x->from_s != y->from_s ? (x->from_s > y->from_s) - (x->from_s < y->from_s)
                                  : (x->node > y->node) - (x->node < y->node);
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The first time from 'from_s' on that lies in 'n' windows, or -1. */
static int64_t first_common(struct timeline *t, int64_t n, int64_t from_s)
{
    size_t closed = 0;
    int64_t open = 0;
    for (size_t i = 0; i < t->nwindows && open < n; i++)
        open += t->window[i].from_s == from_s;
    if (open == n)
        return from_s;
    while (t->room_close < t->nwindows)
        if (TOPT_ROOM(t->close, t->room_close, t->room_close, FIRST_WINDOWS)) {
            t->failed = 1;
            return -1;
        }
    for (size_t i = 0; i < t->nwindows; i++)
        t->close[i] = t->window[i].to_s;
    qsort(t->window, t->nwindows, sizeof *t->window, by_opening);
    qsort(t->close, t->nwindows, sizeof *t->close, by_number);
    for (size_t i = 0; i < t->nwindows; i++) {
        int64_t at = t->window[i].from_s;
        while (t->close[closed] < at)
            closed++;
        if ((int64_t)(i + 1 - closed) >= n)
            return at;
    }
    return -1;
}

static int is_fuller(const struct window *a, const struct window *b)
{
    return a->gpus != b->gpus ? a->gpus < b->gpus : a->node < b->node;
}

/* The fullest nodes with a window at this time; the first ones need no order of the rest. */
static void choose(struct timeline *t, const struct topt_alloc_shape *s, int64_t at_s,
                   size_t *ret_node)
{
    size_t n = 0;
    for (size_t i = 0; i < t->nwindows; i++) {
        struct window w = t->window[i];
        const struct line *l = &t->line[w.node];
        if (w.from_s > at_s || w.to_s < at_s)
            continue;
        w.gpus = l->point[find(l, at_s)].left.gpus;
        t->window[n++] = w;
    }
    for (size_t i = 0; i < (size_t)s->nodes; i++) {
        size_t best = i;
        for (size_t k = i + 1; k < n; k++)
            if (is_fuller(&t->window[k], &t->window[best]))
                best = k;
        struct window w = t->window[best];
        t->window[best] = t->window[i];
        t->window[i] = w;
        ret_node[i] = w.node;
    }
}

int64_t timeline_earliest(struct timeline *t, const struct topt_alloc_shape *s,
                          int64_t from_s, int64_t latest_s, size_t *ret_node)
{
    t->nwindows = 0;
    for (size_t i = 0; i < t->p->nnodes && !t->failed; i++) {
        int64_t first = scan(t, i, s, from_s, latest_s);
        if (s->nodes == 1) /* later ones come into no question */
            latest_s = topt_min(latest_s, first);
    }
    int64_t at = -1;
    if (!t->failed && (int64_t)t->nwindows >= s->nodes)
        at = s->nodes > 1 ? first_common(t, s->nodes, from_s) : latest_s;
    if (at >= 0)
        choose(t, s, at, ret_node);
    return at;
}
