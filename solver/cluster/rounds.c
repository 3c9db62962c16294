/* rounds.c - policies that may change what every job has, in rounds: max-min fairness of
 * time as in Gavel (OSDI 2020), the goodput assignment of Sia (SOSP 2023, section 3.3), and
 * resources by the slope of curves with a guaranteed minimum as in Rubick (MLSys 2025).
 *
 * Of one kind of node, and with curves for a fixed batch.  Numbers of GPUs are divisors of a
 * node and whole nodes, which can always be packed once running jobs may move, so GPUs are
 * counted and nodes not told apart. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "rounds.h"
#include "topt_minmax.h"

/* Sia's defaults: sia-simulator/simulator_config.py of siasosp23/artifacts at aaf7a0de. */
static const double sia_p = -0.5, sia_waits = 1.1;

struct round {
    const struct sim *s;
    size_t *job, n; /* all that wait or run, by submission */
    int *shape;     /* of each, as decided; SIM_WAITS */
    int64_t gpus;
};

static int64_t gpus_of(const struct round *r, size_t k, int shape)
{
    return topt_allocate_gpus(&r->s->job[r->job[k]].shape[shape]);
}

static int64_t age(const struct round *r, size_t k)
{
    return r->s->now_s - r->s->t->job[r->job[k]].submit_s;
}

/* ---- Gavel: who had the least of its time comes first ------------------------------ */

struct turn {
    double had;
    size_t k;
};

static int by_turn(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    return x->had != y->had ? (x->had > y->had) - (x->had < y->had)
                            : (x->k > y->k) - (x->k < y->k);
}

/* The fair share of time is the same for all, so that the order is that of time had. */
static int gavel(struct round *r)
{
    struct turn *turn = calloc(r->n, sizeof *turn);
    int64_t left = r->gpus;
    if (!turn)
        return -1;
    for (size_t k = 0; k < r->n; k++) {
        const struct sim_job *j = &r->s->job[r->job[k]];
        int64_t had = r->s->ret->fate[r->job[k]].ran_s +
                      (j->current == SIM_WAITS ? 0 : r->s->now_s - j->since_s);
        turn[k] = (struct turn){(double)had / (double)topt_max(1, age(r, k)), k};
    }
    qsort(turn, r->n, sizeof *turn, by_turn);
    for (size_t n = 0; n < r->n; n++) {
        size_t k = turn[n].k;
        int asked = r->s->job[r->job[k]].asked;
        if (gpus_of(r, k, asked) > left)
            continue;
        r->shape[k] = asked;
        left -= gpus_of(r, k, asked);
    }
    free(turn);
    return 0;
}

/* ---- Sia --------------------------------------------------------------------------- */

/* A job's term of the sum that is minimised. */
static double sia_term(const struct round *r, size_t k, int shape)
{
    const struct sim_job *j = &r->s->job[r->job[k]];
    const struct topt_cluster_fate *f = &r->s->ret->fate[r->job[k]];
    int64_t slowest = 0;
    for (int i = 0; i < j->nshapes; i++)
        slowest = topt_max(slowest, j->shape[i].run_s);
    double goodput = (double)slowest / (double)j->shape[shape].run_s;
    if (f->start_s >= 0 && shape != j->current) {
        double old = (double)age(r, k), restart = (double)r->s->o->restart_s;
        double factor = (old - f->restarts * restart) / (old + restart);
        goodput *= factor > 0.01 ? factor : 0.01;
    }
    return pow(goodput, sia_p);
}

/* The exact optimum, by dynamic programming over GPUs: best[g] is the least sum of the jobs
 * so far on g GPUs, and choice[k][g] what job k has in it. */
static int sia(struct round *r)
{
    size_t places = (size_t)r->gpus + 1;
    double *best = calloc(places, sizeof *best), *next = calloc(places, sizeof *next);
    signed char *choice = calloc(r->n, places);
    int rc = best && next && choice ? 0 : -1;
    for (size_t k = 0; !rc && k < r->n; k++) {
        const struct sim_job *j = &r->s->job[r->job[k]];
        for (size_t g = 0; g < places; g++) {
            next[g] = best[g] + sia_waits;
            choice[k * places + g] = SIM_WAITS;
        }
        for (int i = 0; i < j->nshapes; i++) {
            size_t takes = (size_t)gpus_of(r, k, i);
            double term = sia_term(r, k, i);
            for (size_t g = takes; g < places; g++)
                if (best[g - takes] + term < next[g]) {
                    next[g] = best[g - takes] + term;
                    choice[k * places + g] = (signed char)i;
                }
        }
        double *swap = best;
        best = next;
        next = swap;
    }
    size_t g = places - 1;
    for (size_t k = r->n; !rc && k-- > 0;) {
        r->shape[k] = choice[k * places + g];
        if (r->shape[k] >= 0)
            g -= (size_t)gpus_of(r, k, r->shape[k]);
    }
    free(best);
    free(next);
    free(choice);
    return rc;
}

