/* cut.c - the types of all layers at one cut, by node and edge elimination.
 *
 * A layer costs by its type, two neighbours by both of theirs.  In a chain the cheapest types
 * up to a layer depend on that layer's type alone, which is the layer-wise dynamic program of
 * the paper; where paths fork and join, a path between the two ends becomes one table of costs
 * by their types, and paths between the same ends are added.  Shares of unequal groups are
 * solved for each layer and type before. */
#include "topt_accpar.h"

#include <math.h>
#include <string.h>

struct pricing {
    const struct topt_accpar_net *net;
    const struct topt_accpar_part *part; /* NULL: all of every layer */
    const struct topt_accpar_sides *sides;
    enum topt_accpar_system system;
};

enum { T = TOPT_ACCPAR_TYPES };

/* ---- prices ------------------------------------------------------------------------- */

/* Seconds of AccPar: the slower side's.  Elements of the others: what both sides receive on
 * average, which is each one's with halves. */
static double slower(const struct topt_accpar_sides *s, const double elements[2])
{
    return fmax(elements[0] * s->element_bytes / s->bytes_per_second[0],
                elements[1] * s->element_bytes / s->bytes_per_second[1]);
}

/* Others count elements, and cut in halves. */
static int by_time(const struct pricing *p)
{
    return p->system == TOPT_ACCPAR_ACCPAR || p->system == TOPT_ACCPAR_BY_FLOPS;
}

static double price(const struct pricing *p, const double elements[2])
{
    return by_time(p) ? slower(p->sides, elements) : (elements[0] + elements[1]) / 2;
}

static struct topt_accpar_part part_of(const struct pricing *p, int l)
{
    return p->part ? p->part[l] : (struct topt_accpar_part){1, 1, 1};
}

/* Elements exchanged within a layer by what both groups have of it. */
static double within(const struct pricing *p, int l, enum topt_accpar_type t)
{
    struct topt_accpar_part at = part_of(p, l);
    double all = p->system == TOPT_ACCPAR_TOFU
                     ? topt_tofu_within(&p->net->layer[l], p->net->batch, t)
                     : topt_accpar_within(&p->net->layer[l], p->net->batch, t);
    switch (t) {
    case TOPT_ACCPAR_BATCH:
        return all * at.in * at.out;
    case TOPT_ACCPAR_INPUT:
        return all * at.batch * at.out;
    default:
        return all * at.batch * at.in;
    }
}

static double flops(const struct pricing *p, int l)
{
    struct topt_accpar_part at = part_of(p, l);
    return topt_accpar_flops(&p->net->layer[l], p->net->batch) * at.batch * at.in *
           at.out;
}

/* Of side 0, for a layer of a type. */
static double layer_share(const struct pricing *p, int l, enum topt_accpar_type t)
{
    double exchange[2] = {0, 0};
    if (!by_time(p))
        return 0.5;
    for (int side = 0; side < 2 && p->system == TOPT_ACCPAR_ACCPAR; side++)
        exchange[side] =
            within(p, l, t) * p->sides->element_bytes / p->sides->bytes_per_second[side];
    return topt_accpar_share(flops(p, l), p->sides->flops, exchange);
}

/* Elements that each side receives within a layer of which side 0 has the share 'a'. */
static void layer_exchange(const struct pricing *p, int l, enum topt_accpar_type t,
                           double a, double ret[2])
{
    const struct topt_accpar_layer *x = &p->net->layer[l];
    struct topt_accpar_part at = part_of(p, l);
    double own = p->net->batch * at.batch * x->in * at.in * x->map_in;
    int both = a > 0 && a < 1; /* a side without a part has nothing to exchange */
    ret[0] = ret[1] = both ? within(p, l, t) : 0;
    if (both && x->recurrent) {
        ret[0] += topt_accpar_between(t, t, 0, a, a, own, own);
        ret[1] += topt_accpar_between(t, t, 0, 1 - a, 1 - a, own, own);
    }
}

static double own_cost(const struct pricing *p, int l, enum topt_accpar_type t, double a)
{
    double elements[2], time[2];
    layer_exchange(p, l, t, a, elements);
    if (!by_time(p))
        return price(p, elements);
    for (int side = 0; side < 2; side++) {
        double share = side ? 1 - a : a;
        time[side] =
            share * flops(p, l) / p->sides->flops[side] +
            elements[side] * p->sides->element_bytes / p->sides->bytes_per_second[side];
    }
    return fmax(time[0], time[1]);
}

