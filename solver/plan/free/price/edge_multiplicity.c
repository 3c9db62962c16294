/* edge_multiplicity.c - what terms pay: the costs of a table, so many times, under a cap on
 * transients.
 *
 * Tables are large, so nothing is copied that can be shared.  Most tables have one
 * multiplicity, whose times are multiplied into the table itself; most caps leave out
 * nothing of most tables, which then are shown to the search as they are. */
#include "price.h"
#include "topt_minmax.h"

#include <stdlib.h>

static struct edge_table *table_of(const struct topt_problem *p,
                                   const struct multiplicity *t)
{
    return &p->table[t->table];
}

/* Number in the table of entry (i, j) of the multiplicity. */
static int64_t entry_of(const struct multiplicity *t, int64_t i, int64_t j)
{
    return t->transposed ? j * t->whole.from_classes + i : i * t->whole.to_classes + j;
}

/* ---- what is charged --------------------------------------------------------------- */

/* Bytes that alternative 'a' of an entry of the table recomputes. */
static int64_t recomputed_bytes(const struct topt_problem *p, const struct edge_table *e,
                                int64_t entry, struct edge_fact fact)
{
    int64_t cols = topt_cols(p, e)->n, rows = topt_rows(p, e)->n;
    return (fact.recomputed & RECOMPUTED_FROM ? e->end_bytes[entry / cols] : 0) +
           (fact.recomputed & RECOMPUTED_TO ? e->end_bytes[rows + entry % cols] : 0);
}

int64_t topt_table_recomputed_most(const struct topt_problem *p,
                                   const struct edge_table *e)
{
    int64_t most = 0, n = e->recomputes ? topt_table_entries(p, e) : 0;
    for (int64_t i = 0; i < n; i++)
        for (int32_t a = e->first[i]; a < e->first[i + 1]; a++) {
            int64_t bytes = recomputed_bytes(p, e, i, e->fact[a]);
            most = topt_max(most, bytes);
        }
    return most;
}

/* 'times' times 'by'; overflow sets *ret_bad. */
static int64_t multiply(int64_t by, int64_t times, int *ret_bad)
{
    int64_t all = 0;
    *ret_bad |= __builtin_mul_overflow(by, times, &all);
    return all;
}

/* Charge the alternatives of an entry of the table, into 'ret', which may be their own
 * place. */
static int charge_entry(const struct topt_problem *p, struct multiplicity *t,
                        int64_t entry, struct topt_cost *ret)
{
    const struct edge_table *e = table_of(p, t);
    int bad = 0;
    for (int32_t a = e->first[entry]; a < e->first[entry + 1]; a++, ret++) {
        int64_t again =
            t->once && e->recomputes
                ? recomputed_bytes(p, e, entry, e->fact[a]) / p->family[e->to].among
                : 0;
        again = multiply(again, t->once, &bad);
        *ret = (struct topt_cost){multiply(e->cost[a].memory, t->times, &bad),
                                  multiply(e->cost[a].time, t->times, &bad)};
        bad |= __builtin_add_overflow(ret->memory, again, &ret->memory);
        t->least.memory = topt_min(t->least.memory, ret->memory);
        t->least.time = topt_min(t->least.time, ret->time);
    }
    return bad;
}

/* Charge all alternatives: in place, or into a copy. */
static int charge_all(const struct topt_problem *p, struct multiplicity *t, int copy,
                      struct topt_error *err)
{
    const struct edge_table *e = table_of(p, t);
    size_t n = (size_t)topt_table_entries(p, e);
    int32_t at = 0, *first = NULL;
    int bad = 0;
    if (copy)
        t->own_cost = malloc(((size_t)e->first[n] + 1) * sizeof *t->own_cost);
    if (t->transposed)
        first = t->own_first = malloc((n + 1) * sizeof *t->own_first);
    if ((copy && !t->own_cost) || (t->transposed && !first))
        return topt_nomem(err, "the problem");
    struct topt_cost *cost = copy ? t->own_cost : e->cost;
    for (int64_t i = 0; i < t->whole.from_classes; i++)
        for (int64_t j = 0; j < t->whole.to_classes; j++) {
            int64_t entry = entry_of(t, i, j);
            bad |= charge_entry(p, t, entry, &cost[at]);
            if (first)
                *first++ = at;
            at += e->first[entry + 1] - e->first[entry];
        }
    if (first)
        *first = at;
    t->whole.alt = cost;
    t->whole.first = first ? t->own_first : e->first;
    return bad ? topt_fail(err, TOPT_ERR_LIMIT, "the cost of repeated blocks overflows")
               : 0;
}

