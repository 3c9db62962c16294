/* run.c - `topt run`: train by a plan, on every rank of it.
 *
 * All ranks run this; whatever can fail before the first step is agreed upon, so that one
 * line of error appears and every rank ends.  During the steps a failing rank aborts the
 * others, which wait for it in a collective. */
#include "cli.h"
#include "devices.h"
#include "plan_source.h"
#include "rank.h"
#include "report.h"
#include "topt_json.h"
#include "topt_options.h"
#include "topt_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct args {
    const char *data, *dtype, *optimizer, *report, *gradients, *device, *comm;
    int64_t steps, seed, memory;
    double lr, weight_decay;
    int quiet, json, times;
};

static const struct topt_option options[] = {
    {"data", TOPT_OPT_STRING, offsetof(struct args, data), "PATH",
     "to train on: text, idx or csv, a file or a directory; or 'synthetic'"},
    {"steps", TOPT_OPT_COUNT, offsetof(struct args, steps), "N",
     "steps of training (10)"},
    {"dtype", TOPT_OPT_STRING, offsetof(struct args, dtype), "f32|f64|bf16",
     "numbers, where not the plan's; bf16 on cuda"},
    {"device", TOPT_OPT_STRING, offsetof(struct args, device), "host|cuda",
     "what to compute on (host)"},
    {"comm", TOPT_OPT_STRING, offsetof(struct args, comm), "auto|mpi|nccl|staged",
     "how devices talk (auto)"},
    {"optimizer", TOPT_OPT_STRING, offsetof(struct args, optimizer),
     "sgd|momentum|adam|adamw", "where not the plan's"},
    {"lr", TOPT_OPT_REAL, offsetof(struct args, lr), "X",
     "learning rate (sgd 0.1, momentum 0.02, adam and adamw 0.0003)"},
    {"weight-decay", TOPT_OPT_REAL, offsetof(struct args, weight_decay), "X",
     "of adamw (0.01)"},
    {"seed", TOPT_OPT_INT, offsetof(struct args, seed), "S",
     "of the weights and the samples (1)"},
    {"memory", TOPT_OPT_MEMORY, offsetof(struct args, memory), "BYTES",
     "refuse a plan that needs more on a device"},
    {"report", TOPT_OPT_STRING, offsetof(struct args, report), "FILE",
     "write what was measured"},
    {"dump-gradients", TOPT_OPT_STRING, offsetof(struct args, gradients), "DIR",
     "write the whole gradients of step 1"},
    {"times", TOPT_OPT_FLAG, offsetof(struct args, times), NULL,
     "print where rank 0's time went"},
    {"quiet", TOPT_OPT_FLAG, offsetof(struct args, quiet), NULL, "no progress"},
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), NULL,
     "print the report on standard output"},
    {0}};

static const char usage[] =
    "topt run PLAN [--data PATH|synthetic] [options]   (under mpirun or srun)";

struct run {
    struct args args;
    const char *plan_arg;
    struct topt_comm *comm, *host; /* of the devices, of the hosts; may be the same */
    struct topt_plan_doc *plan;
    struct topt_program *own; /* lowered again for other settings, or NULL */
    const struct topt_program *program;
    struct topt_run_device device;
    struct topt_feed feed;
    struct topt_session *session;
    double *loss;
    int64_t *step_ns, steps, start_rss, shown_ns;
    json_t *gradients; /* index of those written */
    struct topt_run_report report;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A line "VmHWM:  123 kB" of /proc/self/status, in bytes; 0 where there is none. */
static int64_t status_bytes(const char *key)
{
    char line[256];
    int64_t kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    size_t n = strlen(key);
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, n) && line[n] == ':')
            kb = strtoll(line + n + 1, NULL, 10);
    if (f)
        fclose(f);
    return kb * 1024;
}

/* ---- before the first step --------------------------------------------------------- */

/* Other numbers or another optimizer are other bytes: lower and cost the strategy
 * again. */
