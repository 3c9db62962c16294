/* thin.c - tables of a plan without points that a swap at one end always outdoes.
 *
 *       F(u, c) -- c --- y         the point p of F(u, c), and any strategy that has it
 *     u
 *       F(u, w) -- w --- y         w instead of c, with the point q of F(u, w)
 *
 * Where  q + (what the swap of c for w costs at most on all that is not in F)  is no more
 * than p in memory and in time, and less in one, every strategy with p is beaten by the same
 * strategy with q, so p is on no frontier.  That needs no bounds, and it does not matter
 * what else was left out: what beats is a strategy of the problem, whether or not its own
 * parts are still there.  (Of equal ones both stay: one could be left out for the other's sake
 * and the other for its.)
 *
 * narrow.c asks the same of a configuration for all u at once.  Few configurations are beaten
 * by one other wherever the neighbour is, but nearly all are for a given neighbour: next to a
 * matrix product split by rows, only a few of 175 layouts make sense. Of an edge's
 * table a fifth stays, of a table over longer chains some hundredths, and the tables made of
 * them take less in the same proportion. */
#include "thin.h"

#include "outdone.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_VALUES = 2048, /* of an end: as many squared are compared */
    MOST_PARTS = 1024,  /* of a table */
    MOST_SIDES = 1,     /* of an end; where there are more little is outdone, ... */
    NBUCKETS = 1024,
};

/* What an operator has outside of a factor; factors with the same are thinned alike. */
struct end_key {
    int own, view, nsides; /* table of the operator's own costs; how the factor sees it */
    struct {
        int table, is_from, of; /* an edge's table; how that sees the operator */
    } side[TOPT_MOST_SIDES];
};

/* ---- equal things get equal numbers ---- */

struct known {
    uint64_t hash;
    size_t len;
    const void *bytes;
    int id;
    struct known *next;
};

static int nomem(struct topt_error *err)
{
    return topt_search_nomem(err);
}

/* The number of what these bytes say, from 0, or -1. */
static int number_of(struct thinner *t, struct numbers *n, const void *bytes, size_t len)
{
    uint64_t hash = topt_hash(bytes, len, len);
    struct known **b = &n->bucket[hash % NBUCKETS];
    for (struct known *k = *b; k; k = k->next)
        if (k->hash == hash && k->len == len && !memcmp(k->bytes, bytes, len))
            return k->id;
    struct known *k = TOPT_NEW(t->arena, 1, struct known);
    char *copy = TOPT_NEW(t->arena, len, char);
    if (!k || !copy)
        return -1;
    if (len)
        memcpy(copy, bytes, len);
    *k = (struct known){hash, len, copy, n->n++, *b};
    *b = k;
    return k->id;
}

static int number_of_view(struct thinner *t, int op, const struct view *v)
{
    return number_of(t, &t->views, v->of, (size_t)t->plan->nvalues[op] * sizeof *v->of);
}

/* ---- setting up ---- */

static int find_edges(struct thinner *t, const struct topt_search_problem *p)
{
    t->leaf = TOPT_NEW(t->arena, p->nedges, const struct table *);
    t->mark = TOPT_NEW(t->arena, p->nedges, int);
    t->first = TOPT_NEW(t->arena, p->nops + 2, int);
    t->edges = TOPT_NEW(t->arena, 2 * (size_t)p->nedges, int);
    if (!t->leaf || !t->mark || !t->first || !t->edges)
        return -1;
    for (int e = 0; e < p->nedges; e++) {
        t->first[p->edge[e].from + 2]++;
        t->first[p->edge[e].to + 2]++;
    }
    for (int i = 2; i <= p->nops + 1; i++)
        t->first[i] += t->first[i - 1];
    for (int e = 0; e < p->nedges; e++) {
        /* Factors of operators stand before those of edges. */
        t->leaf[e] = t->plan->factor[p->nops + e].table;
        t->edges[t->first[p->edge[e].from + 1]++] = e;
        t->edges[t->first[p->edge[e].to + 1]++] = e;
    }
    return 0;
}

