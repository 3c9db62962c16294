/* rival.c - what slices that were searched leave of another.
 *
 * Slices are compared at their ports before any is searched (outdo.c, arm.c).  An entry of a port
 * counts there by the worst that a rival has beside it anywhere:
 *
 *     port 1, entries  a b c d e       saves at least 1 at a, 5 at b to e
 *     port 2, entries  p q r           loses at most  3 at p, 2 at q and r:    not outdone
 *
 * But in a band only strategies matter that weigh hardly more than the lightest, and these are few
 * at the ends of an arm: without a and p nothing is left to find there.  One weighing says which
 * entries, and which of their alternatives, can be part of such a strategy.
 *
 * What is left is compared once more, point by point, while tables are made.  The rival may have the
 * part of a strategy that a port belongs to, too, and better by more than what is lost where the
 * other ports become the rival's:
 *
 *     this slice    --p-- [port 1 | a chain ] --x-- ... [port 2]       p is superfluous where
 *     the rival     --q-- [port 1 | a chain ] --x-- ... [port 2]         q + loss at 2 <= p
 *
 * Short lists have nothing that near.  But they become long along a chain, and if the slice is a little
 * worse throughout, there is a q below nearly every p.  So of the Transformer's slices, byte by byte, a
 * thirtieth of the points is left; it makes nothing superfluous that the rival does not find, whose
 * own points are not left out.  (That needs the tables of the rival for the same band; they are kept
 * where it took long.) */
#include "rival.h"

#include "bits.h"

#include <stdlib.h>
#include <string.h>

void topt_kept_fini(struct kept *k)
{
    for (int i = 0; i < k->n; i++)
        topt_maker_fini(&k->band[i].maker);
    free(k->band);
    *k = (struct kept){0};
}

static int nports(const struct rivals *r)
{
    return r->ncut + r->narms;
}

/* ---- tables of the same ---- */

/* A table of the slice, and the rival's of the same operators and edges. */
struct match {
    const struct table *table; /* NULL: none */
    int32_t *entry;            /* by entry: the rival's, or -1 */
    int64_t outside;           /* ports that are not in it; the others are */
};

/* Sets of a plan's operators and edges. */
struct parts {
    size_t words;
    uint64_t *of; /* by place */
};

/* What each place is made of. */
static int find_parts(struct parts *s, const struct plan *plan, struct topt_arena *a)
{
    int nops = plan->problem->nops;
    s->words = topt_bits_words((size_t)nops + (size_t)plan->problem->nedges);
    s->of = TOPT_NEW(a, (size_t)plan->nplaces * s->words, uint64_t);
    for (int i = 0; s->of && i < plan->nplaces; i++) {
        const struct place *p = &plan->place[i];
        uint64_t *own = s->of + (size_t)i * s->words;
        if (p->op >= 0 || p->edge >= 0)
            topt_bits_add(own, (size_t)(p->op >= 0 ? p->op : nops + p->edge));
        for (size_t w = 0; w < s->words; w++) {
            own[w] |= p->left >= 0 ? s->of[(size_t)p->left * s->words + w] : 0;
            own[w] |= p->right >= 0 ? s->of[(size_t)p->right * s->words + w] : 0;
        }
    }
    return s->of ? 0 : -1;
}

static int has_bit(const uint64_t *set, int i)
{
    return topt_bits_has(set, (size_t)i);
}

struct matching {
    const struct rivals *r;
    const struct plan *plan;
    struct topt_arena *arena;
    struct parts own, theirs;
    int32_t **partner; /* by operator and configuration: the rival's, or -1 */
    char *several;     /* by table: it stands in several places */
};

/* Is an arm in a set, 1, or outside, 0?  It is in it with its first edge, where slices differ; what
 * is left of it outside stays as it is then, if the rival may choose it, too.  -1: parts of it are
 * in the set, but not that. */
static int arm_is_in(const struct matching *m, const struct arm *arm, const uint64_t *set)
{
    int nops = m->plan->problem->nops, in = 0, left_out = 0;
    int first = has_bit(set, nops + arm->edge[1]);
    for (int i = 1; i < arm->nops; i++) {
        in |= has_bit(set, arm->op[i]) || has_bit(set, nops + arm->edge[i]);
        left_out |= m->r->plan_config[arm->op[i]] && !has_bit(set, arm->op[i]);
    }
    return first ? (left_out ? -1 : 1) : in ? -1 : 0;
}