static int choose_program(struct run *r, struct topt_error *err)
{
    struct topt_plan_doc *p = r->plan;
    struct topt_settings s = p->settings;
    struct topt_strategy_cost cost;
    if ((r->args.dtype && topt_dtype_parse(r->args.dtype, &s.dtype, err)) ||
        (r->args.optimizer && topt_optimizer_parse(r->args.optimizer, &s.optimizer, err)))
        return -1;
    r->program = p->program;
    r->report.predicted_time_ns = p->time_ns;
    r->report.predicted_memory_bytes = p->memory_bytes;
    if (s.dtype == p->settings.dtype && s.optimizer == p->settings.optimizer)
        return 0;
    if (topt_lower(p->micro, &p->mesh, &s, p->strategy, p->router, &r->own, err))
        return -1;
    struct topt_costing k = {.model = p->micro,
                             .hw = p->hw,
                             .mesh = &p->mesh,
                             .settings = &s,
                             .router = p->router};
    if (topt_cost_strategy(&k, p->strategy, &cost, err))
        return -1;
    r->program = r->own;
    r->report.predicted_time_ns = cost.time_ns;
    r->report.predicted_memory_bytes = cost.memory_bytes;
    return 0;
}

static int check_memory(const struct run *r, struct topt_error *err)
{
    char have[32], need[32];
    if (!r->args.memory || r->report.predicted_memory_bytes <= r->args.memory)
        return 0;
    return topt_fail(
        err, TOPT_ERR_INFEASIBLE,
        "the plan needs %s on a device, --memory gives %s; ask for a plan that "
        "fits",
        topt_show_bytes(r->report.predicted_memory_bytes, need, sizeof need),
        topt_show_bytes(r->args.memory, have, sizeof have));
}

/* What each rank does by itself. */
static int prepare_alone(struct run *r, struct topt_error *err)
{
    if (topt_comm_bind(r->comm, &r->plan->mesh, err) || choose_program(r, err) ||
        check_memory(r, err) ||
        topt_run_device_open(&r->device, r->program->settings.dtype, err) ||
        topt_feed_open(r->args.data, r->plan->model, (uint64_t)r->args.seed, &r->feed,
                       err))
        return -1;
    r->loss = calloc((size_t)r->args.steps + 1, sizeof *r->loss);
    r->step_ns = calloc((size_t)r->args.steps + 1, sizeof *r->step_ns);
    return r->loss && r->step_ns ? 0 : topt_nomem(err, NULL);
}

/* Ranks that read different data would train nonsense without a word. */
static int check_same_data(struct run *r, struct topt_error *err)
{
    uint64_t d = r->feed.digest;
    double part[4] = {(double)(d >> 32), -(double)(d >> 32), (double)(d & 0xffffffffu),
                      -(double)(d & 0xffffffffu)};
    if (r->comm->ops->max(r->comm, part, 4, err))
        return -1;
    return part[0] + part[1] == 0 && part[2] + part[3] == 0
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "'%s' is not the same on all nodes",
                           r->args.data);
}

/* ---- gradients of the first step --------------------------------------------------- */

static int write_gradient(struct run *r, const struct topt_buffer *b, const double *x,
                          int64_t n, struct topt_error *err)
{
    const struct topt_op *op = &r->plan->model->op[b->op];
    char path[4096], name[64];
    json_t *shape = json_array();
    for (int i = 0; i < b->shape.ndim; i++)
        json_array_append_new(shape,
                              json_integer(b->shape.dim[i].count * b->shape.dim[i].unit));
    snprintf(name, sizeof name, "%03d-%s.f64", b->op, op->spec->operand[b->operand].name);
    json_array_append_new(r->gradients,
                          json_pack("{s:s, s:s, s:s, s:o}", "file", name, "op", op->name,
                                    "operand", op->spec->operand[b->operand].name,
                                    "shape", shape));
    if (snprintf(path, sizeof path, "%s/%s", r->args.gradients, name) >= (int)sizeof path)
        return topt_fail(err, TOPT_ERR_INVAL, "--dump-gradients: the path is too long");
    return topt_write_file(path, x, (size_t)n * sizeof *x, err);
}

static int dump_gradient(void *ctx, struct topt_session *s, int instr,
                         struct topt_error *err)
{
    struct run *r = ctx;
    double *x = NULL;
    int64_t n;
    if (r->steps > 0)
        return 0;
    int buffer = r->program->instr[instr].b;
    if (topt_session_gather(s, buffer, &x, &n, NULL, err))
        return -1;
    int rc = x ? write_gradient(r, &r->program->buffer[buffer], x, n, err) : 0;
    free(x);
    return rc;
}

