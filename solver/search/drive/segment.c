/* segment.c - one part of the frontier, between two of its points.
 *
 *     time |  left                 no strategy is below the line that touches the
 *          |   o-----------+       frontier (opt: the lightest by the segment's weighted sum);
 *          |   | .         | c     none that is wanted is above or right of the corner c
 *          |   |  .  x     |
 *          |   |   .  -----|-- explored: all that is lighter is known
 *          |   |  opt .    |
 *          |   +---------- o right
 *          +---------------------- memory
 *
 * The segment's weighted sum counts memory and time at the slope from left to right.
 * What weighs at most 'explored' is found by making the tables with that allowance.  With
 * the strategies found, only the corners of the steps between them can hide others:
 *
 *          o-----c
 *                |       a strategy that is not found, and that nothing beats, weighs no
 *                o----c  more than the heaviest of these corners
 *                     |
 *                     o
 *
 * so once that is explored, all is found.  With a tolerance the corners are lower: what
 * is within it of a step need not be found.  The allowance is raised step by step from
 * the least, since a little too much costs a lot of points.
 *
 * A segment that takes too many points is parted where the lightest strategy is: two
 * smaller segments, each with a weighted sum that fits it better.  Where there is nothing
 * to part (left and right are neighbours on the convex hull), weighted sums around the
 * segment's own help. */
#include "segment.h"

#include "backtrack.h"
#include "drive_tuning.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void topt_segment_fini(struct segment *segment)
{
    free(segment->found);
    topt_strategies_fini(&segment->strategies);
    free(segment->middle.choice);
}

/* ---- what is left to explore ------------------------------------------------------- */

/* The incumbents in a segment's box: points found, and points known before. */
struct steps {
    struct topt_cost *point; /* a frontier */
    int n;
    int64_t before; /* time of the incumbent left of all of them */
};

