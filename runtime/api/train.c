/* train.c - model, search and session behind one handle. */
#include "client.h"
#include "feed_model.h"
#include "topt_array.h"
#include "topt_json.h"
#include "topt_text.h"
#include "train_parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PLAN = 64 << 20 };

int topt_train_open(int *argc, char ***argv, const char *name, int64_t batch, int64_t seq,
                    struct topt_train **ret, struct topt_error *err)
{
    struct topt_train *t = calloc(1, sizeof *t);
    if (!t)
        return topt_nomem(err, NULL);
    t->options.weight_decay = NAN;
    if (topt_comm_open(argc, argv, &t->comm, err)) {
        topt_train_close(t);
        return -1;
    }
    t->model = topt_model_create(name, batch, seq, err);
    if (topt_comm_agree(t->comm, !t->model, err)) {
        topt_train_close(t);
        return -1;
    }
    *ret = t;
    return 0;
}

void topt_train_close(struct topt_train *t)
{
    if (!t)
        return;
    topt_session_destroy(t->session);
    topt_feed_close(&t->feed);
    topt_device_close(&t->device);
    topt_program_destroy(t->program);
    topt_plan_doc_destroy(t->plan);
    free(t->text);
    topt_model_destroy(t->model);
    topt_comm_destroy(t->comm);
    for (int i = 0; i < t->nwords; i++)
        free(t->words[i]);
    free(t->words);
    for (int i = 0; i < t->nown; i++)
        free((char *)(uintptr_t)t->own[i].name);
    free(t->own);
    free(t);
}

int topt_train_rank(const struct topt_train *t)
{
    return t->comm->rank;
}

int topt_train_size(const struct topt_train *t)
{
    return t->comm->size;
}

void topt_train_take_model(struct topt_train *t, struct topt_model *m)
{
    topt_model_destroy(t->model);
    t->model = m;
    t->finished = 1;
}

char *topt_train_plan_text(const struct topt_train *t)
{
    return t->text ? strdup(t->text) : NULL;
}

const struct topt_plan_doc *topt_train_plan(const struct topt_train *t)
{
    return t->plan;
}

/* ---- the model --------------------------------------------------------------------- */

int topt_train_apply(struct topt_train *t, const char *kind, const char *name,
                     int ninputs, const int *inputs, const struct topt_attrs *attrs)
{
    for (int i = 0; i < ninputs; i++)
        if (inputs[i] < 0)
            return -1;
    if (t->first.code)
        return -1;
    return topt_model_add(t->model, kind, name, ninputs, inputs, attrs, &t->first);
}

int topt_train_variable(struct topt_train *t, const char *name, int64_t rows,
                        int64_t cols)
{
    struct topt_attrs a = {.vocab = rows, .features = cols};
    return topt_train_apply(t, "variable", name, 0, NULL, &a);
}

int topt_train_embedding(struct topt_train *t, const char *name, int table)
{
    return topt_train_apply(t, "embedding", name, 1, &table, NULL);
}

int topt_train_matmul(struct topt_train *t, const char *name, int x, int weight)
{
    return topt_train_apply(t, "linear", name, 2, (const int[]){x, weight}, NULL);
}

int topt_train_linear(struct topt_train *t, const char *name, int x, int64_t features)
{
    struct topt_attrs a = {.features = features};
    return topt_train_apply(t, "linear", name, 1, &x, &a);
}

int topt_train_own(struct topt_train *t, const struct topt_own *own,
                   struct topt_error *err)
{
    if (t->session)
        return topt_fail(err, TOPT_ERR_INVAL, "'%.80s' comes after the training is built",
                         own->name);
    char *name = strdup(own->name);
    if (!name || TOPT_ROOM(t->own, t->nown, t->own_cap, 4)) {
        free(name);
        return topt_nomem(err, NULL);
    }
    t->own[t->nown] = *own;
    t->own[t->nown++].name = name;
    return 0;
}

int topt_train_loss(struct topt_train *t, int logits)
{
    return topt_train_apply(t, "cross_entropy", "loss", 1, &logits, NULL);
}

/* ---- the strategy ------------------------------------------------------------------ */

