/* sizing.c - see sizing.h.
 *
 * Two kinds of bad news are kept apart.  The planner being away is not the user's doing:
 * one line, and the job goes on as it was asked (or not, with --topt-on-error=abort).  A
 * request that can't be met is: the submission is refused with one line, since a job that
 * runs out of memory after a night in the queue is what topt is there to prevent.
 *
 * It runs as the user and reads the model with the user's rights; the bytes are sent, never
 * the path. */
#include "sizing.h"
#include "topt_clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elastic.h"
#include "http.h"

/* What submits nothing waits longer for a search that is under way: no job is held up,
 * and somebody looks. */
enum { RETRY_MS = 200, PATIENCE_MS = 1000, SHOW_MS = 30000 };

/* Somebody looks at a terminal where nothing happens. */
static void say_waiting(void)
{
    static int said;
    if (!said++ && isatty(STDERR_FILENO))
        topt_say_info("topt: asking the planner ...");
}

int topt_size_not(const struct topt_ask *ask, const struct topt_bounds *bounds,
                  const struct topt_error *err)
{
    const char *wish = ask->value[TOPT_ASK_ON_ERROR];
    int on_error = topt_ask_on_error(wish);
    if (topt_ask_shows_only(ask)) {
        topt_say_error("topt: %s", err->text);
        return -1;
    }
    if (on_error == TOPT_ON_ERROR_ABORT) {
        topt_say_error("topt: %s; not submitted (on-error=abort)", err->text);
        return -1;
    }
    if (on_error != TOPT_ON_ERROR_SUBMIT && !(bounds && topt_shape_asks_gpus(bounds))) {
        topt_say_error("topt: %s; not submitted, since it %s: give --gpus or "
                       "--topt-on-error=submit",
                       err->text,
                       bounds ? "asks for no GPUs itself" : "may ask for no GPUs itself");
        return -1;
    }
    topt_say_error("topt: %s; the job is submitted as it was asked for, without a plan",
                   err->text);
    return 0;
}

int topt_size_refuse(const struct topt_error *err)
{
    topt_say_error("topt: %s; not submitted", err->text);
    return -1;
}

/* How long to wait before asking again: what the planner said, but not all that is left. */
static int pause_of(int retry_after_s, int64_t left_ms)
{
    int64_t ms = (int64_t)retry_after_s * 1000;
    return (int)(ms <= RETRY_MS ? RETRY_MS : ms < left_ms / 2 ? ms : left_ms / 2);
}

/* Wait before the question is asked again, and say so to who waits.  0 where there is no
 * time for that. */
static int pause_for(struct topt_http_request *q, int64_t deadline, int ms)
{
    if (deadline - topt_clock_ms() <= ms)
        return 0;
    poll(NULL, 0, ms);
    if (q->waiting && topt_clock_ms() >= q->said_ms)
        q->waiting();
    q->timeout_ms = deadline - topt_clock_ms();
    return q->timeout_ms > 0;
}

/* One question, asked again within its time while the answer is "still searching" or
 * "busy", or nobody takes it just now (toptd restarts): equal searches are shared on the
 * other side.  When that time runs out, what the planner said before stays the reason.
 * 'search_ms': of what may be longer, the time for a search that is under way. */
static enum topt_verdict ask_planner(struct topt_http_request *q, int64_t search_ms,
                                     struct topt_answer *ret, int *ret_heard,
                                     struct topt_error *err)
{
    int64_t now = topt_clock_ms(), deadline = now + q->timeout_ms;
    enum topt_verdict verdict = TOPT_VERDICT_OUTAGE;
    for (int said = 0;;) {
        struct topt_http_reply reply = {0};
        struct topt_error failure = {0};
        int wait = RETRY_MS;
        if (topt_http_post(q, &reply, &failure)) {
            if (!said)
                *err = failure;
            if (failure.code != TOPT_ERR_BUSY)
                return verdict;
        } else {
            int status = reply.status, later = reply.retry_after_s;
            topt_answer_parse(reply.body, reply.len, ret);
            topt_http_fini(&reply);
            said = *ret_heard = 1;
            verdict = topt_answer_judge(status, ret, err);
            if (status == 202 && deadline < now + search_ms)
                deadline = now + search_ms;
            int is_busy = status == 429 || (status == 503 && later);
            if (status != 202 && !is_busy)
                return verdict;
            if (is_busy)
                wait = pause_of(later, deadline - topt_clock_ms());
        }
        if (!pause_for(q, deadline, wait))
            return verdict;
    }
}