/* The points and the known costs as one frontier.  -1: memory. */
static int steps_init(struct steps *s, const struct segment *segment,
                      struct incumbent_costs known, const struct topt_cost *point, int n)
{
    int i = 0, k = 0;
    *s = (struct steps){.before = segment->left.time};
    s->point = malloc(((size_t)n + (size_t)known.n + 1) * sizeof *s->point);
    if (!s->point)
        return -1;
    for (; k < known.n && known.at[k].memory <= segment->left.memory; k++)
        s->before = topt_min(s->before, known.at[k].time);
    int64_t last = s->before;
    while (i < n || (k < known.n && known.at[k].memory <= segment->corner.memory)) {
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

/* The i-th step (0..n): between the i-1-th point and the i-th, or the segment's ends. */
static struct step_corner step_at(const struct segment *segment, const struct steps *all,
                                  int i)
{
    int64_t heaviest = i < all->n ? all->point[i].memory - 1 : segment->corner.memory;
    int64_t before = i ? all->point[i - 1].time : all->before;
    int64_t slowest = topt_min(before - 1, segment->corner.time);
    return (struct step_corner){before > segment->slowest ? 0 : before,
                                {heaviest, slowest}};
}

/* The weight of the heaviest strategy that may be missed when only 'point' and the points
 * known before are kept; without memory to tell, as if no point were known. */
int64_t topt_segment_needed(const struct scalarizer *b, const struct segment *segment,
                            const struct topt_cost *point, int n)
{
    const struct topt_search_options *o = b->options;
    struct steps all;
    int64_t most = -1;
    if (steps_init(&all, segment, b->known, point, n))
        return INT64_MAX;
    for (int i = o->fastest ? all.n : 0; i <= all.n; i++) {
        struct step_corner s = step_at(segment, &all, i);
        int64_t time =
            s.before ? topt_search_missed(s.before, o->epsilon) : s.corner.time;
        if (time >= 0 && s.corner.memory >= 0)
            most =
                topt_max(most, segment->time * time + segment->memory * s.corner.memory);
    }
    free(all.point);
    return most;
}

/* How much too slow the point that begins a step may be for what is missed in it. */
static double step_gap(const struct segment *segment, struct step_corner s)
{
    if (s.corner.memory < 0 || s.corner.time < 0)
        return 0;
    if (!segment->time) /* stopped, where nothing could be weighed */
        return INFINITY;
    topt_wide over =
        (topt_wide)segment->explored + 1 - (topt_wide)segment->memory * s.corner.memory;
    int64_t low = over > 0 ? (int64_t)((over + segment->time - 1) / segment->time) : 0;
    low = topt_max(low, segment->right.time); /* nothing that is wanted here is faster */
    if (low > s.corner.time)
        return 0;
    return s.before ? topt_search_excess(s.before, low) : INFINITY;
}

double topt_segment_gap(const struct segment *segment,
                        const struct topt_search_options *options,
                        struct incumbent_costs known)
{
    double gap = segment->left_out;
    struct steps all;
    if (steps_init(&all, segment, known, segment->found, segment->nfound))
        return INFINITY;
    for (int i = options->fastest ? all.n : 0; i <= all.n; i++)
        gap = fmax(gap, step_gap(segment, step_at(segment, &all, i)));
    free(all.point);
    return gap;
}

/* ---- points and their strategies --------------------------------------------------- */

static struct run root_points(const struct scalarizer *b)
{
    const struct table *root = b->plan->node[b->plan->root].table;
    return topt_entry_points(&b->maker, root, root->first_entry);
}

/* Which points are to be kept: with a tolerance, those are left out that the one kept
 * before them stands for, as long as nothing unexplored gets between.  Returns how
 * many. */
static size_t drop_within_tolerance(const struct scalarizer *b, struct segment *segment,
                                    struct run r, uint32_t *keep)
{
    const struct topt_search_options *o = b->options;
    int64_t before = segment->left.time; /* of the last that is kept */
    int kept = before < INT64_MAX && before <= segment->slowest; /* is there one? */
    int thinning = o->epsilon > 0 && !o->fastest;
    size_t n = 0;
    for (uint32_t i = 0; i < r.n; i++) {
        int64_t next = i + 1 < r.n ? r.cost[i + 1].memory - 1 : segment->corner.memory;
        int64_t missed = topt_search_missed(before, o->epsilon);
        if (thinning && kept && missed < r.cost[i].time &&
            segment->time * missed + segment->memory * next <= segment->explored) {
            segment->left_out =
                fmax(segment->left_out, topt_search_excess(before, r.cost[i].time));
            continue;
        }
        keep[n++] = r.base + i;
        kept = 1;
        before = r.cost[i].time;
    }
    return n;
}

static int start_answer(struct scalarizer *b, struct segment *segment, size_t n)
{
    segment->found = malloc((n + 1) * sizeof *segment->found);
    if (!segment->found)
        return topt_search_nomem(b->err);
    size_t width = (size_t)b->plan->problem->nops + (size_t)b->plan->problem->nedges;
    return topt_strategies_init(&segment->strategies, width, b->err);
}

static int unroll_points(struct scalarizer *b, struct segment *segment, struct run r,
                         const uint32_t *keep, size_t n)
{
    segment->state = SEGMENT_DONE;
    if (start_answer(b, segment, n))
        return -1;
    for (size_t i = 0; i < n; i++)
        segment->found[i] = r.cost[keep[i] - r.base];
    segment->nfound = (int)n;
    if (topt_backtrack(b->plan, &b->maker, keep, n, &segment->strategies, b->err))
        return -1;
    if (topt_strategies_bytes(&segment->strategies) > b->plan->tables.max_bytes)
        return topt_fail(b->err, TOPT_ERR_LIMIT,
                         "the answer has too many points for %lld bytes; give a memory "
                         "limit or an epsilon",
                         (long long)b->plan->tables.max_bytes);
    return 0;
}

/* The points that were made become the segment's answer. */
static int keep_points(struct scalarizer *b, struct segment *segment)
{
    struct run r = root_points(b);
    uint32_t *keep = malloc(((size_t)r.n + 1) * sizeof *keep);
    if (!keep)
        return topt_search_nomem(b->err);
    int rc =
        unroll_points(b, segment, r, keep, drop_within_tolerance(b, segment, r, keep));
    free(keep);
    return rc;
}

static enum topt_made make(struct scalarizer *b, struct segment *segment, int64_t budget)
{
    struct maker *k = &b->maker;
    k->most = segment->corner;
    k->max_frontier = 0;
    enum topt_made made = topt_make(k, budget, b->err);
    int64_t bytes =
        (int64_t)k->merge.n * (int64_t)(sizeof(struct topt_cost) + sizeof(struct back));
    segment->work += k->merge.products;
    segment->points += (int64_t)k->merge.n;
    segment->bytes = topt_max(segment->bytes, bytes);
    segment->max_frontier =
        k->max_frontier > segment->max_frontier ? k->max_frontier : segment->max_frontier;
    return made;
}

/* ---- searching a segment ----------------------------------------------------------- */

/* Weighings around the segment's own: each prunes what the others let through, for two
 * passes over all entries.  (Of memory and of time alone prune nothing more.) */
static int add_bounds(struct scalarizer *b, struct segment *segment)
{
    static const struct {
        int time, memory;
    } around[] = {{3, 2}, {2, 3}};
    int n = (int)(sizeof around / sizeof *around);
    for (int i = 0; i < n; i++) {
        struct scalar_pass *x = &b->bound[1 + i];
        if (!x->least && topt_scalar_pass_init(x, &b->plan->tables, b->err))
            return -1;
        if (topt_scalarizer_least(b, x, segment->time / 4 * around[i].time,
                                  segment->memory / 4 * around[i].memory, 0))
            return -1;
        if (topt_scalarizer_rest(b, x, topt_weight(x, segment->corner)))
            return -1;
        b->maker.bound[1 + i] = x;
        segment->work += 2 * b->plan->tables.npairs;
    }
    b->maker.nbounds = 1 + n;
    return 0;
}

/* A search that is stopped still has the lightest strategy, where it is wanted. */
static int keep_middle(struct scalarizer *b, struct segment *segment)
{
    struct topt_cost c = segment->middle.cost;
    segment->state = SEGMENT_DONE;
    if (c.memory > segment->corner.memory || c.time > segment->corner.time)
        return 0;
    if (start_answer(b, segment, 1))
        return -1;
    segment->found[0] = c;
    segment->nfound = 1;
    return topt_strategies_add(&segment->strategies, segment->middle.choice, b->err);
}

/* All that is lighter than the middle is known. */
static int leave_middle(struct scalarizer *b, struct segment *segment)
{
    segment->explored = topt_weight(&b->bound[0], segment->middle.cost) - 1;
    return keep_middle(b, segment);
}

/* The tables' points as the answer; 1: they were not made, for a limit. */
static int make_answer(struct scalarizer *b, struct segment *segment)
{
    enum topt_made made = make(b, segment, 0);
    return made == TOPT_MADE          ? keep_points(b, segment)
           : made == TOPT_MADE_FAILED ? -1
                                      : 1;
}

/* Merge the points that were explored once more, to keep them. */
static int keep_explored(struct scalarizer *b, struct segment *segment)
{
    b->bound[0].allowance = segment->explored;
    int rc = make_answer(b, segment);
    return rc > 0 ? leave_middle(b, segment) : rc;
}

/* The next allowance of a table that exceeded its own: the same under any limit that is not
 * reached. */
static int64_t next_budget(const struct scalarizer *b, int64_t budget, int at_once)
{
    int64_t most = b->work_budget ? b->work_budget : INT64_MAX / 2;
    if (at_once)
        return b->work_budget;
    return budget < most / BUDGET_TIMES ? BUDGET_TIMES * budget : most;
}

/* The next step with tables that take too many points. */
static int too_much(struct scalarizer *b, struct segment *segment, int can_split,
                    int64_t *budget)
{
    if (can_split) {
        segment->state = SEGMENT_SPLIT;
        return 0;
    }
    int spent = b->work_budget && *budget >= b->work_budget;
    if (b->maker.nbounds == 1 && segment->time > 4 && segment->memory > 4) {
        /* all that is needed at once */
        *budget = next_budget(b, *budget, b->known.n > 0);
        return add_bounds(b, segment);
    }
    if (!spent) {
        *budget = next_budget(b, *budget, 0);
        return 0;
    }
    if (b->all_work)
        return keep_explored(b, segment);
    segment->reached = topt_max(segment->explored, 1);
    return 0;
}

/* How far to look after 'explored': the more that cost, beside a pass, the less
 * farther. */
static int64_t next_reach(const struct scalarizer *b, int64_t opt, int64_t explored)
{
    int64_t far = topt_max(explored - opt, 1);
    int64_t pairs = b->plan->tables.npairs, work = b->maker.merge.products;
    if (work < pairs / CHEAP_PART)
        return opt + NEXT_REACH_CHEAP * far;
    return opt +
           (work < DEAR_TIMES * pairs ? NEXT_REACH * far : far + far / DEAR_PART + 1);
}

/* Raise the allowance until all that may be missed is explored. */
static int explore(struct scalarizer *b, struct segment *segment, int64_t opt,
                   int64_t need, int can_split)
{
    const struct topt_search_options *o = b->options;
    int64_t budget =
        topt_max(b->plan->tables.npairs, TABLE_PAIRS * (int64_t)b->plan->tables.nall);
    int64_t known = opt - 1; /* entries' rests are known up to this allowance */
    int64_t reach = opt + (need - opt) / (o->fastest ? FIRST_REACH_FAST : FIRST_REACH);
    if (b->known.n &&
        need - opt < (topt_weight(&b->bound[0], segment->corner) - opt) / KNOWN_PART)
        reach = need;
    b->maker.bound[0] = &b->bound[0];
    b->maker.nbounds = 1;
    while (segment->state == SEGMENT_OPEN && !segment->reached) {
        reach = topt_min(reach, need);
        if (reach > known) {
            known = known < opt ? topt_min(need, opt + REST_REACH * (reach - opt)) : need;
            if (topt_scalarizer_rest(b, &b->bound[0], known))
                return -1;
            segment->work += b->plan->tables.npairs;
        }
        b->bound[0].allowance = reach;
        enum topt_made made = make(b, segment, budget);
        if (made == TOPT_MADE_FAILED ||
            (made == TOPT_MADE_TOO_MUCH && too_much(b, segment, can_split, &budget)))
            return -1;
        if (made == TOPT_MADE_TOO_MUCH) {
            /* Known points bound well what is needed, and so do points that were made; two
             * ends alone do not. */
            if (!b->known.n && o->fastest)
                reach = segment->explored +
                        topt_max((reach - segment->explored) / STEP_BACK, 1);
            continue;
        }
        if (made == TOPT_MADE_STOPPED) {
            segment->explored = opt - 1;
            return keep_middle(b, segment);
        }
        struct run r = root_points(b);
        segment->explored = b->bound[0].allowance;
        need = topt_min(need, topt_segment_needed(b, segment, r.cost, (int)r.n));
        if (need <= segment->explored)
            return keep_points(b, segment);
        if (o->fastest && r.n)
            segment->corner.time = r.cost[r.n - 1].time;
        reach = next_reach(b, opt, segment->explored);
        if (reach > need - (need - opt) / 16)
            reach = need;
    }
    return 0;
}

/* Keep the points that were explored when the work ran out. */
static int explore_again(struct scalarizer *b, struct segment *segment)
{
    segment->explored = segment->reached;
    b->maker.bound[0] = &b->bound[0];
    b->maker.nbounds = 1;
    return topt_scalarizer_rest(b, &b->bound[0], segment->explored)
               ? -1
               : keep_explored(b, segment);
}

int topt_segment_search(struct scalarizer *b, struct segment *segment, int stop)
{
    struct scalar_pass *x = &b->bound[0];
    free(segment->middle.choice); /* of an earlier share of the work */
    segment->middle.choice = NULL;
    if (topt_scalarizer_least(b, x, segment->time, segment->memory, 0) ||
        topt_scalarizer_backtrack(b, &segment->middle))
        return -1;
    segment->time = x->time;
    segment->memory = x->memory;
    segment->work += b->plan->tables.npairs;
    int64_t opt = topt_weight(x, segment->middle.cost);
    int64_t chord =
        topt_min(topt_weight(x, segment->left), topt_weight(x, segment->right));
    int64_t need = topt_segment_needed(b, segment, NULL, 0);
    int can_split = opt < chord;
    segment->explored = opt - 1;
    if (need < opt) {
        segment->state = SEGMENT_DONE;
        return 0;
    }
    if (stop || topt_search_stopped(b->options))
        return segment->reached >= opt ? explore_again(b, segment)
                                       : keep_middle(b, segment);
    segment->reached = 0;
    int64_t tolerated =
        x->time * (segment->left.time - 1 -
                   topt_search_missed(segment->left.time, b->options->epsilon));
    if (can_split && chord - opt > topt_max((need - chord) / SAG, tolerated / TOL)) {
        segment->state = SEGMENT_SPLIT;
        return 0;
    }
    return explore(b, segment, opt, need, can_split);
}

int topt_segment_leave(struct scalarizer *b, struct segment *segment)
{
    if (segment->state == SEGMENT_SPLIT)
        return 0;
    segment->state = SEGMENT_DONE;
    segment->explored = -1;
    return segment->middle.choice ? leave_middle(b, segment) : 0;
}

int topt_segment_plain(struct scalarizer *b, struct segment *segment)
{
    b->maker.nbounds = 0;
    int rc = make_answer(b, segment);
    if (rc <= 0)
        return rc;
    segment->state = SEGMENT_DONE;
    segment->explored = -1; /* nothing is known */
    return 0;
}
