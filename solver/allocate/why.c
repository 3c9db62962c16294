/* why.c - a decision in words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "topt_allocate.h"
#include "topt_minmax.h"
#include "topt_text.h"

/* Of what has no limit Slurm's plans say a year. */
enum { UNKNOWN_S = 300 * 24 * 3600 };

/* "3.2 h", "12 min" */
static const char *show(int64_t s, char buf[32])
{
    if (s >= UNKNOWN_S)
        snprintf(buf, 32, "a year or more");
    else if (s >= 3600)
        snprintf(buf, 32, "%lld.%lld h", (long long)(s / 3600),
                 (long long)(s % 3600 / 360));
    else if (s >= 60)
        snprintf(buf, 32, "%lld min", (long long)(s / 60));
    else
        snprintf(buf, 32, "%lld s", (long long)s);
    return buf;
}

/* The shape with the next more GPUs, of these the fastest; -1. */
static int larger(const struct topt_alloc_job *j, int than)
{
    int best = -1;
    int64_t gpus = topt_allocate_gpus(&j->shape[than]);
    for (int k = 0; k < j->nshapes; k++) {
        const struct topt_alloc_shape *s = &j->shape[k];
        int64_t of_best = best < 0 ? INT64_MAX : topt_allocate_gpus(&j->shape[best]);
        if (topt_allocate_gpus(s) > gpus &&
            (topt_allocate_gpus(s) < of_best ||
             (topt_allocate_gpus(s) == of_best && s->run_s < j->shape[best].run_s)))
            best = k;
    }
    return best;
}

/* Who ends at this time on a node of the shape's; 0: a reservation, -1: nobody. */
static int64_t who_ends(const struct topt_alloc_problem *p,
                        const struct topt_alloc_plan *plan,
                        const struct topt_alloc_shape *s, int64_t at_s)
{
    for (size_t i = 0; i < p->nheld; i++)
        if (p->held[i].to_s == at_s && s->serves[p->node[p->held[i].node].set])
            return p->held[i].job;
    for (size_t i = 0; i < p->njobs; i++)
        if (topt_allocate_end(&p->job[i], &plan->spot[i]) == at_s &&
            s->serves[p->node[plan->node[plan->spot[i].first]].set])
            return p->job[i].id;
    return -1;
}

static const struct topt_alloc_shape *shape_of(const struct topt_alloc_job *j,
                                               const struct topt_alloc_spot *s)
{
    return &j->shape[s->shape];
}

static void say_gain(const struct topt_alloc_problem *p,
                     const struct topt_alloc_plan *plan, size_t i, struct topt_text *t)
{
    const struct topt_alloc_job *j = &p->job[i];
    const struct topt_alloc_spot *is = &plan->spot[i], *asked = &plan->asked[i];
    char a[32], b[32];
    int64_t end = topt_allocate_end(j, is), was = topt_allocate_end(j, asked);
    int64_t who = who_ends(p, plan, shape_of(j, is), is->start_s);
    topt_text_add(t, "with %lld GPUs it ",
                  (long long)topt_allocate_gpus(shape_of(j, is)));
    if (is->start_s > p->now_s)
        topt_text_add(t, "starts in %s, ", show(is->start_s - p->now_s, a));
    if (is->start_s > p->now_s && who > 0)
        topt_text_add(t, "when job %lld ends, ", (long long)who);
    topt_text_add(t, "%sends in %s", is->start_s > p->now_s ? "and " : "",
                  show(end - p->now_s, a));
    if (is->shape == asked->shape)
        topt_text_add(t, ", as it asked");
    else if (was < 0)
        topt_text_add(t, ", and as it asked never");
    else
        topt_text_add(t, ", %s earlier than with the %lld that it asked for",
                      show(was - end, b),
                      (long long)topt_allocate_gpus(shape_of(j, asked)));
}

/* What the next larger shape would bring. */
static void say_larger(const struct round *r, const struct topt_alloc_plan *plan,
                       size_t i, const struct topt_alloc_spot *would, int shape,
                       struct topt_text *t)
{
    const struct topt_alloc_job *j = &r->p->job[i];
    const struct topt_alloc_shape *s = &j->shape[shape];
    char a[32];
    int64_t later = topt_allocate_end(j, would) - topt_allocate_end(j, &plan->spot[i]);
    int64_t waits = would->start_s - topt_max(r->p->now_s, j->from_s);
    topt_text_add(t, "; %lld would ", (long long)topt_allocate_gpus(s));
    if (would->start_s < 0)
        topt_text_add(t, "never be free");
    else if (later < 0 && !layout_may(r, i, shape))
        topt_text_add(t, "end it %s earlier and are more than it may have",
                      show(-later, a));
    else if (later < 0)
        topt_text_add(t, "end it %s earlier, and others later than they asked",
                      show(-later, a));
    else
        topt_text_add(t, "end it %s later", show(later, a));
    if (would->start_s < 0 || later < 0 || waits <= 0)
        return;
    int64_t who = who_ends(r->p, plan, s, would->start_s);
    if (who > 0)
        topt_text_add(t, ": job %lld has them for %s", (long long)who, show(waits, a));
    else if (!who)
        topt_text_add(t, ": they are reserved for %s", show(waits, a));
}

/* Where it would be in this shape, everybody else staying. */
static int try(struct round *r, struct layout *l, size_t i, int shape,
               struct topt_alloc_spot *ret)
{
    struct timeline *t = timeline_new(r->p);
    if (!t)
        return -1;
    for (size_t k = 0; k < r->p->njobs; k++)
        if (k != i)
            layout_move(r, l, k, t, -1);
    r->scratch = calloc((size_t)r->p->job[i].shape[shape].nodes, sizeof *r->scratch);
    const struct topt_alloc_shape *s = &r->p->job[i].shape[shape];
    *ret = l->spot[i];
    ret->shape = shape;
    if (r->scratch)
        ret->start_s = timeline_earliest(t, s, topt_max(r->p->now_s, r->p->job[i].from_s),
                                         INT64_MAX - s->run_s, r->scratch);
    int failed = !r->scratch || timeline_failed(t);
    free(r->scratch);
    timeline_free(t);
    return failed ? -1 : 0;
}

int topt_allocate_why(const struct topt_alloc_problem *p,
                      const struct topt_alloc_plan *plan, size_t i, char *ret,
                      size_t size, struct topt_error *err)
{
    struct round r = {.p = p, .permille = plan->permille};
    struct layout l = {plan->spot, plan->node};
    const struct topt_alloc_job *j = &p->job[i];
    struct topt_alloc_spot would;
    struct topt_text t = {0};
    if (plan->spot[i].start_s < 0) {
        snprintf(ret, size, "no nodes that are up are large enough for it");
        return 0;
    }
    say_gain(p, plan, i, &t);
    int shape = larger(j, plan->spot[i].shape);
    int rc = layout_sets(p, &r);
    if (!rc && shape >= 0)
        rc = try(&r, &l, i, shape, &would);
    if (!rc && shape >= 0)
        say_larger(&r, plan, i, &would, shape, &t);
    if (!rc && !t.oom)
        snprintf(ret, size, "%s", t.s);
    rc = rc || t.oom ? topt_nomem(err, "the queue") : 0;
    topt_text_fini(&t);
    free(r.set_gpus);
    return rc;
}
