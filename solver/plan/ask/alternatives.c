/* alternatives.c - one answer beside others: the fewest GPUs, a whole node, the cheapest, the knee, the
 * fastest (topt_named_points.h).
 *
 * A count is solved only if it may have one of these names or change whose another is, and then only
 * for what is fast enough to.  What is so known says how fast that must be. */
#include "best.h"
#include "planning.h"
#include "request.h"
#include "topt_json.h"
#include "topt_named_points.h"
#include "topt_question.h"

#include <math.h>
#include <stdlib.h>

/* A count that was not solved yet; nothing on it is as fast as this; 0: not known. */
struct open_count {
    int64_t gpus, slower_than_ns;
};

struct finder {
    struct topt_planning *m;
    const char *why_fewest, *why_fastest;
    struct topt_alternatives *ret;
    struct topt_error *err;
};

static void name_points(const struct finder *x)
{
    topt_points_name(x->ret->points, topt_hw_gpus_per_node(x->m->request->hw),
                     x->why_fewest, x->why_fastest, x->ret->named);
}

/* What a count must not be slower than to change a row.  Beside the fastest, the best speed a GPU and the knee, it may be as
 * efficient as the efficiency that is to choose a smaller count.  'best': to have the best speed a GPU. */
static int64_t slowest_ns(const struct finder *x, int64_t gpus, int best)
{
    const struct topt_request *r = x->m->request;
    double efficiency = gpus > topt_points_efficient(x->ret->points, r->min_efficiency) &&
                                r->min_efficiency > 0
                            ? r->min_efficiency
                            : 1;
    size_t i;
    json_t *row;
    if (gpus == topt_hw_gpus_per_node(r->hw))
        return INT64_MAX;
    json_array_foreach(x->ret->named, i, row)
    {
        double choice = topt_json_number_at(row, "min_efficiency");
        if (choice > 0 && topt_json_number_at(row, "gpus") < (double)gpus)
            efficiency = fmin(efficiency, choice);
    }
    double ns =
        1 / topt_rate_speed(x->ret->points, (double)gpus, best ? INFINITY : efficiency);
    return ns < 1e18 ? (int64_t)(ns * (1 + 1e-9)) + 1 : INT64_MAX;
}

/* Solve a count, and take it among the points where it is no slower than 'slowest' (INT64_MAX: whatever its time): 1
 * where it is. */
static int add_point(const struct finder *x, struct open_count *c, int64_t slowest)
{
    json_t *point;
    size_t at = 0;
    if (topt_request_brief(x->m->request))
        return 0;
    c->slower_than_ns = slowest;
    if (topt_count_point(x->m, c->gpus, slowest == INT64_MAX ? 0 : slowest, &point,
                         x->err))
        return -1;
    int found = json_is_true(json_object_get(point, "feasible"));
    while (at < json_array_size(x->ret->points) &&
           topt_json_number_at(json_array_get(x->ret->points, at), "gpus") <
               (double)c->gpus)
        at++;
    if (found) {
        json_array_insert(x->ret->points, at, point);
        name_points(x);
        c->slower_than_ns = INT64_MAX;
    }
    json_decref(point);
    return found;
}

static int add_if_open(const struct finder *x, struct open_count *c, int best)
{
    int64_t slowest = slowest_ns(x, c->gpus, best);
    return slowest > c->slower_than_ns ? add_point(x, c, slowest) : 0;
}

/* Solve the largest count that something fits on, and then those that could change a row, until none could: each only for
 * what is fast enough to. */
static int solve_counts(const struct finder *x, struct open_count *c, int n)
{
    int rc = 0;
    for (int i = n - 1; i >= 0 && !rc; i--)
        rc = add_point(x, &c[i], INT64_MAX);
    /* Many small counts are as efficient, and large ones are the knee: what is known of both bounds the others. */
    for (int i = 0; i < n && rc >= 0; i++)
        rc = add_if_open(x, &c[i], 1);
    for (int again = 1; again && rc >= 0;) {
        again = 0;
        for (int i = n - 1; i >= 0 && rc >= 0; i--) {
            rc = add_if_open(x, &c[i], 0);
            again |= rc > 0;
        }
    }
    return rc < 0 ? -1 : 0;
}

int topt_alternatives_find(struct topt_planning *m, json_t *fewest, const int64_t *count,
                           int n, const char *why_fewest, const char *why_fastest,
                           struct topt_alternatives *ret, struct topt_error *err)
{
    struct finder x = {m, why_fewest, why_fastest, ret, err};
    struct open_count *c = calloc((size_t)n + 1, sizeof *c);
    int open = 0;
    *ret = (struct topt_alternatives){json_array(), json_array()};
    json_array_append_new(ret->points, fewest);
    name_points(&x);
    for (int i = 0; c && i < n; i++)
        if (topt_count_divides_batch(m, count[i], NULL))
            c[open++].gpus = count[i];
    int rc = c ? solve_counts(&x, c, open) : topt_nomem(err, "the numbers of GPUs");
    free(c);
    if (topt_request_brief(m->request)) {
        json_array_clear(ret->points);
        json_array_clear(ret->named);
    }
    return rc;
}

void topt_alternatives_fini(struct topt_alternatives *a)
{
    json_decref(a->points);
    json_decref(a->named);
    *a = (struct topt_alternatives){0};
}
