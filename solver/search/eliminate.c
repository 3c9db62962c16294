/* eliminate.c - the plan: which factors to multiply, and which operator to unite out, when.
 *
 * Every cost is a factor: a table of small frontiers over some operators.  An operator's own
 * costs are a factor over it, an edge's costs one over its two ends.  To eliminate operator v,
 * all factors over v are multiplied (costs added up) and v is united out:
 *
 *     a --- v --- b        A(a, v) x V(v) x B(v, b)   -->   a --- b      F(a, b)
 *
 * That is node, edge, branch and sink elimination of the paper in one rule; along a chain,
 * from its end, it is the paper's linear dynamic programming.  What is left when no operator
 * is, is the answer.
 *
 *   Classes.  Factors see an operator only through classes of its configurations: an edge
 *   table has an entry for a pair of classes.  A 'view' maps an operator's values to the
 *   classes a factor tells apart.  While v is on its way out and factors remain to be
 *   multiplied, v is united at once over all values that the remaining ones can't tell apart.
 *
 *   Sharing.  A step is described by its input tables and an array of offsets (table.h);
 *   tables are remembered by that, so what repeats is one table, though each layer remains
 *   free to choose.
 *
 *   Order.  Fewest operators in the new table first, then fewest expected points.  Blocks of
 *   branches between two operators thereby become tables over the two before a frontier is
 *   carried through them, and a chain is walked from an end.
 *
 *   Entanglement.  Where the new table would be larger than is allowed, the plan starts again
 *   with one operator decided beforehand (heuristic.c): the paper's heuristic elimination,
 *   and the answer names the operator. */
#include "eliminate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int nomem(struct plan *p)
{
    return topt_search_nomem(p->err);
}

/* ---- views ---- */

/* The view that tells apart what any of 'views' (some NULL) does. */
static int join_views(struct plan *p, int op, const struct view *const *views, int nviews,
                      struct view *ret)
{
    int n = p->nvalues[op];
    if (topt_views_one(&p->views, n, ret))
        return nomem(p);
    for (int i = 0; i < nviews; i++)
        if (views[i] && topt_views_split(&p->views, n, ret, views[i]->of, ret))
            return nomem(p);
    return 0;
}

/* ---- factors and places ---- */

static int grow(void **array, int *cap, int need, size_t size)
{
    if (need <= *cap)
        return 0;
    int want = *cap ? 2 * *cap : 64;
    void *p = realloc(*array, (size_t)want * size);
    if (!p)
        return -1;
    *array = p;
    *cap = want;
    return 0;
}

int topt_plan_place(struct plan *p, struct place place)
{
    if (grow((void **)&p->place, &p->cap_places, p->nplaces + 1, sizeof place))
        return nomem(p);
    p->place[p->nplaces] = place;
    return p->nplaces++;
}

int topt_plan_factor(struct plan *p, struct factor f)
{
    if (f.place < 0 ||
        grow((void **)&p->factor, &p->cap_factors, p->nfactors + 1, sizeof f))
        return f.place < 0 ? -1 : nomem(p);
    p->factor[p->nfactors] = f;
    for (int d = 0; d < f.nops; d++) {
        struct list *l = &p->factors_of[f.op[d]];
        if (grow((void **)&l->item, &l->cap, l->n + 1, sizeof *l->item))
            return nomem(p);
        l->item[l->n++] = p->nfactors;
    }
    return p->nfactors++;
}

/* ---- one step: multiply two factors, unite what no other factor sees ---- */

static const struct view *view_in(const struct factor *f, int op, int64_t *ret_stride)
{
    int64_t stride = 1;
    const struct view *view = NULL;
    for (int d = f ? f->nops - 1 : -1; d >= 0; d--) {
        if (f->op[d] == op) {
            view = &f->view[d];
            *ret_stride = stride;
        }
        stride *= f->view[d].n;
    }
    return view;
}