/* Read the model and ask; with 'bounds' named where they may be the reason for a refusal. */
static enum topt_verdict find_plan(const struct topt_sizing *s,
                                   const struct topt_ask *ask, struct topt_site *site,
                                   const struct topt_bounds *bounds,
                                   struct topt_answer *ret, struct topt_error *err)
{
    enum topt_verdict verdict = TOPT_VERDICT_REFUSED;
    struct topt_text target = {0};
    char name[TOPT_LABEL];
    size_t len = 0;
    int64_t bound = 0;
    int heard = 0;
    char *model = NULL, words[160];
    if (topt_shape_bound(ask, bounds, &bound, err) ||
        !(model = topt_ask_model(ask, &len, name, err)))
        goto out;
    topt_ask_target(ask, name, bound, &target);
    topt_host_about(s->host, bounds, &target);
    /* So that a long search is told from a planner that hangs, just before the deadline. */
    topt_text_add(&target, "&wait_ms=%lld", (long long)(site->timeout_ms * 9 / 10));
    if (target.oom) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the question");
        goto out;
    }
    verdict = TOPT_VERDICT_OUTAGE;
    if (topt_site_find(site, err)) {
        if (s->local && err->code == TOPT_ERR_NOTFOUND)
            verdict = s->local(ask, name, bound, ret, err);
        goto out;
    }
    struct topt_http_request q = {.url = site->url,
                                  .target = target.s,
                                  .body = model,
                                  .len = len,
                                  .timeout_ms = site->timeout_ms,
                                  .said_ms = topt_clock_ms() + PATIENCE_MS,
                                  .waiting = say_waiting,
                                  .trust = &site->trust};
    verdict = ask_planner(&q, topt_ask_shows_only(ask) ? SHOW_MS : 0, ret, &heard, err);
    if (verdict == TOPT_VERDICT_OUTAGE && s->local && !heard)
        verdict = s->local(ask, name, bound, ret, err);
    if (verdict == TOPT_VERDICT_REFUSED && err->code == TOPT_ERR_INFEASIBLE &&
        *topt_shape_words(bounds, words, sizeof words))
        topt_wrap(err, "with %s as upper bound", words);
out:
    free(model);
    topt_text_fini(&target);
    return verdict;
}

/* How many, why so many, what each does; and what else could be asked. */
static void say_plan(const struct topt_answer *plan, const struct topt_bounds *bounds)
{
    char words[160];
    topt_shape_words(bounds, words, sizeof words);
    topt_say_info("topt: %lld GPU%s (%lld node%s x %lld GPU%s%s)%s%s%s%s; plan %s%s%s%s",
                  (long long)plan->gpus, plan->gpus == 1 ? "" : "s",
                  (long long)plan->nodes, plan->nodes == 1 ? "" : "s",
                  (long long)plan->gpus_per_node, plan->gpus_per_node == 1 ? "" : "s",
                  bounds->by_node ? ", one task per node" : "", *plan->why ? ": " : "",
                  plan->why, *plan->strategy ? "; " : "", plan->strategy, plan->plan_id,
                  *words ? " (within " : "", words, *words ? ")" : "");
    if (*plan->training)
        topt_say_info("topt: %s", plan->training);
    if (*plan->needs)
        topt_say_info("topt: %s", plan->needs);
    if (*plan->note)
        topt_say_info("topt: %s", plan->note);
    if (*plan->hint)
        topt_say_info("topt: %s", plan->hint);
}

/* What was asked to be shown.  To standard error, so that --parsable stays clean. */
static void show(const struct topt_answer *answer)
{
    fflush(stdout);
    fputs(answer->shown, stderr);
}

/* What else is of interest where nothing is submitted. */
static void say_prediction(const struct topt_answer *plan)
{
    char memory[32], time[32];
    topt_say_info("topt: %s per GPU, %s per step; not submitted (--topt-dry-run)",
                  topt_show_bytes(plan->memory_bytes, memory, sizeof memory),
                  topt_show_ns(plan->time_ns, time, sizeof time));
}

