/* entry_dominance.c - points of a table over two operators that a substitution at one end always
 * dominates.
 *
 * In row o, a point p of entry (c, o) goes where one q of (w, o) and the substitution of c for w
 * together are no more in memory and time, and less in one.  Rows are independent, so each is
 * one thread's job, which itself bounds the cost of substitutions, as far as the row needs them.
 * Values that dominated points of earlier rows are tried first: they dominate most points.  Most
 * other values can't dominate anything, which lower bounds in floats tell for many at once. */
#include "entry_dominance.h"

#include "dominance_tuning.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A lower bound of a substitution's cost: is it the cost itself, and was it asked for
 * before? */
struct swap_bound {
    int64_t memory, time;
    int wholly, asked;
};

/* The least of an entry's points; of none, more than anything. */
struct least {
    int64_t memory, time;
};

/* One end's passes over a table. */
struct pass {
    const struct dominance_table *table;
    const struct dominance_end *end;
    int d, n, other;     /* classes of this end and of the other */
    struct least *least; /* by o * n + class */
    char *possible;      /* by value */
    const char *alive;   /* by point, at the start, ... */
    char *needed;        /* ... and what is still needed */
    uint32_t longest;
    struct scratch *scratch; /* by worker */
    atomic_int next, failed;
};

enum { LANES = 32 };

/* The substitutions of one value for LANES others, as floats, and the least that these cost in
 * the row. */
struct lanes {
    const float *memory, *time, *row_memory, *row_time;
};

/* A worker's workspace, by value v * nvalues + w: what is known of the substitution, and a
 * lower bound of it in floats; the lists of a row are by w alone. */
struct scratch {
    struct swap_bound *swap;
    float *swap_memory, *swap_time, *row_memory, *row_time;
    size_t stride;  /* values, filled up to whole LANES by such that dominate nothing */
    int *recent;    /* by value: a few that dominated it last, the latest first */
    uint32_t *left; /* by point of an entry */
};

static int64_t number_of(const struct pass *p, int k, int o)
{
    const int *n = p->table->n;
    return p->d == 0 ? (int64_t)k * n[1] + o : (int64_t)o * n[1] + k;
}

static struct run entry(const struct pass *p, int k, int o)
{
    return p->table->run[number_of(p, k, o)];
}

/* ---- what a substitution costs outside ----------------------------------------------------- */

static int64_t clamp(int64_t x)
{
    return x < -TOPT_SUBSTITUTION_MOST  ? -TOPT_SUBSTITUTION_MOST
           : x > TOPT_SUBSTITUTION_MOST ? TOPT_SUBSTITUTION_MOST
                                        : x;
}

/* The sum over the operator's own costs and all sides, as far as the limits; a glance at
 * every side first, since most are too much there.  Sums are of a few that are below
 * 2^57. */
static struct swap_bound find_swap(const struct dominance_end *k, int v, int w,
                                   struct topt_cost limit)
{
    static const struct topt_cost glance = {-TOPT_SUBSTITUTION_MOST - 1,
                                            -TOPT_SUBSTITUTION_MOST - 1};
    static const struct swap_bound never = {2 * ROOM * TOPT_SUBSTITUTION_MOST,
                                            2 * ROOM * TOPT_SUBSTITUTION_MOST, 0, 1};
    struct substitution part[TOPT_MOST_SIDES],
        own = topt_substitution_lists(
            k->own + k->own_first[v], (int32_t)(k->own_first[v + 1] - k->own_first[v]),
            k->own + k->own_first[w], (int32_t)(k->own_first[w + 1] - k->own_first[w]));
    struct swap_bound sum = {own.memory, own.time, 1, 1};
    if (own.seen == TOPT_SUBSTITUTION_NEVER)
        return never;
    for (int i = 0; i < k->nsides; i++) {
        part[i] = topt_substitution_start();
        topt_substitution(k->side[i].side, k->side[i].class_of[v], k->side[i].class_of[w],
                          glance, &part[i]);
        if (part[i].seen == TOPT_SUBSTITUTION_NEVER)
            return never;
        sum.memory += part[i].memory;
        sum.time += part[i].time;
    }
    for (int i = 0; i < k->nsides; i++) {
        int of_v = k->side[i].class_of[v];
        sum.memory -= part[i].memory;
        sum.time -= part[i].time;
        struct topt_cost room = {clamp(limit.memory - sum.memory),
                                 clamp(limit.time - sum.time)};
        if (part[i].memory <= room.memory && part[i].time <= room.time &&
            !topt_substitution_known(k->side[i].side, of_v, part[i]))
            topt_substitution(k->side[i].side, of_v, k->side[i].class_of[w], room,
                              &part[i]);
        if (part[i].seen == TOPT_SUBSTITUTION_NEVER)
            return never;
        sum.memory += part[i].memory;
        sum.time += part[i].time;
        sum.wholly =
            sum.wholly && topt_substitution_known(k->side[i].side, of_v, part[i]);
    }
    return sum;
}

