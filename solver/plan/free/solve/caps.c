/* caps.c - a problem under caps on what is in flight, and what a point of its search
 * means.
 *
 * Configurations and alternatives that need more than a cap are left out of the lists. */
#include "exact.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

/* Bytes in flight that are charged to a configuration: its own, or of several variables each
 * its part. */
static int64_t charged(const struct topt_problem *p, const struct domain *c,
                       const struct value *v)
{
    int64_t transient = c->charge_transient ? v->transient / c->charge_transient : 0;
    int64_t waiting = c->charge_waiting ? v->waiting / c->charge_waiting : 0;
    return topt_capped_bytes(p, (struct topt_caps){transient, waiting});
}

static void cap_domain(const struct topt_problem *p, struct domain *c,
                       struct topt_caps caps)
{
    c->nkept = 0;
    for (int i = 0; i < c->n; i++) {
        const struct value *v = &c->at[i];
        if ((caps.transient >= 0 && v->transient > caps.transient) ||
            (caps.crossing >= 0 && v->waiting > caps.crossing))
            continue;
        int64_t memory = v->cost.memory + charged(p, c, v);
        c->kept[c->nkept] = i;
        c->kept_cost[c->nkept] = p->swapped ? (struct topt_cost){v->cost.time, memory}
                                            : (struct topt_cost){memory, v->cost.time};
        for (int k = 0; k < c->nparts; k++) {
            const struct family *f = &p->family[c->part[k].family];
            for (int s = 0; s < AS_CONSUMER + f->ninputs; s++)
                c->part[k].class[s][c->nkept] = f->at[v->config].class[s];
        }
        c->nkept++;
    }
}

static struct topt_search_edge search_edge(const struct topt_problem *p,
                                           const struct term *l)
{
    const struct multiplicity *t = &p->multiplicity[l->multiplicity];
    const struct domain_part *from = &topt_domain(p, l->from)->part[l->from_part];
    const struct domain_part *to = &topt_domain(p, l->to)->part[l->to_part];
    const int32_t *out = from->class[AS_PRODUCER],
                  *in = to->class[AS_CONSUMER + l->input];
    return t->transposed ? (struct topt_search_edge){l->to, l->from, &t->at, in, out}
                         : (struct topt_search_edge){l->from, l->to, &t->at, out, in};
}

/* Equal numbers only. */
static struct topt_search_edge mirror_edge(const struct topt_problem *p, struct mirror *m)
{
    int n = topt_domain(p, m->of)->nkept;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            m->first[i * n + j + 1] = i + (j >= i);
    m->table = (struct topt_table){n, n, m->first, m->nothing};
    return (struct topt_search_edge){m->of, m->variable, &m->table, m->number, m->number};
}

const struct topt_search_problem *topt_capped_problem(struct topt_problem *p,
                                                      struct topt_caps caps)
{
    for (int i = 0; i < p->ndomains; i++)
        cap_domain(p, &p->domain[i], caps);
    for (int i = 0; i < p->nmultiplicities; i++)
        topt_multiplicity_cap(p, &p->multiplicity[i], caps.transient);
    for (int i = 0; i < p->nvariables; i++) {
        const struct domain *c = topt_domain(p, i);
        p->search_op[i] =
            (struct topt_search_op){p->variable[i].name, c->nkept, c->kept_cost};
    }
    for (int i = 0; i < p->nterms; i++)
        p->search_edge[i] = search_edge(p, &p->term[i]);
    for (int i = 0; i < p->nmirrors; i++) {
        p->search_op[p->mirror[i].variable].cost = p->mirror[i].nothing;
        p->search_edge[p->nterms + i] = mirror_edge(p, &p->mirror[i]);
    }
    p->search = (struct topt_search_problem){p->nvariables, p->search_op,
                                             p->nterms + p->nmirrors, p->search_edge};
    return &p->search;
}

void topt_capped_swap_objectives(struct topt_problem *p, int swapped)
{
    if (p->swapped != swapped)
        topt_multiplicities_exchange(p);
    p->swapped = swapped;
}

