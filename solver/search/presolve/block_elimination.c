/* block_elimination.c - blocks become edges: tables of what a block costs between its
 * ends, made once.
 *
 *          .-- q -- k -- v --.                    T(r, a): for each configuration of the
 *     --- r                   a ---    -->  r === a    fork and of the join, the frontier of
 *          '-----------------'                    all that is between
 *
 * Where the graph falls apart at an operator (articulation.h), strategies are best
 * carried from one such operator to the next.  What is between two of them is a small
 * problem of its own: it is solved whole, to a short frontier for each pair of
 * configurations, and takes the place of an edge whose alternatives are the frontier's
 * points.  Blocks that are alike are one table (elimination.c finds them), so a model's
 * depth costs nothing here, while every layer stays free to choose.
 *
 * Every table, the edges' own first, is thinned (table_dominance.c) before anything is
 * made of it.
 *
 * An operator goes only if the table that comes of it is over at most two others, has few
 * points an entry and takes a bounded number of sums; otherwise it stays an operator. */

#include "articulation.h"
#include "condensed.h"
#include "presolve_tuning.h"
#include "search_common.h"
#include "table_dominance.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state of a table.  The points of a BROKEN one are not made, nor those of any that is made of
 * it. */
enum verdict { NOT_MADE, ACCEPTED, REFUSED, BROKEN };

struct condensing {
    const struct topt_search_problem *p;
    const struct topt_search_options *options;
    struct condensed *c;
    struct topt_error *err;
    struct topt_error failed; /* of the plan, where that only refuses a table */
    char *stays;              /* by operator */
    char *gone;               /* by operator: eliminated */
    int *span;     /* by operator: others that it shares a factor with, up to 3 */
    char *verdict; /* by table */
    size_t nverdicts, nmade; /* tables whose points are made, or that are broken */
    int64_t work, max_work;
    struct table_dominance thinner;
    struct topt_pool *pool; /* NULL: no threads */
    int64_t thick, thinned; /* points of tables before they were thinned, and after */
    int64_t largest;        /* table that is kept, by its size; 0: any */
};

/* ---- making one more table whole --------------------------------------------------- */

static int is_broken(const struct condensing *k, const struct table *t)
{
    return k->verdict[t->id] == BROKEN;
}

static int made_of_broken(const struct condensing *k)
{
    const struct tables *ts = &k->c->plan.tables;
    for (size_t i = k->nmade; i < ts->nall; i++) {
        const struct step *how = &ts->all[i]->how;
        if (is_broken(k, how->a) || (how->b && is_broken(k, how->b)))
            return 1;
    }
    return 0;
}

/* New tables without points: none of them, nor what was made of them, is used again. */
static void give_up(struct condensing *k, size_t points)
{
    struct maker *m = &k->c->maker;
    for (size_t i = k->nmade; i < k->c->plan.tables.nall; i++)
        k->verdict[i] = BROKEN;
    m->merge.n = points;
    m->merge.failed = TOPT_OK; /* an overflow may be of what is never needed */
    m->merge.too_big = 0;
}

static int64_t count_points(const struct condensing *k, const struct table *t)
{
    int64_t n = 0;
    if (t->leaf)
        return t->npoints;
    for (int64_t e = t->first_entry; e < t->first_entry + t->nentries; e++)
        n += k->c->maker.count[e];
    return n;
}

/* The approximate work of carrying a frontier across a table: its entries are weighed, its
 * points merged. */
static int64_t size_of(const struct condensing *k, const struct table *t)
{
    return t->nentries + count_points(k, t);
}

/* How many points the new tables have: what comes next is chosen by that. */
static void note_means(struct condensing *k)
{
    const struct tables *ts = &k->c->plan.tables;
    for (size_t i = k->nmade; i < ts->nall; i++)
        if (ts->all[i]->nentries)
            ts->all[i]->mean =
                ((double)count_points(k, ts->all[i]) + 1) / (double)ts->all[i]->nentries;
}

/* The entries of the largest table that is not made yet. */
static int64_t largest_entries(const struct condensing *k)
{
    const struct tables *ts = &k->c->plan.tables;
    int64_t n = 0;
    for (size_t i = k->nmade; i < ts->nall; i++)
        n = topt_max(n, ts->all[i]->nentries);
    return n;
}

