/* run.c - `topt run`: train by a plan, on every rank of it.
 *
 * All ranks run this; whatever can fail before the first step is agreed upon, so that one
 * line of error appears and every rank ends.  During the steps a guard sees to that: it ends
 * all ranks where one fails, ends or does not come. */
#include "cli.h"
#include "plan_source.h"
#include "rank.h"
#include "metrics.h"
#include "run_outputs.h"
#include "run_program.h"
#include "run_steps.h"
#include "topt_options.h"
#include "topt_weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct topt_option options[] = {
    TOPT_EXAMPLE("mpirun -n 2 topt run plan.json --data synthetic --steps 5",
                 "five steps of a plan for 2 devices of topt plan --framework topt"),
    {"data", TOPT_OPT_STRING, offsetof(struct topt_run_args, data), "PATH",
     "to train on: text, tokens (*.bin), records (*.jsonl), idx or csv, a file or a "
     "directory; a folder with one of pictures for each class; or 'synthetic'"},
    {"tokenizer", TOPT_OPT_STRING, offsetof(struct topt_run_args, tokenizer), "FILE",
     "tokenizer.json, or a folder with one, for texts (a token a byte value)"},
    {"objective", TOPT_OPT_STRING, offsetof(struct topt_run_args, objective),
     "auto|next|masked|spans",
     "what is learnt of texts: by the model (auto), the next token, hidden tokens, or "
     "gaps"},
    {"order", TOPT_OPT_STRING, offsetof(struct topt_run_args, order), "random|epochs",
     "samples of a text anywhere, or side by side, each once before any again (random)"},
    {"mask-token", TOPT_OPT_INT, offsetof(struct topt_run_args, mask_token), "N",
     "the token that hides others (the tokenizer's)"},
    {"steps", TOPT_OPT_COUNT, offsetof(struct topt_run_args, steps), "N",
     "steps of training (10)"},
    {"dtype", TOPT_OPT_STRING, offsetof(struct topt_run_args, dtype), "f32|f64|bf16",
     "number type, if not the plan's; bf16 on cuda only"},
    {"device", TOPT_OPT_STRING, offsetof(struct topt_run_args, device), "host|cuda",
     "device to compute on (host)"},
    {"comm", TOPT_OPT_STRING, offsetof(struct topt_run_args, comm),
     "auto|mpi|nccl|staged", "how devices talk (auto)"},
    {"optimizer", TOPT_OPT_STRING, offsetof(struct topt_run_args, optimizer),
     "sgd|momentum|adam|adamw", "optimizer, if not the plan's"},
    {"lr", TOPT_OPT_REAL, offsetof(struct topt_run_args, lr), "X",
     "learning rate (sgd 0.1, momentum 0.02, adam and adamw 0.0003)"},
    {"weight-decay", TOPT_OPT_REAL, offsetof(struct topt_run_args, weight_decay), "X",
     "of adamw, for what has 2 dimensions: not norms, not biases (0.01)"},
    {"schedule", TOPT_OPT_STRING, offsetof(struct topt_run_args, schedule),
     "constant|cosine", "of the learning rate, after --warmup, until --steps (constant)"},
    {"warmup", TOPT_OPT_INT, offsetof(struct topt_run_args, warmup), "N",
     "steps in which the learning rate grows (0)"},
    {"min-lr", TOPT_OPT_REAL, offsetof(struct topt_run_args, min_lr), "X",
     "where the cosine ends (a tenth of --lr)"},
    {"clip", TOPT_OPT_POSITIVE, offsetof(struct topt_run_args, clip), "X",
     "clip the norm of all gradients together to X (off)"},
    {"dropout", TOPT_OPT_REAL, offsetof(struct topt_run_args, dropout.residual), "X",
     "fraction that is dropped of what layers add to what goes round them, and of what "
     "goes into the first (0, whatever the config says)"},
    {"attention-dropout", TOPT_OPT_REAL,
     offsetof(struct topt_run_args, dropout.attention), "X",
     "the same of attention's weights (0)"},
    {"adapter-dropout", TOPT_OPT_REAL, offsetof(struct topt_run_args, dropout.adapter),
     "X", "the same of what adapters read (0)"},
    {"balance", TOPT_OPT_REAL, offsetof(struct topt_run_args, balance), "X",
     "what the balance of experts counts beside the loss (0)"},
    {"bucket", TOPT_OPT_BYTES, offsetof(struct topt_run_args, bucket), "BYTES",
     "gradients smaller than this are reduced together until they are that much; 1: each "
     "by itself (256KiB)"},
    {"overlap", TOPT_OPT_FLAG, offsetof(struct topt_run_args, overlap), NULL,
     "reduce gradients behind backward, where the communicator can (MPI)"},
    {"beta1", TOPT_OPT_POSITIVE, offsetof(struct topt_run_args, beta1), "X",
     "of adam and adamw, and momentum's share (0.9)"},
    {"beta2", TOPT_OPT_POSITIVE, offsetof(struct topt_run_args, beta2), "X",
     "of adam and adamw (0.999)"},
    {"eps", TOPT_OPT_POSITIVE, offsetof(struct topt_run_args, eps), "X",
     "of adam, adamw and row_wise_adagrad (1e-8)"},
    {"eval-data", TOPT_OPT_STRING, offsetof(struct topt_run_args, eval_data), "PATH",
     "to evaluate on, in the form of --data"},
    {"eval-every", TOPT_OPT_COUNT, offsetof(struct topt_run_args, eval_every), "N",
     "steps between evaluations (100)"},
    {"eval-batches", TOPT_OPT_COUNT, offsetof(struct topt_run_args, eval_batches), "N",
     "batches of an evaluation, the same each time (10)"},
    {"metrics", TOPT_OPT_STRING, offsetof(struct topt_run_args, metrics), "FILE",
     "write a line of JSON per step: loss, learning rate, tokens/s, ..."},
    {"weights", TOPT_OPT_STRING, offsetof(struct topt_run_args, weights), "DIR",
     "start from the weights of a Hugging Face folder"},
    {"adapter", TOPT_OPT_STRING, offsetof(struct topt_run_args, adapters), "DIR",
     "start from the adapters of a folder of PEFT's, beside --weights"},
    {"save-weights", TOPT_OPT_STRING, offsetof(struct topt_run_args, save_weights), "DIR",
     "write such a folder at the end; of a plan with adapters, PEFT's"},
    {"merge", TOPT_OPT_FLAG, offsetof(struct topt_run_args, merge), NULL,
     "add the adapters to the weights that --save-weights writes"},
    {"config", TOPT_OPT_STRING, offsetof(struct topt_run_args, config), "FILE",
     "config.json of the model, where that in --weights is of another head"},
    {"seed", TOPT_OPT_INT, offsetof(struct topt_run_args, seed), "S",
     "of the weights and the samples (1)"},
    {"memory", TOPT_OPT_MEMORY, offsetof(struct topt_run_args, memory), "BYTES",
     "refuse a plan that needs more memory per device"},
    {"checkpoint", TOPT_OPT_STRING, offsetof(struct topt_run_args, checkpoint), "DIR",
     "save a checkpoint there: periodically, at the end, and on SIGTERM or SIGUSR1"},
    {"every", TOPT_OPT_COUNT, offsetof(struct topt_run_args, every), "N",
     "steps between checkpoints (1000)"},
    {"keep", TOPT_OPT_COUNT, offsetof(struct topt_run_args, keep), "N",
     "checkpoints to keep (3)"},
    {"resume", TOPT_OPT_FLAG, offsetof(struct topt_run_args, resume), NULL,
     "go on from the last checkpoint, with any plan of the model"},
    {"watchdog", TOPT_OPT_INT, offsetof(struct topt_run_args, watchdog), "SECONDS",
     "time without progress after which the run ends and names missing ranks (60; 0: "
     "never)"},
    {"report", TOPT_OPT_STRING, offsetof(struct topt_run_args, report), "FILE",
     "write the measurements to a file"},
    {"dump-gradients", TOPT_OPT_STRING, offsetof(struct topt_run_args, gradients), "DIR",
     "write the whole gradients of step 1"},
    {"times", TOPT_OPT_FLAG, offsetof(struct topt_run_args, times), NULL,
     "print where rank 0's time went"},
    {"quiet", TOPT_OPT_FLAG, offsetof(struct topt_run_args, quiet), NULL, "no progress"},
    {"json", TOPT_OPT_FLAG, offsetof(struct topt_run_args, json), NULL,
     "print the report on standard output"},
    {0}};

