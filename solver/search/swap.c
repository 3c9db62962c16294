/* swap.c - what it costs at most on an edge that one end takes another class.
 *
 *          v ---- y            w instead of v, whatever y is:
 *     x <            y'
 *          w ---- y''          max over y of  edge(w, y) - edge(v, y),  in memory and in time
 *
 * Nobody asks for that maximum unless it is small, and most are large: it is found place by
 * place, from where v is at its best (there w is likely to cost more), only until it is more
 * than whoever asks can use.  Where it stopped it goes on when it is asked for again. */
#include "swap.h"

#include "table.h"

#include <stdlib.h>
#include <string.h>

static int64_t entry_of(const struct swap_side *s, int own, int other)
{
    return s->is_from ? (int64_t)own * s->table->to_classes + other
                      : (int64_t)other * s->table->to_classes + own;
}

/* The place where a class costs least. */
static int best_place(const struct swap_side *s, int v)
{
    const struct topt_table *t = s->table;
    const struct topt_cost *best = NULL;
    int at = 0;
    for (int i = 0; i < s->nplaces; i++) {
        int64_t e = entry_of(s, v, s->place[i]);
        for (int32_t k = t->first[e]; k < t->first[e + 1]; k++)
            if (!best || t->alt[k].time < best->time ||
                (t->alt[k].time == best->time && t->alt[k].memory < best->memory)) {
                best = &t->alt[k];
                at = i;
            }
    }
    return at;
}

int topt_swap_side(struct swap_side *s, const struct topt_search_problem *p, int edge,
                   int is_from, const char *alive, struct topt_arena *a)
{
    const struct topt_search_edge *e = &p->edge[edge];
    const struct topt_table *t = e->table;
    const int32_t *class_of = is_from ? e->to_class : e->from_class;
    int other = is_from ? e->to : e->from;
    *s = (struct swap_side){.table = t,
                            .nclasses = is_from ? t->from_classes : t->to_classes,
                            .nother = is_from ? t->to_classes : t->from_classes,
                            .is_from = is_from};
    s->used = TOPT_NEW(a, s->nother, char);
    s->place = TOPT_NEW(a, s->nother, int);
    if (!s->used || !s->place)
        return -1;
    for (int c = 0; c < p->op[other].nconfigs; c++)
        if (!alive || alive[c])
            s->used[class_of[c]] = 1;
    for (int y = 0; y < s->nother; y++)
        if (s->used[y])
            s->place[s->nplaces++] = y;
    s->used_as = topt_hash(s->used, (size_t)s->nother, 1);
    return 0;
}

int64_t topt_swap_bytes(const struct swap_side *s)
{
    return (int64_t)s->nclasses * s->nclasses * (int64_t)sizeof *s->swap;
}

int topt_swap_prepare(struct swap_side *s, struct topt_arena *a)
{
    size_t n = (size_t)s->nclasses;
    s->start = TOPT_NEW(a, n, int);
    s->swap = TOPT_NEW(a, n * n, struct swap);
    if (!s->start || !s->swap)
        return -1;
    for (int v = 0; v < s->nclasses; v++)
        s->start[v] = best_place(s, v);
    return 0;
}

int topt_swap_same_side(const struct swap_side *a, const struct swap_side *b)
{
    return a->table == b->table && a->is_from == b->is_from && a->used_as == b->used_as &&
           !memcmp(a->used, b->used, (size_t)a->nother);
}

/* The alternative that stands best for another: the fastest of those that are no heavier, or
 * else the lightest. */
static const struct topt_cost *stand_in(const struct topt_cost *w, int32_t n,
                                        struct topt_cost v)
{
    const struct topt_cost *best = w;
    for (int32_t k = 1; k < n; k++) {
        int fits = w[k].memory <= v.memory, fit = best->memory <= v.memory;
        if ((fits && (!fit || w[k].time < best->time)) ||
            (!fits && !fit && w[k].memory < best->memory))
            best = &w[k];
    }
    return best;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Make 'swap' what it costs where there are these two lists as well. */
static void add_lists(struct swap *swap, const struct topt_cost *v, int32_t nv,
                      const struct topt_cost *w, int32_t nw)
{
    if (nv && !nw)
        swap->seen = TOPT_SWAP_NEVER;
    for (int32_t k = 0; k < nv && swap->seen != TOPT_SWAP_NEVER; k++) {
        const struct topt_cost *in = stand_in(w, nw, v[k]);
        int64_t memory = in->memory - v[k].memory, time = in->time - v[k].time;
        swap->memory = max(swap->memory, memory);
        swap->time = max(swap->time, time);
        if (memory > TOPT_SWAP_MOST || time > TOPT_SWAP_MOST)
            swap->seen = TOPT_SWAP_NEVER;
    }
}

struct swap topt_swap_lists(const struct topt_cost *v, int32_t nv,
                            const struct topt_cost *w, int32_t nw)
{
    struct swap ret = {-TOPT_SWAP_MOST, -TOPT_SWAP_MOST, 0};
    add_lists(&ret, v, nv, w, nw);
    return ret;
}

static void look(const struct swap_side *s, int v, int w, struct swap *swap)
{
    const struct topt_table *t = s->table;
    int at = s->start[v] + swap->seen;
    int y = s->place[at < s->nplaces ? at : at - s->nplaces];
    int64_t ev = entry_of(s, v, y), ew = entry_of(s, w, y);
    swap->seen++;
    add_lists(swap, t->alt + t->first[ev], t->first[ev + 1] - t->first[ev],
              t->alt + t->first[ew], t->first[ew + 1] - t->first[ew]);
}

struct swap topt_swap(struct swap_side *s, int v, int w, struct topt_cost limit,
                      int64_t *work)
{
    struct swap *swap = &s->swap[(size_t)v * (size_t)s->nclasses + (size_t)w];
    int32_t before = swap->seen;
    if (before == TOPT_SWAP_NEVER)
        return *swap;
    if (!before)
        swap->memory = swap->time = -TOPT_SWAP_MOST;
    if (!before && s->nplaces)
        look(s, v, w, swap);
    while (swap->seen != TOPT_SWAP_NEVER && swap->seen < s->nplaces &&
           swap->memory <= limit.memory && swap->time <= limit.time)
        look(s, v, w, swap);
    *work += swap->seen > before ? swap->seen - before : 1;
    return *swap;
}
