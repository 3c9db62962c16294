/* band.c - one part of the frontier, between two of its points.
 *
 *     time |  left                 no strategy is below the line that touches the
 *          |   o-----------+       frontier (opt: the lightest by the band's weighing);
 *          |   | .         | c     none that is wanted is above or right of the corner c
 *          |   |  .  x     |
 *          |   |   .  -----|-- explored: all that is lighter is known
 *          |   |  opt .    |
 *          |   +---------- o right
 *          +---------------------- memory
 *
 * The band's weighing counts memory and time at the slope from left to right.  What weighs at
 * most 'explored' is found by making the tables with that allowance.  With the strategies
 * found, only the corners of the steps between them can hide others:
 *
 *          o-----c
 *                |       a strategy that is not found, and that nothing beats, weighs no
 *                o----c  more than the heaviest of these corners
 *                     |
 *                     o
 *
 * so once that is explored, all is found.  With a tolerance the corners are lower: what is
 * within it of a step need not be found.  The allowance is raised step by step from the
 * least, since a little too much costs a lot of points.
 *
 * A band that takes too many points is parted where the lightest strategy is: two smaller
 * bands, each with a weighing that fits it better.  Where there is nothing to part (left and
 * right are neighbours on the convex hull), weighings around the band's own help. */
#include "band.h"

#include "unroll.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_REACH = 64, /* part of what is to be explored that is tried first, ... */
    /* the same where one strategy is wanted, which is hardly above its edge of the hull */
    FIRST_REACH_FAST = 1 << 14,
    NEXT_REACH = 2,       /* ... and times as far each further time, ... */
    NEXT_REACH_CHEAP = 8, /* or this where a time costs more than what it finds, ... */
    DEAR_PART = 3,        /* or only a part farther where it costs a lot */
    CHEAP_PART = 4,       /* cheap is less than a part of a weighing, ... */
    DEAR_TIMES = 2,       /* dear is more than so many */
    STEP_BACK = 4,        /* so much less far where tables took too much, ... */
    BUDGET_TIMES = 16,    /* and so much more may be taken from then on */
    REST_REACH = 8,       /* rests are found so many times farther at a time */
    KNOWN_PART = 8, /* where known costs leave less than a part, that is tried at once */
    TABLE_PAIRS = 32, /* a table takes as long as that, however small it is */
    TOL = 1,          /* sagging by so many times the tolerance, too */
    SAG = 64,         /* a band that sags by a part of its corner is parted untried */
    FINE = 1 << 10,   /* numbers this large express ratios well enough */
};

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct visit {
    int64_t place, at; /* at: entry or point */
};

static size_t width(const struct bander *b)
{
    return (size_t)b->plan->problem->nops + (size_t)b->plan->problem->nedges;
}

int64_t topt_bander_bytes(const struct plan *plan)
{
    int64_t entry = 2 * sizeof(int64_t) + sizeof(double) + 2 * sizeof(uint32_t);
    int64_t place = sizeof(struct visit);
    return plan->tables.nentries * entry + plan->nplaces * place;
}

int topt_bander_init(struct bander *b, const struct plan *plan,
                     const struct topt_search_options *options, struct topt_cost most,
                     struct topt_error *err)
{
    size_t n = (size_t)plan->nplaces + 2;
    *b = (struct bander){.plan = plan, .options = options, .most = most, .err = err};
    b->stack = malloc(n * sizeof(struct visit));
    if (!b->stack)
        return topt_search_nomem(err);
    if (topt_maker_init(&b->maker, &plan->tables, options, err))
        return -1;
    return topt_bound_init(&b->bound[0], &plan->tables, err);
}

void topt_bander_fini(struct bander *b)
{
    for (int i = 0; i < TOPT_MAX_BOUNDS; i++)
        topt_bound_fini(&b->bound[i]);
    topt_maker_fini(&b->maker);
    free(b->stack);
}

