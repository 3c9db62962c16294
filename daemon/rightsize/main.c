/* main.c - topt rightsize: waiting jobs that agreed get another number of GPUs
 * (policy.h), by scontrol (change.h), with what was decided in a log (journal.h).  Without
 * --apply it says what it would do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "change.h"
#include "journal.h"
#include "mend.h"
#include "policy.h"
#include "requeue.h"
#include "scontrol.h"
#include "topt_clock.h"
#include "topt_json.h"
#include "topt_options.h"
#include "topt_milp.h"
#include "topt_text.h"

enum { ASK_MS = 20000, ASK_AGAIN = 3, UNKNOWN_S = 300 * 24 * 3600 };
static const char usual_log[] = "/var/lib/topt-rightsize/log.jsonl";

struct args {
    struct rightsize_limits limits;
    const char *log, *scontrol, *jobs;
    int apply, undo, json;
    int only_look; /* topt queue */
};

#define AT(field) offsetof(struct args, field)
static const struct topt_option options[] = {
    TOPT_EXAMPLE("topt rightsize --partition gpu",
                 "what it would change in a partition; nothing is changed"),
    {"apply", TOPT_OPT_FLAG, AT(apply), "",
     "change the jobs (default: only print what would change)"},
    {"undo", TOPT_OPT_FLAG, AT(undo), "",
     "undo the changes in the log, for jobs that still wait unchanged"},
    {"requeue", TOPT_OPT_FLAG, AT(limits.requeues), "",
     "also stop running jobs that agreed to it (--topt-elastic=requeue) and have more "
     "GPUs than they asked for, where another job would be late for it; they wait again "
     "with what they asked for (default: running jobs run on)"},
    {"job", TOPT_OPT_STRING, AT(jobs), "ID,...", "only these jobs"},
    {"partition", TOPT_OPT_STRING, AT(limits.partitions), "NAME,...",
     "only jobs of these partitions"},
    {"max-jobs", TOPT_OPT_COUNT, AT(limits.jobs), "N",
     "most jobs to change in a run (default: 20)"},
    {"max-per-user", TOPT_OPT_COUNT, AT(limits.per_user), "N",
     "most jobs per user to change in a run (default: 5)"},
    {"min-gpus", TOPT_OPT_COUNT, AT(limits.min_gpus), "N",
     "fewest GPUs per job (default: as its plans allow)"},
    {"max-gpus", TOPT_OPT_COUNT, AT(limits.max_gpus), "N",
     "most GPUs per job (default: as its plans allow)"},
    {"min-efficiency", TOPT_OPT_SHARE, AT(limits.min_efficiency), "E",
     "scaling efficiency to keep, for jobs that gave none (default: 0.8)"},
    {"max-slowdown", TOPT_OPT_POSITIVE, AT(limits.max_slowdown), "X",
     "slowest step, as a multiple of the submitted job's (default: 4)"},
    {"most-overhead", TOPT_OPT_REAL, AT(limits.most_overhead), "X",
     "GPU-hours of a job beyond its cheapest number, as a share, in an empty queue "
     "(default: 0.25)"},
    {"least-overhead", TOPT_OPT_REAL, AT(limits.least_overhead), "X",
     "the same where jobs for all GPUs wait (default: 0.05)"},
    {"most-share", TOPT_OPT_SHARE, AT(limits.most_share), "X",
     "GPUs of a job on several nodes that asked for fewer, as a share of those that it "
     "could use (default: 0.25)"},
    {"reserve", TOPT_OPT_SHARE, AT(limits.reserve), "X",
     "GPUs that stay free for jobs that come, where one gets more than it asked for, as "
     "a "
     "share of those that it could use (default: 0.25; 0: none)"},
    {"settle", TOPT_OPT_INT, AT(limits.settle_s), "SECONDS",
     "how long to leave a changed job alone (default: 600)"},
    {"log", TOPT_OPT_STRING, AT(log), "FILE",
     "log of decisions and changes (default with --apply: "
     "/var/lib/topt-rightsize/log.jsonl)"},
    {"scontrol", TOPT_OPT_STRING, AT(scontrol), "PROGRAM",
     "path of scontrol (default: scontrol)"},
    {"json", TOPT_OPT_FLAG, AT(json), "", "JSON on standard output"},
    {0}};
static const char usage[] =
    "topt rightsize [--apply] [options]\n"
    "Resize waiting Slurm jobs submitted with --topt-elastic to the number of GPUs with\n"
    "which they end first, where no other job ends later for it.  Without --apply, only\n"
    "print what would change.";