/* The ports outside a set.  -1 where one is only partly in it. */
static int64_t ports_outside(const struct matching *m, const uint64_t *set)
{
    const struct rivals *r = m->r;
    int64_t outside = 0;
    for (int k = 0; k < nports(r); k++) {
        int in = k < r->ncut ? has_bit(set, r->cut[k])
                             : arm_is_in(m, &r->arm[k - r->ncut], set);
        if (in < 0)
            return -1;
        outside |= (int64_t)!in << k;
    }
    return outside;
}

/* The rival's configuration by each of an operator's; numbers in the whole rise in both. */
static int32_t *find_partners(struct matching *m, int op)
{
    const struct rivals *r = m->r;
    const int32_t *own = r->config[op], *theirs = r->plan_config[op];
    int n = m->plan->problem->op[op].nconfigs, at = 0,
        nat = r->plan->problem->op[op].nconfigs;
    int32_t *ret = TOPT_NEW(m->arena, n, int32_t);
    for (int c = 0; ret && c < n; c++) {
        int32_t whole = own ? own[c] : c;
        while (at < nat && (theirs ? theirs[at] : at) < whole)
            at++;
        ret[c] = at < nat && (theirs ? theirs[at] : at) == whole ? at : -1;
    }
    return ret;
}

static int is_cut(const struct rivals *r, int op)
{
    int k = 0;
    while (k < r->ncut && r->cut[k] != op)
        k++;
    return k < r->ncut;
}

/* The rival's class by each of a dimension's; -1 where it has none, or several.  Of an operator that
 * is cut each has the only one. */
static int32_t *match_classes(struct matching *m, const struct factor *f,
                              const struct factor *g, int d)
{
    enum { UNKNOWN = -2 };
    int op = f->op[d], n = f->view[d].n;
    int32_t *ret = TOPT_NEW(m->arena, n, int32_t);
    if (!ret || (n == 1 && g->view[d].n == 1 && is_cut(m->r, op)))
        return ret;
    for (int i = 0; i < n; i++)
        ret[i] = UNKNOWN;
    for (int c = 0; c < m->plan->problem->op[op].nconfigs; c++) {
        int32_t *at = &ret[f->view[d].of[m->plan->value[op][c]]];
        int32_t p = m->partner[op][c];
        int32_t theirs = p < 0 ? -1 : g->view[d].of[m->r->plan->value[op][p]];
        *at = *at == UNKNOWN || *at == theirs ? theirs : -1;
    }
    return ret;
}

static int match_entries(struct matching *m, const struct factor *f,
                         const struct factor *g, struct match *ret)
{
    int64_t n = f->table->nentries;
    int32_t *entry = TOPT_NEW(m->arena, n, int32_t);
    int64_t below = 1; /* entries of the dimensions after this one, here and there */
    int32_t below_g = 1;
    for (int d = f->nops - 1; entry && d >= 0; d--) {
        int32_t *class = match_classes(m, f, g, d);
        if (!class)
            return -1;
        for (int64_t e = 0; e < n; e++) {
            int32_t c = class[e / below % f->view[d].n];
            entry[e] = c < 0 || entry[e] < 0 ? -1 : entry[e] + c * below_g;
        }
        below *= f->view[d].n;
        below_g *= g->view[d].n;
    }
    ret->entry = entry;
    ret->table = g->table;
    return entry ? 0 : -1;
}

static const uint64_t *parts_of(const struct parts *s, const struct factor *f)
{
    return s->of + (size_t)f->place * s->words;
}

static const struct factor *find_factor(const struct matching *m, const struct factor *f)
{
    const struct plan *by = m->r->plan;
    for (int i = 0; i < by->nfactors; i++) {
        const struct factor *g = &by->factor[i];
        if (g->nops == f->nops && !g->table->leaf &&
            !memcmp(parts_of(&m->own, f), parts_of(&m->theirs, g),
                    m->own.words * sizeof(uint64_t)) &&
            !memcmp(g->op, f->op, (size_t)f->nops * sizeof *f->op))
            return g;
    }
    return NULL;
}