static const char usage[] =
    "topt run PLAN [--data PATH|synthetic] [options]   (under mpirun or srun)";

/* ---- before the first step --------------------------------------------------------- */

static const char *const objectives[] = {[TOPT_LEARN_BY_MODEL] = "auto",
                                         [TOPT_LEARN_NEXT] = "next",
                                         [TOPT_LEARN_MASKED] = "masked",
                                         [TOPT_LEARN_SPANS] = "spans"};
enum { NOBJECTIVES = sizeof objectives / sizeof *objectives };

static int objective_of(const struct topt_run_args *a)
{
    int o = 0;
    while (o < NOBJECTIVES && strcmp(objectives[o], a->objective) != 0)
        o++;
    return o;
}

/* 'like' NULL: the data to train on. */
static int open_feed(const struct topt_run *r, const struct topt_feed *like,
                     const char *data, struct topt_feed *ret, struct topt_error *err)
{
    struct topt_feed_request q = {.data = data,
                                  .tokenizer = r->args.tokenizer,
                                  .objective =
                                      (enum topt_objective)objective_of(&r->args),
                                  .mask = r->args.mask_token,
                                  .by_epoch = !strcmp(r->args.order, "epochs"),
                                  .seed = (uint64_t)r->args.seed};
    return topt_feed_for(&q, like, r->plan->model, ret, err);
}