/* ---- bounds ------------------------------------------------------------------------ */

/* The bytes in flight that every configuration of a domain has at least. */
static struct topt_caps least_of(const struct domain *c)
{
    struct topt_caps best = {0, 0};
    for (int i = 0; i < c->n; i++) {
        best.transient =
            i ? topt_min(best.transient, c->at[i].transient) : c->at[i].transient;
        best.crossing = i ? topt_min(best.crossing, c->at[i].waiting) : c->at[i].waiting;
    }
    return best;
}

struct topt_caps topt_capped_least(const struct topt_problem *p)
{
    struct topt_caps all = {0, 0};
    for (int i = 0; i < p->nvariables - p->nmirrors; i++) {
        const struct domain *c = topt_domain(p, i);
        struct topt_caps own = least_of(c);
        all.transient = topt_max(all.transient, own.transient);
        all.crossing = topt_max(all.crossing, own.crossing);
    }
    return all;
}

struct topt_cost topt_problem_lower_bound(const struct topt_problem *p)
{
    struct topt_cost sum = {topt_capped_bytes(p, topt_capped_least(p)), 0};
    for (int i = 0; i < p->nvariables - p->nmirrors; i++) {
        const struct domain *c = topt_domain(p, i);
        struct topt_cost best = c->n ? c->at[0].cost : (struct topt_cost){0, 0};
        for (int k = 1; k < c->n; k++)
            best = (struct topt_cost){topt_min(best.memory, c->at[k].cost.memory),
                                      topt_min(best.time, c->at[k].cost.time)};
        sum = (struct topt_cost){sum.memory + best.memory, sum.time + best.time};
    }
    for (int i = 0; i < p->nterms; i++) {
        struct topt_cost best = p->multiplicity[p->term[i].multiplicity].least;
        sum = (struct topt_cost){sum.memory + best.memory, sum.time + best.time};
    }
    return sum;
}

/* The domain that needs most at least; NULL where none needs anything. */
static struct domain *neediest(const struct topt_problem *p, int waiting)
{
    struct domain *most = NULL;
    int64_t bytes = 0;
    for (int i = 0; i < p->ndomains; i++) {
        struct domain *c = &p->domain[i];
        struct topt_caps own = least_of(c);
        int64_t need = waiting ? own.crossing : own.transient;
        if (need > bytes) {
            bytes = need;
            most = c;
        }
    }
    return most;
}

static int places_of(const struct topt_problem *p, const struct domain *c)
{
    int n = 0;
    for (int i = 0; i < p->nvariables - p->nmirrors; i++)
        n += topt_domain(p, i) == c;
    return n;
}

void topt_capped_count_in_flight(struct topt_problem *p, int on)
{
    for (int i = 0; i < p->ndomains; i++)
        p->domain[i].charge_transient = p->domain[i].charge_waiting = 0;
    struct domain *transient = on ? neediest(p, 0) : NULL;
    struct domain *waiting = on ? neediest(p, 1) : NULL;
    if (transient)
        transient->charge_transient = places_of(p, transient);
    if (waiting)
        waiting->charge_waiting = places_of(p, waiting);
}

/* ---- caps that matter -------------------------------------------------------------- */

int64_t topt_capped_bytes(const struct topt_problem *p, struct topt_caps caps)
{
    return caps.transient + p->spans.crossing * caps.crossing;
}

/* The nearest value to 'from', above or below it; 'best' is what was so far. */
static int64_t nearer(int64_t best, int64_t value, enum topt_side side, int64_t from)
{
    if (side == TOPT_ABOVE)
        return value > from && value < best ? value : best;
    return value < from && value > best ? value : best;
}

int64_t topt_nearest_crossing(const struct topt_problem *p, enum topt_side side,
                              int64_t from)
{
    int64_t best = side == TOPT_ABOVE ? INT64_MAX : -1;
    for (int i = 0; i < p->ndomains; i++)
        for (int c = 0; c < p->domain[i].n; c++)
            best = nearer(best, p->domain[i].at[c].waiting, side, from);
    return best;
}

