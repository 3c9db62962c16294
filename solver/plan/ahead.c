/* ahead.c - what can't be part of anything new is left out before edges are priced.
 *
 * Where strategies are known already (of a smaller space, which take a hundredth of the time), most
 * configurations of a large space can't be part of any that is better in memory or time: what all strategies
 * with them weigh at least, memory and time counted together, is more than any such may. To see that
 * takes no tables: an edge's weight follows from the layouts at its ends and from what moves between them take at
 * least (layout/orbit.c), and is worked out where it is looked at; operators have such floors for the moves inside of
 * them, too.
 *
 *     known  o                  the corners between known points are all that is left for new ones;
 *            |___ corner        for a group of neighbouring corners, and a weighing that suits it, a
 *                o              configuration goes whose lightest strategy weighs more than the heaviest
 *                |___           of these; what stays for some group stays
 *                    o
 *
 * When floors tell no more, operators that are left get exact prices for the moves inside of them, and those between
 * them where a bound hangs on them: of an edge's entries that of the lightest, until that is exact or beyond all
 * corners.  Where ways are quickly found that may show that nothing is left.
 *
 * The bounds are of messages that are passed along the places, forward and back (sequential tree-reweighted
 * message passing: Kolmogorov, Convergent tree-reweighted message passing for energy minimization, 2006).
 * Weight is moved from places onto edges and on to the places at their other ends, so that every strategy
 * weighs the same as before and nothing weighs less than nothing; what all configurations of a place have in
 * common goes into the bound.  Then a strategy with a configuration weighs no less than
 * the bound and what that has left.  On trees that is exact. */
#include "problem_impl.h"
#include "run.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUPS = 16,      /* of corners, at most */
    FLOOR_SWEEPS = 2, /* forward or back; more hardly raise a bound */
    SWEEPS = 4, /* with those in which moves that a bound hangs on have exact prices */
    MOST_ENTRIES = 1 << 25, /* looked at one by one, left by places alone */
    HALVINGS = 8 /* of how much memory counts, in looking for the balance of one corner */
};

/* A place: what the search chooses for. */
struct spot {
    int n, nparts;
    struct part *part;
    /* The first place of the same nodes, which has what follows for all, and how many those are. */
    int like, times;
    struct topt_cost *cost;
    int64_t *transient, *waiting;
    double *left;           /* by configuration: weight that was not moved on */
    uint8_t *out;           /* of this group */
    uint8_t *stays;         /* for a group before */
    int first[2], nties[2]; /* its ties to later places, and to earlier ones */
};

/* One end of a tie. */
struct end {
    int place, nclasses;
    const int32_t *class; /* by configuration */
    const struct topt_edge_end *at;
    int32_t *number; /* of the layouts of value and gradient, by class */
    double *moved;   /* weight that was moved onto the tie, by class */
};

/* Edges between two places that have one table. */
struct tie {
    struct end end[2]; /* producer, consumer */
    int next[2];       /* of the ties of the earlier place, and of the later one */
    int table, trained;
    double times;
    struct topt_moves *moves;
};

/* A class and the weight that comes with it. */
struct weighed {
    double weight;
    int class;
};

struct ahead {
    struct topt_problem *p;
    struct topt_error *err;
    const struct topt_aim *aim;
    struct spot *spot;
    struct tie *tie;
    int nties, nclasses; /* most of an end */
    int ncorners;
    struct topt_cost *corner; /* INT64_MAX: unbounded */
    double by_memory, by_time, bound, most;
    int exact;              /* what is lightest has exact prices */
    double *given, *passed; /* scratch, by class */
    double *room;           /* what may be passed: a class that is passed more goes */
    struct weighed *order, *found;
    int *listed, *open;
    double *before; /* scratch, by configuration */
};

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the problem");
}

/* ---- places and ties ----------------------------------------------------------------------- */

