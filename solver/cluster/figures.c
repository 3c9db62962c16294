/* figures.c - what a simulation comes to: times of jobs, GPU-hours, fairness. */
#include <stdlib.h>

#include "topt_cluster.h"
#include "topt_minmax.h"

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The value that so many percent of 'n' sorted ones do not exceed. */
static double percentile(const double *sorted, size_t n, size_t percent)
{
    size_t place = (n * percent + 99) / 100;
    return n ? sorted[place ? place - 1 : 0] : 0;
}

static double mean(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / (double)n : 0;
}

struct sums {
    /* of jobs that ended: hours, and times their own run */
    double *jct, *wait, *slowdown;
    size_t n;
    int64_t last_s, gpu_s;
    int64_t deaths, restarts, failures, later;
    int64_t latest_s; /* the most that one of these took beyond what it is held to */
};

static void add(const struct topt_cluster_job *j, const struct topt_cluster_fate *f,
                const struct topt_cluster_fate *asked, struct sums *s)
{
    if (f->end_s < 0)
        return;
    int64_t jct = f->end_s - j->submit_s;
    s->jct[s->n] = (double)jct / 3600;
    s->wait[s->n] = (double)(jct - f->ran_s) / 3600;
    s->slowdown[s->n++] = (double)jct / (double)j->run_s;
    s->last_s = topt_max(s->last_s, f->end_s);
    s->gpu_s += f->gpu_s;
    s->deaths += f->deaths;
    s->restarts += f->restarts;
    s->failures += f->failures;
    if (!asked || asked->end_s < 0)
        return;
    int64_t held = asked->end_s - j->submit_s;
    if (100 * jct <= (100 + TOPT_CLUSTER_LATER_PERCENT) * held)
        return;
    s->later++;
    s->latest_s = topt_max(s->latest_s, jct - held);
}

static json_t *pack(const struct topt_cluster_trace *t,
                    const struct topt_cluster_result *r, struct sums *s)
{
    double jct = mean(s->jct, s->n), wait = mean(s->wait, s->n);
    double slowdown = mean(s->slowdown, s->n);
    qsort(s->jct, s->n, sizeof *s->jct, by_size);
    qsort(s->slowdown, s->n, sizeof *s->slowdown, by_size);
    return json_pack(
        "{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, "
        "s:f}",
        "policy", r->policy, "jobs", (json_int_t)s->n, "never", (json_int_t)(t->n - s->n),
        "jct_mean_h", jct, "jct_median_h", percentile(s->jct, s->n, 50), "jct_p99_h",
        percentile(s->jct, s->n, 99), "wait_mean_h", wait, "makespan_h",
        (double)s->last_s / 3600, "gpu_hours", (double)s->gpu_s / 3600, "slowdown_mean",
        slowdown, "slowdown_p99", percentile(s->slowdown, s->n, 99), "deaths",
        (json_int_t)s->deaths, "restarts", (json_int_t)s->restarts, "failures",
        (json_int_t)s->failures, "later", (json_int_t)s->later, "later_most_h",
        (double)s->latest_s / 3600);
}

json_t *topt_cluster_figures(const struct topt_cluster_trace *t,
                             const struct topt_cluster_result *r,
                             const struct topt_cluster_result *asked)
{
    struct sums s = {.jct = calloc(t->n + 1, sizeof *s.jct),
                     .wait = calloc(t->n + 1, sizeof *s.wait),
                     .slowdown = calloc(t->n + 1, sizeof *s.slowdown)};
    json_t *ret = NULL;
    if (s.jct && s.wait && s.slowdown) {
        for (size_t i = 0; i < t->n; i++)
            add(&t->job[i], &r->fate[i], asked ? &asked->fate[i] : NULL, &s);
        ret = pack(t, r, &s);
    }
    free(s.jct);
    free(s.wait);
    free(s.slowdown);
    return ret;
}

int topt_cluster_outcomes(const struct topt_cluster_trace *t,
                          const struct topt_cluster_result *r, struct topt_text *out)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct topt_cluster_fate *f = &r->fate[i];
        topt_text_add(out, "%s,%zu,%lld,%lld,%lld,%lld,%lld,%d,%d,%d\n", r->policy, i,
                      (long long)t->job[i].submit_s, (long long)f->start_s,
                      (long long)f->end_s, (long long)f->gpus, (long long)f->gpu_s,
                      f->deaths, f->restarts, f->failures);
    }
    return out->oom ? -1 : 0;
}