void topt_band_fini(struct band *band)
{
    free(band->found);
    topt_strategies_fini(&band->strategies);
    free(band->middle.choice);
}

/* ---- weighings ---- */

/* The same ratio in the largest numbers by which no strategy weighs more than the heaviest;
 * neither becomes 0. */
static void scale(struct topt_cost most, int64_t heaviest, int64_t *time, int64_t *memory)
{
    __extension__ typedef __int128 wide;
    int64_t a = *time, b = *memory;
    while ((wide)a * most.time + (wide)b * most.memory > heaviest) {
        a >>= 1;
        b >>= 1;
    }
    while (max(a, b) > 0 && max(a, b) < heaviest &&
           (wide)a * 2 * most.time + (wide)b * 2 * most.memory <= heaviest) {
        a *= 2;
        b *= 2;
    }
    *time = a || !*time ? a : 1;
    *memory = b || !*memory ? b : 1;
}

/* Do numbers up to TOPT_LIGHT express the ratio, exactly or well enough to guide a search? */
static int scale_light(struct topt_cost most, int exactly, int64_t *time, int64_t *memory)
{
    __extension__ typedef __int128 wide;
    int64_t a = *time, b = *memory;
    if (most.time >= TOPT_LIGHT / FINE || most.memory >= TOPT_LIGHT / FINE)
        return 0;
    scale(most, TOPT_LIGHT, &a, &b);
    int fine = (a >= FINE || !a) && (b >= FINE || !b);
    if ((wide)a * *memory != (wide)b * *time && (exactly || !fine))
        return 0;
    *time = a;
    *memory = b;
    return 1;
}

static int weigh_least(struct bander *b, struct bound *x, int64_t time, int64_t memory,
                       int exactly)
{
    x->light = scale_light(b->most, exactly, &time, &memory);
    if (!x->light)
        scale(b->most, TOPT_HEAVY, &time, &memory);
    x->time = time;
    x->memory = memory;
    return topt_weigh_least(&b->plan->tables, b->options, x, b->err);
}

int topt_band_weigh(struct bander *b, int64_t time, int64_t memory,
                    struct topt_cost corner)
{
    __extension__ typedef __int128 wide;
    struct bound *x = &b->bound[0];
    /* Numbers as large as can be: no strategy is beyond 'most'. */
    corner.time = min(corner.time, b->most.time);
    corner.memory = min(corner.memory, b->most.memory);
    scale(corner, TOPT_LIGHT, &time, &memory);
    while ((wide)time * b->most.time + (wide)memory * b->most.memory > TOPT_HEAVY) {
        time /= 2;
        memory /= 2;
    }
    x->time = time > 0 || memory > 0 ? time : 1;
    x->memory = memory;
    x->light = 1;
    return topt_weigh_least(&b->plan->tables, b->options, x, b->err);
}

static int weigh_rest(struct bander *b, struct bound *x, int64_t allowance)
{
    x->allowance = allowance;
    const struct table *root = b->plan->place[b->plan->root].table;
    return topt_weigh_rest(&b->plan->tables, root, b->options, x, b->err);
}

static void choose(const struct plan *plan, const struct place *p, int32_t number,
                   int32_t *choice)
{
    if (p->op >= 0)
        choice[p->op] = number;
    else
        choice[plan->problem->nops + p->edge] = number;
}