/* The optimizer is known with the plan: what it does not obey is refused. */
static int check_optimizer(const struct topt_run *r, struct topt_error *err)
{
    enum topt_optimizer o = r->program->settings.optimizer;
    int adam = o == TOPT_ADAM || o == TOPT_ADAMW;
    const struct {
        int given, obeyed;
        const char *name, *who;
    } of[] = {{!isnan(r->args.weight_decay), o == TOPT_ADAMW, "weight-decay", "adamw"},
              {r->args.beta1 > 0, adam || o == TOPT_MOMENTUM, "beta1",
               "momentum, adam or adamw"},
              {r->args.beta2 > 0, adam, "beta2", "adam or adamw"},
              {r->args.eps > 0, adam || o == TOPT_ROW_WISE_ADAGRAD, "eps",
               "adam, adamw or row_wise_adagrad"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].given && !of[i].obeyed)
            return topt_fail(err, TOPT_ERR_USAGE,
                             "--%s: %s, the optimizer of the plan, has none; it is of %s "
                             "(--optimizer)",
                             of[i].name, topt_optimizer_name(o), of[i].who);
    return 0;
}

/* What each rank does by itself. */
static int prepare_alone(struct topt_run *r, struct topt_error *err)
{
    if (topt_comm_bind(r->comm, &r->plan->mesh, err) || topt_run_choose(r, err) ||
        check_optimizer(r, err) || (!r->comm->rank && topt_run_probe(r, err)) ||
        topt_run_device_open(&r->device, r->program->settings.dtype, err) ||
        open_feed(r, NULL, r->args.data, &r->feed, err))
        return -1;
    if (r->args.eval_data &&
        open_feed(r, &r->feed, r->args.eval_data, &r->eval_feed, err))
        return topt_wrap(err, "--eval-data");
    if (!strcmp(r->feed.kind, "text") && r->plan->model->vocab > 256)
        topt_run_warn(r,
                      "'%s' is read with a token for each byte value, the model's "
                      "vocabulary has %lld; --tokenizer FILE reads words",
                      r->args.data, (long long)r->plan->model->vocab);
    r->loss = calloc((size_t)r->args.steps + 1, sizeof *r->loss);
    r->step_ns = calloc((size_t)r->args.steps + 1, sizeof *r->step_ns);
    return r->loss && r->step_ns ? 0 : topt_nomem(err, NULL);
}

