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
 * matrix product split by rows, only a few of 175 layouts make sense.  Of an edge's
 * table a fifth stays, of a table over longer chains some hundredths, and the tables made of
 * them take less in the same proportion. */
#include "thin.h"

#include "swap.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_VALUES = 1024, /* of an end; what is known of swaps takes their square */
    MOST_PARTS = 1024,  /* of a table */
    MOST_SIDES = 1,     /* of an end; where there are more little is outdone, ... */
    LEAF_SIDES = 4,     /* ... but an edge's own table is small */
};

/* An end of an edge, with what its swaps cost. */
struct side_kind {
    struct swap_side side;
    struct side_kind *next;
};

struct end_side {
    struct swap_side *side;
    const int32_t *class_of; /* by value */
};

/* What an operator has outside of a factor; factors with the same are thinned alike. */
struct end_kind {
    int id, n, nsides;
    const struct table *own; /* the operator's own costs */
    struct end_side side[LEAF_SIDES];
    struct swap *swap; /* by values v * n + w, of all together; 'seen': is it known? */
    struct end_kind *next;
};

/* How much of a sum over all sides is known. */
enum { PARTLY, WHOLLY };

/* Costs beyond so many times what swaps may cost are left as they are; a swap that is not
 * possible costs more than those. */
enum { ROOM = 4 };

static int nomem(struct topt_error *err)
{
    return topt_search_nomem(err);
}

/* ---- setting up ---- */

