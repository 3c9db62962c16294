/* reduced_cost_fixing.c - a segment of the frontier searched on a problem of its own.
 *
 * Segments become narrow quickly, while every scalarised pass and every table still looks
 * at all configurations.  But what is wanted in a segment weighs hardly more than its
 * ends:
 *
 *     time |  left
 *          |   o .             all of the frontier between two points of its hull is near the
 *          |    . .  x         line between them (x: dominated by what will be found), so a
 *          |     . . . x       configuration with which no strategy weighs so little is of no
 *          |       . .   .     use here; of 784 pairs of a chain's edge 50 are left in a 16th
 *          |          .  . o   of the frontier, 5 in a 32nd
 *          +------------------ memory
 *
 * So a segment is searched as a frontier by itself, of the problem without them.  How
 * near is guessed (as far beyond its ends as these are from its lightest), and held
 * against what was found: a strategy that was left out is wanted only if it is in the
 * corner of a step, and all corners that weigh more than the guess are seen. Then it is
 * done once more, with what the corners weigh. */
#include "reduced_cost_fixing.h"
#include "frontier.h"

#include "drive_tuning.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is left ------------------------------------------------------------------ */

static int is_left(const struct fixing *z, int op, int config)
{
    const struct elimination_plan *plan = z->b->plan;
    const struct scalar_pass *x = &z->b->bound[0];
    int64_t entry = plan->factor[op].table->first_entry + plan->value[op][config];
    return topt_weight(x, plan->problem->op[op].cost[config]) + x->rest[entry] <=
           z->allowance;
}

static char **find_left(const struct fixing *z, struct topt_arena *a)
{
    const struct topt_search_problem *p = z->b->plan->problem;
    char **left = TOPT_NEW(a, p->nops, char *);
    for (int i = 0; left && i < p->nops; i++) {
        left[i] = TOPT_NEW(a, p->op[i].nconfigs, char);
        for (int c = 0; left[i] && c < p->op[i].nconfigs; c++)
            left[i][c] = (char)is_left(z, i, c);
        if (!left[i])
            return NULL;
    }
    return left;
}

int topt_fixing_narrow(struct fixing *z)
{
    struct scalarizer *b = z->b;
    const struct elimination_plan *plan = b->plan;
    struct topt_arena *a = topt_arena_create(0);
    b->bound[0].allowance = z->allowance;
    z->segment->work += plan->tables.npairs;
    int rc = a ? topt_min_marginals(&plan->tables, plan->node[plan->root].table,
                                    b->options, &b->bound[0], 1, b->err)
               : topt_search_nomem(b->err);
    char **left = rc ? NULL : find_left(z, a);
    if (!rc)
        rc = left ? topt_subproblem_of(plan->problem, left, &z->narrowed, b->err)
                  : topt_search_nomem(b->err);
    topt_arena_destroy(a);
    if (rc ||
        topt_search_pairs(&z->narrowed.problem) * GAIN > topt_search_pairs(plan->problem))
        return rc ? -1 : 0;
    return topt_subproblem_tables(&z->narrowed, b->err) ? -1 : 1;
}

/* Is everything that was found in the segment? */
static int within(const struct fixing *z)
{
    const struct topt_frontier *f = z->frontier;
    const struct topt_cost c = z->segment->corner;
    return !f->npoints ||
           (f->cost[0].time <= c.time && f->cost[f->npoints - 1].memory <= c.memory);
}

/* Move the points that were found to the segment. */
static int read_points(struct fixing *z)
{
    struct topt_frontier *f = z->frontier;
    struct segment *segment = z->segment;
    struct strategies *s = topt_frontier_strategies(f);
    size_t n = (size_t)f->npoints;
    segment->found = malloc((n + 1) * sizeof *segment->found);
    if (!segment->found)
        return topt_search_nomem(z->b->err);
    if (n)
        memcpy(segment->found, f->cost, n * sizeof *segment->found);
    segment->nfound = f->npoints;
    topt_strategies_rename(s, z->narrowed.config, (size_t)z->narrowed.problem.nops);
    segment->strategies = *s;
    *s = (struct strategies){0};
    segment->left_out = f->epsilon;
    segment->explored = z->allowance;
    segment->state = SEGMENT_DONE;
    return 0;
}

static void count(struct fixing *z)
{
    const struct topt_search_stats *s = &z->frontier->stats;
    struct segment *segment = z->segment;
    segment->work += s->products;
    segment->points += s->points;
    segment->bytes = topt_max(segment->bytes, s->peak_bytes);
    segment->parts += s->bands;
    segment->max_frontier = (int)topt_max(segment->max_frontier, s->max_frontier);
}

int topt_fixing_end(struct fixing *z, int searched)
{
    int rc = searched ? searched : 1;
    if (searched > 0) {
        const struct topt_frontier *f = z->frontier;
        count(z);
        int64_t need = topt_segment_needed(z->b, z->segment, f->cost, f->npoints);
        /* Was work short for what was searched?  Within the tolerance that does not matter. */
        int cut = z->b->work_budget &&
                  z->frontier->epsilon > z->b->options->epsilon * (1 + 1e-9);
        int stopped = topt_search_stopped(z->b->options) || (cut && z->b->all_work);
        if (!within(z) || (cut && !stopped))
            rc = 1;
        else if (need <= z->allowance || stopped)
            rc = read_points(z) ? -1 : 1;
        else {
            z->allowance = need;
            rc = 0;
        }
    }
    topt_frontier_destroy(z->frontier);
    topt_reduced_fini(&z->narrowed);
    z->frontier = NULL;
    z->narrowed = (struct reduced_problem){0};
    return rc;
}

int topt_fixing_begin(struct fixing *z, struct scalarizer *b, struct segment *segment)
{
    const struct elimination_plan *plan = b->plan;
    const struct scalar_pass *x = &b->bound[0];
    *z = (struct fixing){.b = b, .segment = segment};
    if (b->options->fastest || plan->nfixed || segment->depth < MIN_DEPTH ||
        plan->tables.npairs < MIN_PAIRS || !segment->corner.memory ||
        !segment->corner.time)
        return 0;
    int64_t ends =
        topt_max(topt_weight(x, segment->left), topt_weight(x, segment->right));
    int64_t least = topt_weight(x, segment->middle.cost);
    z->allowance = topt_min(2 * ends - least, topt_segment_needed(b, segment, NULL, 0));
    return 1;
}
