/* rounds.c - policies that may change what every job has, in rounds: max-min fairness of
 * time as in Gavel (OSDI 2020), the goodput assignment of Sia (SOSP 2023, section 3.3), and
 * resources by the slope of curves with a guaranteed minimum as in Rubick (MLSys 2025).
 *
 * With curves for a fixed batch, unless the curves say otherwise.  Jobs have GPUs of the kind
 * that they asked for; Sia's may choose any.  Numbers of GPUs are divisors of a
 * node and whole nodes, which can always be packed once running jobs may move, so GPUs are
 * counted and nodes not told apart. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "rounds.h"
#include "topt_minmax.h"

/* Sia's defaults: sia-simulator/simulator_config.py of siasosp23/artifacts at aaf7a0de. */
static const double sia_p = -0.5, sia_waits = 1.1, sia_most = 3000;

struct round {
    const struct sim *s;
    size_t *job, n;                   /* all that wait or run, by submission */
    int *shape;                       /* of each, as decided; SIM_WAITS */
    int64_t left[TOPT_CLUSTER_KINDS]; /* GPUs */
};

static int64_t gpus_of(const struct round *r, size_t k, int shape)
{
    return sim_gpus(r->s, r->job[k], shape);
}

static const struct sim_job *job(const struct round *r, size_t k)
{
    return &r->s->job[r->job[k]];
}

static int64_t *left(struct round *r, size_t k, int shape)
{
    return &r->left[job(r, k)->curve->point[shape].kind];
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
        if (gpus_of(r, k, asked) > *left(r, k, asked))
            continue;
        r->shape[k] = asked;
        *left(r, k, asked) -= gpus_of(r, k, asked);
    }
    free(turn);
    return 0;
}

/* ---- Sia --------------------------------------------------------------------------- */

/* Shapes that the policy may give: those of the kind that was asked for, or of all. */
static int first_of(const struct round *r, size_t k)
{
    return r->s->o->any_kind ? 0 : sim_first(job(r, k));
}

static int last_of(const struct round *r, size_t k)
{
    return r->s->o->any_kind ? job(r, k)->curve->n : sim_last(job(r, k));
}

static int64_t restart_s(const struct round *r, size_t k)
{
    int64_t own = job(r, k)->curve->restart_s;
    return own < 0 ? r->s->o->restart_s : own;
}

/* Sia's restart factor; 1 of a job that is younger than a restart. */
static double restart_factor(const struct round *r, size_t k)
{
    const struct topt_cluster_fate *f = &r->s->ret->fate[r->job[k]];
    double old = (double)age(r, k), restart = (double)restart_s(r, k);
    double kept = old - f->restarts * restart;
    return old < restart ? 1 : (kept > 0 ? kept : 0) / (old + restart);
}

/* Sia learns how a job scales as it grows: to twice as many GPUs as it has had, of its fewest
 * on. */
static int is_known(const struct round *r, size_t k, int shape)
{
    const struct topt_cluster_curve *c = job(r, k)->curve;
    int64_t fewest = c->point[first_of(r, k)].gpus;
    for (int i = first_of(r, k); i < last_of(r, k); i++)
        fewest = topt_min(fewest, c->point[i].gpus);
    return c->point[shape].gpus <= topt_max(fewest, 2 * job(r, k)->most);
}

/* A job's term of the sum that is minimised; -1: it can't have the shape, as it is only
 * being started in another, or would grow by too much. */
static double sia_term(const struct round *r, size_t k, int shape)
{
    const struct sim_job *j = job(r, k);
    double slowest = 0;
    int is_starting = j->current >= 0 && r->s->now_s < j->since_s + j->pause_s;
    if ((is_starting && shape != j->current) || !is_known(r, k, shape))
        return -1;
    for (int i = first_of(r, k); i < last_of(r, k); i++)
        slowest = fmax(slowest, (double)j->curve->point[i].time_ns);
    double goodput = slowest / (double)j->curve->point[shape].time_ns;
    if (j->current >= 0 && shape != j->current)
        goodput *= restart_factor(r, k);
    return goodput > 1e-7 ? pow(goodput, sia_p) : sia_most;
}

/* The exact optimum, by dynamic programming over the GPUs of all kinds: best[g] is the least
 * sum of the jobs so far on what place g stands for, and choice[k][g] what job k has in it. */
struct sia {
    size_t step[TOPT_CLUSTER_KINDS + 1]; /* between places, for a GPU more of each kind */
    double *best, *next;
    signed char *choice; /* [job][place] */
};