static int write_index(struct run *r, struct topt_error *err)
{
    char path[4096];
    char *text = topt_json_text(r->gradients, 1);
    int rc = !text ? topt_nomem(err, NULL) : 0;
    snprintf(path, sizeof path, "%s/index.json", r->args.gradients);
    if (!rc)
        rc = topt_write_file(path, text, strlen(text), err);
    free(text);
    return rc;
}

/* ---- steps ------------------------------------------------------------------------- */

/* In place on a terminal, else a line every few seconds; only rank 0. */
static void progress(struct run *r, int last)
{
    int tty = isatty(STDERR_FILENO);
    int64_t t = now_ns(), every = tty ? 100000000 : 5000000000;
    char took[32];
    if (r->comm->rank || r->args.quiet || t - r->shown_ns < (tty && last ? 0 : every))
        return;
    r->shown_ns = t;
    topt_show_ns(topt_median_ns(r->step_ns, r->steps), took, sizeof took);
    fprintf(stderr, "%sstep %lld of %lld, loss %.4f, %s a step%s", tty ? "\r\033[K" : "",
            (long long)r->steps, (long long)r->args.steps, r->loss[r->steps - 1], took,
            tty && !last ? "" : "\n");
    fflush(stderr);
}

static int train(struct run *r, struct topt_error *err)
{
    int64_t before = now_ns();
    r->shown_ns = before;
    for (int64_t i = 0; i < r->args.steps; i++) {
        if (topt_session_step(r->session, &r->loss[i], err)) {
            topt_complain("run", err);
            r->comm->ops->abort(r->comm, topt_err_exit(err->code));
        }
        int64_t t = now_ns();
        r->step_ns[i] = t - before;
        before = t;
        r->steps++;
        if (!isfinite(r->loss[i])) {
            r->steps--; /* not a number that a report could hold */
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "the loss is not a number any more at step %lld; try a smaller "
                "--lr than %g",
                (long long)i + 1, r->report.lr);
        }
        progress(r, i + 1 == r->args.steps);
    }
    return 0;
}

static int start_session(struct run *r, struct topt_error *err)
{
    struct topt_session_options o = {
        .lr = r->args.lr,
        .weight_decay = r->args.weight_decay > 0 ? r->args.weight_decay : -1,
        .seed = (uint64_t)r->args.seed,
        .feed = r->feed};
    int failed = 0;
    if (r->args.gradients) {
        o.before_update = dump_gradient;
        o.ctx = r;
        r->gradients = json_array();
        if (!r->comm->rank && mkdir(r->args.gradients, 0777) && errno != EEXIST)
            failed = topt_fail(err, TOPT_ERR_IO, "create '%s': %s", r->args.gradients,
                               strerror(errno));
    }
    r->report.lr =
        r->args.lr > 0 ? r->args.lr : topt_default_lr(r->program->settings.optimizer);
    r->start_rss = status_bytes("VmRSS");
    if (topt_comm_agree(r->comm, failed, err))
        return -1;
    return topt_session_create(r->program, r->comm, &r->device.dev, &o, &r->session, err);
}

/* ---- after ------------------------------------------------------------------------- */

static int measure(struct run *r, struct topt_error *err)
{
    double most[2] = {(double)topt_session_peak_bytes(r->session),
                      (double)(status_bytes("VmHWM") - r->start_rss)};
    if (r->comm->ops->max(r->comm, most, 2, err))
        return -1;
    struct topt_run_report *p = &r->report;
    p->plan = r->plan;
    p->program = r->program;
    p->data = r->args.data ? r->args.data : r->feed.kind;
    p->seed = (uint64_t)r->args.seed;
    p->steps = r->steps;
    p->loss = r->loss;
    p->step_ns = r->step_ns;
    p->times = topt_session_times(r->session);
    p->peak_bytes = (int64_t)most[0];
    p->process_growth_bytes = (int64_t)most[1];
    return 0;
}

static void say(const struct run *r)
{
    const struct topt_run_report *p = &r->report;
    char took[32], planned[32], peak[32], bound[32];
    if (r->steps == 0)
        return;
    printf(
        "%lld steps on %d rank%s: loss %.4f to %.4f, %s a step (predicted %s), peak %s "
        "(predicted %s)\n",
        (long long)r->steps, r->comm->size, r->comm->size == 1 ? "" : "s", r->loss[0],
        r->loss[r->steps - 1],
        topt_show_ns(topt_median_ns(r->step_ns, r->steps), took, sizeof took),
        topt_show_ns(p->predicted_time_ns, planned, sizeof planned),
        topt_show_bytes(p->peak_bytes, peak, sizeof peak),
        topt_show_bytes(p->program->peak_bytes, bound, sizeof bound));
    if (r->args.times)
        topt_report_print_times(p, stdout);
}