/* The lightest strategy by what bound 0 has weighed. */
int topt_band_walk(struct bander *b, struct found *ret)
{
    const struct plan *plan = b->plan;
    const struct bound *bound = &b->bound[0];
    struct visit *stack = (struct visit *)b->stack;
    size_t n = 0;
    ret->cost = (struct topt_cost){0, 0};
    ret->choice = malloc((width(b) + 1) * sizeof *ret->choice);
    if (!ret->choice)
        return topt_search_nomem(b->err);
    stack[n++] = (struct visit){plan->root, plan->place[plan->root].table->first_entry};
    while (n) {
        struct visit v = stack[--n];
        const struct place *p = &plan->place[v.place];
        int64_t ea, eb;
        if (p->table->leaf) {
            int32_t number;
            struct topt_cost c = topt_weigh_leaf(p->table, v.at, bound, &number);
            ret->cost.memory += c.memory;
            ret->cost.time += c.time;
            choose(plan, p, number, ret->choice);
            continue;
        }
        topt_weigh_down(p->table, v.at, bound, &ea, &eb);
        stack[n++] = (struct visit){p->left, ea};
        if (p->right >= 0)
            stack[n++] = (struct visit){p->right, eb};
    }
    return 0;
}

int topt_band_lightest(struct bander *b, int64_t time, int64_t memory, struct found *ret)
{
    struct bound *x = &b->bound[0];
    *ret = (struct found){{0, 0}, NULL};
    if (weigh_least(b, x, time, memory, 1))
        return -1;
    if (x->least[b->plan->place[b->plan->root].table->first_entry] == TOPT_NOTHING)
        return 0;
    return topt_band_walk(b, ret);
}

/* ---- what is left to explore ---- */

/* What is had in a band's box: points found, and what was known before. */
struct steps {
    struct topt_cost *point; /* a frontier */
    int n;
    int64_t before; /* time of what is had left of all of them */
};

/* The points and the known costs as one frontier.  -1: memory. */
static int steps_init(struct steps *s, const struct band *band, struct known_costs known,
                      const struct topt_cost *point, int n)
{
    int i = 0, k = 0;
    *s = (struct steps){.before = band->left.time};
    s->point = malloc(((size_t)n + (size_t)known.n + 1) * sizeof *s->point);
    if (!s->point)
        return -1;
    for (; k < known.n && known.at[k].memory <= band->left.memory; k++)
        s->before = min(s->before, known.at[k].time);
    int64_t last = s->before;
    while (i < n || (k < known.n && known.at[k].memory <= band->corner.memory)) {
        int own = k >= known.n || (i < n && point[i].memory <= known.at[k].memory);
        struct topt_cost c = own ? point[i++] : known.at[k++];
        if (c.time >= last)
            continue;
        if (s->n && s->point[s->n - 1].memory == c.memory)
            s->n--;
        s->point[s->n++] = c;
        last = c.time;
    }
    return 0;
}

struct step_corner {
    int64_t before; /* time of the point that begins the step; 0: none that is wanted */
    struct topt_cost corner;
};

/* The i-th step (0..n): between the i-1-th point and the i-th, or the band's ends. */
static struct step_corner step_at(const struct band *band, const struct steps *all, int i)
{
    int64_t heaviest = i < all->n ? all->point[i].memory - 1 : band->corner.memory;
    int64_t before = i ? all->point[i - 1].time : all->before;
    int64_t slowest = min(before - 1, band->corner.time);
    return (struct step_corner){before > band->slowest ? 0 : before, {heaviest, slowest}};
}

/* What the heaviest strategy weighs that may be missed when only 'point' and what was known
 * before are had; with no memory to tell, as if nothing were. */
int64_t topt_band_needed(const struct bander *b, const struct band *band,
                         const struct topt_cost *point, int n)
{
    const struct topt_search_options *o = b->options;
    struct steps all;
    int64_t most = -1;
    if (steps_init(&all, band, b->known, point, n))
        return INT64_MAX;
    for (int i = o->fastest ? all.n : 0; i <= all.n; i++) {
        struct step_corner s = step_at(band, &all, i);
        int64_t time =
            s.before ? topt_search_missed(s.before, o->epsilon) : s.corner.time;
        if (time >= 0 && s.corner.memory >= 0)
            most = max(most, band->time * time + band->memory * s.corner.memory);
    }
    free(all.point);
    return most;
}

