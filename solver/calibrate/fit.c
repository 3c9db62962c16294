/* fit.c - factors of a profile fitted to measured steps: least squares of logarithms, with the planner's own
 * costing as the predictor.
 *
 * Each round costs all reports with each factor a little larger, and smaller, which gives how far a step
 * follows a factor; finds the change that leaves the least squares of what remains, factor after factor
 * within its bounds, until none moves; and takes it, or half of it and so on, where the costing itself
 * then predicts better.
 *
 * A factor is fitted only where the reports can tell it: some step follows it by at least SHARE_LEAST of
 * its time, and the pattern over the reports by which steps follow it is none that the factors before it,
 * by weight, have together.  So n reports never fit more than n factors, and one fits one. */
#include "calibrate_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_array.h"

static const double STEP = 0.05;        /* of a logarithm, to either side */
static const double SHARE_LEAST = 0.05; /* of a step, by logarithms */
static const double APART_LEAST = 0.15; /* of a pattern that others do not have */
enum { ROUNDS = 20, SWEEPS = 2000, HALVINGS = 6 };

int predict(const json_t *profile, const struct topt_reports *r, const double by[FACTORS],
            double *ret_ns, struct topt_error *err)
{
    json_t *doc = factors_apply(profile, by);
    struct topt_hw *hw = doc ? topt_hw_from_json(doc, err) : NULL;
    int rc = hw ? 0 : -1;
    if (!doc)
        rc = topt_nomem(err, "the profile");
    for (int i = 0; i < r->n && !rc; i++) {
        const struct report *x = &r->at[i];
        struct topt_strategy_cost cost;
        rc = report_cost(x, hw, &x->plan->settings, &cost, err);
        ret_ns[i] = rc ? 0 : (double)cost.time_ns;
    }
    topt_hw_destroy(hw);
    json_decref(doc);
    return rc;
}

/* What is at hand in a fit: errors and slopes by report, which are logarithms. */
struct fitting {
    const json_t *profile;
    const struct topt_reports *r;
    int left_out, n;
    double *error;          /* log(predicted / measured); 0 of the one left out */
    double *slope[FACTORS]; /* d log(predicted) / d log(factor) */
    double *ns, *more;
    struct fit *fit;
};

static double squares(const struct fitting *f)
{
    double sum = 0;
    for (int i = 0; i < f->n; i++)
        sum += f->error[i] * f->error[i];
    return sum;
}

static int find_errors(struct fitting *f, const double by[FACTORS],
                       struct topt_error *err)
{
    if (predict(f->profile, f->r, by, f->ns, err))
        return -1;
    for (int i = 0; i < f->n; i++)
        f->error[i] = i == f->left_out ? 0 : log(f->ns[i] / f->r->at[i].step_ns);
    return 0;
}

static int find_slope(struct fitting *f, int factor, struct topt_error *err)
{
    double by[FACTORS];
    memcpy(by, f->fit->value, sizeof by);
    by[factor] *= exp(STEP);
    if (predict(f->profile, f->r, by, f->more, err))
        return -1;
    by[factor] *= exp(-2 * STEP);
    if (predict(f->profile, f->r, by, f->ns, err))
        return -1;
    for (int i = 0; i < f->n; i++)
        f->slope[factor][i] =
            i == f->left_out ? 0 : log(f->more[i] / f->ns[i]) / (2 * STEP);
    return 0;
}

/* ---- which factors can be told -------------------------------------------------------- */

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The part of a factor's pattern that the directions so far have not, of length 1; how much of the
 * pattern that is. */
static double direction(const struct fitting *f, int factor, double *const *basis,
                        int nbasis, double *ret)
{
    double whole = sqrt(dot(f->slope[factor], f->slope[factor], f->n));
    memcpy(ret, f->slope[factor], (size_t)f->n * sizeof *ret);
    for (int k = 0; k < nbasis; k++) {
        double along = dot(ret, basis[k], f->n);
        for (int i = 0; i < f->n; i++)
            ret[i] -= along * basis[k][i];
    }
    double rest = sqrt(dot(ret, ret, f->n));
    for (int i = 0; i < f->n && rest > 0; i++)
        ret[i] /= rest;
    return whole > 0 ? rest / whole : 0;
}