/* Points of all tables from 'nmade' on.  1, 0 where that takes too much, or -1. */
static int make_new(struct condensing *k, int mean)
{
    struct maker *m = &k->c->maker;
    size_t points = m->merge.n;
    int64_t work = m->merge.products;
    int64_t most = topt_max(TABLE_WORK, ENTRY_WORK * largest_entries(k));
    m->mean = mean;
    struct topt_error err = {0};
    enum topt_made made = made_of_broken(k)
                              ? TOPT_MADE_TOO_MUCH
                              : topt_make_more(m, k->nmade, work + most, &err);
    k->work += m->merge.products - work;
    if (made == TOPT_MADE_FAILED && err.code != TOPT_ERR_LIMIT) {
        if (k->err)
            *k->err = err;
        return -1;
    }
    if (made != TOPT_MADE)
        give_up(k, points);
    if (made == TOPT_MADE)
        note_means(k);
    k->nmade = k->c->plan.tables.nall;
    return made == TOPT_MADE;
}

static int make_verdicts(struct condensing *k)
{
    size_t n = k->c->plan.tables.nall;
    if (n <= k->nverdicts)
        return 0;
    if (TOPT_RESIZE(k->verdict, n))
        return topt_search_nomem(k->err);
    memset(k->verdict + k->nverdicts, NOT_MADE, n - k->nverdicts);
    k->nverdicts = n;
    return 0;
}

/* Is the table of a new factor one to keep, of at most so many points an entry in the
 * mean? */
static int accept_table(struct condensing *k, const struct table *t, int mean)
{
    if (make_verdicts(k))
        return -1;
    if (t->leaf)
        return 1;
    if (k->verdict[t->id] == NOT_MADE) {
        int made = make_new(k, mean);
        if (made < 0)
            return -1;
        int64_t points = made ? count_points(k, t) : 0;
        if (made)
            k->verdict[t->id] =
                points <= topt_max(TABLE_POINTS, ENTRY_POINTS * t->nentries) &&
                        points <= mean * t->nentries
                    ? ACCEPTED
                    : REFUSED;
    }
    return k->verdict[t->id] == ACCEPTED;
}

/* Tables of an elimination that was refused before any of them was made: none uses
 * them. */
static int mark_broken(struct condensing *k)
{
    if (make_verdicts(k))
        return -1;
    for (; k->nmade < k->c->plan.tables.nall; k->nmade++)
        k->verdict[k->nmade] = BROKEN;
    return 0;
}

/* Leave out what a substitution at either end dominates; where that takes too much the
 * table stays as it is. */
static int thin(struct condensing *k, int factor)
{
    struct table *table = k->c->plan.factor[factor].table;
    size_t points = k->c->maker.merge.n;
    int64_t work = k->thinner.work;
    struct topt_error err = {0};
    if (k->c->plan.factor[factor].nops != 2 ||
        !(k->thick < THIN_POINTS || (k->thick - k->thinned) * THIN_PART > k->thick))
        return 0;
    if (mark_broken(k))
        return -1;
    int64_t thick = count_points(k, table);
    int rc = topt_table_dominance_apply(&k->thinner, factor, &err);
    k->work += k->thinner.work - work;
    if (make_verdicts(k))
        return -1;
    if (rc && err.code != TOPT_ERR_LIMIT) {
        if (k->err)
            *k->err = err;
        return -1;
    }
    if (rc) {
        give_up(k, points);
    } else {
        memset(k->verdict + k->nmade, ACCEPTED, k->nverdicts - k->nmade);
        note_means(k);
        k->thick += thick;
        k->thinned += count_points(k, k->c->plan.factor[factor].table);
    }
    k->nmade = k->c->plan.tables.nall;
    return 0;
}

/* The edges themselves, before anything is made of them. */
static int thin_edges(struct condensing *k)
{
    int n = k->p->nops + k->p->nedges;
    for (int i = k->p->nops; i < n && !topt_search_stopped(k->options); i++)
        if (thin(k, i))
            return -1;
    return 0;
}

/* ---- trying, and taking back ------------------------------------------------------- */

/* Judge a step of the plan that failed: 0 where only the table is refused. */
static int refused(struct condensing *k)
{
    if (k->failed.code == TOPT_ERR_LIMIT)
        return 0;
    if (k->err)
        *k->err = k->failed;
    return -1;
}

