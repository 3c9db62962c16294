/* bound_levels.c - how near to what is wanted configurations are, and the parts of a
 * problem that are near.
 *
 * Where moves cost bounds until their price matters, a weighted sum of all strategies
 * says of every configuration how good a strategy with it can be at best.  The nearest
 * are a small problem whose prices are few; what is too far is left out of the next
 * one. */
#include "bounds.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>

void topt_bound_levels_fini(struct bound_levels *l)
{
    free(l->of);
    *l = (struct bound_levels){0};
}

int topt_bound_levels_init(struct bound_levels *l, struct topt_problem *p,
                           struct topt_error *err)
{
    size_t n = (size_t)p->nchoices + 1;
    *l = (struct bound_levels){.p = p, .of = malloc(n * sizeof *l->of)};
    if (!l->of)
        return topt_nomem(err, "the search");
    topt_bound_levels_clear(l);
    return 0;
}

void topt_bound_levels_clear(struct bound_levels *l)
{
    for (int i = 0; i < l->p->nchoices; i++)
        l->of[i] = TOPT_LEVEL_BEYOND;
}

/* The levels of a family's configurations. */
static uint16_t *levels_of(const struct bound_levels *l, int family)
{
    return l->of + l->p->family[family].first;
}

int topt_bound_level_of(double part)
{
    return part <= 1 ? (int)(sqrt(fmax(part, 0)) * (TOPT_LEVEL_BEYOND - 1))
                     : TOPT_LEVEL_BEYOND;
}

/* ---- levels ------------------------------------------------------------------------ */

/* Give all families of a variable the level of the nearest. */
static int share_once(const struct bound_levels *l)
{
    int changed = 0;
    for (int c = 0; c < l->p->ndomains; c++) {
        const struct domain *h = &l->p->domain[c];
        for (int k = 1; k < h->nparts; k++) {
            uint16_t *a = levels_of(l, h->part[0].family),
                     *b = levels_of(l, h->part[k].family);
            for (int i = 0; i < l->p->family[h->part[0].family].n; i++) {
                changed |= a[i] != b[i];
                a[i] = b[i] = (uint16_t)topt_min(a[i], b[i]);
            }
        }
    }
    return changed;
}

void topt_bound_levels_share(struct bound_levels *l)
{
    while (share_once(l))
        ;
}

void topt_bound_levels_find(struct bound_levels *l, const struct topt_lower_bound *w,
                            struct topt_cost begin, struct topt_cost end)
{
    const struct topt_problem *p = l->p;
    struct topt_weights by = topt_lower_bound_weights(w);
    topt_wide first = topt_weight(by.memory, by.time, begin),
              whole = topt_weight(by.memory, by.time, end) - first;
    for (int i = 0; i < p->nvariables - p->nmirrors; i++) {
        const struct domain *h = topt_domain(p, i);
        uint16_t *level = levels_of(l, h->part[0].family);
        for (int c = 0; c < h->nkept; c++) {
            int64_t weight = topt_lower_bound_min_marginal(w, i, c);
            if (weight == INT64_MAX)
                continue;
            double part = whole > 0 ? (double)(weight - first) / (double)whole : 0;
            int at = topt_bound_level_of(fmin(part, 1));
            uint16_t *x = &level[h->at[h->kept[c]].config];
            *x = (uint16_t)topt_min(at, *x);
        }
    }
}

/* ---- entries ----------------------------------------------------------------------- */

int64_t topt_bound_levels_entries(const struct bound_levels *l, int level)
{
    const struct topt_problem *p = l->p;
    int64_t sum = 0;
    for (int t = 0; t < p->ntables; t++) {
        const struct edge_table *e = &p->table[t];
        const struct family *a = &p->family[e->from], *b = &p->family[e->to];
        int64_t rows = 0, cols = 0;
        int nrows = topt_rows(p, e)->n;
        uint8_t *seen = calloc((size_t)nrows + (size_t)topt_cols(p, e)->n + 1, 1);
        if (!seen)
            return INT64_MAX;
        for (int i = 0; i < a->n; i++)
            if (l->of[a->first + i] <= level && !seen[a->at[i].class[AS_PRODUCER]]++)
                rows++;
        for (int i = 0; i < b->n; i++)
            if (l->of[b->first + i] <= level &&
                !seen[nrows + b->at[i].class[AS_CONSUMER + e->input]]++)
                cols++;
        free(seen);
        sum += rows * cols;
    }
    return sum;
}

int topt_bound_levels_with(const struct bound_levels *l, int64_t entries)
{
    int lo = 0, hi = TOPT_LEVEL_BEYOND;
    while (lo < hi) {
        int mid = (lo + hi + 1) / 2;
        if (topt_bound_levels_entries(l, mid) <= entries)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* ---- parts ------------------------------------------------------------------------- */

/* Ask for the prices of all entries of a part; it is to be made again with them. */
static int settle_all(struct topt_problem *part, struct topt_error *err)
{
    struct topt_problem *whole = part->of;
    for (int t = 0; t < part->ntables; t++) {
        int64_t n = topt_table_entries(part, &part->table[t]);
        for (int64_t i = 0; i < n; i++)
            if (topt_table_ask_exact(part, &part->table[t], i, err))
                return -1;
    }
    for (int i = 0; i < whole->nmoves; i++)
        if (topt_moves_answer(whole, whole->moves[i], err))
            return -1;
    return 0;
}

int topt_bound_levels_exact(const struct bound_levels *l, int level,
                            struct topt_problem **ret, struct topt_error *err)
{
    struct topt_problem *part;
    if (topt_narrowed_problem(l->p, l->of, level, &part, err))
        return -1;
    int orbits = part->options.orbits,
        rc =
            orbits ? topt_problem_of_orbits(part, 0, 0, ret, err) : settle_all(part, err);
    topt_problem_destroy(part);
    if (orbits)
        return rc;
    return rc ? -1 : topt_narrowed_problem(l->p, l->of, level, ret, err);
}
