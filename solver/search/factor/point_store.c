/* point_store.c - what a leaf has: for every entry, its choices that nothing beats.
 *
 * Most tables are frontiers already, entry for entry; their costs are not written down
 * again.
 *
 * Tables are found by their address first, then by what is in them: models share them by
 * address, and a file's are equal at most.  Looking for them goes up to the store's
 * parents, so that a problem that differs from another in one operator makes anew only
 * what that operator has to do with. */
#include "point_store.h"

#include "search_common.h"
#include "topt_hash.h"

#include <stdlib.h>
#include <string.h>

enum { NBUCKETS = 1024 };

struct stored {
    const struct topt_table *table; /* NULL: of choices */
    uint64_t hash;                  /* of its content */
    const struct points *points;    /* 'own', or those of an equal table */
    struct points own;
    struct stored *next, *next_by_table, *next_by_content;
};

int topt_points_init(struct point_store *s, const struct point_store *parent,
                     struct topt_error *err)
{
    *s = (struct point_store){.parent = parent};
    s->by_table = calloc(NBUCKETS, sizeof *s->by_table);
    s->by_content = calloc(NBUCKETS, sizeof *s->by_content);
    return s->by_table && s->by_content ? 0 : topt_search_nomem(err);
}

void topt_points_fini(struct point_store *s)
{
    for (struct stored *i = s->all, *next; i; i = next) {
        next = i->next;
        free(i->own.own_first);
        free(i->own.own_cost);
        free(i->own.choice);
        free(i);
    }
    free(s->by_table);
    free(s->by_content);
    *s = (struct point_store){0};
}

static int by_entry(const void *x, const void *y)
{
    const struct choice *a = x, *b = y;
    if (a->entry != b->entry)
        return a->entry < b->entry ? -1 : 1;
    int by = topt_cost_order(a->cost, b->cost);
    return by ? by : (a->number > b->number) - (a->number < b->number);
}

/* Keep of each entry the choices that nothing beats. */
static size_t reduce_choices(struct choice *c, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!kept || c[kept - 1].entry != c[i].entry ||
            c[i].cost.time < c[kept - 1].cost.time)
            c[kept++] = c[i];
    return kept;
}

/* Reduced choices in order become points. */
static int fill(struct points *p, const struct choice *c, size_t n, int64_t nentries)
{
    uint32_t *first = calloc((size_t)nentries + 1, sizeof *first);
    struct topt_cost *cost = malloc((n + 1) * sizeof *cost);
    *p = (struct points){.nentries = nentries,
                         .n = (uint32_t)n,
                         .first = first,
                         .cost = cost,
                         .choice = malloc((n + 1) * sizeof *p->choice),
                         .own_first = first,
                         .own_cost = cost};
    if (!first || !cost || !p->choice)
        return -1;
    for (size_t i = 0; i < n; i++) {
        cost[i] = c[i].cost;
        p->choice[i] = c[i].number;
        first[c[i].entry + 1]++;
    }
    for (int64_t e = 0; e < nentries; e++)
        first[e + 1] += first[e];
    return 0;
}

/* Points whose entries are known. */
static void measure(struct points *p)
{
    p->single = p->n == p->nentries;
    for (int64_t e = 0; e < p->nentries; e++) {
        uint32_t n = p->first[e + 1] - p->first[e];
        p->single = p->single && n == 1;
        p->max_frontier = n > p->max_frontier ? n : p->max_frontier;
    }
}

static struct stored *add(struct point_store *s, struct topt_error *err)
{
    struct stored *i = calloc(1, sizeof *i);
    if (!i) {
        topt_search_nomem(err);
        return NULL;
    }
    i->points = &i->own;
    i->next = s->all;
    s->all = i;
    return i;
}

static struct stored *add_choices(struct point_store *s, struct choice *c, size_t n,
                                  int64_t nentries, struct topt_error *err)
{
    struct stored *i = add(s, err);
    qsort(c, n, sizeof *c, by_entry);
    n = reduce_choices(c, n);
    if (i && fill(&i->own, c, n, nentries)) {
        topt_search_nomem(err);
        return NULL;
    }
    if (i)
        measure(&i->own);
    return i;
}

const struct points *topt_points_of_choices(struct point_store *s, struct choice *c,
                                            size_t n, int64_t nentries,
                                            struct topt_error *err)
{
    struct stored *i = add_choices(s, c, n, nentries, err);
    return i ? i->points : NULL;
}