int64_t topt_nearest_transient(const struct topt_problem *p, enum topt_side side,
                               int64_t from)
{
    int64_t best = side == TOPT_ABOVE ? INT64_MAX : -1;
    uint64_t occurs[TOPT_TRANSIENT_CODES / 64] = {0};
    for (int i = 0; i < p->ndomains; i++)
        for (int c = 0; c < p->domain[i].n; c++)
            best = nearer(best, p->domain[i].at[c].transient, side, from);
    for (int i = 0; i < p->ntables; i++)
        for (int k = 0; k < TOPT_TRANSIENT_CODES / 64; k++)
            occurs[k] |= p->table[i].occurs[k];
    for (int code = 0; code < TOPT_TRANSIENT_CODES; code++)
        if (occurs[code / 64] >> code % 64 & 1)
            best = nearer(best, topt_transient_of(code), side, from);
    return best;
}

struct topt_caps topt_caps_within(const struct topt_problem *p, struct topt_caps low,
                                  struct topt_caps high, int64_t bytes)
{
    int64_t w = p->spans.crossing;
    if (bytes < high.transient - low.transient)
        high.transient = topt_nearest_transient(p, TOPT_BELOW, low.transient + bytes + 1);
    if (w && bytes / w < high.crossing - low.crossing)
        high.crossing =
            topt_nearest_crossing(p, TOPT_BELOW, low.crossing + bytes / w + 1);
    return high;
}

struct topt_caps topt_capped_most(const struct topt_problem *p)
{
    return (struct topt_caps){topt_nearest_transient(p, TOPT_BELOW, INT64_MAX),
                              topt_nearest_crossing(p, TOPT_BELOW, INT64_MAX)};
}

/* ---- points ------------------------------------------------------------------------ */

/* The configuration that a point takes for a variable. */
static const struct value *chosen(const struct topt_problem *p, int variable,
                                  const struct topt_search_point *point)
{
    const struct domain *c = topt_domain(p, variable);
    return &c->at[c->kept[point->config[variable]]];
}

/* The alternative that a point takes on term 'l'. */
static struct taken_edge taken(const struct topt_problem *p, int l,
                               const struct topt_search_point *point)
{
    const struct topt_search_edge *e = &p->search_edge[l];
    return (struct taken_edge){&p->multiplicity[p->term[l].multiplicity],
                               e->from_class[point->config[e->from]],
                               e->to_class[point->config[e->to]], point->alt[l]};
}

struct topt_strategy *topt_capped_strategy(const struct topt_problem *p,
                                           const struct topt_search_point *point)
{
    enum { OPEN = 255 }; /* what no edge of a term has asked for yet */
    struct topt_strategy *s = topt_strategy_create(p->k.model);
    uint8_t *keep = s ? malloc((size_t)p->nterms + 1) : NULL;
    if (!keep) {
        topt_strategy_destroy(s);
        return NULL;
    }
    memset(keep, OPEN, (size_t)p->nterms);
    for (int i = 0; i < p->nnodes; i++) {
        const struct node *n = &p->node[i];
        const struct choice *c =
            &p->family[n->family].at[chosen(p, n->variable, point)->config];
        if (n->op >= 0)
            s->config[n->op] = c->config;
        else
            s->hub[n->tensor] = (struct topt_hub){c->config, c->hub_keep};
    }
    for (int i = 0; i < p->nedges; i++) {
        const struct edge *e = &p->edge[i];
        if (e->op >= 0 && keep[e->term] == OPEN)
            keep[e->term] = topt_taken_fact(p, taken(p, e->term, point)).keep;
        if (e->op >= 0)
            s->keep[e->op * TOPT_MAX_INPUTS + e->input] = keep[e->term];
    }
    free(keep);
    return s;
}