/* Ask for the plan of so many GPUs, or as the job asks (0), until the deadline of all.  0 where there
 * is none, or it can't travel. */
static int find_further(const struct topt_sizing *s, const struct topt_ask *ask,
                        const struct topt_site *site, const struct topt_bounds *bounds,
                        int64_t deadline, int64_t gpus, struct topt_answer *ret)
{
    char number[24], mode[] = "mini-time";
    struct topt_ask other = *ask; /* its words are borrowed */
    struct topt_site left = *site;
    struct topt_error err = {0};
    left.timeout_ms = deadline - topt_clock_ms();
    if (left.timeout_ms <= 0)
        return 0;
    if (gpus) {
        snprintf(number, sizeof number, "%lld", (long long)gpus);
        other.value[TOPT_ASK_MODE] = mode;
        other.value[TOPT_ASK_GPUS] = number;
        other.value[TOPT_ASK_MAX_GPUS] = other.value[TOPT_ASK_MIN_EFFICIENCY] = NULL;
    }
    other.value[TOPT_ASK_DRY_RUN] = other.value[TOPT_ASK_EXPLAIN] = NULL;
    return find_plan(s, &other, &left, bounds, ret, &err) == TOPT_VERDICT_PLAN &&
           (!gpus || ret->gpus == gpus) && *ret->plan_doc &&
           !topt_shape_fits(bounds, ret, NULL);
}

/* May a script that is fit for 'plan' run by 'other', too?  Nobody reads what that needs. */
static int asks_no_more(const struct topt_answer *other, const struct topt_answer *plan)
{
    return !*other->needs || !strcmp(other->needs, plan->needs);
}

/* What plans are asked for one after the other, and the room that is left for them. */
struct further {
    const struct topt_sizing *s;
    const struct topt_ask *ask;
    const struct topt_site *site;
    const struct topt_answer *plan; /* the job's own */
    struct topt_answer *other;
    int64_t deadline;
    size_t room;
    struct topt_elastic *e;
};

/* Slurm changes the type of no waiting job's GPUs (22.05: it adds the new one to the old). */
static int is_other_type(const struct topt_bounds *bounds, const struct topt_answer *a,
                         const struct topt_answer *b)
{
    return !*bounds->gpu_type && strcmp(a->gpu_type, b->gpu_type) != 0;
}

/* One further plan into the job's environment; 'kind' is the number of a new one, where 'bounds' names its
 * partition.  0 where there is none. */
static int add_further(struct further *f, const struct topt_bounds *bounds, int64_t gpus,
                       int kind)
{
    struct topt_answer *other = f->other;
    int found =
        find_further(f->s, f->ask, f->site, bounds, f->deadline, gpus, other) &&
        asks_no_more(other, f->plan) && strlen(other->plan_doc) <= f->room &&
        !is_other_type(bounds, other, f->plan) &&
        (!kind || topt_elastic_add_kind(f->e, bounds->partition) == kind) &&
        elastic_add(other->nodes, other->gpus_per_node, other->time_ns, kind, f->e);
    if (!found)
        return 0;
    f->room -= strlen(other->plan_doc);
    topt_mend_further(f->s->env, other, topt_shape_tasks(bounds, other), kind);
    return 1;
}

/* A plan for each other kind: of the partitions that the job names, those that the planner's answer left
 * out, as their GPUs are others. */
static void find_kinds(struct further *f, const struct topt_bounds *bounds)
{
    const char *named = topt_host_partitions(f->s->host);
    struct topt_bounds there = *bounds;
    if (!*f->plan->partition || topt_elastic_add_kind(f->e, f->plan->partition))
        return;
    while (elastic_next_kind(&named, f->e, there.partition))
        add_further(f, &there, 0, f->e->nkinds);
    if (f->e->nkinds == 1)
        f->e->nkinds = 0;
}