/* A table that stands in several places is left alone: it means other things in each. */
static int match_factor(struct matching *m, const struct factor *f, struct match *ret)
{
    int64_t outside = ports_outside(m, parts_of(&m->own, f));
    int64_t all = ((int64_t)1 << nports(m->r)) - 1;
    if (outside <= 0 || outside == all || f->table->leaf || m->several[f->table->id])
        return 0;
    const struct factor *g = find_factor(m, f);
    ret->outside = outside;
    return g ? match_entries(m, f, g, ret) : 0;
}

static int prepare(struct matching *m)
{
    const struct topt_search_problem *p = m->plan->problem;
    char *seen = TOPT_NEW(m->arena, m->plan->tables.nall, char);
    m->several = TOPT_NEW(m->arena, m->plan->tables.nall, char);
    m->partner = TOPT_NEW(m->arena, p->nops, int32_t *);
    if (!seen || !m->several || !m->partner || find_parts(&m->own, m->plan, m->arena) ||
        find_parts(&m->theirs, m->r->plan, m->arena))
        return -1;
    for (int i = 0; i < m->plan->nplaces; i++) {
        int id = m->plan->place[i].table->id;
        m->several[id] = seen[id];
        seen[id] = 1;
    }
    for (int i = 0; i < p->nops; i++)
        if (!(m->partner[i] = find_partners(m, i)))
            return -1;
    return 0;
}

int topt_rivals_match(struct rivals *r, const struct plan *plan, struct topt_arena *a)
{
    struct matching m = {.r = r, .plan = plan, .arena = a};
    struct match *match = TOPT_NEW(a, plan->tables.nall, struct match);
    if (!match || prepare(&m))
        return topt_search_nomem(plan->err);
    for (int i = 0; i < plan->nfactors; i++)
        if (match_factor(&m, &plan->factor[i], &match[plan->factor[i].table->id]))
            return topt_search_nomem(plan->err);
    r->match = match;
    return 0;
}

/* ---- what is near ---- */

static int64_t least_weight(const struct port *p, int entry, const struct bound *x)
{
    int64_t least = TOPT_NOTHING;
    for (int32_t k = p->first[entry]; k < p->first[entry + 1]; k++) {
        int64_t w = topt_weigh(x, p->cost[k]);
        least = w < least ? w : least;
    }
    return least;
}

/* What the lightest strategies weigh with each entry of a port. */
static void weigh_entries(const struct rivals *r, int port, const struct plan *plan,
                          const struct bound *x, int64_t *ret)
{
    for (int i = 0; i < r->port[port].n; i++)
        ret[i] = TOPT_NOTHING;
    if (port < r->ncut) {
        ret[0] = x->least[plan->place[plan->root].table->first_entry];
        return;
    }
    const struct arm *arm = &r->arm[port - r->ncut];
    int op = arm->op[arm->nops - 1];
    const struct topt_search_op *o = &plan->problem->op[op];
    int64_t first = plan->factor[op].table->first_entry;
    for (int c = 0; c < o->nconfigs; c++) {
        int64_t rest = x->rest[first + plan->value[op][c]];
        int entry = r->config[op] ? r->config[op][c] : c;
        if (rest < TOPT_NOTHING)
            ret[entry] = topt_weigh(x, o->cost[c]) + rest;
    }
}

/* A copy of a port with the alternatives that are part of strategies within the allowance. */
static int copy_near(struct topt_arena *a, const struct port *p, const int64_t *weight,
                     const struct bound *x, struct port *ret)
{
    *ret = (struct port){.n = p->n,
                         .first = TOPT_NEW(a, p->n + 1, int32_t),
                         .cost = TOPT_NEW(a, p->first[p->n], struct topt_cost),
                         .gone = TOPT_NEW(a, p->n, char)};
    if (!ret->first || !ret->cost || !ret->gone)
        return -1;
    for (int i = 0; i < p->n; i++) {
        int32_t n = ret->first[i];
        int64_t others = weight[i] - least_weight(p, i, x);
        ret->gone[i] = p->gone[i];
        for (int32_t k = p->first[i]; weight[i] <= x->allowance && k < p->first[i + 1];
             k++)
            if (others + topt_weigh(x, p->cost[k]) <= x->allowance)
                ret->cost[n++] = p->cost[k];
        ret->first[i + 1] = n;
    }
    return 0;
}

