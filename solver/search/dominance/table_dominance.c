/* table_dominance.c - tables of a plan without points that a substitution at one end always
 * dominates.
 *
 *       F(u, c) -- c --- y         the point p of F(u, c), and any strategy that has it
 *     u
 *       F(u, w) -- w --- y         w instead of c, with the point q of F(u, w)
 *
 * Where  q + (what the substitution of c for w costs at most on all that is not in F)  is no more
 * than p in memory and in time, and less in one, every strategy with p is beaten by the
 * same strategy with q, so p is on no frontier.  That needs no bounds, and it does not
 * matter what else was left out: what beats is a strategy of the problem, whether or not
 * its own parts are still there.  (Of equal ones both stay: one could be left out for the
 * other's sake and the other for its.)
 *
 * config_dominance.c asks the same of a configuration for all u at once.  Few
 * configurations are beaten by one other wherever the neighbour is, but nearly all are
 * for a given neighbour: next to a matrix product split by rows, only a few of 175
 * layouts make sense. Of an edge's table a fifth stays, of a table over longer chains
 * some hundredths, and the tables made of them take less in the same proportion. */
#include "table_dominance.h"

#include "articulation.h"
#include "dominance_tuning.h"
#include "entry_dominance.h"

#include <stdlib.h>
#include <string.h>

/* An operator's costs and edges outside of a factor; factors with the same ones are thinned
 * alike. */
struct end_key {
    int own, view, nsides; /* table of the operator's own costs; how the factor sees it */
    struct {
        int table, is_from, of; /* an edge's table; how that sees the operator; ... */
        int used;               /* ... and which of its classes the other end may take */
    } side[TOPT_MOST_SIDES];
};

/* One end of a factor: a number for what it has outside, or NO_END, and the edges
 * there. */
enum { NO_END = -2 };
struct outside_end {
    int number, nsides, edge[TOPT_MOST_SIDES];
};

static int intern_view(struct table_dominance *t, int op, const struct view *v)
{
    return topt_intern(&t->views, v->of, (size_t)t->plan->nvalues[op] * sizeof *v->of,
                       NULL);
}

/* ---- setting up -------------------------------------------------------------------- */

static int find_edges(struct table_dominance *t, const struct topt_search_problem *p)
{
    t->leaf = TOPT_NEW(t->arena, p->nedges, const struct table *);
    t->mark = TOPT_NEW(t->arena, p->nedges, int);
    t->first = TOPT_NEW(t->arena, p->nops + 2, int);
    t->edges = TOPT_NEW(t->arena, 2 * (size_t)p->nedges, int);
    if (!t->leaf || !t->mark || !t->first || !t->edges)
        return -1;
    topt_graph_edges(p, t->first, t->edges);
    for (int e = 0; e < p->nedges;
         e++) /* factors of operators stand before those of edges */
        t->leaf[e] = t->plan->factor[p->nops + e].table;
    return 0;
}

int topt_table_dominance_init(struct table_dominance *t, struct elimination_plan *plan,
                              struct maker *maker, struct topt_pool *pool,
                              struct topt_error *err)
{
    const struct topt_search_problem *p = plan->problem;
    *t = (struct table_dominance){
        .plan = plan, .maker = maker, .pool = pool, .arena = topt_arena_create(0)};
    if (!t->arena)
        return topt_search_nomem(err);
    t->views.arena = t->ends.arena = t->arena;
    return find_edges(t, p) ? topt_search_nomem(err) : 0;
}

void topt_table_dominance_fini(struct table_dominance *t)
{
    topt_arena_destroy(t->arena);
}

/* ---- which edges a factor is made of ----------------------------------------------- */

/* Mark the edges that a node is made of. */
static void mark_edges(struct table_dominance *t, int node)
{
    const struct tree_node *p = &t->plan->node[node];
    if (p->edge >= 0)
        t->mark[p->edge] = t->stamp;
    if (p->left >= 0)
        mark_edges(t, p->left);
    if (p->right >= 0)
        mark_edges(t, p->right);
}

/* ---- what is outside of a factor --------------------------------------------------- */

static int by_side(const void *x, const void *y)
{
    return memcmp(x, y, sizeof((struct end_key *)0)->side[0]);
}

/* Marks of the classes that an edge's other end may take, as its operator ('is_from')
 * sees it. */
static char *find_used(const struct table_dominance *t, int edge, int is_from,
                       struct topt_arena *a)
{
    const struct elimination_plan *p = t->plan;
    const struct factor *f = &p->factor[p->problem->nops + edge];
    const struct view *view = &f->view[is_from];
    char *used = TOPT_NEW(a, view->n, char);
    for (int c = 0; used && c < p->nvalues[f->op[is_from]]; c++)
        used[view->of[c]] = 1;
    return used;
}

/* A number for them: of blocks alike, one may be next to an operator that has less to
 * choose. */