int topt_thinner_init(struct thinner *t, struct plan *plan, struct maker *maker,
                      struct topt_pool *pool, struct topt_error *err)
{
    const struct topt_search_problem *p = plan->problem;
    *t = (struct thinner){
        .plan = plan, .maker = maker, .pool = pool, .arena = topt_arena_create(0)};
    if (!t->arena)
        return nomem(err);
    t->views.bucket = TOPT_NEW(t->arena, NBUCKETS, struct known *);
    t->ends.bucket = TOPT_NEW(t->arena, NBUCKETS, struct known *);
    if (!t->views.bucket || !t->ends.bucket || find_edges(t, p))
        return nomem(err);
    return 0;
}

void topt_thinner_fini(struct thinner *t)
{
    topt_arena_destroy(t->arena);
}

/* ---- what is outside of a factor ---- */

/* Mark the edges that a place is made of. */
static void mark_edges(struct thinner *t, int place)
{
    const struct place *p = &t->plan->place[place];
    if (p->edge >= 0)
        t->mark[p->edge] = t->stamp;
    if (p->left >= 0)
        mark_edges(t, p->left);
    if (p->right >= 0)
        mark_edges(t, p->right);
}

static int by_side(const void *x, const void *y)
{
    return memcmp(x, y, sizeof((struct end_key *)0)->side[0]);
}

/* The sides of an operator's edges that are not marked.  1, 0 where they are too many, or -1. */
static int find_sides(struct thinner *t, int op, int most, struct end_key *end)
{
    const struct plan *p = t->plan;
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
        int of = number_of_view(t, op, &f->view[!is_from]);
        if (of < 0)
            return -1;
        end->side[end->nsides].table = t->leaf[e]->id;
        end->side[end->nsides].is_from = is_from;
        end->side[end->nsides++].of = of;
    }
    qsort(end->side, (size_t)end->nsides, sizeof end->side[0], by_side);
    return 1;
}

enum { NO_END = -2 };

/* The number of what a factor's end has outside; NO_END where that is too much, or -1. */
static int find_end(struct thinner *t, const struct factor *f, int d, int most)
{
    int op = f->op[d];
    struct end_key end;
    memset(&end, 0, sizeof end);
    if (t->plan->nvalues[op] > MOST_VALUES)
        return NO_END;
    int rc = find_sides(t, op, most, &end);
    if (rc <= 0)
        return rc < 0 ? -1 : NO_END;
    end.own =
        t->plan->factor[op].table->id; /* leaves of operators are the first factors */
    end.view = number_of_view(t, op, &f->view[d]);
    return end.view < 0 ? -1 : number_of(t, &t->ends, &end, sizeof end);
}

/* ---- thinning a table ---- */

/* An edge's end as its operator sees it. */
static struct swap_side *find_side(const struct thinner *t, int edge, int is_from,
                                   struct topt_arena *a)
{
    const struct plan *p = t->plan;
    const struct table *leaf = t->leaf[edge];
    const struct factor *f = &p->factor[p->problem->nops + edge];
    struct swap_lists lists = {leaf->first, leaf->cost, f->view[0].n, f->view[1].n};
    struct swap_side *side = TOPT_NEW(a, 1, struct swap_side);
    char *used = TOPT_NEW(a, f->view[is_from].n, char);
    if (!side || !used)
        return NULL;
    for (int c = 0; c < p->nvalues[f->op[is_from]]; c++)
        used[f->view[is_from].of[c]] = 1;
    return topt_swap_side(side, lists, is_from, used, a) ? NULL : side;
}

/* The end of a factor whose edges are marked. */
static int describe(const struct thinner *t, const struct factor *f, int d,
                    struct topt_arena *a, struct outdone_end *ret)
{
    const struct plan *p = t->plan;
    int op = f->op[d];
    const struct table *own = p->factor[op].table;
    *ret = (struct outdone_end){.nvalues = p->nvalues[op],
                                .class_of = f->view[d].of,
                                .own_first = own->first,
                                .own = own->cost};
    for (int i = t->first[op]; i < t->first[op + 1]; i++) {
        int e = t->edges[i], is_from = p->problem->edge[e].from == op;
        if (t->mark[e] == t->stamp)
            continue;
        struct swap_side *side = find_side(t, e, is_from, a);
        if (!side)
            return -1;
        ret->side[ret->nsides].side = side;
        ret->side[ret->nsides++].class_of =
            p->factor[p->problem->nops + e].view[!is_from].of;
    }
    return 0;
}

