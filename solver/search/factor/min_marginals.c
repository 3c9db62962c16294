/* min_marginals.c - what every entry of every table weighs at least, and all that is not
 * in it.
 *
 * Give every cost one number, w = a * time + b * memory.  The least w of a whole strategy
 * is found by the planned eliminations with one number an entry instead of a frontier,
 * which is cheap.  A second pass, from the answer back to the leaves, gives for every
 * entry of every table the least w of all that is not in the table:
 *
 *         entry e of the table        rest(e), known before the table is made
 *     (time, memory) of a point   +   the lightest completion     >    allowance
 *
 * and then no strategy with the point is within the allowance.  A table that stands in
 * several places has the least rest of them.
 *
 * An edge's table is large and read once a pass, so where it has one point an entry that
 * is weighed when it is read and not kept.
 *
 * Nearly all of the time goes into products of matrices in the algebra of least and plus
 * (min_plus.c), and along a chain of a vector and a matrix.  These, and steps that read
 * entries one after the other that are neighbours, are done in doubles, which processors
 * add and compare several at a time, and which are exact as long as all weights together
 * stay below 2^53.  A step whose entries are scattered is done number by number. */
#include "min_marginals.h"

#include "min_plus.h"
#include "search_common.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

/* The weight of an entry, by its number among all; of no table 0. */
static int64_t least_of(const struct table *t, int64_t entry, const struct scalar_pass *b)
{
    if (t && !t->weighed)
        return topt_weight(b, t->cost[entry - t->first_entry]);
    return b->least[entry];
}

static void leaf_least(const struct table *t, const struct scalar_pass *b, int64_t *ret)
{
    for (int64_t e = 0; e < t->nentries; e++) {
        ret[e] = TOPT_NOTHING;
        for (uint32_t i = t->first[e]; i < t->first[e + 1]; i++)
            ret[e] = topt_min(ret[e], topt_weight(b, t->cost[i]));
    }
}

/* ---- steps ------------------------------------------------------------------------- */

/* The costs of B by number of entry where it is a leaf that is not weighed, else NULL. */
static const struct topt_cost *unweighed(const struct step *s)
{
    return s->b && !s->b->weighed ? s->b->cost - s->b->first_entry : NULL;
}

/* Written once for each kind of B, so that no number asks which it is. */
static inline __attribute__((always_inline)) void each_least(const struct table *t,
                                                             const struct scalar_pass *b,
                                                             const struct topt_cost *of_b)
{
    const struct step *s = &t->how;
    const int64_t *least = b->least;
    int64_t *ret = b->least + t->first_entry, *end = ret + t->nentries;
    if (!t->nentries)
        return;
    for (struct cursor c = topt_cursor_start(s); ret < end; topt_cursor_next(&c))
        for (int g = 0; g < s->ngroups; g++) {
            int64_t best = TOPT_NOTHING;
            for (int32_t k = s->kfirst[g]; k < s->kfirst[g + 1]; k++) {
                int64_t e = c.b + s->kb[k];
                int64_t w = of_b ? topt_weight(b, of_b[e]) : least[e];
                best = topt_min(best, least[c.a + s->ka[k]] + w);
            }
            *ret++ = best;
        }
}

static void step_least(const struct table *t, const struct scalar_pass *b)
{
    const struct topt_cost *of_b = unweighed(&t->how);
    if (of_b)
        each_least(t, b, of_b);
    else
        each_least(t, b, NULL);
}

/* ---- a vector times a matrix ------------------------------------------------------- */

static double to_flat(int64_t w)
{
    return w < TOPT_NOTHING ? (double)w : TOPT_FLAT_NOTHING;
}

static void table_flat(const struct table *t, const struct scalar_pass *b)
{
    double *ret = b->flat + t->first_entry;
    const int64_t *least = b->least + t->first_entry;
    if (!t->leaf || t->weighed)
        for (int64_t e = 0; e < t->nentries; e++)
            ret[e] = to_flat(least[e]);
    else
        for (int64_t e = 0; e < t->nentries; e++)
            ret[e] = (double)topt_weight(b, t->cost[e]);
}

/* min of a[i] + b[i] */
static double least_of_rows(const double *restrict a, const double *restrict b, int n)
{
    double least = TOPT_FLAT_NOTHING;
    for (int i = 0; i < n; i++) {
        double w = a[i] + b[i];
        least = w < least ? w : least;
    }
    return least;
}

static int64_t from_flat(double w)
{
    return w < TOPT_FLAT_NOTHING ? (int64_t)w : TOPT_NOTHING;
}

/* ---- rows of both ------------------------------------------------------------------ */

static void least_of_both(const struct table *t, const struct scalar_pass *b)
{
    const struct step *s = &t->how;
    int64_t *ret = b->least + t->first_entry, *end = ret + t->nentries;
    const double *flat_a = b->flat + s->ka[0], *flat_b = b->flat + s->kb[0];
    for (struct cursor c = topt_cursor_start(s); ret < end; topt_cursor_next(&c))
        *ret++ = from_flat(least_of_rows(flat_a + c.a, flat_b + c.b, s->kfirst[1]));
}

/* A step where numbers are light. */
static void step_light(const struct table *t, struct scalar_pass *b)
{
    const struct step *s = &t->how;
    if (s->matrix)
        topt_min_plus_least(t, b);
    else if (s->in_rows && s->kfirst[1] && t->nentries)
        least_of_both(t, b);
    else
        step_least(t, b);
}