static struct topt_caps caps_of(const struct topt_problem *p,
                                const struct topt_search_point *point)
{
    struct topt_caps most = {0, 0};
    for (int i = 0; i < p->nvariables; i++) {
        const struct value *v = chosen(p, i, point);
        most.transient = topt_max(most.transient, v->transient);
        most.crossing = topt_max(most.crossing, v->waiting);
    }
    for (int i = 0; i < p->nterms; i++)
        most.transient =
            topt_max(most.transient,
                     topt_transient_of(topt_taken_fact(p, taken(p, i, point)).transient));
    return most;
}

/* Add the bytes that an operator, the hub of its tensor or an edge to it recomputes to the sum of its
 * block or unit.  Returns the part of them that the search charged. */
static int64_t add_of_node(const struct topt_problem *p, const struct node *n,
                           int64_t bytes, int64_t *sum)
{
    int op = topt_node_operator(p, n),
        with = topt_recomputed_with(p->k.model, p->k.settings, op);
    sum[with < 0 ? op : with] += bytes;
    return bytes / p->family[n->family].among;
}

/* Add up recomputed bytes by the first operator of each block or unit.  Returns what the search
 * charged for free blocks. */
static int64_t add_recomputed(const struct topt_problem *p,
                              const struct topt_search_point *point, int64_t *sum)
{
    int64_t paid = 0;
    for (int i = 0; i < p->nnodes; i++) {
        const struct node *n = &p->node[i];
        int config = chosen(p, n->variable, point)->config;
        paid += add_of_node(p, n, p->family[n->family].at[config].recomputed, sum);
    }
    for (int i = 0; i < p->nedges; i++) {
        int64_t bytes = topt_taken_recomputed(p, taken(p, p->edge[i].term, point));
        paid += add_of_node(p, &p->node[p->edge[i].to], bytes, sum);
    }
    return paid;
}

/* Bytes that the search charged for recomputation in blocks alike or units (block_folding.c): by
 * their variables, and by one edge of those that stand at the same place. */
static int64_t paid_once(const struct topt_problem *p,
                         const struct topt_search_point *point)
{
    int64_t paid = 0;
    for (int i = 0; i < p->nvariables - p->nmirrors;
         i++) { /* mirrors, the last, are free */
        const struct domain *c = topt_domain(p, i);
        int config = chosen(p, i, point)->config;
        int64_t most = 0;
        for (int k = 0; k < c->nparts; k++)
            most = topt_max(most, p->family[c->part[k].family].at[config].recomputed);
        paid += most * topt_parts_once(p, c->part, c->nparts);
    }
    for (int l = 0; l < p->nterms; l++) {
        struct taken_edge x = taken(p, l, point);
        if (x.of->once)
            paid += x.of->once * topt_taken_recomputed(p, x);
    }
    return paid;
}

int topt_capped_need(const struct topt_problem *p, const struct topt_search_point *point,
                     struct topt_need *ret, struct topt_error *err)
{
    const struct topt_settings *s = p->k.settings;
    *ret = (struct topt_need){.caps = caps_of(p, point)};
    if (!p->may_recompute)
        return 0;
    int64_t *sum = calloc((size_t)p->k.model->nops + 1, sizeof *sum);
    if (!sum)
        return topt_nomem(err, "a strategy");
    int64_t paid = add_recomputed(p, point, sum);
    if (p->options.alike || s->by_unit)
        paid = paid_once(p, point);
    int64_t unpaid = topt_recomputed_at_once(p->k.model, s, sum) - paid;
    ret->excess = topt_max(unpaid, 0);
    ret->surplus = topt_max(-unpaid, 0);
    free(sum);
    return 0;
}

void topt_capped_mark(const struct topt_problem *p, int search_op, uint8_t *mark)
{
    for (int i = 0; i < p->nmirrors; i++)
        if (p->mirror[i].variable == search_op)
            search_op = p->mirror[i].of;
    for (int i = 0; i < p->nnodes; i++) {
        const struct node *n = &p->node[i];
        if (n->variable == search_op)
            mark[n->op >= 0 ? n->op : p->k.model->nops + n->tensor] = 1;
    }
}

int topt_capped_is_exact_for(const struct topt_problem *p, const struct topt_strategy *s)
{
    return !p->may_recompute || topt_recomputes(s);
}