/* Unmark in 'alive' what is outdone at those ends of a factor that are not NO_END. */
static int thin_points(struct thinner *t, const struct factor *f, const struct run *run,
                       size_t npoints, const int id[2], char *alive)
{
    struct outdone_table table = {{f->view[0].n, f->view[1].n}, run, npoints};
    struct outdone_end end[2];
    const struct outdone_end *known[2] = {NULL, NULL};
    struct topt_arena *a = topt_arena_create(0);
    int rc = a ? 0 : -1;
    for (int d = 0; d < 2 && !rc; d++)
        if (id[d] >= 0) {
            rc = describe(t, f, d, a, &end[d]);
            known[d] = &end[d];
        }
    if (!rc)
        rc = topt_outdone(&table, known, alive, t->pool, &t->work);
    topt_arena_destroy(a);
    return rc;
}

/* Runs of a table's entries, counted from its first point; malloc'ed. */
static struct run *runs_of(const struct thinner *t, const struct table *table,
                           size_t *ret_points)
{
    struct run *run = malloc(((size_t)table->nentries + 1) * sizeof *run);
    size_t n = 0;
    for (int64_t e = 0; run && e < table->nentries; e++) {
        run[e] = topt_made_entry(t->maker, table, table->first_entry + e);
        run[e].base = (uint32_t)n;
        n += run[e].n;
    }
    *ret_points = n;
    return run;
}

/* A table of the same entries, which is made of 'from' alone, told apart by two numbers. */
static struct table *plan_table(struct thinner *t, const struct factor *f, int tag0,
                                int tag1, struct topt_error *err)
{
    int n = f->view[0].n, m = f->view[1].n;
    size_t len = 4 + 2 + 2 * ((size_t)n + (size_t)m) + 4 + 2;
    int32_t *r = calloc(len, sizeof *r), *off;
    if (!r) {
        nomem(err);
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

static int put_table(struct thinner *t, struct factor *f, struct table *to)
{
    struct plan *p = t->plan;
    struct place place = {f->place, -1, -1, -1, to};
    if (to->inherits) {
        place = p->place[f->place];
        place.table = to;
    }
    f->place = topt_plan_place(p, place);
    f->table = to;
    return f->place < 0 ? -1 : 0;
}

static int fill_table(struct thinner *t, const struct factor *f, const int end[2],
                      struct table *to, int fresh, struct topt_error *err)
{
    size_t n;
    struct run *run = runs_of(t, f->table, &n);
    char *alive = malloc(n + 1);
    int rc = run && alive ? 0 : -1;
    if (!rc) {
        memset(alive, 1, n);
        rc = thin_points(t, f, run, n, end, alive);
    }
    free(run);
    rc = rc ? nomem(err) : topt_make_part(t->maker, f->table, alive, to, fresh, err);
    free(alive);
    return rc;
}

/* A table that was moved is made again where it is needed as it was. */
static int have_points(struct thinner *t, struct table *table, struct topt_error *err)
{
    return table->moved ? topt_make_again(t->maker, table, err) : 0;
}

int topt_thin(struct thinner *t, int factor, int fresh, struct topt_error *err)
{
    struct plan *p = t->plan;
    struct factor *f = &p->factor[factor];
    int end[2], most = f->table->nparts > 1 ? MOST_SIDES : TOPT_MOST_SIDES;
    if (!f->table->nentries || f->table->nparts > MOST_PARTS)
        return have_points(t, f->table, err);
    t->stamp++;
    mark_edges(t, f->place);
    for (int d = 0; d < 2; d++)
        if ((end[d] = find_end(t, f, d, most)) == -1)
            return nomem(err);
    if (end[0] == NO_END && end[1] == NO_END)
        return have_points(t, f->table, err);
    size_t before = p->tables.nall;
    struct table *to = plan_table(t, f, end[0], end[1], err);
    if (!to || (p->tables.nall > before &&
                (have_points(t, f->table, err) || fill_table(t, f, end, to, fresh, err))))
        return -1;
    return put_table(t, f, to);
}
