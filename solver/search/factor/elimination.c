/* elimination.c - the plan: which factors to multiply, and which operator to unite out,
 * when.
 *
 * Every cost is a factor: a table of small frontiers over some operators.  An operator's
 * own costs are a factor over it, an edge's costs one over its two ends.  To eliminate
 * operator v, all factors over v are multiplied (costs added up) and v is united out:
 *
 *     a --- v --- b        A(a, v) x V(v) x B(v, b)   -->   a --- b      F(a, b)
 *
 * That is node, edge, branch and sink elimination of the paper in one rule; along a
 * chain, from its end, it is the paper's linear dynamic programming.  What is left when
 * no operator is, is the answer.
 *
 *   Classes.  Factors see an operator only through classes of its configurations: an edge
 *   table has an entry for a pair of classes.  A 'view' maps an operator's values to the
 *   classes a factor tells apart.  While v is on its way out and factors remain to be
 *   multiplied, v is united at once over all values that the remaining ones can't tell
 *   apart.
 *
 *   Sharing.  A step is described by its input tables and an array of offsets (table.h);
 *   tables are remembered by that, so what repeats is one table, though each layer remains
 *   free to choose.
 *
 *   Order.  Fewest operators in the new table first, then fewest expected points.  Blocks
 *   of branches between two operators thereby become tables over the two before a frontier
 *   is carried through them, and a chain is walked from an end.
 *
 *   Entanglement.  Where the new table would be larger than is allowed, the plan starts
 *   again with operators decided beforehand (heuristic.c): the paper's heuristic
 *   elimination, and the answer names them.  In which order they are decided depends on
 *   the graph alone, so how many it takes is found by doubling and halving, not one by
 *   one. */
#include "elimination.h"

#include "factor_tuning.h"
#include "heuristic.h"
#include "leaves.h"
#include "search_common.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- views ------------------------------------------------------------------------- */

/* The view that tells apart what any of 'views' (some NULL) does. */
static int join_views(struct elimination_plan *p, int op, const struct view *const *views,
                      int nviews, struct view *ret)
{
    int n = p->nvalues[op];
    if (topt_value_classes_one(&p->views, n, ret))
        return topt_search_nomem(p->err);
    for (int i = 0; i < nviews; i++)
        if (views[i] && topt_value_classes_split(&p->views, n, ret, views[i]->of, ret))
            return topt_search_nomem(p->err);
    return 0;
}

/* ---- factors and nodes ------------------------------------------------------------- */

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

static int union_of_ops(struct elimination_plan *p, const struct factor *a,
                        const struct factor *b, int without, int *ops)
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

/* More than a table may have: then an operator is decided by heuristic, if that is
 * allowed. */
static int too_large(struct elimination_plan *p, const struct draft *d, double entries)
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

static int draft_views(struct elimination_plan *p, struct draft *d,
                       const struct view *remaining)
{
    int64_t stride;
    double entries = 1;
    d->joint = TOPT_NEW(p->arena, d->nouter + 1, struct view);
    if (!d->joint)
        return topt_search_nomem(p->err);
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
        if (!remaining && join_views(p, d->leaving, NULL, 0, &d->out))
            return -1;
        if (join_views(p, d->leaving, three, 3, &d->inner))
            return -1;
        d->out.n = 1; /* even where the operator has no value: an empty union */
        if (remaining)
            d->out = *remaining;
        entries *= d->out.n;
    }
    return entries > (double)p->max_entries ? too_large(p, d, entries) : 0;
}

/* Offsets into a factor's table by class of 'joint'; 0 where it does not see the
 * operator. */
static void write_offsets(const struct elimination_plan *p, const struct factor *f,
                          int op, const struct view *joint, int32_t *ret)
{
    int64_t stride = 0;
    const struct view *view = view_in(f, op, &stride);
    for (int v = 0; v < p->nvalues[op]; v++)
        ret[joint->of[v]] = view ? (int32_t)(view->of[v] * stride) : 0;
}

static void write_groups(const struct elimination_plan *p, const struct draft *d,
                         int32_t *kfirst, int32_t *ka, int32_t *kb, int32_t *scratch)
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