static int union_of_ops(struct plan *p, const struct factor *a, const struct factor *b,
                        int without, int *ops)
{
    int n = 0, stamp = ++p->stamp;
    const struct factor *both[2] = {a, b};
    for (int i = 0; i < 2; i++)
        for (int d = 0; both[i] && d < both[i]->nops; d++) {
            int op = both[i]->op[d];
            if (op == without || p->seen[op] == stamp)
                continue;
            p->seen[op] = stamp;
            ops[n++] = op;
        }
    /* In the order of the problem, so that equal blocks come out alike. */
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && ops[j] < ops[j - 1]; j--) {
            int swap = ops[j];
            ops[j] = ops[j - 1];
            ops[j - 1] = swap;
        }
    return n;
}

/* A step being written; offsets go into the recipe. */
struct draft {
    const struct factor *a, *b;
    struct factor made;
    int nouter;         /* dimensions other than the operator on its way out */
    struct view *joint; /* by outer dimension: what a and b tell apart */
    struct view out;    /* of the operator on its way: what the remaining factors see */
    struct view inner;  /* of it: what a, b and the remaining ones see */
    int leaving;        /* the operator, or -1 */
    struct step step;
};

/* More than a table may have: then an operator is decided by heuristic, if that is allowed. */
static int too_large(struct plan *p, const struct draft *d, double entries)
{
    int op = d->leaving >= 0 ? d->leaving : 0;
    const char *name = p->problem->op[op].name;
    p->entangled = 1;
    return topt_fail(
        p->err, TOPT_ERR_LIMIT,
        "eliminating operator '%.60s' exactly needs a table of %.3g entries over "
        "%d operators; at most %lld: the graph is too entangled",
        name ? name : "(unnamed)", entries, d->nouter + (d->out.n > 1),
        (long long)p->max_entries);
}

static int draft_views(struct plan *p, struct draft *d, const struct view *remaining)
{
    int64_t stride;
    double entries = 1;
    d->joint = TOPT_NEW(p->arena, d->nouter + 1, struct view);
    if (!d->joint)
        return nomem(p);
    for (int i = 0; i < d->nouter; i++) {
        int op = d->made.op[i];
        const struct view *two[2] = {view_in(d->a, op, &stride),
                                     view_in(d->b, op, &stride)};
        if (join_views(p, op, two, 2, &d->joint[i]))
            return -1;
        entries *= d->joint[i].n;
    }
    if (d->leaving >= 0) {
        const struct view *three[3] = {view_in(d->a, d->leaving, &stride),
                                       view_in(d->b, d->leaving, &stride), remaining};
        if (join_views(p, d->leaving, &remaining, 1, &d->out) ||
            join_views(p, d->leaving, three, 3, &d->inner))
            return -1;
        if (!remaining)
            d->out.n = 1; /* even where the operator has no value: an empty union */
        entries *= d->out.n;
    }
    return entries > (double)p->max_entries ? too_large(p, d, entries) : 0;
}

/* Offsets into a factor's table by class of 'joint'; 0 where it does not see the operator. */
static void write_offsets(const struct plan *p, const struct factor *f, int op,
                          const struct view *joint, int32_t *ret)
{
    int64_t stride = 0;
    const struct view *view = view_in(f, op, &stride);
    for (int v = 0; v < p->nvalues[op]; v++)
        ret[joint->of[v]] = view ? (int32_t)(view->of[v] * stride) : 0;
}

static void write_groups(const struct plan *p, const struct draft *d, int32_t *kfirst,
                         int32_t *ka, int32_t *kb, int32_t *scratch)
{
    int nk = d->inner.n, ng = d->out.n;
    int32_t *group = scratch, *oa = scratch + nk, *ob = oa + nk;
    write_offsets(p, d->a, d->leaving, &d->inner, oa);
    write_offsets(p, d->b, d->leaving, &d->inner, ob);
    for (int v = 0; v < p->nvalues[d->leaving]; v++)
        group[d->inner.of[v]] = d->out.of[v];
    for (int g = 0; g <= ng; g++)
        kfirst[g] = 0;
    for (int k = 0; k < nk; k++)
        kfirst[group[k] + 1]++;
    for (int g = 0; g < ng; g++)
        kfirst[g + 1] += kfirst[g];
    for (int k = 0; k < nk; k++) {
        int32_t at = kfirst[group[k]]++;
        ka[at] = oa[k];
        kb[at] = ob[k];
    }
    for (int g = ng; g > 0; g--)
        kfirst[g] = kfirst[g - 1];
    kfirst[0] = 0;
}