/* A new factor over one operator and what that costs itself become one, if that is a
 * table to keep: an operator that stays has one list of costs.  1, 0, or -1. */
static int add_to_own(struct condensing *k, int made)
{
    struct elimination_plan *p = &k->c->plan;
    int op = p->factor[made].op[0], own;
    topt_own_factor(p, op, &own);
    int both = topt_elimination_multiply(p, own, made);
    return both < 0 ? refused(k) : accept_table(k, p->factor[both].table, OWN_POINTS);
}

/* Eliminate operator 'op', or (op -1) multiply two factors, if the table is one to keep.
 * 1, 0, or -1. */
static int try_elimination(struct condensing *k, int op, int a, int b)
{
    struct elimination_plan *p = &k->c->plan;
    int before = p->nfactors;
    int made =
        op >= 0 ? topt_elimination_step(p, op) : topt_elimination_multiply(p, a, b);
    int rc = made < 0 ? refused(k) : accept_table(k, p->factor[made].table, MEAN_POINTS);
    if (rc > 0 && p->factor[made].nops == 1)
        rc = add_to_own(k, made);
    else if (rc > 0 && thin(k, made))
        rc = -1;
    if (rc > 0 && k->largest && size_of(k, p->factor[made].table) > k->largest)
        rc = 0;
    if (rc == 0)
        topt_elimination_take_back(p, before);
    return rc;
}

/* ---- which operators go ------------------------------------------------------------ */

/* Does a block begin next to the operator? */
static int at_beginning(const struct condensing *k, int op)
{
    const struct elimination_plan *p = &k->c->plan;
    for (int i = p->factors_of[op].first; i >= 0; i = topt_factor_after(p, op, i)) {
        const struct factor *f = &p->factor[i];
        for (int d = 0; d < f->nops; d++)
            if (k->stays[f->op[d]] && f->op[d] < op)
                return 1;
    }
    return 0;
}

enum { MOST_SPAN = 2 }; /* with more its table would be over too many */

static void find_span(struct condensing *k, int op)
{
    struct elimination_plan *p = &k->c->plan;
    int stamp = ++p->stamp, others = -1; /* itself */
    for (int i = p->factors_of[op].first; i >= 0 && others <= MOST_SPAN;
         i = topt_factor_after(p, op, i)) {
        const struct factor *f = &p->factor[i];
        for (int d = 0; d < f->nops; d++) {
            others += p->seen[f->op[d]] != stamp;
            p->seen[f->op[d]] = stamp;
        }
    }
    k->span[op] = others;
}

/* Among operators that may be eliminated, those next to the beginning of a block are last, the
 * cheaper one first.  A table between two others has one edge outside at either end, and is thinned
 * at both; one from a fork on has several there, and hardly anything of it is left out.
 * The last step of a block then is by an edge's own table, which has few points. */
static void rate_operator(struct condensing *k, int op)
{
    struct elimination_plan *p = &k->c->plan;
    find_span(k, op);
    topt_elimination_order_drop(&p->queue, op);
    if (k->stays[op] || k->gone[op] || k->span[op] < 1 || k->span[op] > MOST_SPAN)
        return;
    struct elimination_rank rank = topt_elimination_rate(p, op);
    rank.rank += at_beginning(k, op) ? TOPT_RANKS : 0;
    topt_elimination_order_put(&p->queue, op, rank);
}

/* Operators that share a factor with one that has gone look different now. */
static void rate_neighbours(struct condensing *k, const struct factor *f)
{
    for (int d = 0; d < f->nops; d++)
        rate_operator(k, f->op[d]);
}

static int eliminate_blocks(struct condensing *k)
{
    struct elimination_plan *p = &k->c->plan;
    for (int i = 0; i < k->p->nops; i++)
        rate_operator(k, i);
    for (int op; k->work < k->max_work && !topt_search_stopped(k->options) &&
                 (op = topt_elimination_order_first(&p->queue)) >= 0;) {
        int rc = try_elimination(k, op, -1, -1);
        if (rc < 0)
            return -1;
        topt_elimination_order_drop(&p->queue, op);
        if (rc) {
            k->gone[op] = 1;
            rate_neighbours(k, &p->factor[p->nfactors - 1]);
        } else {
            k->stays[op] = 1;
        }
    }
    return 0;
}