/* Of topt queue. */
static const struct topt_option queue_options[] = {
    TOPT_EXAMPLE("topt queue", "when each waiting job starts, and what would help it"),
    {"job", TOPT_OPT_STRING, AT(jobs), "ID,...", "only these jobs"},
    {"scontrol", TOPT_OPT_STRING, AT(scontrol), "PROGRAM",
     "path of scontrol (default: scontrol)"},
    {"json", TOPT_OPT_FLAG, AT(json), "", "JSON on standard output"},
    {0}};
static const char queue_usage[] =
    "topt queue [options]\n"
    "Plan Slurm's queue: when each waiting job starts and ends, which job it waits for,\n"
    "and what another number of GPUs changes.  Nothing is changed here.";

/* What is said of a job, and what is to be done about it. */
struct row {
    const struct site_queued *job;
    struct rightsize_shape to;
    struct rightsize_entry entry;
    int is_change;
    int64_t step_now_ns, step_then_ns;                  /* 0: not known */
    int64_t gpus;                                       /* that are planned */
    int64_t start_s, asked_start_s, end_s, asked_end_s; /* from now on; -1: never */
};

struct run {
    struct args a;
    struct site_slurm slurm;
    struct site_queue queue;
    struct journal *journal;
    struct rightsize_plan plan;
    struct row *row;
    size_t n, nstops; /* the first are stops */
    char queue_program[1024];
    struct topt_alloc_solver solver;
};

static int complain(const struct run *r, const struct topt_error *err)
{
    fprintf(stderr, "topt %s: %s\n", r->a.only_look ? "queue" : "rightsize", err->text);
    return topt_err_exit(err->code);
}

/* ---- what is to be done ------------------------------------------------------------ */

static int is_asked(const struct args *a, int64_t job)
{
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)job);
    return !a->jobs || site_has_word(a->jobs, id);
}

static struct row *add_row(struct run *r, const struct site_queued *j, const char *reason)
{
    struct row *row = &r->row[r->n++];
    *row = (struct row){.job = j};
    rightsize_shape_of(j, &row->to);
    row->entry = (struct rightsize_entry){
        .job = j->id, .at_s = time(NULL), .result = RIGHTSIZE_DRY};
    row->entry.from = row->entry.to = row->to;
    snprintf(row->entry.submitted, sizeof row->entry.submitted, "%s", j->submitted);
    snprintf(row->entry.user, sizeof row->entry.user, "%s", j->user);
    snprintf(row->entry.reason, sizeof row->entry.reason, "%s", reason);
    return row;
}

static int64_t step_of(const struct site_queued *j, int shape)
{
    return shape < 0 ? 0 : j->elastic.shape[shape].time_ns;
}

static void as_shape(struct row *row, const struct rightsize_shape *to)
{
    row->is_change = 1;
    row->to = row->entry.to = *to;
}

/* Running jobs that are to stop; the entry says how often they did before. */
static void add_stops(struct run *r)
{
    for (size_t i = 0; i < r->plan.nstops; i++) {
        const struct rightsize_stop *s = &r->plan.stop[i];
        struct rightsize_shape to;
        if (!is_asked(&r->a, s->job->id))
            continue;
        struct row *row = add_row(r, s->job, s->why);
        row->entry.is_stop = 1;
        row->entry.priority = s->job->priority;
        row->entry.restarts = s->job->restarts;
        row->step_now_ns = step_of(s->job, site_queued_shape(s->job));
        row->step_then_ns = step_of(s->job, s->to);
        rightsize_shape_in(s->job, &s->job->elastic.shape[s->to], s->time_s, &to);
        as_shape(row, &to);
        r->nstops++;
    }
}

static int64_t from_now(int64_t at_s, int64_t now_s)
{
    return at_s < 0 ? -1 : at_s - now_s;
}