static int is_matrix(const struct factor *f)
{
    return f && f->table->leaf && f->nops == 2 && f->op[0] != f->op[1];
}

/* Is the step a vector times a matrix?  A tells apart the operator on its way only, B is a leaf
 * over that and another, and nothing else sees it. */
static int is_row_step(const struct draft *d)
{
    if (!is_matrix(d->b) || d->leaving < 0 || d->out.n != 1 ||
        (d->b->op[0] != d->leaving && d->b->op[1] != d->leaving))
        return 0;
    for (int i = 0; i < d->a->nops; i++)
        if (d->a->op[i] != d->leaving && d->a->view[i].n != 1)
            return 0;
    return 1;
}

/* Say so, and where the offsets of B's other operator stand. */
static void write_rows(struct draft *d)
{
    struct step *s = &d->step;
    const int32_t *off = s->off;
    if (!is_row_step(d))
        return;
    for (int i = 0; i < d->nouter; off += 2 * s->size[i++])
        if (d->made.op[i] == d->b->op[0] || d->made.op[i] == d->b->op[1])
            s->row_off = off + s->size[i];
    s->row = d->b->view[1].n;
    s->by_columns = d->b->op[0] == d->leaving;
}

enum { RECIPE_HEAD = 4 };

static int write_recipe(struct plan *p, struct draft *d)
{
    struct step *s = &d->step;
    size_t outer = 0;
    size_t nk = d->leaving >= 0 ? (size_t)d->inner.n : 1;
    size_t ng = d->leaving >= 0 ? (size_t)d->out.n : 1;
    for (int i = 0; i < d->nouter; i++)
        outer += 2 * (size_t)d->joint[i].n;
    s->recipe_len = RECIPE_HEAD + (size_t)d->nouter + outer + ng + 1 + 2 * nk;
    int32_t *r = s->recipe = calloc(s->recipe_len + 3 * nk, sizeof *r);
    if (!r)
        return nomem(p);
    *s = (struct step){.a = d->a->table,
                       .b = d->b ? d->b->table : NULL,
                       .ndims = d->nouter,
                       .ngroups = (int)ng,
                       .recipe = r,
                       .recipe_len = s->recipe_len,
                       .nentries = (int64_t)ng};
    r[0] = s->a->id;
    r[1] = s->b ? s->b->id : -1;
    r[2] = s->ndims;
    r[3] = s->ngroups;
    int32_t *size = r + RECIPE_HEAD, *off = size + d->nouter;
    s->size = size;
    s->off = off;
    for (int i = 0; i < d->nouter; i++) {
        size[i] = d->joint[i].n;
        write_offsets(p, d->a, d->made.op[i], &d->joint[i], off);
        write_offsets(p, d->b, d->made.op[i], &d->joint[i], off + size[i]);
        off += 2 * size[i];
        s->nentries *= size[i];
    }
    s->kfirst = off;
    s->ka = off + ng + 1;
    s->kb = s->ka + nk;
    write_rows(d);
    if (d->leaving >= 0)
        write_groups(p, d, off, off + ng + 1, off + ng + 1 + nk, r + s->recipe_len);
    else
        off[1] = 1; /* one group of one value at offset 0 */
    return 0;
}

/* Multiply factors a and b (-1: none).  Operator 'leaving' is united over all values that
 * 'remaining' does not tell apart (NULL: over all); -1: nothing is.  The new factor, or -1. */
