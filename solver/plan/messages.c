/* messages.c - bounds on what strategies weigh, by messages between places.
 *
 * Messages are passed along the places, forward and back (sequential tree-reweighted message passing: Kolmogorov,
 * Convergent tree-reweighted message passing for energy minimization, 2006).  Weight is moved from places onto edges
 * and on to the places at their other ends, so that every strategy weighs the same as before and nothing
 * weighs less than nothing; what all configurations of a place have in common goes into the bound.  Then a strategy with
 * a configuration weighs no less than the bound and what that has left.  On trees that is exact.
 *
 * Moves cost what they take at least (layout/orbit.c), and operators too that have moves of their own.  When that
 * tells no more, operators that are left get exact prices, and moves where a bound hangs on them: of an edge's entries
 * that of the lightest, until it is exact or beyond the limit. */
#include "messages.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the problem");
}

static int overflows(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_LIMIT, "the cost of repeated blocks overflows");
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

static int same_parts(const struct spot *a, const struct spot *b)
{
    return topt_parts_same(a->part, a->nparts, b->part, b->nparts);
}

static void find_like(struct spot *spot, int i)
{
    int like = 0;
    while (spot[like].like != like || !same_parts(&spot[like], &spot[i]))
        like++;
    spot[i].like = like;
    spot[like].times++;
}

/* 1 where sums overflow. */
static int add_up(const struct topt_problem *p, struct spot *s)
{
    return topt_parts_sum(p, s->part, s->nparts, s->cost, s->transient, s->waiting);
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
    s->first[0] = s->first[1] = -1;
    return s->cost && s->transient && s->waiting && s->left && s->out ? 0 : -1;
}

static int make_spots(struct messages *m)
{
    const struct topt_problem *p = m->p;
    int *nodes = calloc((size_t)p->nplaces + 1, sizeof *nodes), bad = !nodes;
    m->spot = calloc((size_t)p->nplaces + 1, sizeof *m->spot);
    bad |= !m->spot;
    for (int i = 0; !bad && i < p->nnodes; i++)
        nodes[p->node[i].place]++;
    for (int i = 0; !bad && i < p->nplaces; i++)
        bad = !(m->spot[i].part = calloc((size_t)nodes[i], sizeof *m->spot[i].part));
    for (int i = 0; !bad && i < p->nnodes; i++)
        add_part(&m->spot[p->node[i].place], p->node[i].family);
    for (int i = 0; !bad && i < p->nplaces; i++)
        bad = spot_init(p, m->spot, i);
    free(nodes);
    if (bad)
        return no_memory(m->err);
    for (int i = 0; i < p->nplaces; i++)
        if (m->spot[i].like == i && add_up(p, &m->spot[i]))
            return overflows(m->err);
    return 0;
}

static int end_init(struct messages *m, struct tie *t, int k, int place,
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
        e->number[2 * i] = topt_moves_number(m->p, t->moves, &e->at[i].value);
        e->number[2 * i + 1] = topt_moves_number(m->p, t->moves, &e->at[i].grad);
        if (e->number[2 * i] < 0 || e->number[2 * i + 1] < 0)
            return -1;
    }
    m->nclasses = e->nclasses > m->nclasses ? e->nclasses : m->nclasses;
    return 0;
}

/* Is the tie's end 'k' the later place? */
static int is_later(const struct tie *t, int k)
{
    return t->end[k].place > t->end[!k].place;
}

static int add_tie(struct messages *m, int from, int to, int table)
{
    struct topt_problem *p = m->p;
    const struct edge_table *e = &p->table[table];
    const struct family *a = &p->family[e->from], *b = &p->family[e->to];
    int tensor = a->op >= 0
                     ? p->k.model->op[a->op].operand[p->k.model->op[a->op].output].tensor
                     : a->tensor;
    struct tie *t = &m->tie[m->nties++];
    *t = (struct tie){.table = table,
                      .trained = p->k.model->tensor[tensor].needs_gradient};
    t->moves = topt_moves_of(p, tensor, m->err);
    if (!t->moves)
        return -1;
    if (end_init(m, t, 0, from, a, 0) || end_init(m, t, 1, to, b, e->input))
        return no_memory(m->err);
    for (int k = 0; k < 2; k++) {
        struct spot *s = &m->spot[t->end[k].place];
        int later = is_later(t, k);
        t->next[later] = s->first[later];
        s->first[later] = m->nties - 1;
        s->nties[later]++;
    }
    return 0;
}