/* What the policy says. */
static int decide(struct run *r, struct topt_error *err)
{
    size_t n;
    const struct rightsize_entry *last = journal_last(r->journal, &n);
    struct rightsize_past *past = calloc(n + 1, sizeof *past);
    int64_t now = time(NULL);
    if (!past)
        return topt_nomem(err, NULL);
    for (size_t i = 0; i < n; i++) {
        past[i] = (struct rightsize_past){.job = last[i].job,
                                          .age_s = now - last[i].at_s,
                                          .is_undone = last[i].is_undo};
        memcpy(past[i].submitted, last[i].submitted, sizeof past[i].submitted);
    }
    int rc =
        rightsize_decide(&r->slurm, &r->queue, past, n, &r->a.limits, now, &r->plan, err);
    free(past);
    if (!rc)
        add_stops(r);
    for (size_t i = 0; !rc && i < r->plan.n; i++) {
        const struct rightsize_choice *c = &r->plan.choice[i];
        struct rightsize_shape to;
        if (c->task || !is_asked(&r->a, c->job->id) ||
            !(c->job->is_elastic || r->a.only_look))
            continue;
        struct row *row = add_row(r, c->job, c->why);
        row->gpus = c->gpus;
        row->start_s = from_now(c->start_s, now);
        row->asked_start_s = from_now(c->asked_start_s, now);
        row->end_s = from_now(c->end_s, now);
        row->asked_end_s = from_now(c->asked_end_s, now);
        row->step_now_ns = step_of(c->job, c->from);
        if (c->to < 0 || r->nstops) /* what is free then the next run sees */
            continue;
        row->step_then_ns = step_of(c->job, c->to);
        rightsize_shape_in(c->job, &c->job->elastic.shape[c->to], c->time_s, &to);
        as_shape(row, &to);
    }
    return rc;
}

/* What the log says of jobs that still wait. */
static int find_undos(struct run *r)
{
    size_t n;
    const struct rightsize_entry *last = journal_last(r->journal, &n);
    for (size_t i = 0; i < r->queue.n; i++) {
        const struct site_queued *j = &r->queue.job[i];
        const struct rightsize_entry *e = NULL;
        for (size_t k = 0; k < n; k++)
            if (last[k].job == j->id && !strcmp(last[k].submitted, j->submitted))
                e = &last[k];
        if (!e || e->is_undo || e->is_stop || !site_is_pending(j) ||
            !is_asked(&r->a, j->id))
            continue;
        struct rightsize_shape now;
        rightsize_shape_of(j, &now);
        int is_same = rightsize_shape_is(&now, &e->to);
        struct row *row = add_row(r, j,
                                  is_same ? "the log has what it was before"
                                          : "it was changed since by others");
        row->entry.is_undo = 1;
        row->step_now_ns = step_of(j, rightsize_shape_at(j, &now));
        row->step_then_ns = step_of(j, rightsize_shape_at(j, &e->from));
        if (is_same)
            as_shape(row, &e->from);
    }
    return 0;
}

/* ---- what is said ------------------------------------------------------------------ */

static void show_gpus(const struct rightsize_shape *s, char buf[64])
{
    snprintf(buf, 64, "%lld (%lldx%lld)", (long long)(s->nodes * s->gpus_per_node),
             (long long)s->nodes, (long long)s->gpus_per_node);
}

static void show_limit(int64_t s, char buf[32])
{
    if (s)
        snprintf(buf, 32, "%lld:%02lld", (long long)(s / 3600), (long long)(s / 60 % 60));
    else
        snprintf(buf, 32, "none");
}

static const char *show_step(int64_t ns, char buf[32])
{
    return ns ? topt_show_ns(ns, buf, 32) : "-";
}

static void put_table(const struct run *r)
{
    if (!r->a.undo)
        printf("%lld of %lld GPUs are idle; %zu waiting job%s agreed to another number\n",
               (long long)r->plan.idle, (long long)r->plan.gpus, r->n - r->nstops,
               r->n - r->nstops == 1 ? "" : "s");
    if (r->nstops)
        printf("%zu running job%s to be stopped first, and the queue is planned again "
               "then\n",
               r->nstops, r->nstops == 1 ? " is" : "s are");
    if (r->n)
        printf("\n%8s  %-10s %-10s %-10s %10s %10s %9s %9s  %s\n", "job", "user", "GPUs",
               "then", "step", "then", "limit", "then", "why");
    for (size_t i = 0; i < r->n; i++) {
        const struct row *row = &r->row[i];
        const struct rightsize_entry *e = &row->entry;
        char now[64], then[64], step[32], step_then[32], limit[32], limit_then[32];
        show_gpus(&e->from, now);
        show_gpus(&e->to, then);
        show_limit(e->from.time_s, limit);
        show_limit(e->to.time_s, limit_then);
        int is = row->is_change, has_limit = is && e->from.time_s != e->to.time_s;
        printf("%8lld  %-10.10s %-10s %-10s %10s %10s %9s %9s  %s\n", (long long)e->job,
               e->user, now, is ? then : "-", show_step(row->step_now_ns, step),
               is ? show_step(row->step_then_ns, step_then) : "-", limit,
               has_limit ? limit_then : "-", e->reason);
    }
}