/* Ranks that read different data would train nonsense without a word. */
static int check_same_data(struct topt_run *r, struct topt_error *err)
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

static int start_session(struct topt_run *r, struct topt_error *err)
{
    struct topt_session_options o = {.lr = r->args.lr,
                                     .weight_decay = isnan(r->args.weight_decay) ? 0.01
                                                     : r->args.weight_decay > 0
                                                         ? r->args.weight_decay
                                                         : -1,
                                     .seed = (uint64_t)r->args.seed,
                                     .feed = r->feed,
                                     .beta1 = r->args.beta1,
                                     .beta2 = r->args.beta2,
                                     .eps = r->args.eps,
                                     .clip = r->args.clip,
                                     .dropout = r->args.dropout,
                                     .balance = r->args.balance,
                                     .overlap = r->args.overlap,
                                     .schedule = {.warmup = r->args.warmup},
                                     .say = topt_run_say,
                                     .ctx = r,
                                     .place = topt_guard_place(r->guard)};
    topt_run_dump_gradients(r, &o);
    r->report.lr =
        r->args.lr > 0 ? r->args.lr : topt_default_lr(r->program->settings.optimizer);
    if (!strcmp(r->args.schedule, "cosine")) {
        o.schedule.last = r->args.steps;
        o.schedule.lowest = r->args.min_lr > 0 ? r->args.min_lr : r->report.lr / 10;
    }
    if (r->args.overlap && r->comm->size > 1 && !r->comm->ops->engine)
        topt_run_warn(r,
                      "--overlap: nothing runs beside what computes over '%s'; "
                      "gradients are summed where the program waits for them",
                      r->comm->ops->name);
    r->start_rss = topt_run_status_bytes("VmRSS");
    return topt_session_create(r->program, r->comm, &r->device.dev, &o, &r->session, err);
}

static void tell_note(void *ctx, const char *text)
{
    topt_run_warn(ctx, "%s", text);
}

/* A cosine that ends at another step gives other learning rates from here on. */
static void say_schedule(const struct topt_run *r, const struct topt_checkpoint_facts *f)
{
    double lowest = r->args.min_lr > 0 ? r->args.min_lr : r->report.lr / 10;
    struct topt_lr_schedule now = {.warmup = r->args.warmup, .lowest = lowest};
    struct topt_lr_schedule then = now;
    now.last = strcmp(r->args.schedule, "cosine") ? 0 : r->args.steps;
    then.last = f->schedule_last;
    if (f->schedule_last < 0 || now.last == then.last || f->step >= r->args.steps)
        return;
    double lr = topt_lr_at(&now, r->report.lr, f->step);
    if (!then.last || !now.last)
        topt_run_warn(r,
                      "--schedule %s; the checkpoint's was %s: the learning rate goes on "
                      "at %.3g",
                      r->args.schedule, now.last ? "constant" : "cosine", lr);
    else
        topt_run_warn(r,
                      "the cosine of the learning rate now ends at step %lld, the "
                      "checkpoint's at %lld: it goes on at %.3g, where it was to be %.3g",
                      (long long)now.last, (long long)then.last, lr,
                      topt_lr_at(&then, r->report.lr, f->step));
}