static int multiply(struct plan *p, int fa, int fb, int leaving,
                    const struct view *remaining)
{
    /* Leaves of single points, and matrices, stand second: see weigh.c. */
    if (fb >= 0 && ((p->factor[fa].table->single && !p->factor[fb].table->single) ||
                    (is_matrix(&p->factor[fa]) && !is_matrix(&p->factor[fb])))) {
        int swap = fa;
        fa = fb;
        fb = swap;
    }
    struct draft d = {.a = &p->factor[fa],
                      .b = fb >= 0 ? &p->factor[fb] : NULL,
                      .leaving = leaving,
                      .out = {1, NULL}};
    int most = d.a->nops + (d.b ? d.b->nops : 0);
    d.made.op = TOPT_NEW(p->arena, most, int);
    d.made.view = TOPT_NEW(p->arena, most, struct view);
    if (!d.made.op || !d.made.view)
        return nomem(p);
    d.made.nops = d.nouter = union_of_ops(p, d.a, d.b, leaving, d.made.op);
    if (draft_views(p, &d, remaining) || write_recipe(p, &d))
        return -1;
    memcpy(d.made.view, d.joint, (size_t)d.nouter * sizeof *d.joint);
    if (remaining) {
        d.made.op[d.nouter] = leaving;
        d.made.view[d.nouter] = d.out;
        d.made.nops++;
    }
    d.made.table = topt_tables_step(&p->tables, &d.step, p->err);
    if (!d.made.table)
        return -1;
    d.made.place = topt_plan_place(
        p, (struct place){d.a->place, d.b ? d.b->place : -1, -1, -1, d.made.table});
    p->factor[fa].gone = 1;
    if (fb >= 0)
        p->factor[fb].gone = 1;
    return topt_plan_factor(p, d.made);
}

/* ---- eliminating an operator ---- */

/* Forget factors that are gone. */
static struct list *live_factors(struct plan *p, int op)
{
    struct list *l = &p->factors_of[op];
    int n = 0;
    for (int i = 0; i < l->n; i++)
        if (!p->factor[l->item[i]].gone)
            l->item[n++] = l->item[i];
    l->n = n;
    return l;
}

/* Points of an entry: known for leaves and what is made; of a step's table about as many as it
 * is made of. */
static double mean_frontier(const struct table *t)
{
    double n = t->nentries ? (double)t->npoints / (double)t->nentries : 0;
    if (t->mean > 0)
        return t->mean;
    if (!t->leaf)
        n = (double)t->nparts;
    return n > 1 ? n : 1;
}

/* Size of each operator's joint view over some factors, at most; in p->slot by operator. */
static void bound_sizes(struct plan *p, const struct factor *f)
{
    for (int d = 0; d < f->nops; d++) {
        int op = f->op[d];
        int n = f->view[d].n < p->nvalues[op] ? f->view[d].n : p->nvalues[op];
        if (p->seen[op] != p->stamp) {
            p->seen[op] = p->stamp;
            p->slot[op] = n;
        } else {
            int64_t both = (int64_t)p->slot[op] * n;
            p->slot[op] = both < p->nvalues[op] ? (int)both : p->nvalues[op];
        }
    }
}

/* Expected points looked at when two factors are multiplied. */
static double expected(struct plan *p, int fa, int fb)
{
    const struct factor *f[2] = {&p->factor[fa], &p->factor[fb]};
    double points = mean_frontier(f[0]->table) * mean_frontier(f[1]->table);
    p->stamp++;
    for (int i = 0; i < 2; i++)
        bound_sizes(p, f[i]);
    int stamp = p->stamp++; /* count every operator once */
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < f[i]->nops; d++)
            if (p->seen[f[i]->op[d]] == stamp) {
                p->seen[f[i]->op[d]] = p->stamp;
                points *= p->slot[f[i]->op[d]];
            }
    return points;
}

static int64_t points_of(const struct plan *p, int factor)
{
    const struct table *t = p->factor[factor].table;
    return t->leaf ? t->npoints : t->nentries;
}

/* Which two of an operator's factors to multiply first: the one of fewest points, and the
 * one with which it makes the least work. */
static void pick_pair(struct plan *p, const struct list *l, int *ret_a, int *ret_b)
{
    int a = l->item[0], b = -1;
    double best = INFINITY;
    for (int i = 1; i < l->n; i++)
        if (points_of(p, l->item[i]) < points_of(p, a))
            a = l->item[i];
    for (int i = 0; i < l->n; i++) {
        double points = l->item[i] == a ? INFINITY : expected(p, a, l->item[i]);
        if (points < best || (b < 0 && l->item[i] != a)) {
            best = points;
            b = l->item[i];
        }
    }
    *ret_a = a < b ? a : b;
    *ret_b = a < b ? b : a;
}

