/* run_outputs.c - what a run writes: gradients of the first step, its report, and the last
 * words of one that can't go on. */
#include "run_outputs.h"
#include "observe.h"
#include "rank.h"
#include "topt_json.h"
#include "topt_text.h"
#include "topt_weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- before the first step --------------------------------------------------------- */

/* Is there room for 'bytes' beside 'path', or does what is there take any? */
static int probe_file(const char *path, int64_t bytes, struct topt_error *err)
{
    struct stat st;
    struct topt_text name = {0};
    int plain = stat(path, &st) || S_ISREG(st.st_mode), bad = 0;
    if (!strcmp(path, "-") || (!plain && !S_ISCHR(st.st_mode)))
        return 0; /* a pipe has no room of its own */
    topt_text_add(&name, plain ? "%s.%ld.probe" : "%s", path, (long)getpid());
    if (name.oom)
        return topt_nomem(err, NULL);
    int fd = open(name.s, (plain ? O_CREAT | O_EXCL : 0) | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0)
        bad = errno;
    else if (plain)
        bad = posix_fallocate(fd, 0, bytes);
    else if (write(fd, " ", 1) < 0) /* a blank before a document */
        bad = errno;
    if (fd >= 0)
        close(fd);
    if (plain && fd >= 0)
        unlink(name.s);
    topt_text_fini(&name);
    errno = bad;
    return bad && bad != EOPNOTSUPP && bad != EINVAL
               ? topt_fail(err, TOPT_ERR_IO, "can't write '%s': %s", path, strerror(bad))
               : 0;
}

/* Whose names the weights get. */
static const char *config_of(const struct topt_run *r)
{
    return r->args.config ? r->args.config : r->args.weights;
}

static int probe_weights(const struct topt_run *r, struct topt_error *err)
{
    char path[4096];
    int64_t bytes;
    if (topt_weights_check(r->program, config_of(r), r->args.merge, &bytes, err))
        return -1;
    if (mkdir(r->args.save_weights, 0777) && errno != EEXIST)
        return topt_fail(err, TOPT_ERR_IO, "create '%s': %s", r->args.save_weights,
                         strerror(errno));
    snprintf(path, sizeof path, "%.4000s/model.safetensors", r->args.save_weights);
    return probe_file(path, bytes + 1, err);
}

/* Checkpoints of two trainings in one folder: the older steps would be removed, the later
 * ones gone on from, whichever training they are of. */
static int check_fresh(const struct topt_run *r, struct topt_error *err)
{
    int64_t newest = topt_checkpoint_newest(r->args.checkpoint);
    return newest < 0 ? 0
                      : topt_fail(err, TOPT_ERR_USAGE,
                                  "--checkpoint: '%s' has a checkpoint after step %lld; "
                                  "--resume goes on from it, another training takes "
                                  "another folder",
                                  r->args.checkpoint, (long long)newest);
}

int topt_run_probe(struct topt_run *r, struct topt_error *err)
{
    if (r->args.report && probe_file(r->args.report, 4096 + 48 * r->args.steps, err))
        return topt_wrap(err, "--report");
    if (r->args.save_weights && probe_weights(r, err))
        return topt_wrap(err, "--save-weights");
    if (r->args.checkpoint && !r->args.resume && check_fresh(r, err))
        return -1;
    if (r->args.gradients && mkdir(r->args.gradients, 0777) && errno != EEXIST)
        return topt_fail(err, TOPT_ERR_IO, "--dump-gradients: create '%s': %s",
                         r->args.gradients, strerror(errno));
    return 0;
}

/* ---- gradients of the first step --------------------------------------------------- */

static int write_gradient(struct topt_run *r, const struct topt_buffer *b,
                          const double *x, int64_t n, struct topt_error *err)
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
    struct topt_run *r = ctx;
    double *x = NULL;
    int64_t n;
    if (r->steps > 0 || r->first > 0)
        return 0;
    int buffer = r->program->instr[instr].b;
    if (topt_session_gather(s, buffer, &x, &n, NULL, err))
        return -1;
    int rc = x ? write_gradient(r, &r->program->buffer[buffer], x, n, err) : 0;
    free(x);
    return rc;
}

void topt_run_dump_gradients(struct topt_run *r, struct topt_session_options *o)
{
    if (!r->args.gradients)
        return;
    o->before_update = dump_gradient;
    o->ctx = r;
    r->gradients = json_array();
}