enum { RECIPE_HEAD = 4 };

static int write_recipe(struct elimination_plan *p, struct draft *d)
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
        return topt_search_nomem(p->err);
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
    if (d->leaving >= 0)
        write_groups(p, d, off, off + ng + 1, off + ng + 1 + nk, r + s->recipe_len);
    else
        off[1] = 1; /* one group of one value at offset 0 */
    return 0;
}

/* Multiply factors a and b (-1: none).  Operator 'leaving' is united over all values that
 * 'remaining' does not tell apart (NULL: over all); -1: nothing is.  The new factor, or
 * -1. */
static int multiply(struct elimination_plan *p, int fa, int fb, int leaving,
                    const struct view *remaining)
{
    if (topt_search_poll(p->options, p->err))
        return -1;
    /* Leaves of single points, and matrices, stand second: see min_marginals.c. */
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
        return topt_search_nomem(p->err);
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
    d.made.node = topt_elimination_node(
        p, (struct tree_node){d.a->node, d.b ? d.b->node : -1, -1, -1, d.made.table});
    d.made.of[0] = fa;
    d.made.of[1] = fb;
    topt_elimination_leave_lists(p, fa);
    if (fb >= 0)
        topt_elimination_leave_lists(p, fb);
    return topt_elimination_factor(p, d.made);
}

/* ---- eliminating an operator ------------------------------------------------------- */

/* Points of an entry: known for leaves and what is made; of a step's table about as many
 * as it is made of. */
static double mean_frontier(const struct table *t)
{
    double n = t->nentries ? (double)t->npoints / (double)t->nentries : 0;
    if (t->mean > 0)
        return t->mean;
    if (!t->leaf)
        n = (double)t->nparts;
    return n > 1 ? n : 1;
}

/* Size of each operator's joint view over some factors, at most; in p->slot by operator.
 * How many operators were not seen before. */
static int bound_sizes(struct elimination_plan *p, const struct factor *f)
{
    int fresh = 0;
    for (int d = 0; d < f->nops; d++) {
        int op = f->op[d];
        int n = f->view[d].n < p->nvalues[op] ? f->view[d].n : p->nvalues[op];
        if (p->seen[op] != p->stamp) {
            p->seen[op] = p->stamp;
            p->slot[op] = n;
            fresh++;
        } else {
            int64_t both = (int64_t)p->slot[op] * n;
            p->slot[op] = both < p->nvalues[op] ? (int)both : p->nvalues[op];
        }
    }
    return fresh;
}

/* Multiply '*points' by the bounds of a factor's operators, of those that bound_sizes has
 * seen with 'stamp'; each is counted once.  Returns how many have more than one value. */
static int count_sizes(struct elimination_plan *p, const struct factor *f, int stamp,
                       double *points)
{
    int nops = 0;
    for (int d = 0; d < f->nops; d++) {
        int op = f->op[d];
        if (p->seen[op] != stamp)
            continue;
        p->seen[op] = p->stamp;
        *points *= p->slot[op];
        nops += p->slot[op] > 1;
    }
    return nops;
}

/* Expected points looked at when two factors are multiplied. */
static double expected(struct elimination_plan *p, const struct factor *f,
                       const struct factor *g)
{
    double points = mean_frontier(f->table) * mean_frontier(g->table);
    int stamp = ++p->stamp;
    bound_sizes(p, f);
    bound_sizes(p, g);
    p->stamp++;
    count_sizes(p, f, stamp, &points);
    count_sizes(p, g, stamp, &points);
    return points;
}

static int64_t points_of(const struct elimination_plan *p, int factor)
{
    const struct table *t = p->factor[factor].table;
    return t->leaf ? t->npoints : t->nentries;
}

/* Two factors: is their product over more operators than either is, and the work they
 * make. */
struct pair {
    int a, b, wider;
    double points;
};

/* Does one tell nothing apart of operators that the other is not over, too? */
static int is_within(const struct factor *f, const struct factor *g)
{
    for (int i = 0; i < f->nops; i++) {
        int k = 0;
        while (k < g->nops && g->op[k] != f->op[i])
            k++;
        if (k == g->nops && f->view[i].n > 1)
            return 0;
    }
    return 1;
}