int topt_least_weights(const struct tables *ts, const struct topt_search_options *options,
                       struct scalar_pass *b, struct topt_error *err)
{
    b->least[0] = 0; /* of a step's missing factor */
    for (size_t i = 0; i < ts->nall; i++) {
        const struct table *t = ts->all[i];
        if (topt_search_poll(options, err))
            return -1;
        if (t->leaf && t->weighed)
            leaf_least(t, b, b->least + t->first_entry);
        else if (!t->leaf && b->light)
            step_light(t, b);
        else if (!t->leaf)
            step_least(t, b);
        if (t->by_rows && b->light)
            table_flat(t, b);
    }
    return 0;
}

/* The room that is left for one factor's entries, by the other's least weights. */
static void lower_rests(int64_t *restrict rest, const int32_t *at,
                        const int64_t *restrict least, const int32_t *by, int64_t r,
                        int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        int64_t w = r + least[by[k]], *of = &rest[at[k]];
        *of = w < *of ? w : *of;
    }
}

/* The same for A where B's weights are not kept. */
static void lower_rests_by_leaf(const struct step *s, const struct cursor *c,
                                int32_t from, int32_t n, int64_t r, struct scalar_pass *b)
{
    const struct topt_cost *cost = unweighed(s) + c->b;
    for (int32_t k = from; k < from + n; k++) {
        int64_t *of = &b->rest[c->a + s->ka[k]];
        *of = topt_min(*of, r + topt_weight(b, cost[s->kb[k]]));
    }
}

/* Lower what is known of the rest of the entries that an entry is made of: of all but
 * leaves, and of those of which it is wanted if 'all' says so. */
static void step_rest(const struct table *t, struct scalar_pass *b, int all)
{
    const struct step *s = &t->how;
    const int64_t *least = b->least;
    int64_t *rest = b->rest, e = t->first_entry, end = e + t->nentries;
    int for_a = !s->a->leaf || (all && s->a->rest_wanted);
    int for_b = s->b && (!s->b->leaf || (all && s->b->rest_wanted));
    int kept = !s->b || s->b->weighed;
    if (!t->nentries || !(for_a || for_b))
        return;
    if (s->matrix && b->light) {
        topt_min_plus_rest(t, b, for_a, for_b);
        return;
    }
    for (struct cursor c = topt_cursor_start(s); e < end; topt_cursor_next(&c))
        for (int g = 0; g < s->ngroups; g++, e++) {
            int64_t r = rest[e];
            if (least[e] + r > b->allowance)
                continue;
            int32_t k = s->kfirst[g], n = s->kfirst[g + 1] - k;
            if (for_a && kept)
                lower_rests(rest + c.a, s->ka + k, least + c.b, s->kb + k, r, n);
            else if (for_a)
                lower_rests_by_leaf(s, &c, k, n, r, b);
            if (for_b)
                lower_rests(rest + c.b, s->kb + k, least + c.a, s->ka + k, r, n);
        }
}

int topt_min_marginals(const struct tables *ts, const struct table *root,
                       const struct topt_search_options *options, struct scalar_pass *b,
                       int all, struct topt_error *err)
{
    /* The leaves of edges, which are the most by far, never touch it. */
    for (size_t i = 0; i < ts->nall; i++) {
        const struct table *t = ts->all[i];
        for (int64_t e = 0; (!t->leaf || (all && t->rest_wanted)) && e < t->nentries; e++)
            b->rest[t->first_entry + e] = TOPT_NOTHING;
    }
    b->rest[root->first_entry] = 0;
    for (size_t i = ts->nall; i-- > 0;) {
        if (topt_search_poll(options, err))
            return -1;
        if (!ts->all[i]->leaf)
            step_rest(ts->all[i], b, all);
    }
    return 0;
}

static uint32_t lightest_point(const struct table *leaf, int64_t e,
                               const struct scalar_pass *b)
{
    uint32_t best = leaf->first[e];
    for (uint32_t i = best + 1; i < leaf->first[e + 1]; i++)
        if (topt_weight(b, leaf->cost[i]) < topt_weight(b, leaf->cost[best]))
            best = i;
    return best;
}

struct topt_cost topt_least_weight_leaf(const struct table *leaf, int64_t entry,
                                        const struct scalar_pass *b, int32_t *ret_choice)
{
    int64_t e = entry - leaf->first_entry;
    uint32_t i = lightest_point(leaf, e, b);
    *ret_choice = topt_leaf_choice(leaf, i);
    return leaf->cost[i];
}

void topt_least_weight_parts(const struct table *t, int64_t entry,
                             const struct scalar_pass *b, int64_t *ret_a, int64_t *ret_b)
{
    const struct step *s = &t->how;
    const int64_t *least = b->least;
    int64_t at = entry - t->first_entry, ea, eb;
    int g = (int)(at % s->ngroups);
    topt_step_entries(s, at / s->ngroups, &ea, &eb);
    int32_t best = s->kfirst[g];
    for (int32_t k = best; k < s->kfirst[g + 1]; k++)
        if (least[ea + s->ka[k]] + least_of(s->b, eb + s->kb[k], b) <
            least[ea + s->ka[best]] + least_of(s->b, eb + s->kb[best], b))
            best = k;
    *ret_a = ea + s->ka[best];
    *ret_b = eb + s->kb[best];
}