static int number_of_used(struct table_dominance *t, int edge, int is_from,
                          struct topt_arena *a)
{
    const struct factor *f = &t->plan->factor[t->plan->problem->nops + edge];
    const char *used = find_used(t, edge, is_from, a);
    return used ? topt_intern(&t->views, used, (size_t)f->view[is_from].n, NULL) : -1;
}

/* The sides of an operator's edges that are not marked.  1, 0 where they are too many, or
 * -1. */
static int find_sides(struct table_dominance *t, int op, int most, struct topt_arena *a,
                      struct end_key *end, struct outside_end *ret)
{
    const struct elimination_plan *p = t->plan;
    for (int i = t->first[op]; i < t->first[op + 1]; i++) {
        int e = t->edges[i];
        const struct topt_search_edge *edge = &p->problem->edge[e];
        const struct factor *f = &p->factor[p->problem->nops + e];
        int is_from = edge->from == op;
        if (t->mark[e] == t->stamp)
            continue;
        if (end->nsides == most || edge->from == edge->to ||
            edge->table->from_classes > MOST_VALUES ||
            edge->table->to_classes > MOST_VALUES)
            return 0;
        int of = intern_view(t, op, &f->view[!is_from]);
        int used = number_of_used(t, e, is_from, a);
        if (of < 0 || used < 0)
            return -1;
        ret->edge[ret->nsides++] = e;
        end->side[end->nsides].table = t->leaf[e]->id;
        end->side[end->nsides].is_from = is_from;
        end->side[end->nsides].of = of;
        end->side[end->nsides++].used = used;
    }
    qsort(end->side, (size_t)end->nsides, sizeof end->side[0], by_side);
    return 1;
}

/* Collect the edges outside of a factor's end: NO_END where there are too many.  0, or -1:
 * memory. */
static int find_end(struct table_dominance *t, const struct factor *f, int d, int most,
                    struct topt_arena *a, struct outside_end *ret)
{
    int op = f->op[d];
    struct end_key end;
    memset(&end, 0, sizeof end);
    *ret = (struct outside_end){.number = NO_END};
    if (t->plan->nvalues[op] > MOST_VALUES)
        return 0;
    int rc = find_sides(t, op, most, a, &end, ret);
    if (rc <= 0)
        return rc;
    end.own =
        t->plan->factor[op].table->id; /* leaves of operators are the first factors */
    end.view = intern_view(t, op, &f->view[d]);
    ret->number = end.view < 0 ? -1 : topt_intern(&t->ends, &end, sizeof end, NULL);
    return ret->number < 0 ? -1 : 0;
}

/* ---- thinning a table -------------------------------------------------------------- */

/* An edge's end as its operator sees it. */
static struct substitution_side *find_side(const struct table_dominance *t, int edge,
                                           int is_from, struct topt_arena *a)
{
    const struct elimination_plan *p = t->plan;
    const struct table *leaf = t->leaf[edge];
    const struct factor *f = &p->factor[p->problem->nops + edge];
    struct substitution_lists lists = {leaf->first, leaf->cost, f->view[0].n,
                                       f->view[1].n};
    struct substitution_side *side = TOPT_NEW(a, 1, struct substitution_side);
    const char *used = find_used(t, edge, is_from, a);
    if (!side || !used)
        return NULL;
    return topt_substitution_side(side, lists, is_from, used, a) ? NULL : side;
}

/* The end of a factor. */
static int describe(const struct table_dominance *t, const struct factor *f, int d,
                    const struct outside_end *end, struct topt_arena *a,
                    struct dominance_end *ret)
{
    const struct elimination_plan *p = t->plan;
    int op = f->op[d];
    const struct table *own = p->factor[op].table;
    *ret = (struct dominance_end){.nvalues = p->nvalues[op],
                                  .class_of = f->view[d].of,
                                  .own_first = own->first,
                                  .own = own->cost,
                                  .nsides = end->nsides};
    for (int i = 0; i < end->nsides; i++) {
        int e = end->edge[i], is_from = p->problem->edge[e].from == op;
        if (!(ret->side[i].side = find_side(t, e, is_from, a)))
            return -1;
        ret->side[i].class_of = p->factor[p->problem->nops + e].view[!is_from].of;
    }
    return 0;
}

/* Unmark in 'alive' what is dominated at those ends of a factor that are known. */
static int thin_points(struct table_dominance *t, const struct factor *f,
                       const struct outside_end o[2], const struct dominance_table *table,
                       char *alive)
{
    struct dominance_end end[2];
    const struct dominance_end *known[2] = {NULL, NULL};
    struct topt_arena *a = topt_arena_create(0);
    int rc = a ? 0 : -1;
    for (int d = 0; d < 2 && !rc; d++)
        if (o[d].number != NO_END) {
            rc = describe(t, f, d, &o[d], a, &end[d]);
            known[d] = &end[d];
        }
    if (!rc)
        rc = topt_entry_dominance(table, known, alive, t->pool, &t->work);
    topt_arena_destroy(a);
    return rc;
}