static int find_tie(const struct messages *m, int from, int to, int table)
{
    int later = from > to, i = m->spot[from].first[later];
    while (i >= 0 && (m->tie[i].end[0].place != from || m->tie[i].end[1].place != to ||
                      m->tie[i].table != table))
        i = m->tie[i].next[later];
    return i;
}

/* An edge from a place to itself costs nothing here. */
static int make_ties(struct messages *m)
{
    const struct topt_problem *p = m->p;
    m->tie = calloc((size_t)p->nedges + 1, sizeof *m->tie);
    if (!m->tie)
        return no_memory(m->err);
    for (int i = 0; i < p->nedges; i++) {
        const struct edge *e = &p->edge[i];
        int from = p->node[e->from].place, to = p->node[e->to].place;
        if (from == to)
            continue;
        int t = find_tie(m, from, to, e->table);
        if (t < 0 && add_tie(m, from, to, e->table))
            return -1;
        m->tie[t < 0 ? m->nties - 1 : t].times++;
    }
    return 0;
}

/* ---- weights ------------------------------------------------------------------------------- */

static double weight_of(const struct messages *m, struct topt_cost c)
{
    return (m->by_memory > 0 ? m->by_memory * (double)c.memory : 0) +
           (m->by_time > 0 ? m->by_time * (double)c.time : 0);
}

/* The weight of an entry of a tie whose moves were asked for; INFINITY where there is none. */
static double edge_weight(const struct messages *m, const struct tie *t, int i, int j)
{
    const struct end *from = &t->end[0], *to = &t->end[1];
    const int32_t *a = &from->number[2 * i], *b = &to->number[2 * j];
    struct topt_edge_alternative at[2];
    struct topt_move_cost there = topt_moves_at(t->moves, a[0], b[0]), back = {0};
    double least = INFINITY;
    if (t->trained)
        back = topt_moves_at(t->moves, b[1], a[1]);
    int n = topt_edge_alternatives(&m->p->k, &from->at[i], &to->at[j], a[0] == b[0],
                                   &there, t->trained ? &back : NULL, at);
    for (int k = 0; k < n; k++) {
        struct topt_cost c = {at[k].kept,
                              at[k].moves * there.network_ns + back.network_ns};
        least = fmin(least, t->times * weight_of(m, c));
    }
    return least;
}

/* What all configurations of a place, or of so many places, have in common goes into the bound; those that then
 * are beyond the limit go.  Places that have none left have an infinite weight. */
static void normalize(struct messages *m, struct spot *s, int times)
{
    double least = INFINITY;
    for (int c = 0; c < s->n; c++)
        if (!s->out[c])
            least = s->left[c] < least ? s->left[c] : least;
    m->bound += times * least;
    for (int c = 0; c < s->n; c++) {
        s->left[c] -= s->out[c] ? 0 : least;
        s->out[c] |= !(m->bound + s->left[c] <= m->most);
    }
}

/* Places alone.  Those of the same nodes at once, unless each is looked at by itself: then edges have told which
 * configurations it has left. */
static void weigh_places(struct messages *m, int each)
{
    m->bound = 0;
    for (int i = 0; i < m->p->nplaces; i++) {
        struct spot *s = &m->spot[i];
        for (int c = 0; (each || s->like == i) && c < s->n; c++)
            s->left[c] = weight_of(m, s->cost[c]);
    }
    /* The first time for the bound, the second time under all of it. */
    for (int i = 0; i < 2 * m->p->nplaces; i++) {
        int place = i % m->p->nplaces;
        struct spot *s = &m->spot[place];
        if (each || s->like == place)
            normalize(m, s, each ? 1 : s->times);
    }
}