int topt_thinner_init(struct thinner *t, struct plan *plan, struct maker *maker,
                      struct topt_error *err)
{
    const struct topt_search_problem *p = plan->problem;
    *t = (struct thinner){.plan = plan, .maker = maker, .arena = topt_arena_create(0)};
    if (!t->arena)
        return nomem(err);
    t->max_bytes = plan->tables.max_bytes / 16;
    t->mark = TOPT_NEW(t->arena, p->nedges, int);
    t->first = TOPT_NEW(t->arena, p->nops + 2, int);
    t->edges = TOPT_NEW(t->arena, 2 * (size_t)p->nedges, int);
    if (!t->mark || !t->first || !t->edges)
        return nomem(err);
    for (int e = 0; e < p->nedges; e++) {
        t->first[p->edge[e].from + 2]++;
        t->first[p->edge[e].to + 2]++;
    }
    for (int i = 2; i <= p->nops + 1; i++)
        t->first[i] += t->first[i - 1];
    for (int e = 0; e < p->nedges; e++) {
        t->edges[t->first[p->edge[e].from + 1]++] = e;
        t->edges[t->first[p->edge[e].to + 1]++] = e;
    }
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

static struct swap_side *find_side(struct thinner *t, int edge, int is_from)
{
    struct side_kind *k, *new = TOPT_NEW(t->arena, 1, struct side_kind);
    if (!new ||
        topt_swap_side(&new->side, t->plan->problem, edge, is_from, NULL, t->arena))
        return NULL;
    for (k = t->sides; k; k = k->next)
        if (topt_swap_same_side(&k->side, &new->side))
            return &k->side;
    t->bytes += topt_swap_bytes(&new->side);
    if (topt_swap_prepare(&new->side, t->arena))
        return NULL;
    new->next = t->sides;
    t->sides = new;
    return &new->side;
}

/* Classes of an edge's end by value. */
static const int32_t *classes(struct thinner *t, int edge, int op)
{
    const struct topt_search_edge *e = &t->plan->problem->edge[edge];
    const int32_t *of = e->from == op ? e->from_class : e->to_class;
    int32_t *ret = TOPT_NEW(t->arena, t->plan->nvalues[op], int32_t);
    for (int c = 0; ret && c < t->plan->problem->op[op].nconfigs; c++)
        ret[t->plan->value[op][c]] = of[c];
    return ret;
}

static const struct table *own_costs(const struct plan *p, int op)
{
    return p->factor[op].table; /* leaves of operators are the first factors */
}

static int same_end(const struct end_kind *a, const struct end_kind *b)
{
    if (a->n != b->n || a->nsides != b->nsides || a->own != b->own)
        return 0;
    for (int i = 0; i < a->nsides; i++)
        if (a->side[i].side != b->side[i].side ||
            memcmp(a->side[i].class_of, b->side[i].class_of,
                   (size_t)a->n * sizeof *a->side[i].class_of))
            return 0;
    return 1;
}

/* The sides of an operator's edges that are not marked.  1, 0 where they are too many, or
 * -1. */
static int find_sides(struct thinner *t, int op, int most, struct end_kind *end)
{
    for (int i = t->first[op]; i < t->first[op + 1]; i++) {
        int e = t->edges[i];
        const struct topt_search_edge *edge = &t->plan->problem->edge[e];
        if (t->mark[e] == t->stamp)
            continue;
        if (end->nsides == most || edge->from == edge->to ||
            edge->table->from_classes > MOST_VALUES ||
            edge->table->to_classes > MOST_VALUES)
            return 0;
        struct end_side *s = &end->side[end->nsides++];
        s->side = find_side(t, e, edge->from == op);
        s->class_of = classes(t, e, op);
        if (!s->side || !s->class_of)
            return -1;
    }
    return 1;
}

/* 1, 0 where it would be too much, or -1. */
static int find_end(struct thinner *t, int op, int most, struct end_kind **ret)
{
    struct end_kind *k, *new = TOPT_NEW(t->arena, 1, struct end_kind);
    if (!new)
        return -1;
    new->n = t->plan->nvalues[op];
    new->own = own_costs(t->plan, op);
    if (new->n > MOST_VALUES)
        return 0;
    int rc = find_sides(t, op, most, new);
    if (rc <= 0)
        return rc;
    for (k = t->ends; k; k = k->next)
        if (same_end(k, new)) {
            *ret = k;
            return 1;
        }
    t->bytes += (int64_t) new->n *new->n *(int64_t)sizeof *new->swap;
    if (t->bytes > t->max_bytes)
        return 0;
    new->swap = TOPT_NEW(t->arena, (size_t) new->n *(size_t) new->n, struct swap);
    if (!new->swap)
        return -1;
    for (size_t i = 0; i < (size_t) new->n *(size_t) new->n; i++)
        new->swap[i] =
            (struct swap){-ROOM * TOPT_SWAP_MOST, -ROOM * TOPT_SWAP_MOST, PARTLY};
    new->id = t->nends++;
    new->next = t->ends;
    t->ends = *ret = new;
    return 1;
}

/* ---- what a swap costs outside ---- */

static int64_t clamp(int64_t x)
{
    return x < -TOPT_SWAP_MOST  ? -TOPT_SWAP_MOST
           : x > TOPT_SWAP_MOST ? TOPT_SWAP_MOST
                                : x;
}

/* Go on with the sum over all sides until it is known or more than the limits.  Sums are of
 * a few that are below 2^57. */
static void find_swap(struct thinner *t, struct end_kind *k, int v, int w,
                      struct topt_cost limit, struct swap *ret)
{
    static const struct topt_cost glance = {-TOPT_SWAP_MOST - 1, -TOPT_SWAP_MOST - 1};
    const struct table *own = k->own;
    struct swap sum = topt_swap_lists(
        own->cost + own->first[v], (int32_t)(own->first[v + 1] - own->first[v]),
        own->cost + own->first[w], (int32_t)(own->first[w + 1] - own->first[w]));
    struct swap part[LEAF_SIDES];
    *ret = (struct swap){2 * ROOM * TOPT_SWAP_MOST, 2 * ROOM * TOPT_SWAP_MOST, PARTLY};
    if (sum.seen == TOPT_SWAP_NEVER)
        return;
    for (int i = 0; i < k->nsides; i++) {
        struct end_side *s = &k->side[i];
        part[i] = topt_swap(s->side, s->class_of[v], s->class_of[w], glance, &t->work);
        if (part[i].seen == TOPT_SWAP_NEVER)
            return;
        sum.memory += part[i].memory;
        sum.time += part[i].time;
    }
    sum.seen = WHOLLY;
    for (int i = 0; i < k->nsides; i++) {
        struct end_side *s = &k->side[i];
        struct topt_cost room = {clamp(limit.memory - (sum.memory - part[i].memory)),
                                 clamp(limit.time - (sum.time - part[i].time))};
        struct swap now = part[i];
        if (sum.memory <= limit.memory && sum.time <= limit.time)
            now = topt_swap(s->side, s->class_of[v], s->class_of[w], room, &t->work);
        if (now.seen == TOPT_SWAP_NEVER)
            return;
        sum.memory += now.memory - part[i].memory;
        sum.time += now.time - part[i].time;
        if (!topt_swap_known(s->side, now))
            sum.seen = PARTLY;
    }
    *ret = sum;
}

/* ---- points that are outdone ---- */

/* A row of a factor's table: all values of one end, the other being what it is. */
struct row {
    struct end_kind *end;
    const int32_t *class_of;     /* by value: the entry */
    struct run *run;             /* by class */
    int64_t *lightest, *fastest; /* by value: of its points */
    const char **wanted;         /* by class: which of its points there are still, */
    char **needed;               /* and which stay */
    int *hint;                   /* by value: what outdid it last */
};

/* Of those points of p that are still marked, unmark what a point of q and the swap outdo.
 * (In both lists memory rises and time falls.)  Returns how many were. */
static uint32_t unmark(struct run p, struct run q, const struct swap *swap, char *alive)
{
    uint32_t n = 0, j = 0; /* before j: no heavier than the point at hand */
    for (uint32_t i = 0; i < p.n; i++) {
        int64_t memory = p.cost[i].memory - swap->memory;
        int64_t time = p.cost[i].time - swap->time;
        while (j < q.n && q.cost[j].memory <= memory)
            j++;
        if (alive[i] && j &&
            (q.cost[j - 1].time < time ||
             (q.cost[j - 1].time == time && q.cost[j - 1].memory < memory))) {
            alive[i] = 0;
            n++;
        }
    }
    return n;
}

static int heavy(struct run r)
{
    return r.cost[r.n - 1].memory > ROOM * TOPT_SWAP_MOST ||
           r.cost[0].time > ROOM * TOPT_SWAP_MOST;
}

/* Leave out points of the list of value c, of which 'left' are marked, that value w outdoes.
 * 'most' is the most that the swap may cost.  Returns how many are left. */
static uint32_t try_swap(struct thinner *t, struct row *row, int c, int w,
                         struct topt_cost most, char *alive, uint32_t left)
{
    struct swap *swap = &row->end->swap[(size_t)c * (size_t)row->end->n + (size_t)w];
    struct run p = row->run[row->class_of[c]], q = row->run[row->class_of[w]];
    if (swap->seen != WHOLLY)
        find_swap(t, row->end, c, w, most, swap);
    if (swap->seen != WHOLLY || swap->memory > most.memory || swap->time > most.time)
        return left;
    return left - unmark(p, q, swap, alive);
}

static void thin_value(struct thinner *t, struct row *row, int c, char *alive)
{
    struct run p = row->run[row->class_of[c]];
    const struct swap *swap = &row->end->swap[(size_t)c * (size_t)row->end->n];
    int64_t memory = p.cost[p.n - 1].memory, time = p.cost[0].time;
    uint32_t left = 0;
    int n = heavy(p) ? 0 : row->end->n, hint = row->hint[c];
    memcpy(alive, row->wanted[row->class_of[c]], p.n);
    for (uint32_t i = 0; i < p.n; i++)
        left += alive[i] != 0;
    for (int i = -1; i < n && left; i++) {
        int w = i < 0 ? hint : i;
        struct topt_cost most = {memory - row->lightest[w], time - row->fastest[w]};
        if (swap[w].memory > most.memory || swap[w].time > most.time || w == c)
            continue;
        uint32_t before = left;
        left = try_swap(t, row, c, w, most, alive, left);
        if (left < before)
            row->hint[c] = w;
    }
    for (uint32_t i = 0; i < p.n; i++)
        row->needed[row->class_of[c]][i] |= alive[i];
}

/* The row's lists, and the least of each. */
static void start_row(struct row *row, const struct thinner *t, const struct factor *f,
                      int d, int o)
{
    int n = f->view[d].n, other = f->view[1 - d].n;
    for (int c = 0; c < n; c++) {
        int64_t e = d == 0 ? (int64_t)c * other + o : (int64_t)o * n + c;
        row->run[c] = topt_made_entry(t->maker, f->table, f->table->first_entry + e);
    }
    for (int c = 0; c < row->end->n; c++) {
        struct run r = row->run[row->class_of[c]];
        row->lightest[c] = r.n ? r.cost[0].memory : INT64_MAX / 2;
        row->fastest[c] = r.n ? r.cost[r.n - 1].time : INT64_MAX / 2;
    }
}

/* One end of a factor: 'needed' marks points that no swap of this operator outdoes, by their
 * number in the table. */
static int thin_end(struct thinner *t, const struct factor *f, int d,
                    struct end_kind *end, const char *wanted, char *needed)
{
    const struct table *table = f->table;
    int n = f->view[d].n, other = f->view[1 - d].n;
    uint32_t base = topt_made_entry(t->maker, table, table->first_entry).base,
             longest = 0;
    struct row row = {.end = end, .class_of = f->view[d].of};
    row.run = malloc(((size_t)n + 1) * sizeof *row.run);
    row.wanted = malloc(((size_t)n + 1) * sizeof(*row.wanted));
    row.needed = malloc(((size_t)n + 1) * sizeof(*row.needed));
    row.hint = calloc((size_t)end->n + 1, sizeof *row.hint);
    row.lightest = calloc((size_t)end->n + 1, sizeof *row.lightest);
    row.fastest = calloc((size_t)end->n + 1, sizeof *row.fastest);
    for (int64_t e = 0; e < table->nentries; e++) {
        struct run r = topt_made_entry(t->maker, table, table->first_entry + e);
        longest = r.n > longest ? r.n : longest;
    }
    char *alive = malloc((size_t)longest + 1);
    int rc = row.run && row.wanted && row.needed && row.hint && row.lightest &&
                     row.fastest && alive
                 ? 0
                 : -1;
    for (int o = 0; o < other && !rc; o++) {
        start_row(&row, t, f, d, o);
        t->work += n;
        for (int c = 0; c < n; c++) {
            row.wanted[c] = wanted + (row.run[c].base - base);
            row.needed[c] = needed + (row.run[c].base - base);
        }
        for (int c = 0; c < end->n; c++)
            if (row.run[row.class_of[c]].n)
                thin_value(t, &row, c, alive);
    }
    free(row.run);
    free((void *)row.wanted);
    free(row.needed);
    free(row.hint);
    free(row.lightest);
    free(row.fastest);
    free(alive);
    return rc;
}

/* ---- the thin table ---- */

/* A table of the same entries, which is made of 'from' alone, told apart by its ends. */
static struct table *plan_table(struct thinner *t, const struct factor *f,
                                struct end_kind *const end[2], struct topt_error *err)
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
    off[4] = end[0] ? end[0]->id : -1;
    off[5] = end[1] ? end[1]->id : -1;
    return topt_tables_step(&t->plan->tables, &s, err);
}