/* ---- one row ----------------------------------------------------------------------- */

/* The numbers of an entry's points that are left, in order. */
struct remains {
    struct run p;
    uint32_t *left, n;
};

/* How many of those that are left take less memory. */
static uint32_t count_smaller(const struct remains *r, int64_t memory)
{
    uint32_t low = 0, high = r->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (r->p.cost[r->left[mid]].memory < memory)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* From 'at' on the first of q's points that is heavier. */
static uint32_t first_heavier(struct run q, uint32_t at, int64_t memory)
{
    uint32_t step = 1;
    while (at + step < q.n && q.cost[at + step].memory <= memory) {
        at += step;
        step *= 2;
    }
    while (at < q.n && q.cost[at].memory <= memory)
        at++;
    return at;
}

/* Take out what a point of q and the substitution dominate.  (In both lists memory rises and time
 * falls.) Returns how many that were. */
static uint32_t drop_dominated(struct remains *r, struct run q,
                               const struct swap_bound *swap)
{
    int64_t fastest = q.cost[q.n - 1].time + swap->time;
    uint32_t i = count_smaller(r, q.cost[0].memory + swap->memory), n = i, out;
    for (uint32_t j = 0; i < r->n;
         i++) { /* before j: no heavier than the point at hand */
        struct topt_cost p = r->p.cost[r->left[i]];
        int64_t memory = p.memory - swap->memory, time = p.time - swap->time;
        if (p.time < fastest)
            break;
        j = first_heavier(q, j, memory);
        if (q.cost[j - 1].time > time ||
            (q.cost[j - 1].time == time && q.cost[j - 1].memory == memory))
            r->left[n++] = r->left[i];
    }
    out = i - n;
    if (out)
        memmove(r->left + n, r->left + i, (r->n - i) * sizeof *r->left);
    r->n -= out;
    return out;
}

static int heavy(struct run r)
{
    return r.n && (r.cost[r.n - 1].memory > ROOM * TOPT_SUBSTITUTION_MOST ||
                   r.cost[0].time > ROOM * TOPT_SUBSTITUTION_MOST);
}

/* In floats, at least or at most so much: sums of what is at least are at least in
 * floats, too. */
static float at_least(int64_t x)
{
    float f = (float)x;
    return f - fabsf(f) * 0x1p-22f;
}

static float at_most(int64_t x)
{
    float f = (float)x;
    return f + fabsf(f) * 0x1p-22f;
}

/* The heaviest and the slowest of the points that are left. */
static struct topt_cost most_of(const struct remains *r)
{
    return (struct topt_cost){r->p.cost[r->left[r->n - 1]].memory,
                              r->p.cost[r->left[0]].time};
}

/* Take out of value c in row o what value w dominates: how many. */
static uint32_t try_swap(const struct pass *ps, struct scratch *s, int c, int w, int o,
                         struct remains *r)
{
    static const struct topt_cost any = {ROOM * TOPT_SUBSTITUTION_MOST,
                                         ROOM * TOPT_SUBSTITUTION_MOST};
    size_t at = (size_t)c * (size_t)ps->end->nvalues + (size_t)w;
    struct least q = ps->least[(int64_t)o * ps->n + ps->end->class_of[w]];
    struct topt_cost most = most_of(r);
    struct topt_cost limit = {most.memory - q.memory, most.time - q.time};
    struct swap_bound *swap = &s->swap[at];
    if (w == c || swap->memory > limit.memory || swap->time > limit.time)
        return 0;
    if (!swap->wholly) { /* the second time to its end */
        *swap = find_swap(ps->end, c, w, swap->asked ? any : limit);
        at = (size_t)c * s->stride + (size_t)w;
        s->swap_memory[at] = at_least(swap->memory);
        s->swap_time[at] = at_least(swap->time);
    }
    if (!swap->wholly || swap->memory > limit.memory || swap->time > limit.time)
        return 0;
    return drop_dominated(r, entry(ps, ps->end->class_of[w], o), swap);
}

/* Move a value that dominated a point to the front of the few that are tried first. */
static void move_to_front(int *recent, int w)
{
    int i = 0;
    while (i < RECENT - 1 && recent[i] != w)
        i++;
    memmove(recent + 1, recent, (size_t)i * sizeof *recent);
    recent[0] = w;
}

/* Mark in 'hit' those that may dominate what costs no more than 'most'.  Are there any? */
static int find_hits(const struct lanes *l, struct topt_cost most, uint32_t hit[LANES])
{
    float heaviest = at_most(most.memory), slowest = at_most(most.time);
    uint32_t any = 0;
    for (int i = 0; i < LANES; i++) {
        hit[i] = (uint32_t)(l->memory[i] + l->row_memory[i] <= heaviest) &
                 (uint32_t)(l->time[i] + l->row_time[i] <= slowest);
        any |= hit[i];
    }
    return any != 0;
}

/* Try a value that dominated points of an earlier row, or may do so by the bounds that are
 * known. */
static void try_value(const struct pass *ps, struct scratch *s, int c, int w, int o,
                      struct remains *r)
{
    if (try_swap(ps, s, c, w, o, r))
        move_to_front(&s->recent[c * RECENT], w);
}

static void try_recent(const struct pass *ps, struct scratch *s, int c, int o,
                       struct remains *r)
{
    int recent[RECENT];
    memcpy(recent, &s->recent[c * RECENT], sizeof recent);
    for (int i = 0; i < RECENT && r->n; i++)
        try_value(ps, s, c, recent[i], o, r);
}

static void try_all(const struct pass *ps, struct scratch *s, int c, int o,
                    struct remains *r)
{
    size_t row = (size_t)c * s->stride;
    uint32_t hit[LANES];
    for (size_t w = 0; w < s->stride && r->n; w += LANES) {
        struct lanes l = {s->swap_memory + row + w, s->swap_time + row + w,
                          s->row_memory + w, s->row_time + w};
        if (!find_hits(&l, most_of(r), hit))
            continue;
        for (int i = 0; i < LANES && r->n; i++)
            if (hit[i])
                try_value(ps, s, c, (int)w + i, o, r);
    }
}

/* Mark the points of value c in row o that no other value dominates as needed. */
static void thin_entry(const struct pass *ps, struct scratch *s, int c, int o)
{
    struct remains r = {.p = entry(ps, ps->end->class_of[c], o), .left = s->left};
    for (uint32_t i = 0; i < r.p.n; i++)
        if (ps->alive[r.p.base + i])
            r.left[r.n++] = i;
    if (r.n && !heavy(r.p)) {
        try_recent(ps, s, c, o, &r);
        try_all(ps, s, c, o, &r);
    }
    for (uint32_t i = 0; i < r.n; i++)
        ps->needed[r.p.base + r.left[i]] = 1;
}

static void thin_row(const struct pass *ps, struct scratch *s, int o)
{
    const struct least *least = &ps->least[(int64_t)o * ps->n];
    for (int w = 0; w < ps->end->nvalues; w++) {
        s->row_memory[w] = at_least(least[ps->end->class_of[w]].memory);
        s->row_time[w] = at_least(least[ps->end->class_of[w]].time);
    }
    for (int c = 0; c < ps->end->nvalues; c++)
        if (ps->possible[c])
            thin_entry(ps, s, c, o);
}

/* May the value be taken at all, as far as its other edges go? */
static char is_possible(const struct dominance_end *e, int c)
{
    for (int i = 0; i < e->nsides; i++) {
        int v = e->side[i].class_of[c];
        if (e->side[i].side->first[v] == e->side[i].side->first[v + 1])
            return 0;
    }
    return 1;
}

static int scratch_init(const struct pass *ps, struct scratch *s)
{
    size_t n = (size_t)ps->end->nvalues, pairs = n * n;
    size_t stride = (n + LANES - 1) / LANES * LANES, rows = n * stride;
    float *floats = malloc((2 * rows + 2 * stride + 1) * sizeof *floats);
    *s = (struct scratch){.swap = malloc((pairs + 1) * sizeof *s->swap),
                          .swap_memory = floats,
                          .stride = stride,
                          .recent = calloc(n * RECENT + 1, sizeof *s->recent),
                          .left = malloc(((size_t)ps->longest + 1) * sizeof *s->left)};
    if (!s->swap || !floats || !s->recent || !s->left)
        return -1;
    s->swap_time = floats + rows;
    s->row_memory = s->swap_time + rows;
    s->row_time = s->row_memory + stride;
    for (size_t i = 0; i < pairs; i++)
        s->swap[i] = (struct swap_bound){-ROOM * TOPT_SUBSTITUTION_MOST,
                                         -ROOM * TOPT_SUBSTITUTION_MOST, 0, 0};
    for (size_t i = 0; i < rows; i++)
        s->swap_memory[i] = s->swap_time[i] = at_least(-ROOM * TOPT_SUBSTITUTION_MOST);
    for (size_t w = 0; w < stride; w++)
        s->row_memory[w] = s->row_time[w] = INFINITY;
    return 0;
}

static void work(void *ctx, int worker)
{
    struct pass *ps = ctx;
    struct scratch *s = &ps->scratch[worker];
    if (!s->swap && scratch_init(ps, s))
        ps->failed = 1;
    for (int o; !ps->failed && (o = ps->next++) < ps->other;)
        thin_row(ps, s, o);
}

/* ---- both ends --------------------------------------------------------------------- */

static void find_least(const struct pass *p, struct least *least)
{
    for (int o = 0; o < p->other; o++)
        for (int k = 0; k < p->n; k++) {
            struct run r = entry(p, k, o);
            least[(int64_t)o * p->n + k] =
                r.n ? (struct least){r.cost[0].memory, r.cost[r.n - 1].time}
                    : (struct least){INT64_MAX / 2, INT64_MAX / 2};
        }
}

static int pass_init(struct pass *p, const struct dominance_table *t, int d,
                     const struct dominance_end *end, int nworkers)
{
    size_t entries = (size_t)t->n[0] * (size_t)t->n[1];
    *p =
        (struct pass){.table = t, .end = end, .d = d, .n = t->n[d], .other = t->n[1 - d]};
    p->possible = malloc((size_t)end->nvalues + 1);
    p->least = malloc((entries + 1) * sizeof *p->least);
    p->needed = malloc(t->npoints + 1);
    p->scratch = calloc((size_t)nworkers, sizeof *p->scratch);
    if (!p->possible || !p->least || !p->needed || !p->scratch)
        return -1;
    for (size_t e = 0; e < entries; e++)
        p->longest = t->run[e].n > p->longest ? t->run[e].n : p->longest;
    for (int c = 0; c < end->nvalues; c++)
        p->possible[c] = is_possible(end, c);
    find_least(p, p->least);
    return 0;
}

static void pass_fini(struct pass *p, int nworkers)
{
    for (int i = 0; p->scratch && i < nworkers; i++) {
        free(p->scratch[i].swap);
        free(p->scratch[i].swap_memory);
        free(p->scratch[i].recent);
        free(p->scratch[i].left);
    }
    free(p->scratch);
    free(p->possible);
    free(p->least);
    free(p->needed);
}

/* Go through all rows. */
static int pass_run(struct pass *p, char *alive, struct topt_pool *pool)
{
    p->alive = alive;
    memset(p->needed, 0, p->table->npoints);
    if (pool)
        topt_pool_run(pool, work, p);
    else
        work(p, 0);
    memcpy(alive, p->needed, p->table->npoints);
    return p->failed ? -1 : 0;
}

int topt_entry_dominance(const struct dominance_table *t,
                         const struct dominance_end *const end[2], char *alive,
                         struct topt_pool *pool, int64_t *ret_work)
{
    int nworkers = pool ? topt_pool_threads(pool) : 1, rc = 0;
    int first = end[1] && (!end[0] || end[1]->nsides <= end[0]->nsides);
    for (int i = 0; i < 2 && !rc; i++) {
        int d = i ^ first;
        struct pass pass;
        if (!end[d])
            continue;
        rc = pass_init(&pass, t, d, end[d], nworkers);
        if (!rc)
            rc = pass_run(&pass, alive, pool);
        pass_fini(&pass, nworkers);
        *ret_work += (int64_t)t->npoints + (int64_t)t->n[1 - d] * end[d]->nvalues;
    }
    return rc;
}