static struct pair pair_of(struct elimination_plan *p, int a, int b)
{
    const struct factor *f = &p->factor[a], *g = &p->factor[b];
    return (struct pair){a < b ? a : b, a < b ? b : a,
                         !is_within(f, g) && !is_within(g, f), expected(p, f, g)};
}

/* Is one of a factor and some others better? */
static void compare_pairs(struct elimination_plan *p, int one, const int *other, int n,
                          struct pair *best)
{
    for (int i = 0; i < n; i++) {
        if (other[i] == one)
            continue;
        struct pair x = pair_of(p, one, other[i]);
        if (best->a < 0 || x.wider < best->wider ||
            (x.wider == best->wider && x.points < best->points))
            *best = x;
    }
}

/* Which two of an operator's factors to multiply first: of FACTORS_PAIRED, or of one of
 * fewest points and the others of the first FACTORS_SEEN, those that come to no table
 * over more operators, if there are such, and make the least work. */
static void pick_pair(struct elimination_plan *p, int op, int *ret_a, int *ret_b)
{
    int item[FACTORS_SEEN] = {0}, n = 0, least = p->factors_of[op].first;
    struct pair best = {.a = -1};
    for (int i = least; i >= 0 && n < FACTORS_SEEN; i = topt_factor_after(p, op, i)) {
        item[n++] = i;
        if (points_of(p, i) < points_of(p, least))
            least = i;
    }
    if (n > FACTORS_PAIRED)
        compare_pairs(p, least, item, n, &best);
    else
        for (int i = 0; i < n; i++)
            compare_pairs(p, item[i], item + i + 1, n - i - 1, &best);
    *ret_a = best.a;
    *ret_b = best.b;
}

/* The values of an operator that the factors other than a and b tell apart. */
static int remaining_view(struct elimination_plan *p, int op, int a, int b,
                          struct view *ret)
{
    const struct list *l = &p->factors_of[op];
    const struct view **views = malloc((size_t)l->n * sizeof(*views));
    int64_t stride;
    int n = 0;
    if (!views)
        return topt_search_nomem(p->err);
    for (int i = l->first; i >= 0; i = topt_factor_after(p, op, i))
        if (i != a && i != b)
            views[n++] = view_in(&p->factor[i], op, &stride);
    int rc = join_views(p, op, views, n, ret);
    free(views);
    return rc;
}

/* Returns the factor that comes of it, or -1.  Of very many factors hardly two less tell
 * less apart, so what all of them do is worked out once. */
int topt_elimination_step(struct elimination_plan *p, int op)
{
    const struct list *l = &p->factors_of[op];
    struct view remaining;
    if (l->n > FACTORS_SEEN && remaining_view(p, op, -1, -1, &remaining))
        return -1;
    while (l->n > 2) {
        int a, b;
        pick_pair(p, op, &a, &b);
        if ((l->n <= FACTORS_SEEN && remaining_view(p, op, a, b, &remaining)) ||
            multiply(p, a, b, op, &remaining) < 0)
            return -1;
    }
    return multiply(p, l->first, l->n > 1 ? l->last : -1, op, NULL);
}

int topt_elimination_multiply(struct elimination_plan *p, int a, int b)
{
    return multiply(p, a, b, -1, NULL);
}

/* The estimated cost of eliminating an operator now: operators in the new table (three and more
 * are alike), then expected points.  A table over very many is the last that is
 * wanted. */
struct elimination_rank topt_elimination_rate(struct elimination_plan *p, int op)
{
    struct elimination_rank last = {TOPT_RANKS - 1, DBL_MAX};
    double points = 1;
    int nops = 0, seen = 0, stamp = ++p->stamp, first = p->factors_of[op].first;
    for (int i = first; i >= 0; i = topt_factor_after(p, op, i)) {
        seen += bound_sizes(p, &p->factor[i]);
        if (seen > FACTORS_SEEN)
            return last;
        points *= mean_frontier(p->factor[i].table);
    }
    p->stamp++;
    for (int i = first; i >= 0; i = topt_factor_after(p, op, i))
        nops += count_sizes(p, &p->factor[i], stamp, &points);
    nops -= first >= 0 && p->slot[op] > 1;
    return (struct elimination_rank){nops < last.rank ? nops : last.rank,
                                     points < last.points ? points : last.points};
}