/* When a job starts, from now on. */
static const char *show_start(int64_t s, char buf[32])
{
    if (s < 0)
        return "never";
    if (!s)
        return "now";
    if (s >= UNKNOWN_S) /* behind a job without a limit, which is planned for a year */
        return "unknown";
    snprintf(buf, 32, "%lld:%02lld", (long long)(s / 3600), (long long)(s / 60 % 60));
    return buf;
}

/* topt queue: each waiting job, whether it agreed or not. */
static void put_queue(const struct run *r)
{
    printf("%lld of %lld GPUs are idle; %zu job%s wait%s\n", (long long)r->plan.idle,
           (long long)r->plan.gpus, r->n, r->n == 1 ? "" : "s", r->n == 1 ? "s" : "");
    if (r->n)
        printf("\n%8s  %-10s %-10s %9s %9s  %s\n", "job", "user", "GPUs", "as asked",
               "planned", "what would help");
    for (size_t i = 0; i < r->n; i++) {
        const struct row *row = &r->row[i];
        char now[64], asked[32], planned[32];
        show_gpus(&row->entry.from, now);
        printf("%8lld  %-10.10s %-10s %9s %9s  %s\n", (long long)row->entry.job,
               row->entry.user, now, show_start(row->asked_start_s, asked),
               show_start(row->start_s, planned), row->entry.reason);
    }
}

/* What a solver would bring, where there is none. */
static void put_solver(const struct run *r)
{
    if (!r->solver.solve)
        printf("topt-queue is not installed: the plan is that of the greedy algorithm\n");
    else if (r->plan.has_milp)
        printf("the plan was improved by a MILP\n");
}

static void put_results(const struct run *r)
{
    size_t changes = 0, done = 0;
    for (size_t i = 0; i < r->n; i++)
        changes += (size_t)r->row[i].is_change;
    printf("\n");
    if (!r->a.apply) {
        printf("%zu would be changed%s\n", changes, changes ? ": --apply does it" : "");
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct rightsize_entry *e = &r->row[i].entry;
        done += e->result == RIGHTSIZE_DONE;
        if (r->row[i].is_change)
            printf("job %lld: %s%s%s\n", (long long)e->job,
                   rightsize_result_name(e->result), *e->detail ? ": " : "", e->detail);
    }
    printf("%zu of %zu changed\n", done, changes);
}

static json_t *row_json(const struct row *row)
{
    const struct rightsize_entry *e = &row->entry;
    json_t *o = json_pack(
        "{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "job", (json_int_t)e->job,
        "user", e->user, "gpus", (json_int_t)(e->from.nodes * e->from.gpus_per_node),
        "gpus_then", (json_int_t)(e->to.nodes * e->to.gpus_per_node), "time_ns",
        (json_int_t)row->step_now_ns, "time_then_ns",
        (json_int_t)(row->is_change ? row->step_then_ns : row->step_now_ns),
        "time_limit_s", (json_int_t)e->from.time_s, "time_limit_then_s",
        (json_int_t)e->to.time_s, "why", e->reason);
    json_object_set_new(o, "starts_in_s", json_integer(row->start_s));
    json_object_set_new(o, "as_asked_in_s", json_integer(row->asked_start_s));
    json_object_set_new(o, "gpus_planned", json_integer(row->gpus));
    json_object_set_new(o, "ends_in_s", json_integer(row->end_s));
    json_object_set_new(o, "as_asked_ends_in_s", json_integer(row->asked_end_s));
    json_object_set_new(o, "uid", json_integer(row->job->uid));
    if (o && e->is_stop)
        json_object_set_new(o, "stop", json_true());
    if (o && *e->to.partition) {
        json_object_set_new(o, "partition", json_string(e->from.partition));
        json_object_set_new(o, "partition_then", json_string(e->to.partition));
    }
    if (o && row->is_change)
        json_object_set_new(o, "result", json_string(rightsize_result_name(e->result)));
    if (o && *e->detail)
        json_object_set_new(o, "detail", json_string(e->detail));
    return o;
}

