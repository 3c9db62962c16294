/* fold.c - schedules whose middle repeats.
 *
 * A few periods are laid out and run; twice as many, until they repeat.  The first periods are beside the beginning, and
 * the last one is beside the end, so the three before the last are compared.  They repeat where every task is ready,
 * starts and ends by the same shift later than in the period before.  Then all further periods repeat too, provided that
 * no task from before the three is still under way, and that none of the three would still be under way in a period that
 * is not laid out.  Where 'reach' bounds how many periods back a task depends on others, as many more periods that repeat
 * prove the same. */
#include "topt_array.h"
#include "topt_minmax.h"
#include "topt_schedule.h"

#include <stdlib.h>

enum { FEWEST = 5 }; /* the first, three that are alike, the last */

struct folding {
    struct topt_schedule *s;
    const struct topt_periodic *p;
    int *from;    /* by period: its first task, and the first of the end */
    int64_t open; /* the periods of a schedule without an end; 0: there is none */
    struct topt_error *err;
};

/* Lays out periods, after those of a schedule without an end, and runs them. */
static int lay_periods(struct folding *f, int64_t periods)
{
    const struct topt_periodic *p = f->p;
    if (TOPT_RESIZE(f->from, (size_t)periods + 1))
        return topt_nomem(f->err, "a schedule");
    if (!f->open)
        topt_schedule_clear(f->s);
    if (!f->open && p->begin(p->of, f->s, f->err))
        return -1;
    for (int64_t k = f->open; k < periods; k++) {
        f->from[k] = f->s->n;
        if (p->period(p->of, f->s, k, f->err))
            return -1;
    }
    f->from[periods] = f->s->n;
    f->open = periods;
    return f->s->chained ? topt_schedule_run(f->s, f->err) : 0;
}

static int lay_end(struct folding *f)
{
    const struct topt_periodic *p = f->p;
    f->open = 0;
    return p->end(p->of, f->s, f->err) || topt_schedule_run(f->s, f->err) ? -1 : 0;
}

static int lay_out(struct folding *f, int64_t periods)
{
    f->open = 0;
    return lay_periods(f, periods) || lay_end(f) ? -1 : 0;
}

/* Does period 'k' repeat the one before, so many nanoseconds later? */
static int repeats(const struct folding *f, int64_t k, int64_t *ret_ns)
{
    const struct topt_task *a = &f->s->task[f->from[k - 1]], *b = &f->s->task[f->from[k]];
    int n = f->from[k + 1] - f->from[k];
    if (n == 0 || n != f->from[k] - f->from[k - 1])
        return 0;
    int64_t shift = b->end_ns - a->end_ns;
    for (int i = 0; i < n; i++)
        if (b[i].end_ns - a[i].end_ns != shift ||
            b[i].start_ns - a[i].start_ns != shift ||
            b[i].ready_ns - a[i].ready_ns != shift || b[i].exposed_ns != a[i].exposed_ns)
            return 0;
    *ret_ns = shift;
    return 1;
}

static int64_t earliest_ready(const struct folding *f, int64_t k)
{
    int64_t ns = INT64_MAX;
    for (int i = f->from[k]; i < f->from[k + 1]; i++)
        ns = topt_min(ns, f->s->task[i].ready_ns);
    return ns;
}

/* The latest end of the tasks from number 'first' to the end of period 'to'. */
static int64_t latest_end(const struct folding *f, int first, int64_t to)
{
    int64_t ns = 0;
    for (int i = first; i < f->from[to + 1]; i++)
        ns = topt_max(ns, f->s->task[i].end_ns);
    return ns;
}

/* Do the three periods before the last repeat, are all tasks before them over, and would they be over before a period
 * behind the last one begins? */
static int is_periodic(const struct folding *f, int64_t periods, int64_t *ret_ns)
{
    int64_t last = periods - 2, first = last - 2, ns, before;
    if (!repeats(f, last, &ns) || !repeats(f, last - 1, &before) || ns != before)
        return 0;
    *ret_ns = ns;
    for (int64_t k = last - 2; f->p->reach && k > last - 2 - f->p->reach; k--)
        if (k < 2 || !repeats(f, k, &before) || ns != before)
            return 0;
    if (f->p->reach)
        return 1;
    return latest_end(f, 0, first - 1) <= earliest_ready(f, first + 1) &&
           latest_end(f, f->from[first], last) <= earliest_ready(f, last) + 2 * ns;
}

/* The time that the last period adds, by a schedule with one period less; leaves the schedule of all. */
static int by_difference(struct folding *f, int64_t periods, int64_t *ret_ns)
{
    if (lay_out(f, periods - 1))
        return -1;
    int64_t less = f->s->time_ns;
    if (lay_out(f, periods))
        return -1;
    *ret_ns = f->s->time_ns - less;
    return 0;
}

static int fold(struct folding *f, int max_tasks, struct topt_folded *ret)
{
    int64_t all = f->p->periods, n = all < FEWEST ? all : FEWEST, more;
    ret->period_ns = 0;
    for (;; n = 2 * n < all ? 2 * n : all) {
        /* What comes later does not change the times of chained tasks: they end once they repeat. */
        if (f->s->chained ? lay_periods(f, n) : lay_out(f, n))
            return -1;
        if (n == all || is_periodic(f, n, &ret->period_ns))
            break;
        if (2 * (int64_t)f->s->n <= max_tasks)
            continue;
        if (by_difference(f, n, &ret->period_ns))
            return -1;
        break;
    }
    if (f->open && lay_end(f))
        return -1;
    /* The last period before the end's influence, where there is one. */
    int64_t last = n < all && n > 1 ? n - 2 : n - 1;
    ret->laid_out = n;
    ret->from = f->from[last];
    ret->to = f->from[last + 1];
    if (__builtin_mul_overflow(all - n, ret->period_ns, &more) ||
        __builtin_add_overflow(f->s->time_ns, more, &f->s->time_ns))
        return topt_fail(f->err, TOPT_ERR_LIMIT, "the time of a step overflows");
    return 0;
}

int topt_schedule_fold(struct topt_schedule *s, const struct topt_periodic *p,
                       int max_tasks, struct topt_folded *ret, struct topt_error *err)
{
    struct folding f = {.s = s, .p = p, .err = err};
    int rc = fold(&f, max_tasks, ret);
    free(f.from);
    return rc;
}