static int write_index(struct topt_run *r, struct topt_error *err)
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

/* ---- weights --------------------------------------------------------------------- */

/* What texts were read by goes with the weights, so that they write text where they lie;
 * NULL: nothing is known of it. */
static const char *tokenizer_of(const struct topt_run *r)
{
    char path[4096];
    if (r->args.tokenizer || !r->args.weights)
        return r->args.tokenizer;
    snprintf(path, sizeof path, "%.4000s/tokenizer.json", r->args.weights);
    return access(path, R_OK) ? NULL : r->args.weights;
}

int topt_run_save_weights(struct topt_run *r, struct topt_error *err)
{
    struct topt_weights_folder to = {.dir = r->args.save_weights,
                                     .dropout = r->args.dropout.adapter,
                                     .config = config_of(r),
                                     .tokenizer = tokenizer_of(r),
                                     .merge = r->args.merge};
    return topt_weights_save(r->session, &to, err) ? topt_wrap(err, "--save-weights") : 0;
}

/* ---- after ------------------------------------------------------------------------- */

/* What this rank knows by itself. */
static void fill_report(struct topt_run *r)
{
    struct topt_run_report *p = &r->report;
    p->plan = r->plan;
    p->program = r->program;
    p->data = r->args.data ? r->args.data : r->feed.kind;
    p->seed = (uint64_t)r->args.seed;
    p->first = r->first;
    p->steps = r->steps;
    p->loss = r->loss;
    p->step_ns = r->step_ns;
    p->times = topt_session_times(r->session);
    p->peak_bytes = topt_session_peak_bytes(r->session);
    p->arena_bytes = topt_session_arena_bytes(r->session);
    p->process_growth_bytes = topt_run_status_bytes("VmHWM") - r->start_rss;
}

static int measure(struct topt_run *r, struct topt_error *err)
{
    fill_report(r);
    struct topt_run_report *p = &r->report;
    double most[2] = {(double)p->peak_bytes, (double)p->process_growth_bytes};
    if (r->comm->ops->max(r->comm, most, 2, err))
        return -1;
    p->peak_bytes = (int64_t)most[0];
    p->process_growth_bytes = (int64_t)most[1];
    if (!topt_model_has_tables(r->program->model))
        return 0;
    r->named = calloc((size_t)r->program->model->nops + 1, sizeof *r->named);
    p->named = r->named;
    return r->named ? topt_session_tables(r->session, r->named, err)
                    : topt_nomem(err, "the report");
}

static void say(const struct topt_run *r)
{
    const struct topt_run_report *p = &r->report;
    char took[32], planned[32], peak[32], bound[32];
    if (r->steps == 0)
        return;
    printf("%lld step%s on %d rank%s: loss %.4f to %.4f, %s per step (predicted %s), "
           "peak %s (predicted %s)\n",
           (long long)r->steps, r->steps == 1 ? "" : "s", r->comm->size,
           r->comm->size == 1 ? "" : "s", r->loss[0], r->loss[r->steps - 1],
           topt_show_ns(topt_median_ns(r->step_ns, r->steps), took, sizeof took),
           topt_show_ns(p->predicted_time_ns, planned, sizeof planned),
           topt_show_bytes(p->peak_bytes, peak, sizeof peak),
           topt_show_bytes(p->program->peak_bytes, bound, sizeof bound));
    topt_report_print_tables(p, stdout);
    if (r->args.times)
        topt_report_print_times(p, stdout);
}

static int write_all(struct topt_run *r, struct topt_error *err)
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
    if (!rc)
        topt_run_observe(&r->report);
    free(text);
    json_decref(doc);
    return rc;
}

int topt_run_finish(struct topt_run *r, struct topt_error *err)
{
    return measure(r, err) || topt_comm_agree(r->comm, write_all(r, err), err) ? -1 : 0;
}

/* The steps that are done are told as they are: 'steps' grows last. */
void topt_run_last_words(void *run, enum topt_err code, const char *line)
{
    struct topt_run *r = run;
    struct topt_error err;
    (void)code;
    topt_complain_line("run", line);
    if (!r->session || !r->args.report)
        return;
    fill_report(r);
    r->report.ended = line;
    json_t *doc = topt_report_json(&r->report);
    char *text = doc ? topt_json_text(doc, 1) : NULL;
    if (text && topt_write_file(r->args.report, text, strlen(text), &err))
        topt_complain("run", &err);
    free(text);
    json_decref(doc);
}