/* ---- parallel edges ---------------------------------------------------------------- */

/* Parallel edges become one, two and two, as far as that does not make them much
 * longer. */
static int multiply_run(struct condensing *k, int *item, int n)
{
    for (; n > 1; n = (n + 1) / 2) {
        for (int i = 0; i < n / 2; i++) {
            int rc = try_elimination(k, -1, item[2 * i], item[2 * i + 1]);
            if (rc <= 0)
                return rc;
            item[i] = k->c->plan.nfactors - 1;
        }
        if (n % 2)
            item[n / 2] = item[n - 1];
    }
    return 0;
}

static int multiply_edges_of(struct condensing *k, int op)
{
    struct elimination_plan *p = &k->c->plan;
    int *item, rc = 0, n = topt_elimination_alike(p, op, &item);
    for (int i = 0, end; i < n && !rc; i = end) {
        for (end = i + 1; end < n && topt_elimination_same_ops(p, item[i], item[end]);)
            end++;
        rc = multiply_run(k, item + i, end - i);
    }
    free(item);
    return n < 0 ? refused(k) : rc;
}

static int multiply_edges(struct condensing *k)
{
    for (int i = 0; i < k->p->nops; i++)
        if (!k->gone[i] && multiply_edges_of(k, i))
            return -1;
    return 0;
}

/* ---- links of a chain -------------------------------------------------------------- */

/* An operator that two blocks hang together at, by the tables of its factors. */
struct link {
    int op, n;
    int table[4]; /* ascending */
};

static int by_tables(const void *x, const void *y)
{
    const struct link *a = x, *b = y;
    for (int i = 0; i < 4; i++)
        if (a->table[i] != b->table[i])
            return a->table[i] < b->table[i] ? -1 : 1;
    return a->op - b->op;
}

static int find_link(struct condensing *k, int op, const char *keep, struct link *ret)
{
    const struct elimination_plan *p = &k->c->plan;
    *ret = (struct link){.op = op, .n = p->factors_of[op].n, .table = {-1, -1, -1, -1}};
    if (k->gone[op] || keep[op] || k->span[op] != 2 || ret->n > 4)
        return 0;
    for (int i = p->factors_of[op].first, n = 0; i >= 0;
         i = topt_factor_after(p, op, i), n++) {
        int id = p->factor[i].table->id, at = n;
        for (; at > 0 && ret->table[at - 1] > id; at--)
            ret->table[at] = ret->table[at - 1];
        ret->table[at] = id;
    }
    return 1;
}

/* Does the operator still look as it did? */
static int same_link(struct condensing *k, const struct link *l, const char *keep)
{
    struct link now;
    return find_link(k, l->op, keep, &now) &&
           !memcmp(now.table, l->table, sizeof now.table);
}

/* Leave out a link where the table over its neighbours is smaller than what it is made
 * of.  1, 0, or -1. */
static int eliminate_link(struct condensing *k, const struct link *l)
{
    const struct tables *ts = &k->c->plan.tables;
    int64_t size = 0;
    for (int i = 0; i < l->n; i++)
        size += size_of(k, ts->all[l->table[i]]);
    k->largest = size - size / 8;
    int rc = try_elimination(k, l->op, -1, -1);
    k->largest = 0;
    if (rc > 0) {
        k->gone[l->op] = 1;
        rate_neighbours(k, &k->c->plan.factor[k->c->plan.nfactors - 1]);
    }
    return rc;
}

/* Leave out links of one kind, until one does not pay: how many, or -1. */
static int eliminate_links_of_kind(struct condensing *k, const struct link *l, int n,
                                   const char *keep)
{
    int done = 0, rc = 1;
    for (int i = 0; i < n && rc > 0; i++) {
        if (!same_link(k, &l[i], keep))
            continue;
        rc = eliminate_link(k, &l[i]);
        done += rc > 0;
    }
    return rc < 0 ? -1 : done;
}