/* The costs of a multiplicity, whose table has so many: those of the table where nothing changes. */
static int charge(struct topt_problem *p, struct multiplicity *t, int multiplicities,
                  struct topt_error *err)
{
    struct edge_table *e = table_of(p, t);
    int from = topt_rows(p, e)->n, to = topt_cols(p, e)->n, rc = 0;
    int plain = t->times == 1 && !(t->once && e->recomputes);
    t->whole = (struct topt_table){t->transposed ? to : from, t->transposed ? from : to,
                                   e->first, e->cost};
    t->least = e->least;
    if (!plain && e->first[topt_table_entries(p, e)])
        t->least = (struct topt_cost){INT64_MAX, INT64_MAX};
    if (t->transposed || !plain)
        rc = charge_all(p, t, t->transposed || multiplicities > 1, err);
    t->at = t->whole;
    if (t->own_cost && multiplicities == 1) { /* no longer read */
        free(e->cost);
        e->cost = NULL;
    }
    return rc;
}

int topt_multiplicities_charge(struct topt_problem *p, struct topt_error *err)
{
    int *multiplicities = calloc((size_t)p->ntables + 1, sizeof *multiplicities), rc = 0;
    if (!multiplicities)
        return topt_nomem(err, "the problem");
    for (int i = 0; i < p->nmultiplicities; i++)
        multiplicities[p->multiplicity[i].table]++;
    for (int i = 0; i < p->nmultiplicities && !rc; i++) {
        struct multiplicity *t = &p->multiplicity[i];
        const struct edge_table *e = table_of(p, t);
        size_t n = (size_t)topt_table_entries(p, e);
        /* Room for what caps leave: memory that is not touched before one does leave something
         * out. */
        t->kept_first = malloc((n + 1) * sizeof *t->kept_first);
        t->kept_cost = malloc(((size_t)e->first[n] + 1) * sizeof *t->kept_cost);
        rc = t->kept_first && t->kept_cost ? charge(p, t, multiplicities[t->table], err)
                                           : topt_nomem(err, "the problem");
    }
    free(multiplicities);
    return rc;
}

/* ---- under caps -------------------------------------------------------------------- */

/* Does any alternative of a table need more than 'most'? */
static int leaves_out(const struct edge_table *e, int most)
{
    for (int code = most + 1; code < TOPT_TRANSIENT_CODES; code++)
        if (e->occurs[code / 64] >> code % 64 & 1)
            return 1;
    return 0;
}

static int32_t cap_entry(const struct edge_table *e, struct multiplicity *t, int64_t from,
                         int64_t entry, int32_t n)
{
    const struct topt_cost *cost = &t->whole.alt[t->whole.first[from]];
    for (int32_t a = e->first[entry]; a < e->first[entry + 1]; a++, cost++)
        if (e->fact[a].transient <= t->most)
            t->kept_cost[n++] = *cost;
    return n;
}

void topt_multiplicity_cap(const struct topt_problem *p, struct multiplicity *t,
                           int64_t transient_cap)
{
    const struct edge_table *e = table_of(p, t);
    t->most = TOPT_TRANSIENT_CODES;
    if (transient_cap >= 0)
        t->most = topt_transient_code(transient_cap);
    if (transient_cap >= 0 && topt_transient_of(t->most) > transient_cap)
        t->most--;
    t->at = t->whole;
    if (!leaves_out(e, t->most))
        return;
    int64_t from = 0;
    t->kept_first[0] = 0;
    for (int64_t i = 0; i < t->whole.from_classes; i++)
        for (int64_t j = 0; j < t->whole.to_classes; j++, from++)
            t->kept_first[from + 1] =
                cap_entry(e, t, from, entry_of(t, i, j), t->kept_first[from]);
    t->at.first = t->kept_first;
    t->at.alt = t->kept_cost;
}

struct edge_fact topt_taken_fact(const struct topt_problem *p, struct taken_edge x)
{
    const struct edge_table *e = table_of(p, x.of);
    const struct edge_fact *f =
        &e->fact[e->first[entry_of(x.of, x.from_class, x.to_class)]];
    while (f->transient > x.of->most || x.alt-- > 0)
        f++;
    return *f;
}

int64_t topt_taken_recomputed(const struct topt_problem *p, struct taken_edge x)
{
    const struct edge_table *e = table_of(p, x.of);
    return e->recomputes
               ? recomputed_bytes(p, e, entry_of(x.of, x.from_class, x.to_class),
                                  topt_taken_fact(p, x))
               : 0;
}

static void exchange(struct topt_cost *cost, int32_t n)
{
    for (int32_t i = 0; cost && i < n; i++)
        cost[i] = (struct topt_cost){cost[i].time, cost[i].memory};
}

void topt_multiplicities_exchange(struct topt_problem *p)
{
    for (int i = 0; i < p->ntables; i++) {
        const struct edge_table *e = &p->table[i];
        exchange(e->cost, e->first[topt_table_entries(p, e)]);
    }
    for (int i = 0; i < p->nmultiplicities; i++) {
        struct multiplicity *t = &p->multiplicity[i];
        exchange(t->own_cost, t->whole.first[topt_table_entries(p, table_of(p, t))]);
    }
}