/* Has the place so many GPUs of this kind? */
static int has_gpus(const struct sia *a, size_t place, int kind, size_t gpus)
{
    return place % a->step[kind + 1] / a->step[kind] >= gpus;
}

static void sia_job(const struct round *r, size_t k, struct sia *a)
{
    size_t places = a->step[r->s->o->nkinds];
    for (size_t g = 0; g < places; g++) {
        a->next[g] = a->best[g] + sia_waits;
        a->choice[k * places + g] = SIM_WAITS;
    }
    for (int i = first_of(r, k); i < last_of(r, k); i++) {
        size_t gpus = (size_t)gpus_of(r, k, i);
        int kind = job(r, k)->curve->point[i].kind;
        double term = sia_term(r, k, i);
        for (size_t g = 0; term >= 0 && g < places; g++) {
            size_t from = g - gpus * a->step[kind];
            if (!has_gpus(a, g, kind, gpus) || a->best[from] + term >= a->next[g])
                continue;
            a->next[g] = a->best[from] + term;
            a->choice[k * places + g] = (signed char)i;
        }
    }
    double *swap = a->best;
    a->best = a->next;
    a->next = swap;
}

static int sia(struct round *r)
{
    struct sia a = {.step = {1}};
    for (int k = 0; k < r->s->o->nkinds; k++)
        a.step[k + 1] = a.step[k] * (size_t)(r->left[k] + 1);
    size_t places = a.step[r->s->o->nkinds], g = places - 1;
    a.best = calloc(places, sizeof *a.best);
    a.next = calloc(places, sizeof *a.next);
    a.choice = calloc(r->n, places);
    int rc = a.best && a.next && a.choice ? 0 : -1;
    for (size_t k = 0; !rc && k < r->n; k++)
        sia_job(r, k, &a);
    for (size_t k = r->n; !rc && k-- > 0;) {
        r->shape[k] = a.choice[k * places + g];
        if (r->shape[k] >= 0)
            g -= (size_t)gpus_of(r, k, r->shape[k]) *
                 a.step[job(r, k)->curve->point[r->shape[k]].kind];
    }
    free(a.best);
    free(a.next);
    free(a.choice);
    return rc;
}

/* ---- Rubick ------------------------------------------------------------------------ */

/* Speed for each GPU more, as a share of the speed that it asked for. */
static double slope(const struct round *r, size_t k)
{
    const struct sim_job *j = job(r, k);
    int to = r->shape[k] + 1;
    if (r->shape[k] < 0 || to == sim_last(j))
        return 0;
    double own = (double)j->curve->point[j->asked].time_ns;
    return (own / (double)j->curve->point[to].time_ns -
            own / (double)j->curve->point[to - 1].time_ns) /
           (double)(gpus_of(r, k, to) - gpus_of(r, k, to - 1));
}

/* In the order of submission each has what it asked for, or the largest less that is left;
 * then the steepest curve grows first. */
static int rubick(struct round *r)
{
    for (size_t k = 0; k < r->n; k++) {
        int shape = job(r, k)->asked, first = sim_first(job(r, k));
        while (shape >= first && gpus_of(r, k, shape) > *left(r, k, shape))
            shape--;
        r->shape[k] = shape < first ? SIM_WAITS : shape;
        if (r->shape[k] >= 0)
            *left(r, k, shape) -= gpus_of(r, k, shape);
    }
    for (;;) {
        size_t best = r->n;
        for (size_t k = 0; k < r->n; k++)
            if (slope(r, k) > (best < r->n ? slope(r, best) : 0) &&
                gpus_of(r, k, r->shape[k] + 1) - gpus_of(r, k, r->shape[k]) <=
                    *left(r, k, r->shape[k]))
                best = k;
        if (best == r->n)
            return 0;
        int *shape = &r->shape[best];
        *left(r, best, *shape) -= gpus_of(r, best, *shape + 1) - gpus_of(r, best, *shape);
        ++*shape;
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
    return rc;
}

int rounds_step(struct sim *s, enum rounds_policy policy)
{
    static int (*const policies[])(struct round *) = {
        [ROUNDS_GAVEL] = gavel, [ROUNDS_SIA] = sia, [ROUNDS_RUBICK] = rubick};
    struct round r = {
        .s = s,
        .job = calloc(s->nqueue + s->nrunning + 1, sizeof *r.job),
        .shape = calloc(s->nqueue + s->nrunning + 1, sizeof *r.shape),
    };
    for (int k = 0; k < s->o->nkinds; k++)
        r.left[k] = s->o->kind[k].nodes * s->o->kind[k].gpus_per_node;
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