/* Into the session, where there is one. */
static int resume(struct topt_run *r, struct topt_error *err)
{
    struct topt_checkpoint_facts f;
    if (topt_checkpoint_load(r->session, r->args.checkpoint, tell_note, r, &f, err))
        return topt_wrap(err, "--resume");
    if (f.step < 0) {
        topt_run_note(r, "there is no checkpoint in '%s' yet: from the start",
                      r->args.checkpoint);
        return 0;
    }
    r->first = r->saved = f.step;
    if (f.step < r->args.steps)
        topt_run_note(r, "going on after step %lld", (long long)f.step);
    else
        topt_run_note(r,
                      "the checkpoint is after step %lld, so nothing is left to do of "
                      "--steps %lld",
                      (long long)f.step, (long long)r->args.steps);
    say_schedule(r, &f);
    if (f.data != r->feed.digest)
        topt_run_warn(r, "these data are not those of the checkpoint");
    if (f.seed != (uint64_t)r->args.seed)
        topt_run_warn(r, "--seed %lld; the checkpoint's was %llu",
                      (long long)r->args.seed, (unsigned long long)f.seed);
    if (f.batch != r->plan->model->batch || f.seq != r->plan->model->seq)
        topt_run_warn(r,
                      "the checkpoint's batches were %lld x %lld, this plan's are %lld x "
                      "%lld",
                      (long long)f.batch, (long long)f.seq,
                      (long long)r->plan->model->batch, (long long)r->plan->model->seq);
    return 0;
}

static void tell_anew(void *ctx, const char *names)
{
    topt_run_warn(ctx, "the weights have no %s, which start anew", names);
}

/* A checkpoint, where there is one, replaces them. */
static int load_weights(struct topt_run *r, struct topt_error *err)
{
    topt_run_at(topt_guard_place(r->guard), 0, TOPT_DOING_LOAD, 0);
    struct topt_weights_source from = {.dir = r->args.weights,
                                       .config = r->args.config,
                                       .adapters = r->args.adapters,
                                       .note = tell_anew,
                                       .ctx = r};
    if (!r->args.weights && r->program->model->train &&
        !strncmp(r->program->model->train, "lora", 4))
        topt_run_warn(r, "the adapters stand beside random weights; --weights DIR reads "
                         "the model's");
    return r->args.weights && topt_weights_load(r->session, &from, err)
               ? topt_wrap(err, from.adapters ? "--weights, --adapter" : "--weights")
               : 0;
}

static int start_checkpoints(struct topt_run *r, struct topt_error *err)
{
    r->saved = -1;
    if (!r->args.checkpoint)
        return 0;
    return topt_saver_open(r->session, r->args.checkpoint, r->args.keep, &r->saver,
                           err) ||
                   (r->args.resume && resume(r, err))
               ? -1
               : 0;
}

/* A place of a run in words, for the guard. */
static void describe(void *ctx, int64_t instr, char *buf, size_t size)
{
    static const char *const doing[] = {[-TOPT_DOING_START] = "the start of the run",
                                        [-TOPT_DOING_BETWEEN] = "the end of a step",
                                        [-TOPT_DOING_SAVE] = "saving a checkpoint",
                                        [-TOPT_DOING_LOAD] = "loading a checkpoint",
                                        [-TOPT_DOING_END] = "the end of the run"};
    const struct topt_run *r = ctx;
    if (instr >= 0 && r->program)
        topt_instr_words(r->program, (int)instr, buf, size);
    else
        snprintf(buf, size, "%s",
                 doing[instr < 0 && instr >= TOPT_DOING_END ? -instr : 1]);
}

static int start_guard(struct topt_run *r, struct topt_error *err)
{
    struct topt_guard_options o = {.seconds = r->args.watchdog,
                                   .describe = describe,
                                   .last_words = topt_run_last_words,
                                   .ctx = r};
    if (topt_guard_start(r->host, &o, &r->guard, err))
        return -1;
    if (r->guard && !topt_guard_connected(r->guard))
        topt_run_warn(r,
                      "the ranks can't connect to rank 0 beside the communicator: which "
                      "ranks are missing will not be known");
    return 0;
}