/* How much too slow the point that begins a step may be for what is missed in it. */
static double step_gap(const struct band *band, struct step_corner s)
{
    __extension__ typedef __int128 wide;
    if (s.corner.memory < 0 || s.corner.time < 0)
        return 0;
    if (!band->time) /* stopped, where nothing could be weighed */
        return INFINITY;
    wide over = (wide)band->explored + 1 - (wide)band->memory * s.corner.memory;
    int64_t low = over > 0 ? (int64_t)((over + band->time - 1) / band->time) : 0;
    low = max(low, band->right.time); /* nothing that is wanted here is faster */
    if (low > s.corner.time)
        return 0;
    return s.before ? topt_search_excess(s.before, low) : INFINITY;
}

double topt_band_gap(const struct band *band, const struct topt_search_options *options,
                     struct known_costs known)
{
    double gap = band->left_out;
    struct steps all;
    if (steps_init(&all, band, known, band->found, band->nfound))
        return INFINITY;
    for (int i = options->fastest ? all.n : 0; i <= all.n; i++)
        gap = fmax(gap, step_gap(band, step_at(band, &all, i)));
    free(all.point);
    return gap;
}

/* ---- points and their strategies ---- */

static struct run root_points(const struct bander *b)
{
    const struct table *root = b->plan->place[b->plan->root].table;
    return topt_made_entry(&b->maker, root, root->first_entry);
}

/* Which points are to be kept: with a tolerance, those are left out that the one kept before
 * them stands for, as long as nothing unexplored gets between.  Returns how many. */
static size_t thin(const struct bander *b, struct band *band, struct run r,
                   uint32_t *keep)
{
    const struct topt_search_options *o = b->options;
    int64_t before = band->left.time; /* of the last that is kept */
    int kept = before < INT64_MAX && before <= band->slowest; /* is there one? */
    int thinning = o->epsilon > 0 && !o->fastest;
    size_t n = 0;
    for (uint32_t i = 0; i < r.n; i++) {
        int64_t next = i + 1 < r.n ? r.cost[i + 1].memory - 1 : band->corner.memory;
        int64_t missed = topt_search_missed(before, o->epsilon);
        if (thinning && kept && missed < r.cost[i].time &&
            band->time * missed + band->memory * next <= band->explored) {
            band->left_out =
                fmax(band->left_out, topt_search_excess(before, r.cost[i].time));
            continue;
        }
        keep[n++] = r.base + i;
        kept = 1;
        before = r.cost[i].time;
    }
    return n;
}

static int start_answer(struct bander *b, struct band *band, size_t n)
{
    band->found = malloc((n + 1) * sizeof *band->found);
    if (!band->found)
        return topt_search_nomem(b->err);
    return topt_strategies_init(&band->strategies, width(b), b->err);
}

static int unroll_points(struct bander *b, struct band *band, struct run r,
                         const uint32_t *keep, size_t n)
{
    band->state = BAND_DONE;
    if (start_answer(b, band, n))
        return -1;
    for (size_t i = 0; i < n; i++)
        band->found[i] = r.cost[keep[i] - r.base];
    band->nfound = (int)n;
    if (topt_unroll(b->plan, &b->maker, keep, n, &band->strategies, b->err))
        return -1;
    if (topt_strategies_bytes(&band->strategies) > b->plan->tables.max_bytes)
        return topt_fail(b->err, TOPT_ERR_LIMIT,
                         "the answer has too many points for %lld bytes; give a memory "
                         "limit or an epsilon",
                         (long long)b->plan->tables.max_bytes);
    return 0;
}

/* The points that were made become the band's answer. */
static int keep_points(struct bander *b, struct band *band)
{
    struct run r = root_points(b);
    uint32_t *keep = malloc(((size_t)r.n + 1) * sizeof *keep);
    if (!keep)
        return topt_search_nomem(b->err);
    int rc = unroll_points(b, band, r, keep, thin(b, band, r, keep));
    free(keep);
    return rc;
}