static int put_json(const struct run *r, struct topt_error *err)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(rows, row_json(&r->row[i]));
    json_t *doc =
        json_pack("{s:I, s:I, s:b, s:o}", "gpus", (json_int_t)r->plan.gpus, "idle",
                  (json_int_t)r->plan.idle, "applied", r->a.apply, "jobs", rows);
    char *text = doc ? topt_json_text(doc, 1) : NULL;
    if (text)
        printf("%s\n", text);
    free(text);
    json_decref(doc);
    return text ? 0 : topt_nomem(err, "the answer");
}

/* ---- the run ----------------------------------------------------------------------- */

static int read_queue(const char *scontrol, struct site_queue *ret,
                      struct topt_error *err)
{
    struct topt_text jobs = {0};
    int rc = site_ask_jobs(scontrol, ASK_MS, &jobs, err);
    if (!rc)
        rc = site_queue_read(jobs.s, ret, err);
    topt_text_fini(&jobs);
    return rc;
}

/* Does the same wait and run? */
static int is_still(const struct site_queue *a, const struct site_queue *b)
{
    for (size_t i = 0; a->n == b->n && i < a->n; i++)
        if (a->job[i].id != b->job[i].id || strcmp(a->job[i].state, b->job[i].state))
            return 0;
    return a->n == b->n;
}

/* Nodes and jobs are two questions: a job that starts between them would count twice, or
 * not at all.  So jobs are asked before and after, a few times where they differ. */
static int read_slurm(struct run *r, struct topt_error *err)
{
    int rc = read_queue(r->a.scontrol, &r->queue, err), is_same = 0;
    for (int i = 0; !rc && !is_same && i < ASK_AGAIN; i++) {
        struct site_queue before = r->queue;
        r->queue = (struct site_queue){.n = 0};
        site_slurm_fini(&r->slurm);
        rc = site_ask_use(r->a.scontrol, ASK_MS, &r->slurm, err);
        if (!rc)
            rc = read_queue(r->a.scontrol, &r->queue, err);
        is_same = !rc && is_still(&before, &r->queue);
        site_queue_fini(&before);
    }
    if (!rc)
        rc = site_ask_accounts(r->a.scontrol, ASK_MS, &r->slurm.accounts, err);
    if (!rc && !(r->row = calloc(r->queue.n + 1, sizeof *r->row)))
        rc = topt_nomem(err, "the queue");
    return rc;
}

/* The nodes of all jobs that stop, which are the queue's to free. */
static int keep_nodes(const struct run *r, struct topt_error *err)
{
    struct topt_text nodes = {0};
    for (size_t i = 0; i < r->nstops; i++)
        topt_text_add(&nodes, "%s%s", i ? "," : "",
                      r->row[i].job->on ? r->row[i].job->on : "");
    int rc = nodes.oom || !nodes.s ? topt_nomem(err, "the queue")
                                   : requeue_keep_nodes(r->a.scontrol, nodes.s, err);
    topt_text_fini(&nodes);
    return rc;
}

/* All are told to stop before any is waited for; one that takes too long the next run goes on with. */
static int stop_jobs(struct run *r, struct topt_error *err)
{
    int64_t deadline = topt_clock_ms() + REQUEUE_WAIT_MS;
    int rc = 0;
    for (size_t i = 0; !rc && i < r->nstops; i++) {
        r->row[i].entry.result = RIGHTSIZE_BEGUN;
        rc = journal_add(r->journal, &r->row[i].entry, err);
    }
    rc = rc || keep_nodes(r, err) ? -1 : 0;
    for (size_t i = 0; !rc && i < r->nstops; i++)
        r->row[i].entry.result = requeue_stop(r->a.scontrol, &r->row[i].entry);
    for (size_t i = 0; !rc && i < r->nstops; i++) {
        struct rightsize_entry *e = &r->row[i].entry;
        if (e->result == RIGHTSIZE_BEGUN)
            e->result = requeue_finish(r->a.scontrol, deadline, e);
        e->at_s = time(NULL);
    }
    requeue_give_nodes(r->a.scontrol); /* before the log says that all is done */
    for (size_t i = 0; !rc && i < r->nstops; i++)
        if (r->row[i].entry.result != RIGHTSIZE_BEGUN)
            rc = journal_add(r->journal, &r->row[i].entry, err);
    return rc;
}