static struct port *near_ports(const struct rivals *r, const struct plan *plan,
                               const struct bound *x, struct topt_arena *a)
{
    struct port *near = TOPT_NEW(a, nports(r), struct port);
    for (int k = 0; near && k < nports(r); k++) {
        int64_t *weight = TOPT_NEW(a, r->port[k].n, int64_t);
        if (!weight)
            return NULL;
        weigh_entries(r, k, plan, x, weight);
        if (copy_near(a, &r->port[k], weight, x, &near[k]))
            return NULL;
    }
    return near;
}

/* ---- what is lost ---- */

static struct saving saving_by(struct topt_cost own, struct topt_cost by)
{
    return (struct saving){1, own.memory - by.memory, own.time - by.time};
}

/* The weight of what is lost, whatever else is saved. */
static int64_t lost(const struct bound *x, struct saving s)
{
    return -topt_weigh(x, (struct topt_cost){.memory = s.memory < 0 ? s.memory : 0,
                                             .time = s.time < 0 ? s.time : 0});
}

static struct saving nearer(const struct bound *x, struct saving a, struct saving b)
{
    return !a.possible || (b.possible && lost(x, b) < lost(x, a)) ? b : a;
}

static struct saving saving_of_nearest(const struct port *by, const struct port *s,
                                       const struct bound *x)
{
    struct saving ret = {1, INT64_MAX, INT64_MAX};
    for (int i = 0; i < s->n; i++)
        for (int32_t k = s->first[i]; !s->gone[i] && k < s->first[i + 1]; k++) {
            struct saving one = {0, 0, 0};
            for (int32_t n = by->first[i]; n < by->first[i + 1]; n++)
                one = nearer(x, one, saving_by(s->cost[k], by->cost[n]));
            ret = topt_saving_least(ret, one);
        }
    return ret;
}

/* The kept band that has most in common with the one at hand; NULL: none has anything. */
static const struct maker *find_kept(const struct kept *k, int64_t from, int64_t to)
{
    const struct maker *best = NULL;
    int64_t most = 0;
    for (int i = 0; k && i < k->n; i++) {
        const struct kept_band *b = &k->band[i];
        int64_t common = (to < b->to ? to : b->to) - (from > b->from ? from : b->from);
        if (common > most) {
            most = common;
            best = &b->maker;
        }
    }
    return best;
}

static int find_savings(struct rivalry *v, const struct port *near)
{
    const struct rivals *r = v->rivals;
    v->near = topt_arena_alloc(v->arena, (size_t)nports(r), sizeof *v->near);
    v->saving = topt_arena_alloc(v->arena, (size_t)nports(r), sizeof *v->saving);
    if (!v->near || !v->saving)
        return -1;
    for (int k = 0; k < nports(r); k++) {
        v->near[k][TOPT_NO_HEAVIER] = topt_saving_of(&r->by[0][k], &near[k]);
        v->near[k][TOPT_NEAREST] = saving_of_nearest(&r->by[0][k], &near[k], v->bound);
    }
    return 0;
}

int topt_rivalry_start(struct rivalry *v, const struct rivals *r, const struct plan *plan,
                       const struct bound *x, int64_t from, int64_t to)
{
    *v = (struct rivalry){.rivals = r, .bound = x, .arena = topt_arena_create(0)};
    struct port *near = v->arena ? near_ports(r, plan, x, v->arena) : NULL;
    int left = near ? 1 : -1;
    for (int i = 0; i < r->nby && left > 0; i++)
        left = topt_outdo(r->by[i], near, nports(r));
    if (left <= 0 || !r->match)
        return left;
    v->kept = find_kept(r->kept, from, to);
    return v->kept && find_savings(v, near) ? -1 : 1;
}

void topt_rivalry_end(struct rivalry *v)
{
    topt_arena_destroy(v->arena);
    *v = (struct rivalry){0};
}

