/* reclaim.c - points of a growing plan that nobody needs any more, taken out.
 *
 *     table     1      2      3    4         4 is a factor's: all of it stays.  Of 1 to 3, which it is
 *     before  a b c  d e f g  h i  j k       made of and which are no factor's any more, those points
 *                      \____   \__/          stay that points of 4 were made of, since a strategy
 *     after     b      e       i   j k       that has these is told by them (lift.h).
 *
 * Every table of a block's inside is read once or twice, to make the next.  Of what it has, a part in twenty is left
 * in the tables that are searched, so most of the memory would hold what nobody asks for.  Points are
 * marked from the last table to the first, and those marked move up. */
#include "reclaim.h"

#include "bits.h"

#include <stdlib.h>
#include <string.h>

struct reclaiming {
    struct maker *maker;
    uint64_t *mark;  /* the points that stay */
    uint32_t *below; /* by word of marks: how many stay of those before it */
};

void topt_reclaim_needed(const struct plan *p, char *needed)
{
    for (int i = 0; i < p->nfactors; i++)
        if (!p->factor[i].gone)
            needed[p->factor[i].table->id] = 1;
    for (size_t i = 0; i < p->tables.nall; i++) {
        const struct table *t = p->tables.all[i];
        if (!t->leaf && needed[t->how.a->id] && (!t->how.b || needed[t->how.b->id]))
            needed[i] = 1;
    }
}

/* The number that a point will have: how many of those before it stay. */
static uint32_t number(const struct reclaiming *r, size_t point)
{
    size_t word = point / TOPT_BITS;
    return r->below[word] + topt_bits_below(r->mark[word], point);
}

static void count_marks(struct reclaiming *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < topt_bits_words(r->maker->merge.n); i++) {
        r->below[i] = n;
        n += topt_bits_count(r->mark[i]);
    }
}

/* The step by which a table's points were made: if it inherits them, that of the table that had them. */
static const struct step *step_of(const struct table *t)
{
    return t->inherits ? &t->how.a->how : &t->how;
}

/* Of a table's points mark what those that stay were made of. */
static void mark_table(struct reclaiming *r, const struct table *t, int needed)
{
    const struct maker *k = r->maker;
    const struct step *s = step_of(t);
    for (int64_t e = t->first_entry; e < t->first_entry + t->nentries; e++)
        for (size_t i = k->first[e]; i < (size_t)k->first[e] + k->count[e]; i++) {
            if (needed)
                topt_bits_add(r->mark, i);
            if (!topt_bits_has(r->mark, i))
                continue;
            if (!s->a->leaf)
                topt_bits_add(r->mark, k->merge.back[i].a);
            if (s->b && !s->b->leaf)
                topt_bits_add(r->mark, k->merge.back[i].b);
        }
}

/* Name what a point is made of as that will be. */
static void rename_point(const struct reclaiming *r, const struct step *s, size_t point)
{
    struct back *back = &r->maker->merge.back[point];
    if (!s->a->leaf)
        back->a = number(r, back->a);
    if (s->b && !s->b->leaf)
        back->b = number(r, back->b);
}

/* The same for what a table has, and where its entries will be.  Is anything left of it? */
static int rename_table(const struct reclaiming *r, const struct table *t)
{
    struct maker *k = r->maker;
    uint32_t *first = k->first + t->first_entry, *count = k->count + t->first_entry;
    uint32_t begin = t->nentries ? number(r, first[0]) : 0, n = begin;
    for (int64_t e = 0; e < t->nentries; e++) {
        size_t from = first[e], to = from + count[e];
        first[e] = n;
        for (size_t i = from; i < to; i++)
            if (topt_bits_has(r->mark, i)) {
                rename_point(r, step_of(t), i);
                n++;
            }
        count[e] = n - first[e];
    }
    return n > begin;
}

static void move_points(struct reclaiming *r)
{
    struct merge *m = &r->maker->merge;
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (topt_bits_has(r->mark, i)) {
            m->cost[n] = m->cost[i];
            m->back[n++] = m->back[i];
        }
    m->n = n;
}

/* Of a table that is not needed nobody asks for an entry any more: what is left of it becomes one, so that the
 * next time finds it. */
static void unite_entries(struct maker *k, struct table *t, int any)
{
    uint32_t *count = k->count + t->first_entry;
    for (int64_t e = 1; any && e < t->nentries; e++)
        count[0] += count[e];
    t->nentries = any;
}

static void move_entries(struct maker *k, struct tables *ts, const char *needed,
                         const char *has)
{
    int64_t to = 1;
    for (size_t i = 0; i < ts->nall; i++) {
        struct table *t = ts->all[i];
        int64_t from = t->first_entry;
        if (!t->leaf && !needed[i])
            unite_entries(k, t, has[i]);
        size_t bytes = (size_t)t->nentries * sizeof *k->first;
        if (has[i]) {
            memmove(k->first + to, k->first + from, bytes);
            memmove(k->count + to, k->count + from, bytes);
        }
        t->first_entry = to;
        to += t->nentries;
    }
    ts->nentries = to;
}

int topt_reclaim(struct maker *k, struct tables *ts, const char *needed, char *has,
                 struct topt_error *err)
{
    size_t words = topt_bits_words(k->merge.n);
    struct reclaiming r = {k, calloc(words, sizeof *r.mark),
                           malloc(words * sizeof *r.below)};
    int rc = r.mark && r.below ? 0 : topt_search_nomem(err);
    for (size_t i = ts->nall; i-- > 0 && !rc;)
        if (has[i])
            mark_table(&r, ts->all[i], needed[i]);
    if (!rc)
        count_marks(&r);
    for (size_t i = 0; i < ts->nall && !rc; i++)
        if (has[i])
            has[i] = (char)(rename_table(&r, ts->all[i]) || needed[i]);
    if (!rc) {
        move_points(&r);
        move_entries(k, ts, needed, has);
    }
    free(r.mark);
    free(r.below);
    return rc;
}