/* On rank 0: the plan as text. */
static int search(const struct topt_train *t, const struct topt_request *r, char **ret,
                  size_t *ret_len, struct topt_error *err)
{
    json_t *answer = NULL;
    if (topt_plan(r, &answer, err))
        return -1;
    const json_t *plan = json_object_get(answer, "plan");
    const char *why = json_string_value(json_object_get(answer, "why"));
    int rc = 0;
    if (!plan)
        rc = topt_fail(err, TOPT_ERR_INFEASIBLE, "no strategy of '%s' on %d device%s: %s",
                       t->model->name, t->comm->size, t->comm->size == 1 ? "" : "s",
                       why ? why : "nothing fits");
    *ret = rc ? NULL : topt_json_text(plan, 0);
    if (!rc && !*ret)
        rc = topt_nomem(err, NULL);
    *ret_len = *ret ? strlen(*ret) : 0;
    json_decref(answer);
    return rc;
}

static int read_plan(struct topt_train *t, const char *text, size_t len,
                     struct topt_error *err)
{
    json_t *doc = topt_json_parse(text, len, "plan", err);
    int rc = doc ? topt_plan_read(doc, &t->plan, err) : -1;
    rc = rc || topt_session_check(&t->plan->settings, err) ||
                 topt_plan_without_stages(t->plan, "topt's runtime", err)
             ? -1
             : 0;
    json_decref(doc);
    return rc;
}

/* Rank 0's plan on every rank; takes 'text'. */
static int share_plan(struct topt_train *t, int failed, char *text, size_t len,
                      struct topt_error *err)
{
    int rc = topt_comm_share_text(t->comm, failed, &text, &len, err);
    if (!rc)
        rc = topt_comm_agree(t->comm, read_plan(t, text, len, err), err);
    free(t->text);
    t->text = text;
    return rc;
}

int topt_train_find_strategy(struct topt_train *t, const char *hw,
                             enum topt_optimizer optimizer, int64_t memory_bytes,
                             struct topt_error *err)
{
    struct topt_request r;
    struct topt_hw *profile = NULL;
    char *text = NULL;
    size_t len = 0;
    int failed = 0;
    if (t->first.code) {
        *err = t->first;
        failed = 1;
    } else {
        failed = !t->finished && topt_model_finish(t->model, err);
    }
    if (!failed && t->options.train)
        failed = topt_model_train(&t->model, t->options.train, err);
    if (!failed && t->comm->rank == 0) {
        topt_request_init(&r);
        profile = topt_hw_load(hw, err);
        r.model = t->model;
        r.hw = profile;
        r.mode = TOPT_MINI_TIME;
        r.gpus = t->comm->size;
        r.memory_limit = memory_bytes;
        r.settings.optimizer = optimizer;
        r.micro_batches = t->options.micro_batches;
        failed = (t->options.dtype &&
                  topt_dtype_parse(t->options.dtype, &r.settings.dtype, err)) ||
                 !profile || search(t, &r, &text, &len, err);
    }
    int rc = share_plan(t, failed, text, len, err);
    topt_hw_destroy(profile);
    return rc;
}

/* The model as a document in a file, whose name is in 'path' before; removed by the caller. */
static int write_model(const struct topt_train *t, char *path, struct topt_error *err)
{
    json_t *doc = topt_model_to_json(t->model);
    char *text = doc ? topt_json_text(doc, 0) : NULL;
    int fd = text ? mkstemps(path, 5) : -1, rc = 0;
    if (!text)
        rc = topt_nomem(err, NULL);
    else if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        rc = topt_fail(err, TOPT_ERR_IO, "can't write '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(text);
    json_decref(doc);
    return rc;
}

/* On rank 0: the plan as text, from toptd, in the place of the file that has the model. */
static int ask(const struct topt_train *t, const char *url, const char *hw,
               enum topt_optimizer optimizer, int64_t memory_bytes, char **ret,
               size_t *ret_len, struct topt_error *err)
{
    char path[] = "/tmp/topt-model-XXXXXX.json", gpus[24], memory[32];
    struct topt_text said = {0};
    snprintf(gpus, sizeof gpus, "--gpus=%d", t->comm->size);
    snprintf(memory, sizeof memory, "--memory=%lldB", (long long)memory_bytes);
    const char *args[20] = {"topt",
                            "client",
                            "plan",
                            path,
                            "-o",
                            path,
                            gpus,
                            "--mode=mini-time",
                            "--framework=topt",
                            "--optimizer",
                            topt_optimizer_name(optimizer),
                            "--hw",
                            hw};
    int n = 13;
    if (memory_bytes > 0)
        args[n++] = memory;
    if (url) {
        args[n++] = "--url";
        args[n++] = url;
    }
    int rc = write_model(t, path, err) ||
             topt_client_output((char *const *)(uintptr_t)args, &said, err);
    if (!rc)
        *ret = topt_read_file(path, MOST_PLAN, ret_len, err);
    unlink(path);
    topt_text_fini(&said);
    return rc || !*ret ? topt_wrap(err, "a strategy from toptd") : 0;
}

int topt_train_ask_strategy(struct topt_train *t, const char *url, const char *hw,
                            enum topt_optimizer optimizer, int64_t memory_bytes,
                            struct topt_error *err)
{
    char *text = NULL;
    size_t len = 0;
    int failed = 0;
    if (t->first.code) {
        *err = t->first;
        failed = 1;
    } else {
        failed = !t->finished && topt_model_finish(t->model, err);
    }
    if (!failed && t->comm->rank == 0)
        failed = ask(t, url, hw, optimizer, memory_bytes, &text, &len, err);
    return share_plan(t, failed, text, len, err);
}

int topt_train_load_strategy(struct topt_train *t, const char *path,
                             struct topt_error *err)
{
    char *text = NULL;
    size_t len = 0;
    if (t->comm->rank == 0)
        text = topt_read_file(path, MOST_PLAN, &len, err);
    if (share_plan(t, t->comm->rank == 0 && !text, text, len, err))
        return -1;
    return t->plan->mesh.devices == t->comm->size
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "'%.100s' is for %d devices, there are %d "
                           "ranks",
                           path, t->plan->mesh.devices, t->comm->size);
}