static int64_t count_points(const struct thinner *t, const struct table *table)
{
    int64_t n = 0;
    for (int64_t e = 0; e < table->nentries; e++)
        n += topt_made_entry(t->maker, table, table->first_entry + e).n;
    return n;
}

static int fill_table(struct thinner *t, const struct factor *f,
                      struct end_kind *const end[2], struct table *to, int fresh,
                      struct topt_error *err)
{
    size_t n = (size_t)count_points(t, f->table) + 1;
    char *left[3] = {malloc(n), calloc(n, 1), calloc(n, 1)};
    int at = 0, first, rc = left[0] && left[1] && left[2] ? 0 : nomem(err);
    /* The end with less around it first: it leaves less to the other. */
    first = end[0] && end[1] && end[1]->nsides < end[0]->nsides;
    if (!rc)
        memset(left[0], 1, n);
    for (int i = 0; i < 2 && !rc; i++) {
        int d = i ^ first;
        if (!end[d])
            continue;
        rc = thin_end(t, f, d, end[d], left[at], left[at + 1]) ? nomem(err) : 0;
        at++;
    }
    if (!rc)
        rc = topt_make_part(t->maker, f->table, left[at], to, fresh, err);
    for (int i = 0; i < 3; i++)
        free(left[i]);
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
    struct end_kind *end[2] = {NULL, NULL};
    int most = f->table->nparts > 1 ? MOST_SIDES : LEAF_SIDES;
    if (!f->table->nentries || f->table->nparts > MOST_PARTS)
        return have_points(t, f->table, err);
    t->stamp++;
    mark_edges(t, f->place);
    for (int d = 0; d < 2; d++)
        if (find_end(t, f->op[d], most, &end[d]) < 0)
            return nomem(err);
    if (!end[0] && !end[1])
        return have_points(t, f->table, err);
    size_t before = p->tables.nall;
    struct table *to = plan_table(t, f, end, err);
    if (!to || (p->tables.nall > before &&
                (have_points(t, f->table, err) || fill_table(t, f, end, to, fresh, err))))
        return -1;
    struct place place = {f->place, -1, -1, -1, to};
    if (to->inherits) {
        place = p->place[f->place];
        place.table = to;
    }
    f->place = topt_plan_place(p, place);
    f->table = to;
    return f->place < 0 ? -1 : 0;
}