/* The same between two layers with the shares 'a' and 'b'. */
static void edge_exchange(const struct pricing *p, const struct topt_accpar_edge *e,
                          enum topt_accpar_type from, enum topt_accpar_type to, double a,
                          double b, double ret[2])
{
    const struct topt_accpar_layer *l = &p->net->layer[e->to];
    struct topt_accpar_part give = part_of(p, e->from), take = part_of(p, e->to);
    double size = p->net->batch * (e->joins ? l->out * l->map_out : l->in * l->map_in);
    double f = size * take.batch * (e->joins ? take.out : take.in);
    double g = size * give.batch * give.out;
    if (p->system == TOPT_ACCPAR_TOFU) {
        ret[0] = ret[1] = topt_tofu_between(from, to, f, g);
        return;
    }
    ret[0] = topt_accpar_between(from, to, e->joins, a, b, f, g);
    ret[1] = topt_accpar_between(from, to, e->joins, 1 - a, 1 - b, f, g);
}

/* ---- elimination -------------------------------------------------------------------- */

struct table {
    int from, to;
    double cost[T][T];
};

/* A layer that was eliminated: its best type by those of its neighbours that were left then. */
struct step {
    int layer, from, to; /* -1: none */
    signed char best[T][T];
};

struct work {
    double own[TOPT_ACCPAR_LAYERS][T];
    struct table table[TOPT_ACCPAR_EDGES];
    int ntables, left;
    char gone[TOPT_ACCPAR_LAYERS];
    struct step step[TOPT_ACCPAR_LAYERS];
    int nsteps;
};

static void add_table(struct work *w, const struct table *t)
{
    for (int i = 0; i < w->ntables; i++)
        if (w->table[i].from == t->from && w->table[i].to == t->to) {
            for (int x = 0; x < T * T; x++)
                w->table[i].cost[x / T][x % T] += t->cost[x / T][x % T];
            return;
        }
    w->table[w->ntables++] = *t;
}

static struct table take_table(struct work *w, int i)
{
    struct table t = w->table[i];
    w->table[i] = w->table[--w->ntables];
    return t;
}

/* The only table that ends or begins at the layer: its index, -1 where there is none, -2 where
 * there are several. */
static int only(const struct work *w, int layer, int ends)
{
    int found = -1;
    for (int i = 0; i < w->ntables; i++)
        if ((ends ? w->table[i].to : w->table[i].from) == layer)
            found = found == -1 ? i : -2;
    return found;
}

static void eliminate(struct work *w, int layer, int in, int out)
{
    static const struct table none = {.from = -1, .to = -1};
    struct step *s = &w->step[w->nsteps++];
    struct table x = none, y = none, r;
    /* The one with the larger index first, as the last table takes its place. */
    if (in > out) {
        x = take_table(w, in);
        y = out >= 0 ? take_table(w, out) : none;
    } else if (out >= 0) {
        y = take_table(w, out);
        x = in >= 0 ? take_table(w, in) : none;
    }
    *s = (struct step){.layer = layer, .from = x.from, .to = y.to};
    for (int p = 0; p < T; p++)
        for (int t = 0; t < TOPT_ACCPAR_TYPES; t++) {
            r.cost[p][t] = INFINITY;
            for (int j = 0; j < T; j++) {
                double c = x.cost[p][j] + w->own[layer][j] + y.cost[j][t];
                if (c < r.cost[p][t]) {
                    r.cost[p][t] = c;
                    s->best[p][t] = (signed char)j;
                }
            }
        }
    r.from = x.from;
    r.to = y.to;
    if (x.from >= 0 && y.to >= 0)
        add_table(w, &r);
    for (int i = 0; i < T; i++) {
        if (x.from >= 0 && y.to < 0)
            w->own[x.from][i] += r.cost[i][0];
        if (y.to >= 0 && x.from < 0)
            w->own[y.to][i] += r.cost[0][i];
    }
    if (x.from < 0 && y.to < 0)
        w->own[layer][0] = r.cost[0][0]; /* all of what hung together with it */
    w->gone[layer] = 1;
    w->left--;
}

static int eliminate_all(struct work *w, int n, struct topt_error *err)
{
    while (w->left > 0) {
        int before = w->left;
        for (int l = 0; l < n; l++) {
            int in = only(w, l, 1), out = only(w, l, 0);
            if (!w->gone[l] && in >= -1 && out >= -1)
                eliminate(w, l, in, out);
        }
        if (w->left == before)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "shortcuts of the network cross: AccPar cuts networks whose "
                             "paths fork and join again");
    }
    return 0;
}

/* ---- the search --------------------------------------------------------------------- */