/* What the factors other than a and b tell apart of an operator. */
static int remaining_view(struct plan *p, int op, const struct list *l, int a, int b,
                          struct view *ret)
{
    const struct view **views = malloc((size_t)l->n * sizeof(*views));
    int64_t stride;
    int n = 0;
    if (!views)
        return nomem(p);
    for (int i = 0; i < l->n; i++)
        if (l->item[i] != a && l->item[i] != b)
            views[n++] = view_in(&p->factor[l->item[i]], op, &stride);
    int rc = join_views(p, op, views, n, ret);
    free(views);
    return rc;
}

/* Returns the factor that comes of it, or -1. */
static int eliminate(struct plan *p, int op)
{
    struct list *l = live_factors(p, op);
    while (l->n > 2) {
        int a, b;
        struct view remaining;
        pick_pair(p, l, &a, &b);
        if (remaining_view(p, op, l, a, b, &remaining) ||
            multiply(p, a, b, op, &remaining) < 0)
            return -1;
        l = live_factors(p, op);
    }
    int a = l->item[0], b = l->n > 1 ? l->item[1] : -1;
    return multiply(p, b >= 0 && b < a ? b : a, b >= 0 && b < a ? a : b, op, NULL);
}

int topt_plan_eliminate(struct plan *p, int op)
{
    return eliminate(p, op);
}

int topt_plan_multiply(struct plan *p, int a, int b)
{
    return multiply(p, a, b, -1, NULL);
}

const struct list *topt_plan_factors(struct plan *p, int op)
{
    return live_factors(p, op);
}

/* How dear eliminating an operator looks now: operators in the new table (three and more are
 * alike), then expected points. */
void topt_plan_rate(struct plan *p, int op)
{
    const struct list *l = live_factors(p, op);
    double points = 1;
    int nops = 0, stamp = ++p->stamp;
    for (int i = 0; i < l->n; i++) {
        bound_sizes(p, &p->factor[l->item[i]]);
        points *= mean_frontier(p->factor[l->item[i]].table);
    }
    p->stamp++;
    for (int i = 0; i < l->n; i++) {
        const struct factor *f = &p->factor[l->item[i]];
        for (int d = 0; d < f->nops; d++) {
            int o = f->op[d];
            if (p->seen[o] != stamp)
                continue;
            p->seen[o] = p->stamp;
            points *= p->slot[o];
            nops += o != op && p->slot[o] > 1;
        }
    }
    p->rank_ops[op] = nops < 3 ? nops : 3;
    p->rank_points[op] = points;
}

static int cheapest(const struct plan *p, const char *done)
{
    int best = -1;
    for (int i = 0; i < p->problem->nops; i++)
        if (!done[i] && (best < 0 || p->rank_ops[i] < p->rank_ops[best] ||
                         (p->rank_ops[i] == p->rank_ops[best] &&
                          p->rank_points[i] < p->rank_points[best])))
            best = i;
    return best;
}

static int eliminate_all(struct plan *p)
{
    int n = p->problem->nops;
    char *done = TOPT_NEW(p->arena, n, char);
    if (!done)
        return nomem(p);
    for (int i = 0; i < n; i++)
        topt_plan_rate(p, i);
    for (int left = n; left > 0; left--) {
        int op = cheapest(p, done);
        int made = eliminate(p, op);
        if (made < 0)
            return -1;
        done[op] = 1;
        for (int d = 0; d < p->factor[made].nops; d++)
            topt_plan_rate(p, p->factor[made].op[d]);
    }
    return 0;
}

/* Factors over nothing are left, one for each component: multiply them, smallest first. */
static int multiply_components(struct plan *p)
{
    for (;;) {
        int a = -1, b = -1;
        for (int i = 0; i < p->nfactors; i++) {
            int64_t n = points_of(p, i);
            if (p->factor[i].gone)
                continue;
            if (a < 0 || n < points_of(p, a)) {
                b = a;
                a = i;
            } else if (b < 0 || n < points_of(p, b)) {
                b = i;
            }
        }
        if (b < 0)
            return a;
        if (multiply(p, a < b ? a : b, a < b ? b : a, -1, NULL) < 0)
            return -1;
    }
}