/* The plans of other shapes, into the job's environment while there is room. */
static void find_others(const struct topt_sizing *s, const struct topt_ask *ask,
                        const struct topt_site *site, const struct topt_bounds *bounds,
                        const struct topt_answer *plan, int64_t deadline,
                        struct topt_elastic *e)
{
    struct elastic_counts counts;
    struct further f = {.s = s,
                        .ask = ask,
                        .site = site,
                        .plan = plan,
                        .other = malloc(sizeof *f.other),
                        .deadline = deadline,
                        .room = TOPT_CARRY_MOST - strlen(plan->plan_doc),
                        .e = e};
    int64_t gpus;
    elastic_begin(ask, bounds, plan, &counts, e);
    if (f.other && *plan->plan_doc && topt_ask_kinds(ask))
        find_kinds(&f, bounds);
    while (f.other && *plan->plan_doc && topt_ask_elastic(ask, NULL, 0) >= 0 &&
           (gpus = elastic_next(&counts, e)) > 0)
        elastic_tell(&counts, add_further(&f, bounds, gpus, 0));
    topt_mend_shapes(s->env, e);
    free(f.other);
}

/* Which other numbers of GPUs the job may have, and which kinds; that it has none is said, too. */
static void say_elastic(const struct topt_elastic *e, const struct topt_host_elastic *h)
{
    char list[160], kinds[600];
    elastic_list(e, list, sizeof list);
    elastic_kinds(e, kinds, sizeof kinds);
    if (*list)
        topt_say_info("topt: plans for %s GPUs travel with the job%s%s", list,
                      *h->nodes ? ": Slurm starts it on as many nodes as are free of "
                                : ": it may be resized while it waits",
                      h->nodes);
    if (*kinds)
        topt_say_info(
            "topt: plans for GPUs of other kinds travel with the job: %s; it may "
            "be moved there while it waits",
            kinds);
    if (e->requeues && (*list || *kinds))
        topt_say_info(
            "topt: and it may be stopped, and wait again with another of these, "
            "to go on from its last checkpoint");
    if (!*list && !*kinds)
        topt_say_info("topt: no plan for another number of GPUs travels with the job: it "
                      "stays as it is");
}

int topt_size(const struct topt_sizing *s, const struct topt_ask *ask,
              struct topt_site *site)
{
    int64_t deadline = topt_clock_ms() + site->timeout_ms;
    struct topt_elastic shapes = {.n = 0};
    struct topt_host_elastic more = {.word = ""};
    struct topt_error err = {0};
    struct topt_bounds bounds;
    struct topt_answer plan = {0};
    if (topt_host_bounds(s->host, &bounds, &err))
        return topt_size_refuse(&err);
    topt_shape_settle(ask, &bounds);
    switch (find_plan(s, ask, site, &bounds, &plan, &err)) {
    case TOPT_VERDICT_REFUSED:
        return topt_size_refuse(&err);
    case TOPT_VERDICT_OUTAGE:
        return topt_size_not(ask, &bounds, &err);
    case TOPT_VERDICT_CURVE:
        show(&plan);
        return 1;
    case TOPT_VERDICT_PLAN:
        show(&plan);
        break;
    }
    if (topt_shape_fits(&bounds, &plan, &err))
        return topt_size_refuse(&err);
    int is_elastic = topt_ask_elastic(ask, NULL, 0) >= 0 || topt_ask_kinds(ask);
    if (is_elastic) {
        find_others(s, ask, site, &bounds, &plan, deadline, &shapes);
        elastic_host(&shapes, s->host, s->version ? s->version() : 0, &more);
    }
    if (ask->value[TOPT_ASK_DRY_RUN]) {
        topt_mend_drop_further(s->env);
        say_plan(&plan, &bounds);
        if (is_elastic)
            say_elastic(&shapes, &more);
        say_prediction(&plan);
        return 1;
    }
    if (topt_host_resize(s->host, &plan, &bounds, is_elastic ? &more : NULL, &err)) {
        topt_mend_drop_further(s->env);
        return topt_size_not(ask, &bounds, &err);
    }
    topt_mend_plan(s->env, &plan, topt_shape_tasks(&bounds, &plan),
                   site->url ? site->url : "", &site->trust);
    say_plan(&plan, &bounds);
    if (is_elastic)
        say_elastic(&shapes, &more);
    return 0;
}