/* One round over the links that there are, into room for all: how many went, or -1. */
static int eliminate_links(struct condensing *k, struct link *link, const char *keep)
{
    int n = 0, done = 0;
    for (int i = 0; i < k->p->nops; i++)
        n += find_link(k, i, keep, &link[n]);
    qsort(link, (size_t)n, sizeof *link, by_tables);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1;
             end < n && !memcmp(link[i].table, link[end].table, sizeof link[i].table);)
            end++;
        int rc = end - i < MANY_LINKS
                     ? 0
                     : eliminate_links_of_kind(k, link + i, end - i, keep);
        if (rc < 0)
            return -1;
        done += rc;
    }
    return done;
}

/* Chains are left, which are best walked operator by operator; but where the same links come
 * again and again, a longer step that is made once saves work on every walk. */
static int shorten_chains(struct condensing *k, const char *keep)
{
    int done = 1;
    struct link *link = malloc(((size_t)k->p->nops + 1) * sizeof *link);
    if (!link)
        return topt_search_nomem(k->err);
    while (done > 0 && k->work < k->max_work && !topt_search_stopped(k->options))
        done = eliminate_links(k, link, keep);
    free(link);
    return done < 0 ? -1 : 0;
}

/* ---- all of it --------------------------------------------------------------------- */

/* The operators that stay are those where blocks hang together, and those that are to be
 * kept. */
static int find_stays(struct condensing *k, const char *keep)
{
    int largest;
    if (topt_graph_blocks(k->p, keep, k->stays, &largest, k->err))
        return -1;
    for (int i = 0; i < k->p->nops; i++)
        k->stays[i] = k->stays[i] || keep[i];
    return 0;
}

static int start_making(struct condensing *k)
{
    const struct topt_search_options *o = k->options;
    struct condensed *c = k->c;
    if (topt_elimination_start(&c->plan, k->p, o, &k->failed) ||
        topt_maker_init(&c->maker, &c->plan.tables, o, &k->failed) ||
        topt_make_start(&c->maker, &k->failed) ||
        topt_table_dominance_init(&k->thinner, &c->plan, &c->maker, k->pool,
                                  &k->failed)) {
        if (k->err)
            *k->err = k->failed;
        return -1;
    }
    k->nmade = c->plan.tables.nall;
    if (o->memory_limit)
        c->maker.merge.limit = o->memory_limit;
    if (o->time_limit)
        c->maker.merge.slowest = o->time_limit;
    return 0;
}

static int start(struct condensing *k, const char *keep)
{
    size_t n = (size_t)k->p->nops + 1;
    k->c->arena = topt_arena_create(0);
    k->stays = calloc(n, 1);
    k->gone = calloc(n, 1);
    k->span = calloc(n, sizeof *k->span);
    if (!k->c->arena || !k->stays || !k->gone || !k->span)
        return topt_search_nomem(k->err);
    if (k->options->threads > 1 &&
        !(k->pool = topt_pool_create(k->options->threads, k->err)))
        return -1;
    return find_stays(k, keep) || start_making(k) ? -1 : 0;
}

static int condense(struct condensing *k, const char *keep)
{
    if (start(k, keep) || thin_edges(k) || eliminate_blocks(k) || multiply_edges(k) ||
        shorten_chains(k, keep) || multiply_edges(k))
        return -1;
    topt_maker_trim(&k->c->maker);
    return topt_condensed_problem(k->c, k->gone, k->err);
}

int topt_eliminate_blocks(const struct topt_search_problem *p, const char *keep,
                          const struct topt_search_options *options,
                          struct condensed *ret, struct topt_error *err)
{
    struct condensing k = {.p = p, .options = options, .c = ret, .err = err};
    *ret = (struct condensed){0};
    k.max_work =
        topt_max(TOTAL_WORK, (int64_t)(PAIR_WORK * fmin(topt_search_pairs(p), 1e12)));
    if (options->max_work && options->max_work / 4 < k.max_work)
        k.max_work = options->max_work / 4;
    int rc = condense(&k, keep);
    ret->work = k.work;
    free(k.stays);
    free(k.gone);
    free(k.span);
    free(k.verdict);
    topt_table_dominance_fini(&k.thinner);
    topt_pool_destroy(k.pool);
    ret->plan.err = NULL; /* it was this call's */
    return rc;
}

void topt_condensed_fini(struct condensed *c)
{
    topt_maker_fini(&c->maker);
    if (c->plan.problem)
        topt_elimination_fini(&c->plan);
    topt_arena_destroy(c->arena);
}