static void by_weight(const struct fitting *f, int order[FACTORS])
{
    for (int i = 0; i < FACTORS; i++) {
        int at = i;
        double own = dot(f->slope[i], f->slope[i], f->n);
        for (; at && dot(f->slope[order[at - 1]], f->slope[order[at - 1]], f->n) < own;
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static void leave(struct fit *fit, int factor, const char *why)
{
    snprintf(fit->why[factor], sizeof fit->why[factor], "%s", why);
}

/* Names of the factors that are fitted so far. */
static void add_fitted(const struct fit *fit, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (int i = 0; i < FACTORS; i++)
        if (fit->fitted[i])
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "",
                                   factors[i].name);
}

static int choose(struct fitting *f, struct topt_error *err)
{
    struct fit *fit = f->fit;
    double *basis[FACTORS + 1] = {NULL};
    int order[FACTORS], nbasis = 0;
    by_weight(f, order);
    for (int i = 0; i <= FACTORS; i++)
        if (TOPT_RESIZE(basis[i], f->n))
            return topt_nomem(err, "the fit");
    for (int i = 0; i < FACTORS; i++) {
        int j = order[i];
        char names[80];
        for (int k = 0; k < f->n; k++)
            fit->share[j] = fmax(fit->share[j], fabs(f->slope[j][k]));
        if (fit->share[j] < SHARE_LEAST) {
            leave(fit, j, "no step follows it by 5 % or more");
        } else if (direction(f, j, basis, nbasis, basis[nbasis]) < APART_LEAST) {
            add_fitted(fit, names, sizeof names);
            snprintf(fit->why[j], sizeof fit->why[j],
                     "these reports can't tell it from %s", names);
        } else {
            fit->fitted[j] = 1;
            nbasis++;
        }
    }
    for (int i = 0; i <= FACTORS; i++)
        free(basis[i]);
    return 0;
}

/* ---- one round ------------------------------------------------------------------------- */

/* The change of each logarithm with the least squares by these slopes, within the bounds. */
static void solve(const struct fitting *f, double change[FACTORS])
{
    double *rest = f->more;
    memcpy(rest, f->error, (size_t)f->n * sizeof *rest);
    memset(change, 0, FACTORS * sizeof *change);
    for (int sweep = 0, moved = 1; moved && sweep < SWEEPS; sweep++) {
        moved = 0;
        for (int j = 0; j < FACTORS; j++) {
            double weight = dot(f->slope[j], f->slope[j], f->n);
            if (!f->fit->fitted[j] || weight <= 0)
                continue;
            double to = change[j] - dot(f->slope[j], rest, f->n) / weight,
                   at = log(f->fit->value[j]);
            to = fmin(fmax(to, log(factors[j].low) - at), log(factors[j].high) - at);
            for (int i = 0; i < f->n; i++)
                rest[i] += f->slope[j][i] * (to - change[j]);
            moved |= fabs(to - change[j]) > 1e-9;
            change[j] = to;
        }
    }
}

/* Take the change, or a part of it, if the costing predicts better then.  1: it moved, 0: no more. */
static int take(struct fitting *f, const double change[FACTORS], struct topt_error *err)
{
    double before = squares(f), part = 1, by[FACTORS], size = 0;
    for (int j = 0; j < FACTORS; j++)
        size = fmax(size, fabs(change[j]));
    for (int h = 0; h < HALVINGS && size * part > 1e-6; h++, part /= 2) {
        for (int j = 0; j < FACTORS; j++)
            by[j] = f->fit->value[j] * exp(part * change[j]);
        if (find_errors(f, by, err))
            return -1;
        if (squares(f) < before) {
            memcpy(f->fit->value, by, sizeof by);
            return 1;
        }
    }
    return find_errors(f, f->fit->value, err);
}

static int find_slopes(struct fitting *f, int all, struct topt_error *err)
{
    for (int j = 0; j < FACTORS; j++)
        if ((all || f->fit->fitted[j]) && find_slope(f, j, err))
            return -1;
    return 0;
}

static int run(struct fitting *f, struct topt_error *err)
{
    double change[FACTORS];
    int moved = 1;
    if (find_slopes(f, 1, err) || choose(f, err) || find_errors(f, f->fit->value, err))
        return -1;
    for (int round = 0; moved > 0 && round < ROUNDS; round++) {
        if (round && (find_slopes(f, 0, err) || find_errors(f, f->fit->value, err)))
            return -1;
        solve(f, change);
        moved = take(f, change, err);
    }
    for (int j = 0; j < FACTORS; j++)
        if (f->fit->fitted[j] && (f->fit->value[j] < factors[j].low * 1.001 ||
                                  f->fit->value[j] > factors[j].high * 0.999))
            leave(f->fit, j, "at its bound: something else may be wrong");
    return moved < 0 ? -1 : 0;
}

int fit_factors(const json_t *profile, const struct topt_reports *r, int left_out,
                struct fit *ret, struct topt_error *err)
{
    struct fitting f = {
        .profile = profile, .r = r, .left_out = left_out, .n = r->n, .fit = ret};
    int rc = 0;
    *ret = (struct fit){.share = {0}};
    for (int j = 0; j < FACTORS; j++) {
        ret->value[j] = 1;
        if (TOPT_RESIZE(f.slope[j], r->n))
            rc = topt_nomem(err, "the fit");
    }
    if (TOPT_RESIZE(f.error, r->n) || TOPT_RESIZE(f.ns, r->n) ||
        TOPT_RESIZE(f.more, r->n))
        rc = topt_nomem(err, "the fit");
    rc = rc || run(&f, err);
    for (int j = 0; j < FACTORS; j++)
        free(f.slope[j]);
    free(f.error);
    free(f.ns);
    free(f.more);
    return rc ? -1 : 0;
}