static int start_metrics(struct topt_run *r, struct topt_error *err)
{
    int failed =
        r->args.metrics && !r->comm->rank && topt_metrics_open(r, &r->metrics, err);
    return topt_comm_agree(r->comm, failed, err);
}

static int perform(struct topt_run *r, struct topt_error *err)
{
    r->comm = r->host;
    if (start_guard(r, err) || topt_plan_everywhere(r->comm, r->plan_arg, &r->plan, err))
        return -1;
    r->device = (struct topt_run_device){
        .device = r->args.device, .comm = r->args.comm, .host = r->host};
    if (topt_comm_agree(r->host, prepare_alone(r, err), err) ||
        topt_comm_agree(r->host, topt_run_device_connect(&r->device, &r->comm, err),
                        err) ||
        topt_comm_agree(r->comm, check_same_data(r, err), err) || start_session(r, err) ||
        load_weights(r, err) || start_checkpoints(r, err) || start_metrics(r, err))
        return -1;
    struct topt_error training = {0};
    int rc = topt_comm_agree(r->comm, topt_run_steps(r, &training), &training);
    if (!rc && r->args.save_weights)
        rc = topt_run_save_weights(r, &training);
    r->report.ended = rc ? training.text : r->stopped ? r->ended : NULL;
    if (topt_run_finish(r, err))
        return -1;
    if (rc)
        *err = training;
    return rc;
}

static void clean_up(struct topt_run *r)
{
    topt_guard_stop(r->guard);
    topt_saver_close(r->saver);
    topt_session_destroy(r->session);
    topt_metrics_close(r->metrics);
    topt_feed_close(&r->feed);
    topt_feed_close(&r->eval_feed);
    if (r->comm != r->host)
        topt_comm_destroy(r->comm);
    topt_device_close(&r->device.dev);
    topt_program_destroy(r->own);
    topt_plan_doc_destroy(r->plan);
    json_decref(r->gradients);
    free(r->named);
    free(r->loss);
    free(r->step_ns);
    topt_comm_destroy(r->host);
    topt_comm_mpi_finish();
}

/* Before anything is loaded: an unknown word is wrong usage. */
static int check_names(const struct topt_run_args *a, struct topt_error *err)
{
    enum topt_dtype dtype;
    enum topt_optimizer optimizer;
    if ((!a->dtype || !topt_dtype_parse(a->dtype, &dtype, err)) &&
        (!a->optimizer || !topt_optimizer_parse(a->optimizer, &optimizer, err)))
        return 0;
    err->code = TOPT_ERR_USAGE;
    return -1;
}

/* What does nothing without another option was given by mistake: it is said, not left out. */
static int check_dependent_options(const struct topt_run_args *a, struct topt_error *err)
{
    const struct {
        int given, obeyed;
        const char *name, *needs;
    } dependent[] = {
        {a->eval_every != 0, a->eval_data != NULL, "eval-every", "--eval-data PATH"},
        {a->eval_batches != 0, a->eval_data != NULL, "eval-batches", "--eval-data PATH"},
        {a->every != 0, a->checkpoint != NULL, "every", "--checkpoint DIR"},
        {a->keep != 0, a->checkpoint != NULL, "keep", "--checkpoint DIR"},
        {a->min_lr > 0, !strcmp(a->schedule, "cosine"), "min-lr", "--schedule cosine"},
        {a->adapters != NULL, a->weights != NULL, "adapter", "--weights DIR"},
        {a->merge, a->save_weights != NULL, "merge", "--save-weights DIR"},
        {a->config != NULL, a->save_weights || a->weights, "config",
         "--weights DIR or --save-weights DIR"}};
    for (size_t i = 0; i < sizeof dependent / sizeof *dependent; i++)
        if (dependent[i].given && !dependent[i].obeyed)
            return topt_fail(err, TOPT_ERR_USAGE, "--%s does nothing without %s",
                             dependent[i].name, dependent[i].needs);
    return 0;
}