/* ---- tables ------------------------------------------------------------------------ */

static size_t nentries_of(const struct topt_table *t)
{
    return (size_t)t->from_classes * (size_t)t->to_classes;
}

static int same_table(const struct topt_table *a, const struct topt_table *b)
{
    if (a->from_classes != b->from_classes || a->to_classes != b->to_classes)
        return 0;
    size_t n = nentries_of(a);
    return !memcmp(a->first, b->first, (n + 1) * sizeof *a->first) &&
           (!a->first[n] ||
            !memcmp(a->alt, b->alt, (size_t)a->first[n] * sizeof *a->alt));
}

static uint64_t address_hash(const struct topt_table *t)
{
    return ((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u >> 32;
}

static const struct points *find_address(const struct point_store *s,
                                         const struct topt_table *t)
{
    for (; s; s = s->parent)
        for (const struct stored *i = s->by_table[address_hash(t) % NBUCKETS]; i;
             i = i->next_by_table)
            if (i->table == t)
                return i->points;
    return NULL;
}

static const struct points *find_content(const struct point_store *s,
                                         const struct topt_table *t, uint64_t hash)
{
    for (; s; s = s->parent)
        for (const struct stored *i = s->by_content[hash % NBUCKETS]; i;
             i = i->next_by_content)
            if (i->hash == hash && same_table(i->table, t))
                return i->points;
    return NULL;
}

/* Is every entry of a table a frontier as it is? */
static int is_reduced(const struct topt_table *t)
{
    const struct topt_cost *alt = t->alt;
    int64_t nentries = (int64_t)nentries_of(t);
    for (int64_t e = 0; e < nentries; e++)
        for (int32_t k = t->first[e] + 1; k < t->first[e + 1]; k++)
            if (alt[k].memory <= alt[k - 1].memory || alt[k].time >= alt[k - 1].time)
                return 0;
    return 1;
}

/* A table of frontiers lends its costs, and alternatives have the numbers of their
 * points. */
static struct stored *borrow(struct point_store *s, const struct topt_table *t,
                             struct topt_error *err)
{
    static const struct topt_cost none;
    struct stored *i = add(s, err);
    size_t nentries = nentries_of(t), n = (size_t)t->first[nentries];
    if (!i)
        return NULL;
    i->own = (struct points){.nentries = (int64_t)nentries,
                             .n = (uint32_t)n,
                             .first = (const uint32_t *)t->first,
                             .cost = n ? t->alt : &none};
    measure(&i->own);
    return i;
}

static struct stored *make(struct point_store *s, const struct topt_table *t,
                           struct topt_error *err)
{
    int64_t nentries = (int64_t)nentries_of(t);
    if (is_reduced(t))
        return borrow(s, t, err);
    struct choice *c = malloc(((size_t)t->first[nentries] + 1) * sizeof *c);
    if (!c) {
        topt_search_nomem(err);
        return NULL;
    }
    for (int64_t e = 0; e < nentries; e++)
        for (int32_t k = t->first[e]; k < t->first[e + 1]; k++)
            c[k] = (struct choice){t->alt[k], (int32_t)e, k - t->first[e]};
    struct stored *i = add_choices(s, c, (size_t)t->first[nentries], nentries, err);
    free(c);
    return i;
}

const struct points *topt_points_of_table(struct point_store *s,
                                          const struct topt_table *t,
                                          struct topt_error *err)
{
    const struct points *known = find_address(s, t);
    if (known)
        return known;
    size_t n = nentries_of(t);
    uint64_t hash = topt_hash(t->first, (n + 1) * sizeof *t->first, n);
    uint64_t address = address_hash(t);
    hash = topt_hash(t->alt, (size_t)t->first[n] * sizeof *t->alt, hash);
    known = find_content(s, t, hash);
    struct stored *i = known ? add(s, err) : make(s, t, err);
    if (!i)
        return NULL;
    if (known)
        i->points = known;
    i->table = t;
    i->hash = hash;
    i->next_by_table = s->by_table[address % NBUCKETS];
    s->by_table[address % NBUCKETS] = i;
    i->next_by_content = s->by_content[hash % NBUCKETS];
    s->by_content[hash % NBUCKETS] = i;
    return i->points;
}