static int make_room(struct plan *p)
{
    int n = p->problem->nops;
    p->arena = topt_arena_create(0);
    if (!p->arena)
        return nomem(p);
    topt_views_init(&p->views, p->arena);
    p->nvalues = TOPT_NEW(p->arena, n, int);
    p->factors_of = TOPT_NEW(p->arena, n, struct list);
    p->seen = TOPT_NEW(p->arena, n, int);
    p->slot = TOPT_NEW(p->arena, n, int);
    p->rank_points = TOPT_NEW(p->arena, n, double);
    p->rank_ops = TOPT_NEW(p->arena, n, int);
    if (!p->nvalues || !p->factors_of || !p->seen || !p->slot || !p->rank_points ||
        !p->rank_ops)
        return nomem(p);
    return 0;
}

/* What one try to plan has made. */
static void clear(struct plan *p)
{
    for (int i = 0; p->factors_of && i < p->problem->nops; i++)
        free(p->factors_of[i].item);
    topt_tables_fini(&p->tables);
    topt_views_fini(&p->views);
    topt_points_fini(&p->store);
    free(p->factor);
    free(p->place);
    topt_arena_destroy(p->arena);
    *p = (struct plan){.problem = p->problem,
                       .shared = p->shared,
                       .err = p->err,
                       .max_entries = p->max_entries,
                       .relaxed = p->relaxed,
                       .fixed = p->fixed,
                       .nfixed = p->nfixed};
}

static int start(struct plan *p, const struct topt_search_options *options)
{
    if (topt_tables_init(&p->tables, options, p->err) ||
        topt_points_init(&p->store, p->shared, p->err) || make_room(p))
        return -1;
    return topt_plan_leaves(p);
}

static int try_plan(struct plan *p, const struct topt_search_options *options)
{
    if (start(p, options) || eliminate_all(p))
        return -1;
    int last = multiply_components(p);
    if (last < 0)
        return -1;
    p->root = p->factor[last].place;
    return 0;
}

static int open_plan(struct plan *p, const struct topt_search_problem *problem,
                     const struct point_store *shared,
                     const struct topt_search_options *options, struct topt_error *err)
{
    *p = (struct plan){.problem = problem, .shared = shared, .err = err};
    p->max_entries =
        options->max_entries ? options->max_entries : TOPT_SEARCH_EXACT_ENTRIES;
    p->fixed = malloc(((size_t)problem->nops + 1) * sizeof *p->fixed);
    if (!p->fixed)
        return nomem(p);
    for (int i = 0; i < problem->nops; i++)
        p->fixed[i] = -1;
    return 0;
}

int topt_plan_start(struct plan *p, const struct topt_search_problem *problem,
                    const struct topt_search_options *options, struct topt_error *err)
{
    return open_plan(p, problem, NULL, options, err) ? -1 : start(p, options);
}

int topt_plan_init(struct plan *p, const struct topt_search_problem *problem,
                   const struct point_store *shared,
                   const struct topt_search_options *options, struct topt_error *err)
{
    if (open_plan(p, problem, shared, options, err))
        return -1;
    while (try_plan(p, options)) {
        if (!p->entangled || p->nfixed == problem->nops)
            return -1;
        clear(p);
        topt_decide(problem, p->fixed);
        p->nfixed++;
    }
    return 0;
}

int topt_plan_relaxed(struct plan *p, const struct topt_search_problem *problem,
                      const struct point_store *shared,
                      const struct topt_search_options *options, const char *relaxed,
                      struct topt_error *err)
{
    if (open_plan(p, problem, shared, options, err))
        return -1;
    p->relaxed = relaxed;
    return try_plan(p, options);
}

int topt_plan_exactly(struct plan *p, const struct topt_search_problem *problem,
                      const struct topt_search_options *options, struct topt_error *err)
{
    return topt_plan_relaxed(p, problem, NULL, options, NULL, err);
}

void topt_plan_fini(struct plan *p)
{
    clear(p);
    free(p->fixed);
    p->fixed = NULL;
}