static enum topt_made make(struct bander *b, struct band *band, int64_t budget)
{
    struct maker *k = &b->maker;
    k->most = band->corner;
    k->max_frontier = 0;
    enum topt_made made = topt_make(k, budget, b->err);
    int64_t bytes =
        (int64_t)k->merge.n * (int64_t)(sizeof(struct topt_cost) + sizeof(struct back));
    band->work += k->merge.products;
    band->points += (int64_t)k->merge.n;
    band->bytes = max(band->bytes, bytes);
    band->max_frontier =
        k->max_frontier > band->max_frontier ? k->max_frontier : band->max_frontier;
    return made;
}

/* ---- searching a band ---- */

/* Weighings around the band's own: each prunes what the others let through, for two passes over
 * all entries.  (Of memory and of time alone prune nothing more.) */
static int add_bounds(struct bander *b, struct band *band)
{
    static const struct {
        int time, memory;
    } around[] = {{3, 2}, {2, 3}};
    int n = (int)(sizeof around / sizeof *around);
    for (int i = 0; i < n; i++) {
        struct bound *x = &b->bound[1 + i];
        if (!x->least && topt_bound_init(x, &b->plan->tables, b->err))
            return -1;
        if (weigh_least(b, x, band->time / 4 * around[i].time,
                        band->memory / 4 * around[i].memory, 0))
            return -1;
        if (weigh_rest(b, x, topt_weigh(x, band->corner)))
            return -1;
        b->maker.bound[1 + i] = x;
        band->work += 2 * b->plan->tables.npairs;
    }
    b->maker.nbounds = 1 + n;
    return 0;
}

/* A search that is stopped still has the lightest strategy, where it is wanted. */
static int keep_middle(struct bander *b, struct band *band)
{
    struct topt_cost c = band->middle.cost;
    band->state = BAND_DONE;
    if (c.memory > band->corner.memory || c.time > band->corner.time)
        return 0;
    if (start_answer(b, band, 1))
        return -1;
    band->found[0] = c;
    band->nfound = 1;
    return topt_strategies_add(&band->strategies, band->middle.choice, b->err);
}

/* What to do with tables that take too many points. */
static int too_much(struct bander *b, struct band *band, int can_split, int64_t *budget)
{
    if (can_split) {
        band->state = BAND_SPLIT;
        return 0;
    }
    if (b->maker.nbounds == 1 && band->time > 4 && band->memory > 4) {
        *budget = b->work_budget ? b->work_budget
                  : b->known.n   ? 0 /* all that is needed is tried at once */
                                 : BUDGET_TIMES * *budget;
        return add_bounds(b, band);
    }
    if (!b->work_budget) {
        *budget *= BUDGET_TIMES;
        return 0;
    }
    /* Out of work: what was explored once more, to keep it. */
    b->bound[0].allowance = band->explored;
    switch (make(b, band, 0)) {
    case TOPT_MADE:
        return keep_points(b, band);
    case TOPT_MADE_FAILED:
        return -1;
    default:
        band->explored = topt_weigh(&b->bound[0], band->middle.cost) - 1;
        return keep_middle(b, band);
    }
}

/* How far to look after 'explored': the dearer that was, beside weighing, the less farther. */
static int64_t next_reach(const struct bander *b, int64_t opt, int64_t explored)
{
    int64_t far = max(explored - opt, 1);
    int64_t pairs = b->plan->tables.npairs, work = b->maker.merge.products;
    if (work < pairs / CHEAP_PART)
        return opt + NEXT_REACH_CHEAP * far;
    return opt +
           (work < DEAR_TIMES * pairs ? NEXT_REACH * far : far + far / DEAR_PART + 1);
}