static void begin(struct messages *m)
{
    for (int i = 0; i < m->nties; i++)
        for (int k = 0; k < 2; k++)
            memset(m->tie[i].end[k].moved, 0,
                   (size_t)m->tie[i].end[k].nclasses * sizeof(double));
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
static int settle_families(struct messages *m)
{
    struct topt_problem *p = m->p;
    int rc = 0;
    for (int i = 0; i < p->nfamilies && !rc; i++) {
        struct family *f = &p->family[i];
        uint8_t *want = f->open ? calloc((size_t)f->n + 1, 1) : NULL;
        if (!f->open)
            continue;
        for (int k = 0; want && k < p->nplaces; k++)
            mark_left(&m->spot[k], i, want);
        rc = want ? topt_family_settle(p, f, want, m->err) : no_memory(m->err);
        free(want);
    }
    return rc;
}

/* What floors have become goes to the places like this. */
static int weigh_again(struct messages *m, int like)
{
    struct spot *of = &m->spot[like];
    for (int c = 0; c < of->n; c++)
        m->before[c] = weight_of(m, of->cost[c]);
    memset(of->cost, 0, (size_t)of->n * sizeof *of->cost);
    if (add_up(m->p, of))
        return overflows(m->err);
    for (int i = like; i < m->p->nplaces; i++) {
        struct spot *s = &m->spot[i];
        for (int c = 0; s->like == like && c < s->n; c++)
            s->left[c] += weight_of(m, s->cost[c]) - m->before[c];
    }
    return 0;
}

int topt_messages_settle(struct messages *m)
{
    struct topt_problem *p = m->p;
    if (!topt_families_open(p))
        return 0;
    if (settle_families(m))
        return -1;
    for (int i = 0; i < p->nplaces; i++)
        if (m->spot[i].like == i && weigh_again(m, i))
            return -1;
    return 0;
}

/* ---- messages ------------------------------------------------------------------------------ */

static int by_weight(const void *x, const void *y)
{
    const struct weighed *a = x, *b = y;
    return (a->weight > b->weight) - (a->weight < b->weight);
}

/* Move a share of a place's weight onto a tie.  Returns how many classes it has left, which then are in m->order. */
static int give(struct messages *m, struct end *e, double share)
{
    struct spot *s = &m->spot[e->place];
    int n = 0;
    for (int i = 0; i < e->nclasses; i++)
        m->given[i] = INFINITY;
    for (int c = 0; c < s->n; c++)
        if (!s->out[c])
            m->given[e->class[c]] = fmin(m->given[e->class[c]], share * m->before[c]);
    for (int c = 0; c < s->n; c++)
        if (!s->out[c])
            s->left[c] -= m->given[e->class[c]];
    for (int i = 0; i < e->nclasses; i++)
        if (m->given[i] < INFINITY) {
            e->moved[i] += m->given[i];
            m->order[n++] = (struct weighed){e->moved[i], i};
        }
    qsort(m->order, (size_t)n, sizeof *m->order, by_weight);
    return n;
}

/* What a class of the end 'k' weighs with one of the other; where that is not below a bound, the bound or more: then
 * the move there says so already, or that back with it. */
static int weigh_entry(struct messages *m, const struct tie *t, int k, int class,
                       const struct weighed *other, double below, double *ret)
{
    int i = k ? other->class : class, j = k ? class : other->class;
    const int32_t *a = &t->end[0].number[2 * i], *b = &t->end[1].number[2 * j];
    double by_ns = t->times * (m->by_time > 0 ? m->by_time : 0);
    int64_t ns = topt_moves_ns(m->p, t->moves, a[0], b[0], m->err);
    *ret = other->weight + by_ns * (double)ns;
    if (ns < 0 || *ret >= below)
        return ns < 0 ? -1 : 0;
    if (t->trained) {
        ns = topt_moves_ns(m->p, t->moves, b[1], a[1], m->err);
        if (ns < 0)
            return -1;
        *ret += by_ns * (double)ns;
    }
    if (*ret < below)
        *ret = other->weight + edge_weight(m, t, i, j);
    return 0;
}

/* What is lightest for a class of the end 'k' with what was given at the other, and with whose class there; none where
 * with all the class would be beyond the limit.  Edges weigh no less than nothing, so that classes that were given
 * more than the least so far need no look. */
static int lightest(struct messages *m, const struct tie *t, int k, int class, int n,
                    struct weighed *ret)
{
    double w;
    *ret = (struct weighed){m->room[class], -1};
    for (int i = 0; i < n && m->order[i].weight < ret->weight; i++) {
        if (weigh_entry(m, t, k, class, &m->order[i], ret->weight, &w))
            return -1;
        if (w < ret->weight)
            *ret = (struct weighed){w, m->order[i].class};
    }
    if (ret->class < 0)
        ret->weight = INFINITY;
    return 0;
}

/* Are the prices of that entry exact (1)?  Else (0) they are asked for. */
static int sharpen(struct messages *m, const struct tie *t, int k, int class, int other)
{
    const int32_t *a = &t->end[0].number[2 * (k ? other : class)];
    const int32_t *b = &t->end[1].number[2 * (k ? class : other)];
    if (topt_moves_exact(t->moves, a[0], b[0]) &&
        (!t->trained || topt_moves_exact(t->moves, b[1], a[1])))
        return 1;
    return topt_moves_settle(m->p, t->moves, a[0], b[0], m->err) ||
                   (t->trained && topt_moves_settle(m->p, t->moves, b[1], a[1], m->err))
               ? -1
               : 0;
}

/* Ask for all that may be lighter for a class than one whose prices are exact. */
static int sharpen_lighter(struct messages *m, const struct tie *t, int k, int class,
                           int n, double weight)
{
    double w;
    for (int i = 0; i < n && m->order[i].weight < weight; i++)
        if (weigh_entry(m, t, k, class, &m->order[i], weight, &w) ||
            (w < weight && sharpen(m, t, k, class, m->order[i].class) < 0))
            return -1;
    return 0;
}

static int find_lightest(struct messages *m, const struct tie *t, int k, int n,
                         const int *list, int nlist)
{
    for (int i = 0; i < nlist; i++)
        if (lightest(m, t, k, list[i], n, &m->found[list[i]]))
            return -1;
    return 0;
}

/* Which of the classes listed have found what costs a floor?  The exact prices are asked for. */
static int list_open(struct messages *m, const struct tie *t, int k, const int *list,
                     int nlist, int *ret_open)
{
    int n = 0;
    for (int i = 0; i < nlist; i++) {
        int other = m->found[list[i]].class;
        int known = other < 0 ? 1 : sharpen(m, t, k, list[i], other);
        if (known < 0)
            return -1;
        if (!known)
            ret_open[n++] = list[i];
    }
    return n;
}

/* Where what was found costs a floor, what is next may be no better: once the first has its exact price, all that
 * is still lighter gets its own. */
static int find_exactly(struct messages *m, const struct tie *t, int k, int n,
                        const int *list, int nlist)
{
    int *open = m->open, nopen = list_open(m, t, k, list, nlist, open);
    if (nopen < 0 || topt_moves_answer(m->p, t->moves, m->err))
        return -1;
    for (int i = 0; i < nopen; i++) {
        int other = m->found[open[i]].class;
        double w = edge_weight(m, t, k ? other : open[i], k ? open[i] : other);
        w = fmin(w + t->end[!k].moved[other], m->room[open[i]]);
        if (sharpen_lighter(m, t, k, open[i], n, w))
            return -1;
    }
    return topt_moves_answer(m->p, t->moves, m->err) ||
                   find_lightest(m, t, k, n, open, nopen)
               ? -1
               : 0;
}

/* Classes of an end that are left, and how much may be passed to each. */
static int list_classes(struct messages *m, const struct end *e, int *ret)
{
    const struct spot *s = &m->spot[e->place];
    int n = 0;
    for (int i = 0; i < e->nclasses; i++)
        m->room[i] = NAN;
    for (int c = 0; c < s->n; c++) {
        double *room = &m->room[e->class[c]];
        if (s->out[c])
            continue;
        if (isnan(*room))
            ret[n++] = e->class[c];
        *room = fmax(*room, m->most - m->bound - s->left[c] - e->moved[e->class[c]]);
    }
    return n;
}

/* Move all that a tie has in common for a class of its end 'k' to the place there. */
static int take(struct messages *m, struct tie *t, int k, int n)
{
    struct end *e = &t->end[k];
    struct spot *s = &m->spot[e->place];
    int *list = m->listed, nlist = list_classes(m, e, list);
    if (find_lightest(m, t, k, n, list, nlist) ||
        (m->exact && find_exactly(m, t, k, n, list, nlist)))
        return -1;
    for (int i = 0; i < nlist; i++) {
        double *passed = &m->passed[list[i]];
        *passed = fmax(m->found[list[i]].weight + e->moved[list[i]], 0);
        e->moved[list[i]] -= isinf(*passed) ? 0 : *passed;
    }
    for (int c = 0; c < s->n; c++) {
        if (s->out[c])
            continue;
        s->left[c] += m->passed[e->class[c]];
        s->out[c] |= (uint8_t)isinf(s->left[c]);
    }
    return 0;
}

/* Pass weight from a place to those after it (or, back, before it). */
static int pass(struct messages *m, int place, int back)
{
    const struct topt_problem *p = m->p;
    struct spot *s = &m->spot[place];
    int ties = s->nties[0] > s->nties[1] ? s->nties[0] : s->nties[1];
    normalize(m, s, 1);
    memcpy(m->before, s->left, (size_t)s->n * sizeof *s->left);
    for (int i = s->first[back]; i >= 0; i = m->tie[i].next[back]) {
        struct tie *t = &m->tie[i];
        int k = t->end[1].place == place;
        if (p->k.cancel && atomic_load(p->k.cancel))
            return topt_fail(m->err, TOPT_ERR_CANCELED, "the search was canceled");
        int n = give(m, &t->end[k], 1.0 / ties);
        if (take(m, t, !k, n))
            return -1;
    }
    return 0;
}

static int sweep(struct messages *m, int back)
{
    int n = m->p->nplaces;
    for (int i = 0; i < n; i++)
        if (pass(m, back ? n - 1 - i : i, back))
            return -1;
    return 0;
}

/* ---- weighings ----------------------------------------------------------------------------- */

/* How heavy is the heaviest of some costs?  And a little more: by how much sums may be off to which every place and
 * every tie adds something in every sweep. */
static double heaviest(const struct messages *m, const struct topt_cost *cost, int n)
{
    double most = -INFINITY;
    for (int i = 0; i < n; i++)
        most = fmax(most, weight_of(m, cost[i]));
    return most +
           fabs(most) * DBL_EPSILON * 4 * MESSAGES_SWEEPS * (m->p->nplaces + m->nties);
}

static void mark_all(struct messages *m, int out)
{
    for (int i = 0; i < m->p->nplaces; i++)
        memset(m->spot[i].out, out, (size_t)m->spot[i].n);
}

int topt_messages_weigh(struct messages *m, double by_memory, double by_time,
                        const struct topt_cost *cost, int n, int sweeps, double *ret)
{
    m->by_memory = by_memory;
    m->by_time = by_time;
    m->most = heaviest(m, cost, n);
    weigh_places(m, sweeps > 0);
    if (sweeps)
        begin(m);
    for (int i = 0; i < sweeps && m->bound <= m->most; i++) {
        int sharp = i >= MESSAGES_FLOOR_SWEEPS && by_time > 0; /* memory has no floors */
        /* Where moves are dear they are left to who searches with floors. */
        m->exact = sharp && !m->p->options.floors;
        if ((sharp && topt_messages_settle(m)) || sweep(m, i & 1))
            return -1;
    }
    if (!(m->bound <= m->most))
        mark_all(m, 1);
    *ret = m->bound / m->most;
    return 0;
}

void topt_messages_clear(struct messages *m)
{
    mark_all(m, 0);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int make_scratch(struct messages *m)
{
    size_t classes = (size_t)m->nclasses + 1, configs = 1;
    for (int i = 0; i < m->p->nplaces; i++)
        configs = (size_t)m->spot[i].n + 1 > configs ? (size_t)m->spot[i].n + 1 : configs;
    m->given = malloc(classes * sizeof *m->given);
    m->passed = malloc(classes * sizeof *m->passed);
    m->room = malloc(classes * sizeof *m->room);
    m->order = malloc(classes * sizeof *m->order);
    m->found = malloc(classes * sizeof *m->found);
    m->listed = malloc(classes * sizeof *m->listed);
    m->open = malloc(classes * sizeof *m->open);
    m->before = malloc(configs * sizeof *m->before);
    return m->given && m->passed && m->room && m->order && m->found && m->listed &&
                   m->open && m->before
               ? 0
               : no_memory(m->err);
}

/* Classes of an end that some configuration marked has. */
static int64_t count_classes(const struct messages *m, const struct end *e,
                             const uint8_t *keep)
{
    int64_t n = 0;
    memset(m->listed, 0, (size_t)e->nclasses * sizeof *m->listed);
    for (int c = 0; c < m->spot[e->place].n; c++)
        if (keep[c] && !m->listed[e->class[c]]++)
            n++;
    return n;
}

int64_t topt_messages_entries(const struct messages *m, uint8_t *const *keep)
{
    int64_t sum = 0;
    for (int i = 0; i < m->nties; i++) {
        int64_t n[2];
        for (int k = 0; k < 2; k++) {
            const struct end *e = &m->tie[i].end[k];
            n[k] = keep ? count_classes(m, e, keep[e->place]) : e->nclasses;
        }
        sum += n[0] * n[1];
    }
    return sum;
}

int topt_messages_init(struct messages *m, struct topt_problem *p, struct topt_error *err)
{
    *m = (struct messages){.p = p, .err = err};
    return make_spots(m) || make_ties(m) || make_scratch(m) ? -1 : 0;
}

void topt_messages_fini(struct messages *m)
{
    for (int i = 0; m->spot && i < m->p->nplaces; i++) {
        struct spot *s = &m->spot[i];
        free(s->part);
        if (s->like == i) {
            free(s->cost);
            free(s->transient);
            free(s->waiting);
        }
        free(s->left);
        free(s->out);
    }
    for (int i = 0; i < m->nties; i++)
        for (int k = 0; k < 2; k++) {
            free(m->tie[i].end[k].number);
            free(m->tie[i].end[k].moved);
        }
    free(m->spot);
    free(m->tie);
    free(m->given);
    free(m->passed);
    free(m->room);
    free(m->order);
    free(m->found);
    free(m->listed);
    free(m->open);
    free(m->before);
}