static void rate_ops(struct elimination_plan *p, int factor)
{
    const struct factor *f = &p->factor[factor];
    for (int d = 0; d < f->nops; d++)
        topt_elimination_order_put(&p->queue, f->op[d],
                                   topt_elimination_rate(p, f->op[d]));
}

/* ---- factors over the same operators ----------------------------------------------- */

static int compare_ops(const struct factor *a, const struct factor *b)
{
    for (int d = 0; d < a->nops && d < b->nops; d++)
        if (a->op[d] != b->op[d])
            return a->op[d] < b->op[d] ? -1 : 1;
    return (a->nops > b->nops) - (a->nops < b->nops);
}

/* Factors are in one array, so these can be told by where they are in it. */
static int by_ops(const void *x, const void *y)
{
    const struct factor *a = *(const struct factor *const *)x;
    const struct factor *b = *(const struct factor *const *)y;
    int order = compare_ops(a, b);
    return order ? order : (a > b) - (a < b);
}

int topt_elimination_alike(struct elimination_plan *p, int op, int **ret)
{
    const struct list *l = &p->factors_of[op];
    const struct factor **f = malloc(((size_t)l->n + 1) * sizeof(*f));
    int *number = malloc(((size_t)l->n + 1) * sizeof *number), n = 0;
    *ret = number;
    if (!f || !number) {
        free(f);
        return topt_search_nomem(p->err);
    }
    for (int i = l->first; i >= 0; i = topt_factor_after(p, op, i))
        f[n++] = &p->factor[i];
    qsort(f, (size_t)n, sizeof(*f), by_ops);
    for (int i = 0; i < n; i++)
        number[i] = (int)(f[i] - p->factor);
    free(f);
    return n;
}

int topt_elimination_same_ops(const struct elimination_plan *p, int a, int b)
{
    return !compare_ops(&p->factor[a], &p->factor[b]);
}

/* ---- all of them ------------------------------------------------------------------- */

static int eliminate_all(struct elimination_plan *p)
{
    int made;
    for (int i = 0; i < p->problem->nops; i++)
        topt_elimination_order_put(&p->queue, i, topt_elimination_rate(p, i));
    for (int op; (op = topt_elimination_order_first(&p->queue)) >= 0;) {
        topt_elimination_order_drop(&p->queue, op);
        if ((made = topt_elimination_step(p, op)) < 0)
            return -1;
        rate_ops(p, made);
    }
    return 0;
}

/* Factors over nothing are left, one for each component: multiply them, two and two. */
static int multiply_components(struct elimination_plan *p)
{
    int one = -1;
    for (int i = 0; i < p->nfactors; i++) { /* what comes of it is behind */
        if (p->factor[i].gone)
            continue;
        if (one >= 0 && multiply(p, one, i, -1, NULL) < 0)
            return -1;
        one = one >= 0 ? -1 : i;
    }
    return one;
}

static int make_room(struct elimination_plan *p)
{
    int n = p->problem->nops;
    p->arena = topt_arena_create(0);
    if (!p->arena)
        return topt_search_nomem(p->err);
    topt_value_classes_init(&p->views, p->arena);
    p->nvalues = TOPT_NEW(p->arena, n, int);
    p->factors_of = TOPT_NEW(p->arena, n, struct list);
    p->seen = TOPT_NEW(p->arena, n, int);
    p->slot = TOPT_NEW(p->arena, n, int);
    if (!p->nvalues || !p->factors_of || !p->seen || !p->slot ||
        topt_elimination_order_init(&p->queue, n, p->arena))
        return topt_search_nomem(p->err);
    for (int i = 0; i < n; i++)
        p->factors_of[i] = (struct list){-1, -1, 0};
    return 0;
}