/* ---- while tables are made ---- */

/* What was learned of fewer points is not true of more. */
void topt_rivalry_begin(struct rivalry *v)
{
    memcpy(v->saving, v->near, (size_t)nports(v->rivals) * sizeof *v->saving);
}

/* The losses are sums over the ports outside, the first two of which have each of their savings in
 * turn. */
void topt_rivalry_table(struct rivalry *v, const struct table *t)
{
    const struct match *m = &v->rivals->match[t->id];
    v->nways = 0;
    for (int way = 0; m->table && way < TOPT_RIVAL_WAYS; way++) {
        struct saving sum = {1, 0, 0};
        int rest = way;
        for (int k = 0; k < nports(v->rivals); k++)
            if (m->outside >> k & 1) {
                sum = topt_saving_sum(sum, v->saving[k][rest % TOPT_SAVINGS]);
                rest /= TOPT_SAVINGS;
            }
        if (sum.possible && !rest)
            v->loss[v->nways++] = (struct topt_cost){-sum.memory, -sum.time};
    }
}

static struct run kept_run(const struct rivalry *v, const struct match *m, int64_t entry)
{
    int32_t at = m->entry[entry];
    return at < 0 ? (struct run){0}
                  : topt_made_entry(v->kept, m->table, m->table->first_entry + at);
}

void topt_rivalry_entry(const struct rivalry *v, const struct table *t, int64_t entry,
                        struct merge_rival *ret)
{
    if (!v->nways)
        return;
    struct run run = kept_run(v, &v->rivals->match[t->id], entry - t->first_entry);
    *ret = (struct merge_rival){run.cost, run.n, v->loss, v->nways};
}

/* The port that alone is not outside; -1: there are several. */
static int only_inside(const struct match *m, int n)
{
    int inside = -1;
    for (int k = 0; k < n; k++)
        if (!(m->outside >> k & 1)) {
            if (inside >= 0)
                return -1;
            inside = k;
        }
    return inside;
}

/* Both, of points in the order of memory.  Of those that are heavier none is nearer than the first
 * that is no slower. */
static void saving_of_runs(const struct bound *x, struct run by, struct run s,
                           struct saving ret[TOPT_SAVINGS])
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        struct topt_cost own = s.cost[i];
        while (at < by.n && by.cost[at].memory <= own.memory)
            at++;
        struct saving one = {0, 0, 0};
        if (at)
            one = saving_by(own, by.cost[at - 1]);
        ret[TOPT_NO_HEAVIER] = topt_saving_least(ret[TOPT_NO_HEAVIER], one);
        for (uint32_t k = at; k < by.n; k++) {
            one = nearer(x, one, saving_by(own, by.cost[k]));
            if (by.cost[k].time <= own.time)
                break;
        }
        ret[TOPT_NEAREST] = topt_saving_least(ret[TOPT_NEAREST], one);
    }
}

static int saves_more(const struct bound *x, struct saving a, struct saving b)
{
    return a.possible && a.memory < INT64_MAX &&
           (!b.possible || topt_weigh(x, (struct topt_cost){a.memory, a.time}) >
                               topt_weigh(x, (struct topt_cost){b.memory, b.time}));
}

/* A table that has one port in it stands for the port wherever that is outside, and for no more than
 * what is left of it: it is one long arm. */
void topt_rivalry_learn(struct rivalry *v, const struct maker *k, const struct table *t)
{
    const struct match *m = &v->rivals->match[t->id];
    int port = m->table ? only_inside(m, nports(v->rivals)) : -1;
    struct saving all[TOPT_SAVINGS];
    if (port < 0)
        return;
    for (int i = 0; i < TOPT_SAVINGS; i++)
        all[i] = (struct saving){1, INT64_MAX, INT64_MAX};
    for (int64_t e = 0; e < t->nentries; e++)
        saving_of_runs(v->bound, kept_run(v, m, e),
                       topt_made_entry(k, t, t->first_entry + e), all);
    for (int i = 0; i < TOPT_SAVINGS; i++)
        if (saves_more(v->bound, all[i], v->saving[port][i]))
            v->saving[port][i] = all[i];
}