/* ---- running ----------------------------------------------------------------------- */

/* The plan's program as `topt run` runs it: in place, and small gradients together. */
static int tune(struct topt_program *p, struct topt_error *err)
{
    enum { BUCKET_BYTES = 256 << 10 };
    if (topt_program_in_place(p, 1, err))
        return -1;
    return p->mesh.devices > 1 ? topt_program_bucket(p, BUCKET_BYTES, err) : 0;
}

static int can_build(const struct topt_train *t, struct topt_error *err)
{
    if (t->options.schedule && !strcmp(t->options.schedule, "cosine") &&
        !t->options.steps)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "a cosine ends at which step? 'steps' says it");
    if (t->plan && !t->session)
        return 0;
    return topt_fail(err, TOPT_ERR_INVAL, "%s",
                     t->plan ? "it is built already" : "there is no strategy yet");
}

static void say_failed(void *ctx, double word[TOPT_SESSION_WORDS])
{
    const struct topt_train *t = ctx;
    word[0] = t->given.err.code != 0;
    word[1] = 0;
}

/* Given samples are loaded as data parallel. */
static int lower_for(struct topt_train *t, int fed, struct topt_error *err)
{
    const struct topt_plan_doc *p = t->plan;
    return topt_lower(p->micro, &p->mesh, &p->settings, p->strategy, p->router, fed,
                      &t->program, err);
}

/* All ranks, each with a feed or a failure. */
static int build(struct topt_train *t, int failed, double lr, uint64_t seed,
                 struct topt_error *err)
{
    const struct topt_train_options *of = &t->options;
    failed = failed || topt_device_open_host(t->plan->settings.dtype, &t->device, err) ||
             lower_for(t, t->given.samples != NULL, err) ||
             (of->clip > 0 && topt_program_clip(t->program, err)) ||
             topt_program_dropout(t->program, &of->dropout, err) ||
             topt_program_running(t->program, err) || tune(t->program, err);
    if (topt_comm_agree(t->comm, failed, err))
        return -1;
    struct topt_session_options o = {.lr = lr,
                                     .seed = seed,
                                     .feed = t->feed,
                                     .say = say_failed,
                                     .ctx = t,
                                     .clip = of->clip,
                                     .dropout = of->dropout,
                                     .balance = of->balance,
                                     .own = t->own,
                                     .nown = t->nown,
                                     .schedule = {.warmup = of->warmup}};
    if (!isnan(of->weight_decay))
        o.weight_decay = of->weight_decay > 0 ? of->weight_decay : -1;
    double rate = lr > 0 ? lr : topt_default_lr(t->plan->settings.optimizer);
    if (of->schedule && !strcmp(of->schedule, "cosine")) {
        o.schedule.last = of->steps;
        o.schedule.lowest = of->min_lr > 0 ? of->min_lr : rate / 10;
    }
    t->seed = seed;
    return topt_session_create(t->program, t->comm, &t->device, &o, &t->session, err);
}

static struct topt_feed_request request_of(const struct topt_train *t, const char *data,
                                           uint64_t seed)
{
    return (struct topt_feed_request){
        .data = data, .tokenizer = t->options.tokenizer, .mask = -1, .seed = seed};
}

