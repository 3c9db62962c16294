/* memory.c - the allocator's share of memory fitted to what PyTorch's allocator reserved.
 *
 * What comes and goes in a step takes so many thousandths more, which the allocator holds and cannot use.
 * The share has the least squares of logarithms of predicted over reserved bytes, by the planner's own
 * costing; time does not follow it. */
#include "calibrate_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topt_array.h"

static const double SHARE_LEAST = 0.05; /* of memory, from no share to the most */
enum { MOST = MEMORY_PERMILLE_MOST, COARSE = 20 };

static int is_used(const struct report *r)
{
    return r->reserved_bytes > 0 && r->plan->settings.allocator_permille > 0;
}

static int bytes_of(const struct report *r, const struct topt_hw *hw, int64_t permille,
                    double *ret, struct topt_error *err)
{
    struct topt_settings settings = r->plan->settings;
    struct topt_strategy_cost cost;
    settings.allocator_permille = permille;
    if (report_cost(r, hw, &settings, &cost, err))
        return -1;
    *ret = (double)cost.memory_bytes;
    return 0;
}

/* Predicted bytes by share, of each report, costed when they are first asked for. */
struct table {
    const struct topt_reports *r;
    const struct topt_hw *hw;
    double (*bytes)[MOST + 1]; /* 0: not yet */
};

static int squares(struct table *t, int permille, int left_out, double *ret,
                   struct topt_error *err)
{
    *ret = 0;
    for (int i = 0; i < t->r->n; i++) {
        const struct report *r = &t->r->at[i];
        double *bytes = &t->bytes[i][permille];
        if (i == left_out || !is_used(r))
            continue;
        if (*bytes <= 0 && bytes_of(r, t->hw, permille, bytes, err))
            return -1;
        *ret += pow(log(*bytes / r->reserved_bytes), 2);
    }
    return 0;
}

/* The share with the least squares between two, at this distance from each other. */
static int least_of(struct table *t, int from, int to, int stride, int left_out, int *ret,
                    struct topt_error *err)
{
    double best = INFINITY, own;
    for (int p = from < 0 ? 0 : from; p <= to && p <= MOST; p += stride) {
        if (squares(t, p, left_out, &own, err))
            return -1;
        *ret = own < best ? p : *ret;
        best = own < best ? own : best;
    }
    return 0;
}

static int fit_share(struct table *t, int left_out, int *ret, struct topt_error *err)
{
    int at = 0;
    if (least_of(t, 0, MOST, COARSE, left_out, &at, err) ||
        least_of(t, at - COARSE, at + COARSE, 4, left_out, &at, err) ||
        least_of(t, at - 4, at + 4, 1, left_out, &at, err))
        return -1;
    *ret = at;
    return 0;
}

static double error_at(const struct table *t, int i, int permille)
{
    return fabs(t->bytes[i][permille] / t->r->at[i].reserved_bytes - 1);
}

/* How much more the memory is at the most share than at none; the most of all reports. */
static int follows(struct table *t, double *ret, struct topt_error *err)
{
    double none, most;
    *ret = 0;
    if (squares(t, 0, -1, &none, err) || squares(t, MOST, -1, &most, err))
        return -1;
    for (int i = 0; i < t->r->n; i++)
        if (is_used(&t->r->at[i]))
            *ret = fmax(*ret, log(t->bytes[i][MOST] / t->bytes[i][0]));
    return 0;
}

static int leave_out(struct table *t, struct memory_fit *ret, struct topt_error *err)
{
    ret->least = MOST;
    ret->most = 0;
    for (int i = 0; i < t->r->n; i++) {
        int others;
        double own;
        if (!is_used(&t->r->at[i]))
            continue;
        if (fit_share(t, i, &others, err) || squares(t, others, -1, &own, err))
            return -1;
        ret->least = others < ret->least ? others : ret->least;
        ret->most = others > ret->most ? others : ret->most;
        ret->left_out += error_at(t, i, others) / ret->reports;
    }
    return 0;
}

static int run(struct table *t, struct memory_fit *ret, struct topt_error *err)
{
    double unused;
    int64_t own = t->r->at[0].plan->settings.allocator_permille;
    ret->permille = ret->was = own < MOST ? (int)own : MOST;
    for (int i = 0; i < t->r->n; i++)
        ret->reports += is_used(&t->r->at[i]);
    if (!ret->reports) {
        ret->why = "no report has max_memory_reserved of a framework with an allocator";
        return 0;
    }
    if (follows(t, &ret->share, err) || squares(t, ret->was, -1, &unused, err))
        return -1;
    if (ret->share < SHARE_LEAST)
        ret->why = "no report's memory follows it by 5 % or more";
    else if (fit_share(t, -1, &ret->permille, err))
        return -1;
    else if (ret->reports > 1 && leave_out(t, ret, err))
        return -1;
    ret->fitted = ret->share >= SHARE_LEAST;
    if (ret->fitted && (ret->permille == 0 || ret->permille == MOST))
        ret->why = "at its bound: something else may be wrong";
    for (int i = 0; i < t->r->n; i++)
        if (is_used(&t->r->at[i])) {
            ret->before += error_at(t, i, ret->was) / ret->reports;
            ret->after += error_at(t, i, ret->permille) / ret->reports;
        }
    return 0;
}

int fit_memory(const struct topt_hw *hw, const struct topt_reports *r,
               struct memory_fit *ret, struct topt_error *err)
{
    struct table t = {r, hw, calloc((size_t)r->n, sizeof *t.bytes)};
    *ret = (struct memory_fit){0};
    int rc = t.bytes ? run(&t, ret, err) : topt_nomem(err, "the fit");
    free(t.bytes);
    return rc;
}