static void add_part(struct spot *s, int family)
{
    int k = 0;
    while (k < s->nparts && s->part[k].family != family)
        k++;
    if (k == s->nparts)
        s->part[s->nparts++] = (struct part){.family = family};
    s->part[k].times++;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Sums over the nodes of a place; what is made again counts once.  1 where they overflow. */
static int add_up(const struct topt_problem *p, struct spot *s)
{
    int bad = 0;
    for (int k = 0; k < s->nparts; k++) {
        const struct family *f = &p->family[s->part[k].family];
        for (int c = 0; c < s->n; c++) {
            struct topt_cost all;
            bad |=
                __builtin_mul_overflow(f->cost[c].memory, s->part[k].times, &all.memory);
            bad |= __builtin_mul_overflow(f->cost[c].time, s->part[k].times, &all.time);
            bad |=
                __builtin_add_overflow(s->cost[c].memory, all.memory, &s->cost[c].memory);
            bad |= __builtin_add_overflow(s->cost[c].time, all.time, &s->cost[c].time);
            bad |= __builtin_add_overflow(
                s->cost[c].memory, k ? 0 : f->remade[c] / f->among, &s->cost[c].memory);
            s->transient[c] = larger(s->transient[c], f->transient[c]);
            s->waiting[c] = larger(s->waiting[c], f->waiting[c]);
        }
    }
    return bad;
}

static int same_parts(const struct spot *a, const struct spot *b)
{
    int same = a->nparts == b->nparts;
    for (int k = 0; same && k < a->nparts; k++)
        same = a->part[k].family == b->part[k].family &&
               a->part[k].times == b->part[k].times;
    return same;
}

static void find_like(struct spot *spot, int i)
{
    int like = 0;
    while (spot[like].like != like || !same_parts(&spot[like], &spot[i]))
        like++;
    spot[i].like = like;
    spot[like].times++;
}

static int spot_init(const struct topt_problem *p, struct spot *spot, int i)
{
    struct spot *s = &spot[i], *like;
    s->n = p->family[s->part[0].family].n;
    s->like = i;
    find_like(spot, i);
    like = &spot[s->like];
    size_t n = (size_t)s->n + 1;
    s->cost = like == s ? calloc(n, sizeof *s->cost) : like->cost;
    s->transient = like == s ? calloc(n, sizeof *s->transient) : like->transient;
    s->waiting = like == s ? calloc(n, sizeof *s->waiting) : like->waiting;
    s->left = calloc(n, sizeof *s->left);
    s->out = calloc(n, 1);
    s->stays = calloc(n, 1);
    s->first[0] = s->first[1] = -1;
    return s->cost && s->transient && s->waiting && s->left && s->out && s->stays ? 0
                                                                                  : -1;
}

static int make_spots(struct ahead *h)
{
    const struct topt_problem *p = h->p;
    int *nodes = calloc((size_t)p->nplaces + 1, sizeof *nodes), bad = !nodes;
    h->spot = calloc((size_t)p->nplaces + 1, sizeof *h->spot);
    bad |= !h->spot;
    for (int i = 0; !bad && i < p->nnodes; i++)
        nodes[p->node[i].place]++;
    for (int i = 0; !bad && i < p->nplaces; i++)
        bad = !(h->spot[i].part = calloc((size_t)nodes[i], sizeof *h->spot[i].part));
    for (int i = 0; !bad && i < p->nnodes; i++)
        add_part(&h->spot[p->node[i].place], p->node[i].family);
    for (int i = 0; !bad && i < p->nplaces; i++)
        bad = spot_init(p, h->spot, i);
    free(nodes);
    return bad ? no_memory(h->err) : 0;
}

static int end_init(struct ahead *h, struct tie *t, int k, int place,
                    const struct family *f, int input)
{
    struct end *e = &t->end[k];
    *e = (struct end){.place = place,
                      .nclasses = k ? f->nto[input] : f->nfrom,
                      .class = k ? f->to_class[input] : f->from_class,
                      .at = k ? f->to_end[input] : f->from_end};
    e->number = malloc(2 * ((size_t)e->nclasses + 1) * sizeof *e->number);
    e->moved = calloc((size_t)e->nclasses + 1, sizeof *e->moved);
    if (!e->number || !e->moved)
        return -1;
    for (int i = 0; i < e->nclasses; i++) {
        e->number[2 * i] = topt_moves_number(h->p, t->moves, &e->at[i].value);
        e->number[2 * i + 1] = topt_moves_number(h->p, t->moves, &e->at[i].grad);
        if (e->number[2 * i] < 0 || e->number[2 * i + 1] < 0)
            return -1;
    }
    h->nclasses = e->nclasses > h->nclasses ? e->nclasses : h->nclasses;
    return 0;
}

/* Is the tie's end 'k' the later place? */
static int is_later(const struct tie *t, int k)
{
    return t->end[k].place > t->end[!k].place;
}

static int add_tie(struct ahead *h, int from, int to, int table)
{
    struct topt_problem *p = h->p;
    const struct edge_table *e = &p->table[table];
    const struct family *a = &p->family[e->from], *b = &p->family[e->to];
    int tensor = a->op >= 0
                     ? p->k.model->op[a->op].operand[p->k.model->op[a->op].output].tensor
                     : a->tensor;
    struct tie *t = &h->tie[h->nties++];
    *t = (struct tie){.table = table,
                      .trained = p->k.model->tensor[tensor].needs_gradient};
    t->moves = topt_moves_of(p, tensor, h->err);
    if (!t->moves)
        return -1;
    if (end_init(h, t, 0, from, a, 0) || end_init(h, t, 1, to, b, e->input))
        return no_memory(h->err);
    for (int k = 0; k < 2; k++) {
        struct spot *s = &h->spot[t->end[k].place];
        int later = is_later(t, k);
        t->next[later] = s->first[later];
        s->first[later] = h->nties - 1;
        s->nties[later]++;
    }
    return 0;
}

static int find_tie(const struct ahead *h, int from, int to, int table)
{
    int later = from > to, i = h->spot[from].first[later];
    while (i >= 0 && (h->tie[i].end[0].place != from || h->tie[i].end[1].place != to ||
                      h->tie[i].table != table))
        i = h->tie[i].next[later];
    return i;
}

/* An edge from a place to itself costs nothing here. */
static int make_ties(struct ahead *h)
{
    const struct topt_problem *p = h->p;
    h->tie = calloc((size_t)p->nedges + 1, sizeof *h->tie);
    if (!h->tie)
        return no_memory(h->err);
    for (int i = 0; i < p->nedges; i++) {
        const struct edge *e = &p->edge[i];
        int from = p->node[e->from].place, to = p->node[e->to].place;
        if (from == to)
            continue;
        int t = find_tie(h, from, to, e->table);
        if (t < 0 && add_tie(h, from, to, e->table))
            return -1;
        h->tie[t < 0 ? h->nties - 1 : t].times++;
    }
    return 0;
}

/* ---- corners ------------------------------------------------------------------------------- */

/* What every strategy has in flight. */
static int64_t least_charge(const struct ahead *h)
{
    struct topt_caps all = {0, 0};
    for (int i = 0; i < h->p->nplaces; i++) {
        const struct spot *s = &h->spot[i];
        int64_t t = INT64_MAX, w = INT64_MAX;
        for (int c = 0; c < s->n; c++) {
            t = s->transient[c] < t ? s->transient[c] : t;
            w = s->waiting[c] < w ? s->waiting[c] : w;
        }
        all.transient = s->n ? larger(all.transient, t) : all.transient;
        all.crossing = s->n ? larger(all.crossing, w) : all.crossing;
    }
    return all.transient + topt_problem_crossing(h->p) * all.crossing;
}

static void add_corner(struct ahead *h, int64_t memory, int64_t time, int64_t charge)
{
    if (memory != INT64_MAX)
        memory -= charge;
    h->corner[h->ncorners++] = (struct topt_cost){memory, time};
}

/* Between known points, before the first and after the last; of the fastest, the limits. */
static int make_corners(struct ahead *h)
{
    const struct topt_aim *a = h->aim;
    int64_t charge = least_charge(h), time = a->time_limit ? a->time_limit : INT64_MAX;
    h->corner = calloc((size_t)a->nknown + 1, sizeof *h->corner);
    if (!h->corner)
        return no_memory(h->err);
    for (int i = 0; i < a->nknown; i++) {
        add_corner(h, a->known[i].memory - 1, time, charge);
        time = topt_search_missed(a->known[i].time, a->epsilon);
    }
    add_corner(h, a->memory_limit ? a->memory_limit : INT64_MAX, time, charge);
    return 0;
}

/* ---- weights ------------------------------------------------------------------------------- */

static double weight_of(const struct ahead *h, struct topt_cost c)
{
    return (h->by_memory > 0 ? h->by_memory * (double)c.memory : 0) +
           (h->by_time > 0 ? h->by_time * (double)c.time : 0);
}

/* The weight of an entry of a tie whose moves were asked for; INFINITY where there is none. */
static double edge_weight(const struct ahead *h, const struct tie *t, int i, int j)
{
    const struct end *from = &t->end[0], *to = &t->end[1];
    const int32_t *a = &from->number[2 * i], *b = &to->number[2 * j];
    struct topt_edge_alternative at[2];
    struct topt_move_cost there = topt_moves_at(t->moves, a[0], b[0]), back = {0};
    double least = INFINITY;
    if (t->trained)
        back = topt_moves_at(t->moves, b[1], a[1]);
    int n = topt_edge_alternatives(&h->p->k, &from->at[i], &to->at[j], a[0] == b[0],
                                   &there, t->trained ? &back : NULL, at);
    for (int k = 0; k < n; k++) {
        struct topt_cost c = {at[k].kept,
                              at[k].moves * there.network_ns + back.network_ns};
        least = fmin(least, t->times * weight_of(h, c));
    }
    return least;
}

/* What all configurations of a place, or of so many places, have in common goes into the bound; those that then
 * are beyond all corners go.  Places that have none left have an infinite weight. */
static void settle_spot(struct ahead *h, struct spot *s, int times)
{
    double least = INFINITY;
    for (int c = 0; c < s->n; c++)
        if (!s->out[c])
            least = s->left[c] < least ? s->left[c] : least;
    h->bound += times * least;
    for (int c = 0; c < s->n; c++) {
        s->left[c] -= s->out[c] ? 0 : least;
        s->out[c] |= !(h->bound + s->left[c] <= h->most);
    }
}

/* Places alone.  Those of the same nodes at once, unless each is looked at by itself: then edges have told which
 * configurations it has left. */
static void weigh_places(struct ahead *h, int each)
{
    h->bound = 0;
    for (int i = 0; i < h->p->nplaces; i++) {
        struct spot *s = &h->spot[i];
        for (int c = 0; (each || s->like == i) && c < s->n; c++)
            s->left[c] = weight_of(h, s->cost[c]);
    }
    /* The first time for the bound, the second time under all of it. */
    for (int i = 0; i < 2 * h->p->nplaces; i++) {
        int place = i % h->p->nplaces;
        struct spot *s = &h->spot[place];
        if (each || s->like == place)
            settle_spot(h, s, each ? 1 : s->times);
    }
}

static void begin(struct ahead *h)
{
    for (int i = 0; i < h->nties; i++)
        for (int k = 0; k < 2; k++)
            memset(h->tie[i].end[k].moved, 0,
                   (size_t)h->tie[i].end[k].nclasses * sizeof(double));
}

/* ---- operators' own moves ------------------------------------------------------------------- */

/* Those of a family's configurations that are left at a place. */
static void mark_left(const struct spot *s, int family, uint8_t *mark)
{
    int k = 0;
    while (k < s->nparts && s->part[k].family != family)
        k++;
    for (int c = 0; k < s->nparts && c < s->n; c++)
        mark[c] |= !s->out[c];
}

/* Exact prices for the operators that are left. */
static int settle_families(struct ahead *h)
{
    struct topt_problem *p = h->p;
    int rc = 0;
    for (int i = 0; i < p->nfamilies && !rc; i++) {
        struct family *f = &p->family[i];
        uint8_t *want = f->open ? calloc((size_t)f->n + 1, 1) : NULL;
        if (!f->open)
            continue;
        for (int k = 0; want && k < p->nplaces; k++)
            mark_left(&h->spot[k], i, want);
        rc = want ? topt_family_settle(p, f, want, h->err) : no_memory(h->err);
        free(want);
    }
    return rc;
}

static int some_open(const struct topt_problem *p)
{
    int any = 0;
    for (int i = 0; i < p->nfamilies; i++)
        any |= p->family[i].open != NULL;
    return any;
}

/* What floors have become goes to the places like this. */
static int weigh_again(struct ahead *h, int like)
{
    struct spot *of = &h->spot[like];
    for (int c = 0; c < of->n; c++)
        h->before[c] = weight_of(h, of->cost[c]);
    memset(of->cost, 0, (size_t)of->n * sizeof *of->cost);
    if (add_up(h->p, of))
        return -1;
    for (int i = like; i < h->p->nplaces; i++) {
        struct spot *s = &h->spot[i];
        for (int c = 0; s->like == like && c < s->n; c++)
            s->left[c] += weight_of(h, s->cost[c]) - h->before[c];
    }
    return 0;
}

/* What was a floor weighs no less now. */
static int settle_spots(struct ahead *h)
{
    struct topt_problem *p = h->p;
    if (!some_open(p))
        return 0;
    if (settle_families(h))
        return -1;
    for (int i = 0; i < p->nplaces; i++)
        if (h->spot[i].like == i && weigh_again(h, i))
            return topt_fail(h->err, TOPT_ERR_LIMIT,
                             "the cost of repeated blocks overflows");
    return 0;
}

/* ---- messages ------------------------------------------------------------------------------ */

static int by_weight(const void *x, const void *y)
{
    const struct weighed *a = x, *b = y;
    return (a->weight > b->weight) - (a->weight < b->weight);
}

/* Move a share of a place's weight onto a tie.  Returns how many classes it has left, which then are in h->order. */
static int give(struct ahead *h, struct end *e, double share)
{
    struct spot *s = &h->spot[e->place];
    int n = 0;
    for (int i = 0; i < e->nclasses; i++)
        h->given[i] = INFINITY;
    for (int c = 0; c < s->n; c++)
        if (!s->out[c])
            h->given[e->class[c]] = fmin(h->given[e->class[c]], share * h->before[c]);
    for (int c = 0; c < s->n; c++)
        if (!s->out[c])
            s->left[c] -= h->given[e->class[c]];
    for (int i = 0; i < e->nclasses; i++)
        if (h->given[i] < INFINITY) {
            e->moved[i] += h->given[i];
            h->order[n++] = (struct weighed){e->moved[i], i};
        }
    qsort(h->order, (size_t)n, sizeof *h->order, by_weight);
    return n;
}

/* What a class of the end 'k' weighs with one of the other; where that is not below a bound, the bound or more: then
 * the move there says so already, or that back with it. */
static int weigh_entry(struct ahead *h, const struct tie *t, int k, int class,
                       const struct weighed *other, double below, double *ret)
{
    int i = k ? other->class : class, j = k ? class : other->class;
    const int32_t *a = &t->end[0].number[2 * i], *b = &t->end[1].number[2 * j];
    double by_ns = t->times * (h->by_time > 0 ? h->by_time : 0);
    int64_t ns = topt_moves_ns(h->p, t->moves, a[0], b[0], h->err);
    *ret = other->weight + by_ns * (double)ns;
    if (ns < 0 || *ret >= below)
        return ns < 0 ? -1 : 0;
    if (t->trained) {
        ns = topt_moves_ns(h->p, t->moves, b[1], a[1], h->err);
        if (ns < 0)
            return -1;
        *ret += by_ns * (double)ns;
    }
    if (*ret < below)
        *ret = other->weight + edge_weight(h, t, i, j);
    return 0;
}

/* What is lightest for a class of the end 'k' with what was given at the other, and with whose class there; none where
 * with all the class would be beyond the corners.  Edges weigh no less than nothing, so that classes that were given
 * more than the least so far need no look. */
static int lightest(struct ahead *h, const struct tie *t, int k, int class, int n,
                    struct weighed *ret)
{
    double w;
    *ret = (struct weighed){h->room[class], -1};
    for (int i = 0; i < n && h->order[i].weight < ret->weight; i++) {
        if (weigh_entry(h, t, k, class, &h->order[i], ret->weight, &w))
            return -1;
        if (w < ret->weight)
            *ret = (struct weighed){w, h->order[i].class};
    }
    if (ret->class < 0)
        ret->weight = INFINITY;
    return 0;
}

/* Are the prices of that entry exact (1)?  Else (0) they are asked for. */
static int sharpen(struct ahead *h, const struct tie *t, int k, int class, int other)
{
    const int32_t *a = &t->end[0].number[2 * (k ? other : class)];
    const int32_t *b = &t->end[1].number[2 * (k ? class : other)];
    if (topt_moves_exact(t->moves, a[0], b[0]) &&
        (!t->trained || topt_moves_exact(t->moves, b[1], a[1])))
        return 1;
    return topt_moves_settle(h->p, t->moves, a[0], b[0], h->err) ||
                   (t->trained && topt_moves_settle(h->p, t->moves, b[1], a[1], h->err))
               ? -1
               : 0;
}

/* Ask for all that may be lighter for a class than one whose prices are exact. */
static int sharpen_lighter(struct ahead *h, const struct tie *t, int k, int class, int n,
                           double weight)
{
    double w;
    for (int i = 0; i < n && h->order[i].weight < weight; i++)
        if (weigh_entry(h, t, k, class, &h->order[i], weight, &w) ||
            (w < weight && sharpen(h, t, k, class, h->order[i].class) < 0))
            return -1;
    return 0;
}

static int find_lightest(struct ahead *h, const struct tie *t, int k, int n,
                         const int *list, int nlist)
{
    for (int i = 0; i < nlist; i++)
        if (lightest(h, t, k, list[i], n, &h->found[list[i]]))
            return -1;
    return 0;
}

/* Which of the classes listed have found what costs a floor?  The exact prices are asked for. */
static int list_open(struct ahead *h, const struct tie *t, int k, const int *list,
                     int nlist, int *ret_open)
{
    int n = 0;
    for (int i = 0; i < nlist; i++) {
        int other = h->found[list[i]].class;
        int known = other < 0 ? 1 : sharpen(h, t, k, list[i], other);
        if (known < 0)
            return -1;
        if (!known)
            ret_open[n++] = list[i];
    }
    return n;
}

/* Where what was found costs a floor, what is next may be no better: once the first has its exact price, all that
 * is still lighter gets its own. */
static int find_exactly(struct ahead *h, const struct tie *t, int k, int n,
                        const int *list, int nlist)
{
    int *open = h->open, nopen = list_open(h, t, k, list, nlist, open);
    if (nopen < 0 || topt_moves_answer(h->p, t->moves, h->err))
        return -1;
    for (int i = 0; i < nopen; i++) {
        int other = h->found[open[i]].class;
        double w = edge_weight(h, t, k ? other : open[i], k ? open[i] : other);
        w = fmin(w + t->end[!k].moved[other], h->room[open[i]]);
        if (sharpen_lighter(h, t, k, open[i], n, w))
            return -1;
    }
    return topt_moves_answer(h->p, t->moves, h->err) ||
                   find_lightest(h, t, k, n, open, nopen)
               ? -1
               : 0;
}

/* Classes of an end that are left, and how much may be passed to each. */
static int list_classes(struct ahead *h, const struct end *e, int *ret)
{
    const struct spot *s = &h->spot[e->place];
    int n = 0;
    for (int i = 0; i < e->nclasses; i++)
        h->room[i] = NAN;
    for (int c = 0; c < s->n; c++) {
        double *room = &h->room[e->class[c]];
        if (s->out[c])
            continue;
        if (isnan(*room))
            ret[n++] = e->class[c];
        *room = fmax(*room, h->most - h->bound - s->left[c] - e->moved[e->class[c]]);
    }
    return n;
}

/* Move all that a tie has in common for a class of its end 'k' to the place there. */
static int take(struct ahead *h, struct tie *t, int k, int n)
{
    struct end *e = &t->end[k];
    struct spot *s = &h->spot[e->place];
    int *list = h->listed, nlist = list_classes(h, e, list);
    if (find_lightest(h, t, k, n, list, nlist) ||
        (h->exact && find_exactly(h, t, k, n, list, nlist)))
        return -1;
    for (int i = 0; i < nlist; i++) {
        double *passed = &h->passed[list[i]];
        *passed = fmax(h->found[list[i]].weight + e->moved[list[i]], 0);
        e->moved[list[i]] -= isinf(*passed) ? 0 : *passed;
    }
    for (int c = 0; c < s->n; c++) {
        if (s->out[c])
            continue;
        s->left[c] += h->passed[e->class[c]];
        s->out[c] |= (uint8_t)isinf(s->left[c]);
    }
    return 0;
}

/* Pass weight from a place to those after it (or, back, before it). */
static int pass(struct ahead *h, int place, int back)
{
    const struct topt_problem *p = h->p;
    struct spot *s = &h->spot[place];
    int ties = s->nties[0] > s->nties[1] ? s->nties[0] : s->nties[1];
    settle_spot(h, s, 1);
    memcpy(h->before, s->left, (size_t)s->n * sizeof *s->left);
    for (int i = s->first[back]; i >= 0; i = h->tie[i].next[back]) {
        struct tie *t = &h->tie[i];
        int k = t->end[1].place == place;
        if (p->k.cancel && atomic_load(p->k.cancel))
            return topt_fail(h->err, TOPT_ERR_CANCELED, "the search was canceled");
        int n = give(h, &t->end[k], 1.0 / ties);
        if (take(h, t, !k, n))
            return -1;
    }
    return 0;
}

static int sweep(struct ahead *h, int back)
{
    int n = h->p->nplaces;
    for (int i = 0; i < n; i++)
        if (pass(h, back ? n - 1 - i : i, back))
            return -1;
    return 0;
}

/* ---- groups of corners --------------------------------------------------------------------- */

/* How heavy is the heaviest of some corners?  And a little more: by how much sums may be off to which every place and
 * every tie adds something in every sweep. */
static double heaviest(const struct ahead *h, const struct topt_cost *corner, int n)
{
    double most = -INFINITY;
    for (int i = 0; i < n; i++)
        most = fmax(most, weight_of(h, corner[i]));
    return most + fabs(most) * DBL_EPSILON * 4 * SWEEPS * (h->p->nplaces + h->nties);
}

/* Nothing is under any of these corners. */
static void leave_nothing(struct ahead *h)
{
    for (int i = 0; i < h->p->nplaces; i++)
        memset(h->spot[i].out, 1, (size_t)h->spot[i].n);
}

/* Weigh for some corners; 'sweeps' 0: places alone.  '*ret': the bound, as a part of the heaviest corner. */
static int weigh(struct ahead *h, double memory, double time,
                 const struct topt_cost *corner, int n, int sweeps, double *ret)
{
    h->by_memory = memory;
    h->by_time = time;
    h->most = heaviest(h, corner, n);
    weigh_places(h, sweeps > 0);
    if (sweeps)
        begin(h);
    for (int i = 0; i < sweeps && h->bound <= h->most; i++) {
        int sharp = i >= FLOOR_SWEEPS && time > 0; /* memory has no floors */
        /* Where moves are dear they are left to who searches with floors. */
        h->exact = sharp && !h->p->options.floors;
        if ((sharp && settle_spots(h)) || sweep(h, i & 1))
            return -1;
    }
    if (!(h->bound <= h->most))
        leave_nothing(h);
    *ret = h->bound / h->most;
    return 0;
}

/* One corner in both: the bound is best at some balance, which is looked for from where memory counts most. */
static int weigh_corner(struct ahead *h, const struct topt_cost *corner, int sweeps)
{
    double best = 0, part,
           memory = (double)corner->time / (double)larger(corner->memory, 1);
    if (weigh(h, 0, 1, corner, 1, sweeps, &part))
        return -1;
    for (int i = 0; i < HALVINGS; i++, memory /= 2) {
        if (weigh(h, memory, 1, corner, 1, sweeps, &part))
            return -1;
        if (part < best || part > 1)
            break;
        best = part;
    }
    return 0;
}

static int weigh_group(struct ahead *h, const struct topt_cost *corner, int n, int sweeps)
{
    struct topt_cost first = corner[0], last = corner[n - 1];
    double part;
    for (int i = 0; i < h->p->nplaces; i++)
        memset(h->spot[i].out, 0, (size_t)h->spot[i].n);
    if (first.time == INT64_MAX && last.memory == INT64_MAX)
        return 0;
    if (first.time == INT64_MAX)
        return weigh(h, 1, 0, corner, n, sweeps, &part);
    if (last.memory == INT64_MAX)
        return weigh(h, 0, 1, corner, n, sweeps, &part);
    if (n == 1)
        return weigh_corner(h, corner, sweeps);
    return weigh(h, (double)(first.time - last.time),
                 (double)(last.memory - first.memory), corner, n, sweeps, &part);
}

/* What stays for some group.  Corners at the ends, which are unbounded, are groups of their own. */
static int weigh_groups(struct ahead *h, int sweeps)
{
    int n = h->ncorners, middle = n > 2 ? n - 2 : 0;
    int groups = middle < GROUPS ? middle : GROUPS, ends = n < 2 ? n : 2;
    for (int i = 0; i < h->p->nplaces; i++)
        memset(h->spot[i].stays, 0, (size_t)h->spot[i].n);
    for (int g = 0; g < groups + ends; g++) {
        int from = g < groups ? 1 + middle * g / groups : g == groups ? 0 : n - 1;
        int to = g < groups ? 1 + middle * (g + 1) / groups : from + 1;
        if (weigh_group(h, &h->corner[from], to - from, sweeps))
            return -1;
        for (int i = 0; i < h->p->nplaces; i++) {
            struct spot *s = &h->spot[i], *of = sweeps ? s : &h->spot[s->like];
            for (int c = 0; c < s->n; c++)
                s->stays[c] |= !of->out[c];
        }
    }
    return 0;
}

/* ---- what is left -------------------------------------------------------------------------- */

/* Families of one place have the same configurations left; of one family, those of all its places. */
static void share(struct ahead *h, uint8_t **keep)
{
    int changed = 1;
    for (int i = 0; i < h->p->nplaces; i++)
        for (int c = 0; c < h->spot[i].n; c++)
            keep[h->spot[i].part[0].family][c] |= h->spot[i].stays[c];
    while (changed) {
        changed = 0;
        for (int i = 0; i < h->p->nplaces; i++)
            for (int k = 1; k < h->spot[i].nparts; k++) {
                uint8_t *a = keep[h->spot[i].part[0].family],
                        *b = keep[h->spot[i].part[k].family];
                for (int c = 0; c < h->spot[i].n; c++) {
                    changed |= a[c] != b[c];
                    a[c] = b[c] = a[c] | b[c];
                }
            }
    }
}

static int keep_of_family(struct family *f, const uint8_t *keep)
{
    int *list = malloc(((size_t)f->n + 1) * sizeof *list), n = 0;
    struct family part;
    if (!list)
        return -1;
    for (int c = 0; c < f->n; c++)
        if (keep[c])
            list[n++] = c;
    int bad = topt_family_pick(f, list, n, &part);
    topt_family_fini(bad ? &part : f);
    if (!bad)
        *f = part;
    free(list);
    return bad;
}

static int keep_stays(struct ahead *h)
{
    struct topt_problem *p = h->p;
    uint8_t **keep = calloc((size_t)p->nfamilies + 1, sizeof *keep);
    int bad = !keep;
    for (int i = 0; !bad && i < p->nfamilies; i++)
        bad = !(keep[i] = calloc((size_t)p->family[i].n + 1, 1));
    if (!bad)
        share(h, keep);
    for (int i = 0; !bad && i < p->nfamilies; i++)
        bad = keep_of_family(&p->family[i], keep[i]);
    for (int i = 0; keep && i < p->nfamilies; i++)
        free(keep[i]);
    free(keep);
    return bad ? no_memory(h->err) : 0;
}

/* Entries of all tables between what stays. */
static int64_t entries_left(const struct ahead *h)
{
    int64_t sum = 0;
    for (int i = 0; i < h->nties; i++) {
        int64_t n[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            const struct end *e = &h->tie[i].end[k];
            const struct spot *s = &h->spot[e->place];
            memset(h->passed, 0, (size_t)e->nclasses * sizeof *h->passed);
            for (int c = 0; c < s->n; c++)
                if (s->stays[c] && h->passed[e->class[c]] == 0) {
                    h->passed[e->class[c]] = 1;
                    n[k]++;
                }
        }
        sum += n[0] * n[1];
    }
    return sum;
}

static int64_t entries_of(const struct ahead *h)
{
    int64_t sum = 0;
    for (int i = 0; i < h->nties; i++)
        sum += (int64_t)h->tie[i].end[0].nclasses * h->tie[i].end[1].nclasses;
    return sum;
}

/* What is searched is all of it, however little is left to look at. */
static void count_space(const struct ahead *h, struct topt_problem_stats *ret)
{
    ret->edge_entries = entries_of(h);
    for (int i = 0; i < h->p->nplaces; i++)
        ret->configs += h->spot[i].n;
    for (int i = 0; i < h->p->nfamilies; i++)
        if (h->p->family[i].nfrom > ret->layouts)
            ret->layouts = h->p->family[i].nfrom;
}

static int make_scratch(struct ahead *h)
{
    size_t classes = (size_t)h->nclasses + 1, configs = 1;
    for (int i = 0; i < h->p->nplaces; i++)
        configs = (size_t)h->spot[i].n + 1 > configs ? (size_t)h->spot[i].n + 1 : configs;
    h->given = malloc(classes * sizeof *h->given);
    h->passed = malloc(classes * sizeof *h->passed);
    h->room = malloc(classes * sizeof *h->room);
    h->order = malloc(classes * sizeof *h->order);
    h->found = malloc(classes * sizeof *h->found);
    h->listed = malloc(classes * sizeof *h->listed);
    h->open = malloc(classes * sizeof *h->open);
    h->before = malloc(configs * sizeof *h->before);
    return h->given && h->passed && h->room && h->order && h->found && h->listed &&
                   h->open && h->before
               ? 0
               : no_memory(h->err);
}

/* Where places alone tell nothing, edges would tell little; of more entries than that, sweeps take many seconds. */
static int pays(const struct ahead *h)
{
    int64_t left = entries_left(h);
    return left <= entries_of(h) / 4 * 3 && left <= MOST_ENTRIES;
}

/* Places alone; where floors tell too little of them, with exact prices. */
static int look_at_places(struct ahead *h, int *ret_pays)
{
    *ret_pays = 1;
    if (weigh_groups(h, 0))
        return -1;
    if (h->aim->thorough || pays(h))
        return 0;
    *ret_pays = some_open(h->p);
    if (!*ret_pays)
        return 0;
    for (int i = 0; i < h->p->nplaces; i++)
        memset(h->spot[i].out, 0, (size_t)h->spot[i].n);
    if (settle_spots(h) || weigh_groups(h, 0))
        return -1;
    *ret_pays = pays(h);
    return 0;
}

static int narrow(struct ahead *h)
{
    for (int i = 0; i < h->p->nplaces; i++)
        if (h->spot[i].like == i && add_up(h->p, &h->spot[i]))
            return 0; /* the search will say so */
    int worth;
    if (make_corners(h) || look_at_places(h, &worth))
        return -1;
    if (!worth)
        return 0;
    int sweeps = h->p->options.floors && !some_open(h->p) ? FLOOR_SWEEPS : SWEEPS;
    count_space(h, &h->p->listed);
    return weigh_groups(h, sweeps) || keep_stays(h) ? -1 : 0;
}

static void ahead_fini(struct ahead *h)
{
    for (int i = 0; h->spot && i < h->p->nplaces; i++) {
        struct spot *s = &h->spot[i];
        free(s->part);
        if (s->like == i) {
            free(s->cost);
            free(s->transient);
            free(s->waiting);
        }
        free(s->left);
        free(s->out);
        free(s->stays);
    }
    for (int i = 0; i < h->nties; i++)
        for (int k = 0; k < 2; k++) {
            free(h->tie[i].end[k].number);
            free(h->tie[i].end[k].moved);
        }
    free(h->spot);
    free(h->tie);
    free(h->corner);
    free(h->given);
    free(h->passed);
    free(h->room);
    free(h->order);
    free(h->found);
    free(h->listed);
    free(h->open);
    free(h->before);
}

int topt_problem_looks_ahead(const struct topt_problem *p)
{
    const struct topt_aim *a = p->options.aim;
    return a && !p->options.restriction && (a->nknown || a->time_limit);
}

static int look(struct topt_problem *p, struct topt_error *err)
{
    struct ahead h = {.p = p, .err = err, .aim = p->options.aim};
    p->by_orbits = !p->floors; /* on meshes without other floors they are few */
    int rc = make_spots(&h) || make_ties(&h) || make_scratch(&h) || narrow(&h) ? -1 : 0;
    p->by_orbits = 0;
    ahead_fini(&h);
    topt_moves_fini(p);
    return rc;
}

int topt_problem_narrow(struct topt_problem *p, struct topt_error *err)
{
    if (!topt_problem_looks_ahead(p))
        return 0;
    if (topt_problem_places(p, err) || look(p, err))
        return -1;
    p->options.aim = NULL; /* the caller's */
    if (!p->floors) {      /* they are of this alone */
        topt_orbit_set_destroy(p->orbits);
        p->orbits = NULL;
    }
    for (int i = 0; i < p->nfamilies; i++)
        if (topt_family_finish(p, &p->family[i], err))
            return -1;
    return 0;
}