/* Raise the allowance until all that may be missed is explored. */
static int explore(struct bander *b, struct band *band, int64_t opt, int64_t need,
                   int can_split)
{
    const struct topt_search_options *o = b->options;
    int64_t budget =
        max(b->plan->tables.npairs, TABLE_PAIRS * (int64_t)b->plan->tables.nall);
    int64_t known = opt - 1; /* entries' rests are known up to this allowance */
    int64_t reach = opt + (need - opt) / (o->fastest ? FIRST_REACH_FAST : FIRST_REACH);
    if (b->known.n &&
        need - opt < (topt_weigh(&b->bound[0], band->corner) - opt) / KNOWN_PART)
        reach = need;
    b->maker.bound[0] = &b->bound[0];
    b->maker.nbounds = 1;
    while (band->state == BAND_OPEN) {
        reach = min(reach, need);
        if (reach > known) {
            known = known < opt ? min(need, opt + REST_REACH * (reach - opt)) : need;
            if (weigh_rest(b, &b->bound[0], known))
                return -1;
            band->work += b->plan->tables.npairs;
        }
        b->bound[0].allowance = reach;
        enum topt_made made = make(b, band, budget);
        if (made == TOPT_MADE_FAILED ||
            (made == TOPT_MADE_TOO_MUCH && too_much(b, band, can_split, &budget)))
            return -1;
        if (made == TOPT_MADE_TOO_MUCH) {
            /* What is known says well what is needed, and so do points that were made; two
             * ends alone do not. */
            if (!b->known.n && o->fastest)
                reach = band->explored + max((reach - band->explored) / STEP_BACK, 1);
            continue;
        }
        if (made == TOPT_MADE_STOPPED) {
            band->explored = opt - 1;
            return keep_middle(b, band);
        }
        struct run r = root_points(b);
        band->explored = b->bound[0].allowance;
        need = min(need, topt_band_needed(b, band, r.cost, (int)r.n));
        if (need <= band->explored)
            return keep_points(b, band);
        if (o->fastest && r.n)
            band->corner.time = r.cost[r.n - 1].time;
        reach = next_reach(b, opt, band->explored);
        if (reach > need - (need - opt) / 16)
            reach = need;
    }
    return 0;
}

int topt_band_search(struct bander *b, struct band *band, int stop)
{
    struct bound *x = &b->bound[0];
    if (weigh_least(b, x, band->time, band->memory, 0) ||
        topt_band_walk(b, &band->middle))
        return -1;
    band->time = x->time;
    band->memory = x->memory;
    band->work += b->plan->tables.npairs;
    int64_t opt = topt_weigh(x, band->middle.cost);
    int64_t chord = min(topt_weigh(x, band->left), topt_weigh(x, band->right));
    int64_t need = topt_band_needed(b, band, NULL, 0);
    int can_split = opt < chord;
    band->explored = opt - 1;
    if (need < opt) {
        band->state = BAND_DONE;
        return 0;
    }
    if (stop || topt_search_stopped(b->options))
        return keep_middle(b, band);
    int64_t tolerated =
        x->time *
        (band->left.time - 1 - topt_search_missed(band->left.time, b->options->epsilon));
    if (can_split && chord - opt > max((need - chord) / SAG, tolerated / TOL)) {
        band->state = BAND_SPLIT;
        return 0;
    }
    return explore(b, band, opt, need, can_split);
}

int topt_band_leave(struct bander *b, struct band *band)
{
    if (band->state == BAND_SPLIT)
        return 0;
    band->explored =
        band->middle.choice ? topt_weigh(&b->bound[0], band->middle.cost) - 1 : -1;
    if (band->middle.choice)
        return keep_middle(b, band);
    band->state = BAND_DONE;
    return 0;
}

int topt_band_plain(struct bander *b, struct band *band)
{
    b->maker.nbounds = 0;
    switch (make(b, band, 0)) {
    case TOPT_MADE:
        return keep_points(b, band);
    case TOPT_MADE_FAILED:
        return -1;
    default:
        band->state = BAND_DONE;
        band->explored = -1; /* nothing is known */
        return 0;
    }
}