/* Each change, and its line in the log; where that can't be written no other job is changed. */
static int carry_out(struct run *r, struct topt_error *err)
{
    int rc = r->nstops && r->a.apply ? stop_jobs(r, err) : 0;
    for (size_t i = r->a.apply ? r->nstops : 0; !rc && i < r->n; i++) {
        struct row *row = &r->row[i];
        if (!row->is_change)
            continue;
        if (r->a.apply) {
            row->entry.result = RIGHTSIZE_BEGUN;
            if (journal_add(r->journal, &row->entry, err))
                return -1;
            row->entry.result =
                rightsize_change(r->a.scontrol, row->job, &row->to, row->entry.detail);
            row->entry.at_s = time(NULL);
        }
        rc = journal_add(r->journal, &row->entry, err);
    }
    return rc;
}

static int has_failed(const struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->row[i].entry.result == RIGHTSIZE_HALF ||
            r->row[i].entry.result == RIGHTSIZE_REFUSED)
            return 1;
    return 0;
}

static int check(struct args *a, struct topt_error *err)
{
    if (a->limits.max_slowdown < 1)
        return topt_fail(err, TOPT_ERR_USAGE, "--max-slowdown is at least 1");
    if (a->limits.least_overhead > a->limits.most_overhead)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--least-overhead is more than --most-overhead");
    return 0;
}

/* Options of topt rightsize or topt queue: 1 where help was shown. */
static int read_options(struct run *r, int argc, char **argv, struct topt_error *err)
{
    /* The first word is the command, as `topt` has it. */
    int skip = argc > 1 && (!strcmp(argv[1], "rightsize") || !strcmp(argv[1], "queue"));
    int nargs = 0;
    r->a.only_look = skip && !strcmp(argv[1], "queue");
    const struct topt_option *table = r->a.only_look ? queue_options : options;
    int rc =
        topt_options_parse(table, argc - skip, argv + skip, &r->a, NULL, 0, &nargs, err);
    if (rc == 1)
        topt_options_help(stdout, r->a.only_look ? queue_usage : usage, table);
    if (!topt_milp_program(r->queue_program, sizeof r->queue_program, NULL)) {
        r->solver = (struct topt_alloc_solver){topt_milp_ask, r->queue_program};
        r->a.limits.solver = &r->solver;
    }
    return rc;
}

static void put_plan(const struct run *r)
{
    if (r->a.only_look)
        put_queue(r);
    else
        put_table(r);
    if (!r->a.undo)
        put_solver(r);
    fflush(stdout);
}

/* What an earlier run left half done; the queue is read anew where that changed it. */
static int mend(struct run *r, struct topt_error *err)
{
    size_t n;
    if (rightsize_mend(r->journal, &r->queue, r->a.scontrol, &n, err))
        return -1;
    if (!n)
        return 0;
    site_queue_fini(&r->queue);
    site_slurm_fini(&r->slurm);
    free(r->row);
    r->row = NULL;
    return read_slurm(r, err);
}

/* Decide, say and carry out. */
static int run(struct run *r, struct topt_error *err)
{
    /* A dry run knows what was changed before, but adds nothing where no log was named. */
    int writes = !r->a.only_look && (r->a.apply || r->a.log);
    if (journal_open(r->a.log ? r->a.log : usual_log, writes, &r->journal, err) ||
        read_slurm(r, err) || (r->a.apply && mend(r, err)) ||
        (r->a.undo ? find_undos(r) : decide(r, err)))
        return -1;
    if (!r->a.json)
        put_plan(r);
    int rc = writes ? carry_out(r, err) : 0;
    if (r->a.json)
        rc = put_json(r, err) || rc;
    else if (!r->a.only_look)
        put_results(r);
    fflush(stdout);
    return rc ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct run r = {.a = {.scontrol = "scontrol",
                          .limits = {.jobs = 20,
                                     .per_user = 5,
                                     .min_efficiency = 0.8,
                                     .max_slowdown = 4,
                                     .settle_s = 600,
                                     .most_overhead = 0.25,
                                     .least_overhead = 0.05,
                                     .most_share = 0.25,
                                     .reserve = 0.25}}};
    struct topt_error err = {0};
    int rc = read_options(&r, argc, argv, &err);
    if (rc == 1)
        return 0;
    rc = rc || check(&r.a, &err) || run(&r, &err);
    int status = rc ? complain(&r, &err) : has_failed(&r);
    rightsize_plan_fini(&r.plan);
    site_queue_fini(&r.queue);
    site_slurm_fini(&r.slurm);
    journal_close(r.journal);
    free(r.row);
    return status;
}