/* Runs of a table's entries, counted from its first point; malloc'ed. */
static struct run *runs_of(const struct table_dominance *t, const struct table *table,
                           size_t *ret_points)
{
    struct run *run = malloc(((size_t)table->nentries + 1) * sizeof *run);
    size_t n = 0;
    for (int64_t e = 0; run && e < table->nentries; e++) {
        run[e] = topt_entry_points(t->maker, table, table->first_entry + e);
        run[e].base = (uint32_t)n;
        n += run[e].n;
    }
    *ret_points = n;
    return run;
}

/* A table of the same entries, which is made of 'from' alone, told apart by two
 * numbers. */
static struct table *plan_table(struct table_dominance *t, const struct factor *f,
                                int tag0, int tag1, struct topt_error *err)
{
    int n = f->view[0].n, m = f->view[1].n;
    size_t len = 4 + 2 + 2 * ((size_t)n + (size_t)m) + 4 + 2;
    int32_t *r = calloc(len, sizeof *r), *off;
    if (!r) {
        topt_search_nomem(err);
        return NULL;
    }
    struct step s = {.a = f->table,
                     .ndims = 2,
                     .ngroups = 1,
                     .size = r + 4,
                     .off = r + 6,
                     .nentries = f->table->nentries,
                     .recipe = r,
                     .recipe_len = len};
    memcpy(r, (int32_t[]){f->table->id, -1, 2, 1, n, m}, 6 * sizeof *r);
    off = r + 6;
    for (int i = 0; i < n; i++)
        off[i] = i * m;
    off += 2 * n;
    for (int i = 0; i < m; i++)
        off[i] = i;
    off += 2 * m;
    s.kfirst = off;
    s.ka = off + 2;
    s.kb = off + 3;
    off[1] = 1;
    off[4] = tag0;
    off[5] = tag1;
    return topt_tables_step(&t->plan->tables, &s, err);
}

static int put_table(struct table_dominance *t, struct factor *f, struct table *to)
{
    struct elimination_plan *p = t->plan;
    struct tree_node node = {f->node, -1, -1, -1, to};
    f->node = topt_elimination_node(p, node);
    f->table = to;
    return f->node < 0 ? -1 : 0;
}

/* By point of a factor's table: may it be on the frontier?  Malloc'ed; NULL: memory. */
static char *find_alive(struct table_dominance *t, const struct factor *f,
                        const struct outside_end o[2])
{
    struct dominance_table table = {.n = {f->view[0].n, f->view[1].n}};
    struct run *run = runs_of(t, f->table, &table.npoints);
    char *alive = malloc(table.npoints + 1);
    int rc = run && alive ? 0 : -1;
    table.run = run;
    if (!rc) {
        memset(alive, 1, table.npoints);
        rc = thin_points(t, f, o, &table, alive);
    }
    free(run);
    if (!rc)
        return alive;
    free(alive);
    return NULL;
}

static int fill_table(struct table_dominance *t, const struct factor *f,
                      const struct outside_end o[2], struct table *to,
                      struct topt_error *err)
{
    char *alive = find_alive(t, f, o);
    int rc = alive ? topt_make_part(t->maker, f->table, alive, to, err)
                   : topt_search_nomem(err);
    free(alive);
    return rc;
}

/* The part outside of a factor, to which edges that are not marked belong. */
static int find_outside(struct table_dominance *t, const struct factor *f,
                        struct topt_arena *a, struct outside_end ret[2],
                        struct topt_error *err)
{
    int most = f->table->nparts > 1 ? MOST_SIDES : TOPT_MOST_SIDES;
    ret[0] = ret[1] = (struct outside_end){.number = NO_END};
    if (f->nops != 2 || !f->table->nentries || f->table->nparts > MOST_PARTS)
        return 0;
    t->stamp++;
    mark_edges(t, f->node);
    for (int d = 0; d < 2; d++)
        if (find_end(t, f, d, most, a, &ret[d]))
            return topt_search_nomem(err);
    return 0;
}

static int thin(struct table_dominance *t, struct factor *f,
                const struct outside_end o[2], struct topt_error *err)
{
    size_t before = t->plan->tables.nall;
    struct table *to = plan_table(t, f, o[0].number, o[1].number, err);
    if (!to || (t->plan->tables.nall > before && fill_table(t, f, o, to, err)))
        return -1;
    return put_table(t, f, to);
}

int topt_table_dominance_apply(struct table_dominance *t, int factor,
                               struct topt_error *err)
{
    struct factor *f = &t->plan->factor[factor];
    struct topt_arena *a = topt_arena_create(0);
    struct outside_end o[2];
    int rc = a ? find_outside(t, f, a, o, err) : topt_search_nomem(err);
    if (!rc && (o[0].number != NO_END || o[1].number != NO_END))
        rc = thin(t, f, o, err);
    topt_arena_destroy(a);
    return rc;
}