/* The result of one attempt to plan. */
static void clear(struct elimination_plan *p)
{
    topt_tables_fini(&p->tables);
    topt_value_classes_fini(&p->views);
    topt_points_fini(&p->store);
    free(p->factor);
    free(p->node);
    topt_arena_destroy(p->arena);
    *p = (struct elimination_plan){.problem = p->problem,
                                   .options = p->options,
                                   .shared = p->shared,
                                   .err = p->err,
                                   .max_entries = p->max_entries,
                                   .fixed = p->fixed,
                                   .nfixed = p->nfixed};
}

static int start(struct elimination_plan *p)
{
    if (topt_tables_init(&p->tables, p->options, p->err) ||
        topt_points_init(&p->store, p->shared, p->err) || make_room(p))
        return -1;
    return topt_elimination_leaves(p);
}

static int try_plan(struct elimination_plan *p)
{
    if (start(p) || eliminate_all(p))
        return -1;
    int last = multiply_components(p);
    if (last < 0)
        return -1;
    p->root = p->factor[last].node;
    return 0;
}

static int open_plan(struct elimination_plan *p,
                     const struct topt_search_problem *problem,
                     const struct point_store *shared,
                     const struct topt_search_options *options, struct topt_error *err)
{
    *p = (struct elimination_plan){
        .problem = problem, .options = options, .shared = shared, .err = err};
    p->max_entries =
        options->max_entries ? options->max_entries : TOPT_SEARCH_EXACT_ENTRIES;
    p->fixed = malloc(((size_t)problem->nops + 1) * sizeof *p->fixed);
    if (!p->fixed)
        return topt_search_nomem(p->err);
    for (int i = 0; i < problem->nops; i++)
        p->fixed[i] = -1;
    return 0;
}

int topt_elimination_start(struct elimination_plan *p,
                           const struct topt_search_problem *problem,
                           const struct topt_search_options *options,
                           struct topt_error *err)
{
    return open_plan(p, problem, NULL, options, err) ? -1 : start(p);
}

/* Plan with the first 'n' operators decided.  0; 1 where that is too entangled; or -1. */
static int try_with(struct elimination_plan *p, struct decisions *d, int n)
{
    clear(p);
    while (d->n < n)
        topt_decide(d);
    for (int i = 0; i < p->problem->nops; i++)
        p->fixed[i] = -1;
    for (int i = 0; i < n; i++)
        p->fixed[d->op[i]] = d->config[i];
    p->nfixed = n;
    int rc = try_plan(p);
    return rc && p->entangled ? 1 : rc;
}

/* Decide as few operators as it takes; none are too few. */
static int decide_few(struct elimination_plan *p, struct decisions *d)
{
    int few = 0, enough = 1, most = p->problem->nops, rc = 1;
    while (enough <= most && (rc = try_with(p, d, enough)) > 0) {
        few = enough;
        enough = enough < most && 2 * enough > most ? most : 2 * enough;
    }
    while (!rc && few + 1 < enough) {
        int middle = few + (enough - few) / 2;
        rc = try_with(p, d, middle);
        if (rc < 0)
            return -1;
        *(rc ? &few : &enough) = middle;
        rc = 0;
    }
    return !rc && p->nfixed != enough ? try_with(p, d, enough) : rc;
}

int topt_elimination_init(struct elimination_plan *p,
                          const struct topt_search_problem *problem,
                          const struct point_store *shared,
                          const struct topt_search_options *options,
                          struct topt_error *err)
{
    struct decisions d;
    if (open_plan(p, problem, shared, options, err))
        return -1;
    if (!try_plan(p))
        return 0;
    if (!p->entangled || topt_decisions_init(&d, problem, err))
        return -1;
    int rc = decide_few(p, &d);
    topt_decisions_fini(&d);
    return rc ? -1 : 0;
}

int topt_elimination_exactly(struct elimination_plan *p,
                             const struct topt_search_problem *problem,
                             const struct topt_search_options *options,
                             struct topt_error *err)
{
    return open_plan(p, problem, NULL, options, err) ? -1 : try_plan(p);
}

void topt_elimination_fini(struct elimination_plan *p)
{
    clear(p);
    free(p->fixed);
    p->fixed = NULL;
}