/* ---- Rubick ------------------------------------------------------------------------ */

/* Speed for each GPU more, as a share of the speed that it asked for. */
static double slope(const struct round *r, size_t k)
{
    const struct sim_job *j = &r->s->job[r->job[k]];
    int to = r->shape[k] + 1;
    if (r->shape[k] < 0 || to == j->nshapes)
        return 0;
    double own = (double)j->shape[j->asked].run_s;
    return (own / (double)j->shape[to].run_s - own / (double)j->shape[to - 1].run_s) /
           (double)(gpus_of(r, k, to) - gpus_of(r, k, to - 1));
}

/* In the order of submission each has what it asked for, or the largest less that is left;
 * then the steepest curve grows first. */
static int rubick(struct round *r)
{
    int64_t left = r->gpus;
    for (size_t k = 0; k < r->n; k++) {
        int shape = r->s->job[r->job[k]].asked;
        while (shape >= 0 && gpus_of(r, k, shape) > left)
            shape--;
        r->shape[k] = shape < 0 ? SIM_WAITS : shape;
        left -= shape < 0 ? 0 : gpus_of(r, k, shape);
    }
    for (;;) {
        size_t best = r->n;
        for (size_t k = 0; k < r->n; k++)
            if (slope(r, k) > (best < r->n ? slope(r, best) : 0) &&
                gpus_of(r, k, r->shape[k] + 1) - gpus_of(r, k, r->shape[k]) <= left)
                best = k;
        if (best == r->n)
            return 0;
        left -= gpus_of(r, best, r->shape[best] + 1) - gpus_of(r, best, r->shape[best]);
        r->shape[best]++;
    }
}

/* ---- a round ----------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const size_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int apply(struct sim *s, const struct round *r)
{
    int rc = 0;
    for (size_t k = 0; k < r->n; k++) /* GPUs become free before they are taken */
        if (s->job[r->job[k]].current >= 0 && s->job[r->job[k]].current != r->shape[k])
            rc |= sim_change(s, r->job[k], SIM_WAITS, NULL);
    for (size_t k = 0; k < r->n; k++)
        if (r->shape[k] >= 0 && s->job[r->job[k]].current != r->shape[k])
            rc |= sim_change(s, r->job[k], r->shape[k], NULL);
    /* Who stopped waits, in the order of submission. */
    s->nqueue = s->nrunning = 0;
    for (size_t k = 0; k < r->n; k++)
        if (s->job[r->job[k]].current == SIM_WAITS)
            s->queue[s->nqueue++] = r->job[k];
        else
            s->running[s->nrunning++] = r->job[k];
    return rc;
}

int rounds_step(struct sim *s, enum rounds_policy policy)
{
    static int (*const policies[])(struct round *) = {
        [ROUNDS_GAVEL] = gavel, [ROUNDS_SIA] = sia, [ROUNDS_RUBICK] = rubick};
    struct round r = {.s = s,
                      .job = calloc(s->nqueue + s->nrunning + 1, sizeof *r.job),
                      .shape = calloc(s->nqueue + s->nrunning + 1, sizeof *r.shape),
                      .gpus = s->o->nodes * s->o->gpus_per_node};
    int rc = r.job && r.shape ? 0 : -1;
    for (size_t k = 0; !rc && k < s->nqueue; k++)
        r.job[r.n++] = s->queue[k];
    for (size_t k = 0; !rc && k < s->nrunning; k++)
        r.job[r.n++] = s->running[k];
    if (!rc && r.n) {
        qsort(r.job, r.n, sizeof *r.job, by_number);
        for (size_t k = 0; k < r.n; k++)
            r.shape[k] = SIM_WAITS;
        rc = policies[policy](&r) || apply(s, &r) ? -1 : 0;
    }
    free(r.job);
    free(r.shape);
    return rc;
}