/* What was not given. */
static void fill_in(struct topt_run_args *a)
{
    a->eval_every = a->eval_every ? a->eval_every : 100;
    a->eval_batches = a->eval_batches ? a->eval_batches : 10;
    a->every = a->every ? a->every : 1000;
    a->keep = a->keep ? a->keep : 3;
}

static int parse(int argc, char **argv, struct topt_run *r, struct topt_error *err)
{
    int n = 0;
    r->args = (struct topt_run_args){.steps = 10,
                                     .seed = 1,
                                     .weight_decay = NAN,
                                     .bucket = 256 << 10,
                                     .watchdog = 60,
                                     .schedule = "constant",
                                     .objective = "auto",
                                     .order = "random",
                                     .mask_token = -1,
                                     .device = "host",
                                     .comm = "auto"};
    int rc = topt_options_parse(options, argc, argv, &r->args, &r->plan_arg, 1, &n, err);
    if (!rc)
        rc = check_dependent_options(&r->args, err);
    if (!rc && !n)
        return topt_fail(err, TOPT_ERR_USAGE, "which plan? usage: %s", usage);
    if (!rc && r->args.steps > 100000000)
        return topt_fail(err, TOPT_ERR_USAGE, "--steps has to be 1 to 100000000");
    if (!rc && strcmp(r->args.schedule, "cosine") && strcmp(r->args.schedule, "constant"))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "unknown --schedule '%.40s' (constant or cosine)",
                         r->args.schedule);
    if (!rc && strcmp(r->args.order, "random") && strcmp(r->args.order, "epochs"))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "unknown --order '%.40s' (random or epochs)", r->args.order);
    if (!rc && objective_of(&r->args) == NOBJECTIVES)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "unknown --objective '%.40s' (auto, next, masked or spans)",
                         r->args.objective);
    if (!rc && r->args.save_weights && !r->args.weights && !r->args.config)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--save-weights: the names are those of which model? --config "
                         "config.json says it");
    if (!rc && r->args.beta1 >= 1)
        return topt_fail(err, TOPT_ERR_USAGE, "--beta1 has to be below 1");
    if (!rc && r->args.beta2 >= 1)
        return topt_fail(err, TOPT_ERR_USAGE, "--beta2 has to be below 1");
    if (!rc && r->args.resume && !r->args.checkpoint)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--resume: from where? --checkpoint DIR names the folder");
    fill_in(&r->args);
    return rc ? rc : check_names(&r->args, err);
}

int topt_cmd_run(int argc, char **argv)
{
    struct topt_run r = {.comm = NULL};
    struct topt_error err = {0};
    int rank = topt_launch_rank(), rc = parse(argc, argv, &r, &err);
    if (rc > 0) {
        if (!rank)
            topt_options_help(stdout, usage, options);
        return 0;
    }
    if (rc || topt_comm_open(&argc, &argv, &r.host, &err)) {
        if (!rank || (!rc && getenv("TOPT_RENDEZVOUS"))) /* no rank knows of others' */
            topt_complain("run", &err);
        return topt_err_exit(err.code);
    }
    rc = perform(&r, &err);
    /* the first rank that failed speaks; of lone processes under one launcher the
     * first */
    if (rc && !topt_comm_failed_elsewhere(&err) && (r.comm->size > 1 || !rank))
        topt_complain("run", &err);
    clean_up(&r);
    if (rc || !r.stopped)
        return rc ? topt_err_exit(err.code) : 0;
    return r.args.checkpoint ? TOPT_EXIT_SAVED : TOPT_EXIT_STOPPED;
}