static int allowed(const struct pricing *p, int l, enum topt_accpar_type t)
{
    switch (p->system) {
    case TOPT_ACCPAR_DATA:
        return t == TOPT_ACCPAR_BATCH;
    case TOPT_ACCPAR_OWT:
        return t == (p->net->layer[l].conv ? TOPT_ACCPAR_BATCH : TOPT_ACCPAR_INPUT);
    case TOPT_ACCPAR_HYPAR:
        return t != TOPT_ACCPAR_OUTPUT;
    default:
        return 1;
    }
}

/* HyPar has no search over several paths. */
static int sees(const struct pricing *p, const struct topt_accpar_edge *e)
{
    return p->system != TOPT_ACCPAR_HYPAR || (e->to == e->from + 1 && !e->joins);
}

static void fill(const struct pricing *p, struct work *w, double share[][T])
{
    const struct topt_accpar_net *net = p->net;
    w->left = net->n;
    for (int l = 0; l < net->n; l++)
        for (enum topt_accpar_type t = 0; t < TOPT_ACCPAR_TYPES; t++) {
            share[l][t] = layer_share(p, l, t);
            w->own[l][t] = allowed(p, l, t) ? own_cost(p, l, t, share[l][t]) : INFINITY;
        }
    for (int i = 0; i < net->nedges; i++) {
        const struct topt_accpar_edge *e = &net->edge[i];
        if (!sees(p, e))
            continue;
        struct table table = {.from = e->from, .to = e->to};
        for (enum topt_accpar_type a = 0; a < TOPT_ACCPAR_TYPES; a++)
            for (enum topt_accpar_type b = 0; b < TOPT_ACCPAR_TYPES; b++) {
                double elements[2];
                edge_exchange(p, e, a, b, share[e->from][a], share[e->to][b], elements);
                table.cost[a][b] = price(p, elements);
            }
        add_table(w, &table);
    }
}

/* Seconds of all exchanges at the cut, the slower side's of each. */
static double slowest_exchanges(const struct pricing *p, const struct topt_accpar_cut *c)
{
    double sum = 0, elements[2];
    for (int l = 0; l < p->net->n; l++) {
        layer_exchange(p, l, c->type[l], c->share[l], elements);
        sum += slower(p->sides, elements);
    }
    for (int i = 0; i < p->net->nedges; i++) {
        const struct topt_accpar_edge *e = &p->net->edge[i];
        edge_exchange(p, e, c->type[e->from], c->type[e->to], c->share[e->from],
                      c->share[e->to], elements);
        sum += slower(p->sides, elements);
    }
    return sum;
}

int topt_accpar_cut(const struct topt_accpar_net *net,
                    const struct topt_accpar_part *part,
                    const struct topt_accpar_sides *sides, enum topt_accpar_system system,
                    struct topt_accpar_cut *ret, struct topt_error *err)
{
    struct pricing p = {net, part, sides, system};
    struct work w = {.ntables = 0};
    double share[TOPT_ACCPAR_LAYERS][T];
    *ret = (struct topt_accpar_cut){.cost = 0};
    fill(&p, &w, share);
    if (eliminate_all(&w, net->n, err))
        return -1;
    for (int i = w.nsteps - 1; i >= 0; i--) {
        const struct step *s = &w.step[i];
        int a = s->from >= 0 ? (int)ret->type[s->from] : 0;
        int b = s->to >= 0 ? (int)ret->type[s->to] : 0;
        ret->type[s->layer] = (enum topt_accpar_type)s->best[a][b];
        ret->share[s->layer] = share[s->layer][ret->type[s->layer]];
        if (s->from < 0 && s->to < 0) /* the last one of what hangs together */
            ret->cost += w.own[s->layer][0];
    }
    ret->exchange_seconds = slowest_exchanges(&p, ret);
    return 0;
}

double topt_accpar_cost(const struct topt_accpar_net *net,
                        const struct topt_accpar_part *part,
                        const struct topt_accpar_sides *sides,
                        enum topt_accpar_system system, const enum topt_accpar_type *type)
{
    struct pricing p = {net, part, sides, system};
    double sum = 0, share[TOPT_ACCPAR_LAYERS], elements[2];
    for (int l = 0; l < net->n; l++) {
        share[l] = layer_share(&p, l, type[l]);
        sum += allowed(&p, l, type[l]) ? own_cost(&p, l, type[l], share[l]) : INFINITY;
    }
    for (int i = 0; i < net->nedges; i++) {
        const struct topt_accpar_edge *e = &net->edge[i];
        edge_exchange(&p, e, type[e->from], type[e->to], share[e->from], share[e->to],
                      elements);
        sum += sees(&p, e) ? price(&p, elements) : 0;
    }
    return sum;
}
