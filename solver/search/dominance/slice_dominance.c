/* slice_dominance.c - parts of a slice that an earlier slice makes superfluous.
 *
 * Slices (cutset_conditioning.c) differ in few tables only: what an operator that they are cut at costs
 * itself, and its edges.  The same strategy in another slice differs from one here by what
 * it saves at each of these ports:
 *
 *     slice v  --a-- [port 1] --v-- [port 2] --b--       saves(v -> u, a, b) =
 *     slice u  --a-- [port 1] --u-- [port 2] --b--           saves at 1(a) + saves at 2(b)
 *
 * Where that is at least 0 in memory and in time, the strategy here is not needed, since the
 * one there is no worse.  So an entry goes if what is saved at it, and at least at any entry
 * of each other port, is at least 0.  With what is gone the least savings rise, and more goes.
 *
 * Strategies that are gone from both slices do no harm: the earlier slice lost them to one that
 * is earlier still, and the first loses none. */
#include "slice_dominance.h"

/* What changing a port to another slice's saves at least; may be negative. */
struct saving {
    int possible;
    int64_t memory, time;
};

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct saving least_saving(struct saving a, struct saving b)
{
    return (struct saving){a.possible && b.possible, min(a.memory, b.memory),
                           min(a.time, b.time)};
}

static struct saving nothing_yet(void)
{
    return (struct saving){1, INT64_MAX, INT64_MAX};
}

/* Of an entry: for each alternative here, the fastest there that is no heavier.  Where those
 * there are not in the order of memory, some are not seen, which is safe. */
static struct saving saving_at(const struct port *by, const struct port *s, int entry)
{
    struct saving ret = nothing_yet();
    int32_t i = by->first[entry], end = by->first[entry + 1];
    int64_t memory = 0, time = INT64_MAX, last = -1;
    for (int32_t k = s->first[entry]; k < s->first[entry + 1]; k++) {
        const struct topt_cost own = s->cost[k];
        if (own.memory < last) {
            i = by->first[entry];
            time = INT64_MAX;
        }
        last = own.memory;
        for (; i < end && by->cost[i].memory <= own.memory; i++)
            if (by->cost[i].time < time) {
                time = by->cost[i].time;
                memory = by->cost[i].memory;
            }
        struct saving one = {time < INT64_MAX, own.memory - memory, own.time - time};
        ret = least_saving(ret, one);
    }
    return ret;
}

static int stays(const struct port *s, int entry)
{
    return !s->gone[entry] && s->first[entry] < s->first[entry + 1];
}

static struct saving saving_of(const struct port *by, const struct port *s)
{
    struct saving ret = nothing_yet();
    for (int i = 0; i < s->n; i++)
        if (stays(s, i))
            ret = least_saving(ret, saving_at(by, s, i));
    return ret;
}

/* Over many ports. */
__extension__ typedef __int128 wide;
struct sum {
    int impossible; /* ports where nothing is saved */
    wide memory, time;
};

static void count(struct sum *sum, struct saving s, int sign)
{
    sum->impossible += sign * !s.possible;
    sum->memory += sign * (wide)s.memory;
    sum->time += sign * (wide)s.time;
}

static int outdone(struct saving a, const struct sum *beside)
{
    return a.possible && !beside->impossible && a.memory + beside->memory >= 0 &&
           a.time + beside->time >= 0;
}

/* Mark what is outdone at one port, where 'all' is what is saved at all of them. */
static int outdo_port(const struct port *by, const struct port *s, struct sum *all)
{
    int more = 0;
    count(all, saving_of(by, s), -1);
    for (int i = 0; i < s->n; i++)
        if (stays(s, i) && outdone(saving_at(by, s, i), all))
            more = s->gone[i] = 1;
    count(all, saving_of(by, s), 1);
    return more;
}

/* Does every port have an entry that stays? */
static int something_left(const struct port *s, int nports)
{
    for (int p = 0; p < nports; p++) {
        int i = 0;
        while (i < s[p].n && !stays(&s[p], i))
            i++;
        if (i == s[p].n)
            return 0;
    }
    return 1;
}

int topt_slice_dominance(const struct port *by, const struct port *s, int nports)
{
    struct sum all = {0, 0, 0};
    int more = 1;
    for (int p = 0; p < nports; p++)
        count(&all, saving_of(&by[p], &s[p]), 1);
    while (more && something_left(s, nports)) {
        more = 0;
        for (int p = 0; p < nports; p++)
            more |= outdo_port(&by[p], &s[p], &all);
    }
    return something_left(s, nports);
}

void topt_slice_dominance_drop(struct port *s)
{
    int32_t n = 0, begin = 0;
    for (int i = 0; i < s->n; i++) {
        int32_t end = s->first[i + 1];
        for (int32_t k = begin; k < end && !s->gone[i]; k++)
            s->cost[n++] = s->cost[k];
        begin = end;
        s->first[i + 1] = n;
    }
}