int topt_train_build(struct topt_train *t, const char *data, double lr, uint64_t seed,
                     struct topt_error *err)
{
    struct topt_feed_request q = request_of(t, data, seed);
    int failed =
        can_build(t, err) || topt_feed_for(&q, NULL, t->plan->model, &t->feed, err);
    return build(t, failed, lr, seed, err);
}

/* ---- samples from the program ------------------------------------------------------ */

/* Boxes are of whole samples: the program was lowered so.  Numbers of 4 bytes; where there are
 * none the step goes on, so that no rank waits for this one, and its end tells all of it. */
static int64_t ask_samples(void *ctx, const struct topt_op *op, int operand, int64_t step,
                           const struct topt_box *box, void *ret)
{
    struct topt_asked *g = ctx;
    int64_t n = topt_feed_elements(op, operand, box), first = box->off[0];
    if (op->spec->loss && g->unlabelled) {
        memset(ret, 0, (size_t)n * 4);
        return n;
    }
    if (!n ||
        (!g->err.code && !g->samples(g->ctx, op->name, step, first, box->len[0], ret)))
        return n;
    memset(ret, 0, (size_t)n * 4);
    if (!g->err.code)
        topt_fail(&g->err, TOPT_ERR_INVAL,
                  "no samples %lld to %lld of '%s' for step %lld", (long long)first,
                  (long long)(first + box->len[0] - 1), op->name, (long long)step);
    return n;
}

static int load_given(void *ctx, const struct topt_op *op, int operand, int64_t step,
                      const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    (void)err;
    ask_samples(ctx, op, operand, step, box, ret);
    return 0;
}

static int load_given_real(void *ctx, const struct topt_op *op, int operand, int64_t step,
                           const struct topt_box *box, enum topt_dtype dtype, void *ret,
                           struct topt_error *err)
{
    int64_t n = ask_samples(ctx, op, operand, step, box, ret);
    (void)err;
    for (int64_t i = n - 1; i >= 0 && dtype == TOPT_F64; i--) /* in place: from the end */
        ((double *)ret)[i] = (double)((const float *)ret)[i];
    return 0;
}

struct topt_feed topt_train_feed_of(struct topt_asked *given)
{
    return (struct topt_feed){.load = load_given,
                              .load_real = load_given_real,
                              .ctx = given,
                              .kind = "the program's own"};
}

int topt_train_agree_given(struct topt_train *t, const struct topt_asked *given,
                           struct topt_error *err)
{
    *err = given->err;
    return topt_comm_agree(t->comm, err->code != 0, err);
}

int topt_train_is_built(const struct topt_train *t, struct topt_error *err)
{
    return t->session ? 0 : topt_fail(err, TOPT_ERR_INVAL, "nothing is built yet");
}

int topt_train_build_from(struct topt_train *t,
                          int (*samples)(void *ctx, const char *name, int64_t step,
                                         int64_t first, int64_t n, void *numbers),
                          void *ctx, double lr, uint64_t seed, struct topt_error *err)
{
    int failed = can_build(t, err);
    t->given = (struct topt_asked){.samples = samples, .ctx = ctx};
    t->feed = topt_train_feed_of(&t->given);
    return build(t, failed, lr, seed, err);
}

int topt_train_run(struct topt_train *t, int steps, double *ret_losses,
                   struct topt_error *err)
{
    if (topt_train_is_built(t, err))
        return -1;
    for (int i = 0; i < steps; i++) {
        double loss;
        if (topt_session_step(t->session, &loss, err))
            return -1;
        if (topt_session_heard(t->session)[0] > 0)
            return topt_train_agree_given(t, &t->given, err);
        t->steps++;
        if (ret_losses)
            ret_losses[i] = loss;
    }
    return 0;
}

int topt_train_evaluate(struct topt_train *t, const char *data, uint64_t seed, int64_t n,
                        double *ret_loss, struct topt_error *err)
{
    struct topt_feed feed = {0};
    struct topt_feed_request q = request_of(t, data, seed);
    double right;
    int failed =
        topt_train_is_built(t, err) ||
        topt_feed_for(&q, t->given.samples ? NULL : &t->feed, t->plan->model, &feed, err);
    int rc = topt_comm_agree(t->comm, failed, err);
    if (!rc)
        rc = topt_session_evaluate(t->session, &feed, n, ret_loss, &right, err);
    topt_feed_close(&feed);
    return rc;
}
