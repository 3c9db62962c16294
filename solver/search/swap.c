/* swap.c - what it costs at most on an edge that one end takes another class.
 *
 *          v ---- y            w instead of v, whatever y is:
 *     x <            y'
 *          w ---- y''          max over y of  edge(w, y) - edge(v, y),  in memory and in time
 *
 * Only those y count that v may still stand beside.  Nobody asks for that maximum unless it is
 * small, and most are large: it is found alternative by alternative, from where v is at its best
 * (there w is likely to cost more), only until it is more than whoever asks can use. */
#include "swap.h"

#include <stdlib.h>

/* Walk over all entries in order: count what every class may have (one place on, in 'first'), or
 * fill in what it is, from 'first' on, which moves. */
static void walk(const struct swap_side *s, int is_from, const char *used,
                 const char *alive, uint32_t *first, struct swap_held *held)
{
    const uint32_t *at = s->lists.first;
    for (int f = 0; f < s->lists.from_classes; f++)
        for (int t = 0; t < s->lists.to_classes; t++, at++) {
            int own = is_from ? f : t, other = is_from ? t : f;
            if (used && !used[other])
                continue;
            for (uint32_t k = at[0]; k < at[1]; k++) {
                if (alive && !alive[k])
                    continue;
                if (held)
                    held[first[own]] = (struct swap_held){other, k};
                first[own]++;
            }
        }
}

/* Where a class costs least is looked at first. */
static void best_first(const struct swap_side *s, int v)
{
    struct swap_held *held = s->held + s->first[v];
    uint32_t n = s->first[v + 1] - s->first[v], best = 0;
    const struct topt_cost *cost = s->lists.cost;
    for (uint32_t i = 1; i < n; i++) {
        struct topt_cost a = cost[held[i].at], b = cost[held[best].at];
        if (a.time < b.time || (a.time == b.time && a.memory < b.memory))
            best = i;
    }
    if (n) {
        struct swap_held first = held[0];
        held[0] = held[best];
        held[best] = first;
    }
}

int topt_swap_side(struct swap_side *s, struct swap_lists lists, int is_from,
                   const char *used, const char *alive, struct topt_arena *a)
{
    int from = lists.from_classes, to = lists.to_classes;
    *s = (struct swap_side){.lists = lists,
                            .own_step = is_from ? to : 1,
                            .other_step = is_from ? 1 : to,
                            .nclasses = is_from ? from : to,
                            .nother = is_from ? to : from};
    s->first = TOPT_NEW(a, s->nclasses + 2, uint32_t);
    if (!s->first)
        return -1;
    walk(s, is_from, used, alive, s->first + 2, NULL);
    for (int v = 2; v <= s->nclasses + 1; v++)
        s->first[v] += s->first[v - 1];
    s->held = TOPT_NEW(a, s->first[s->nclasses + 1], struct swap_held);
    if (!s->held)
        return -1;
    walk(s, is_from, used, alive, s->first + 1, s->held);
    for (int v = 0; v < s->nclasses; v++)
        best_first(s, v);
    return 0;
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

/* Make 'swap' what it costs where there is this alternative as well. */
static void add(struct swap *swap, struct topt_cost v, const struct topt_cost *w,
                int32_t n)
{
    if (!n) {
        swap->seen = TOPT_SWAP_NEVER;
        return;
    }
    const struct topt_cost *in = n > 1 ? stand_in(w, n, v) : w;
    int64_t memory = in->memory - v.memory, time = in->time - v.time;
    swap->memory = max(swap->memory, memory);
    swap->time = max(swap->time, time);
    if (memory > TOPT_SWAP_MOST || time > TOPT_SWAP_MOST)
        swap->seen = TOPT_SWAP_NEVER;
}

struct swap topt_swap_lists(const struct topt_cost *v, int32_t nv,
                            const struct topt_cost *w, int32_t nw)
{
    struct swap ret = topt_swap_start();
    for (int32_t k = 0; k < nv && ret.seen != TOPT_SWAP_NEVER; k++)
        add(&ret, v[k], w, nw);
    return ret;
}

int64_t topt_swap(const struct swap_side *s, int v, int w, struct topt_cost limit,
                  struct swap *swap)
{
    const struct swap_held *held = s->held + s->first[v];
    int32_t n = (int32_t)(s->first[v + 1] - s->first[v]), before = swap->seen, i = before;
    int64_t row = w * s->own_step;
    if (before == TOPT_SWAP_NEVER)
        return 1;
    while (i < n && swap->seen != TOPT_SWAP_NEVER &&
           (i == before || (swap->memory <= limit.memory && swap->time <= limit.time))) {
        const uint32_t *first = &s->lists.first[row + held[i].other * s->other_step];
        add(swap, s->lists.cost[held[i].at], s->lists.cost + first[0],
            (int32_t)(first[1] - first[0]));
        i++;
    }
    if (swap->seen != TOPT_SWAP_NEVER)
        swap->seen = i;
    return i > before ? i - before : 1;
}