static int finish(struct run *r, struct topt_error *err)
{
    if (r->comm->rank)
        return 0;
    json_t *doc = topt_report_json(&r->report);
    char *text = doc ? topt_json_text(doc, 1) : NULL;
    int rc = text ? 0 : topt_nomem(err, "the report");
    if (!rc && r->args.report)
        rc = topt_write_file(r->args.report, text, strlen(text), err);
    if (!rc && r->gradients)
        rc = write_index(r, err);
    if (!rc && r->args.json)
        puts(text);
    else if (!rc && !r->args.quiet)
        say(r);
    free(text);
    json_decref(doc);
    return rc;
}

static int perform(struct run *r, struct topt_error *err)
{
    r->comm = r->host;
    if (topt_plan_everywhere(r->comm, r->plan_arg, &r->plan, err))
        return -1;
    r->device = (struct topt_run_device){
        .device = r->args.device, .comm = r->args.comm, .host = r->host};
    if (topt_comm_agree(r->host, prepare_alone(r, err), err) ||
        topt_comm_agree(r->host, topt_run_device_connect(&r->device, &r->comm, err),
                        err) ||
        topt_comm_agree(r->comm, check_same_data(r, err), err) || start_session(r, err))
        return -1;
    struct topt_error training = {0};
    int rc = topt_comm_agree(r->comm, train(r, &training), &training);
    if (measure(r, err) || topt_comm_agree(r->comm, finish(r, err), err))
        return -1;
    if (rc)
        *err = training;
    return rc;
}

static void clean_up(struct run *r)
{
    topt_session_destroy(r->session);
    topt_feed_close(&r->feed);
    if (r->comm != r->host)
        topt_comm_destroy(r->comm);
    topt_device_close(&r->device.dev);
    topt_program_destroy(r->own);
    topt_plan_doc_destroy(r->plan);
    json_decref(r->gradients);
    free(r->loss);
    free(r->step_ns);
    topt_comm_destroy(r->host);
    topt_comm_mpi_finish();
}

/* Before anything is loaded: an unknown word is wrong usage. */
static int check_names(const struct args *a, struct topt_error *err)
{
    enum topt_dtype dtype;
    enum topt_optimizer optimizer;
    if ((!a->dtype || !topt_dtype_parse(a->dtype, &dtype, err)) &&
        (!a->optimizer || !topt_optimizer_parse(a->optimizer, &optimizer, err)))
        return 0;
    err->code = TOPT_ERR_USAGE;
    return -1;
}

static int parse(int argc, char **argv, struct run *r, struct topt_error *err)
{
    int n = 0;
    r->args = (struct args){
        .steps = 10, .seed = 1, .weight_decay = 0.01, .device = "host", .comm = "auto"};
    int rc = topt_options_parse(options, argc, argv, &r->args, &r->plan_arg, 1, &n, err);
    if (!rc && !n)
        return topt_fail(err, TOPT_ERR_USAGE, "which plan? usage: %s", usage);
    if (!rc && r->args.steps > 100000000)
        return topt_fail(err, TOPT_ERR_USAGE, "--steps has to be 1 to 100000000");
    return rc ? rc : check_names(&r->args, err);
}

int topt_cmd_run(int argc, char **argv)
{
    struct run r = {.comm = NULL};
    struct topt_error err = {0};
    int rank = topt_launch_rank(), rc = parse(argc, argv, &r, &err);
    if (rc > 0) {
        if (!rank)
            topt_options_help(stdout, usage, options);
        return 0;
    }
    if (rc || topt_comm_open(&argc, &argv, &r.host, &err)) {
        if (!rank)
            topt_complain("run", &err);
        return topt_err_exit(err.code);
    }
    rc = perform(&r, &err);
    /* the first rank that failed speaks; of lone processes under one launcher the
     * first */
    if (rc && !topt_comm_failed_elsewhere(&err) && (r.comm->size > 1 || !rank))
        topt_complain("run", &err);
    clean_up(&r);
    return rc ? topt_err_exit(err.code) : 0;
}
