/* training.c - the public interface of libtopt_runtime: names and JSON outside, topt_train inside.
 *
 * The model is kept as the document that it would be in a file, so that operators are checked where
 * documents are, with the same words. */
#include "topt.h"
#include "topt_array.h"
#include "topt_json.h"
#include "topt_train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

struct topt_training {
    struct topt_train *train;
    json_t *doc, *ops;
    struct topt_error err; /* of the first call that failed */
    enum topt_optimizer optimizer;
    int chosen;  /* by the program, not by default */
    int settled; /* there is a strategy: of the model and the optimizer as they are */
    double lr;
    char *plan;
    uint64_t seed;
    char name[256]; /* of a parameter */
    struct topt_own_operator *
        *own; /* the program's, each copied: sessions keep its address */
    int nown, own_cap;
    int shared; /* every rank found out together that it failed */
};

/* A call's result; the first failure is kept. */
static int done(struct topt_training *t, int rc, const struct topt_error *err)
{
    if (rc && !t->err.code) {
        t->err = *err;
        if (!t->err.code)
            topt_fail(&t->err, TOPT_ERR_INTERNAL, "failed without a reason");
    }
    return t->err.code ? -1 : 0;
}

PUBLIC struct topt_training *topt_training_open(int *argc, char ***argv, const char *name,
                                                int64_t batch, int64_t seq)
{
    struct topt_error err = {0};
    struct topt_training *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->optimizer = TOPT_ADAM;
    t->ops = json_array();
    t->doc =
        json_pack("{s:s, s:s, s:I, s:I, s:O}", "format", "topt-model/1", "name", name,
                  "batch", (json_int_t)batch, "seq", (json_int_t)seq, "ops", t->ops);
    int rc = topt_train_open(argc, argv, name, batch, seq, &t->train, &err);
    if (!rc && !t->doc)
        rc = topt_nomem(&err, NULL);
    done(t, rc, &err);
    return t;
}

PUBLIC void topt_training_close(struct topt_training *t)
{
    if (!t)
        return;
    topt_train_close(t->train);
    json_decref(t->ops);
    json_decref(t->doc);
    for (int i = 0; i < t->nown; i++)
        free(t->own[i]);
    free(t->own);
    free(t->plan);
    free(t);
}

PUBLIC const char *topt_training_error(const struct topt_training *t)
{
    return t->err.text;
}

PUBLIC int topt_training_rank(const struct topt_training *t)
{
    return t->train ? topt_train_rank(t->train) : 0;
}

PUBLIC int topt_training_size(const struct topt_training *t)
{
    return t->train ? topt_train_size(t->train) : 1;
}

/* What all ranks do alike fails on all of them alike: then rank 0 says so. */
PUBLIC int topt_training_speaks(const struct topt_training *t)
{
    return t->shared ? !topt_comm_failed_elsewhere(&t->err) : !topt_training_rank(t);
}

/* What would be left out, since the strategy is of what was said before it. */
static int check_early(const struct topt_training *t, const char *what,
                       struct topt_error *err)
{
    return t->settled ? topt_fail(err, TOPT_ERR_INVAL,
                                  "'%.60s' must come before the strategy, which depends "
                                  "on the model and the optimizer",
                                  what)
                      : 0;
}

/* ---- the model --------------------------------------------------------------------- */

/* "a,b" as a list. */
static json_t *split_names(const char *names)
{
    json_t *list = json_array();
    for (const char *at = names; at && *at;) {
        size_t n = strcspn(at, ",");
        json_array_append_new(list, json_stringn(at, n));
        at += n + (at[n] == ',');
    }
    return list;
}

PUBLIC int topt_training_operator(struct topt_training *t, const char *kind,
                                  const char *name, const char *inputs,
                                  const char *attributes)
{
    struct topt_error err = {0};
    char label[96];
    if (t->err.code)
        return -1;
    if (check_early(t, name, &err))
        return done(t, -1, &err);
    snprintf(label, sizeof label, "what describes '%.60s'", name);
    json_t *op = attributes ? topt_json_parse(attributes, strlen(attributes), label, &err)
                            : json_object();
    if (!op)
        return done(t, -1, &err);
    if (!json_is_object(op)) {
        json_decref(op);
        return done(t,
                    topt_fail(&err, TOPT_ERR_INVAL,
                              "'%.60s': attributes are an object of JSON", name),
                    &err);
    }
    int rc = json_object_set_new(op, "name", json_string(name)) ||
             json_object_set_new(op, "kind", json_string(kind)) ||
             json_object_set_new(op, "inputs", split_names(inputs)) ||
             json_array_append(t->ops, op);
    json_decref(op);
    return done(t,
                rc ? topt_fail(&err, TOPT_ERR_INVAL, "an operator's name is no text") : 0,
                &err);
}

/* An operator whose attributes are counts, -1 for none. */
static int counted(struct topt_training *t, const char *kind, const char *name,
                   int64_t vocab, int64_t features)
{
    char text[96];
    if (vocab >= 0)
        snprintf(text, sizeof text, "{\"vocab\": %lld, \"features\": %lld}",
                 (long long)vocab, (long long)features);
    else
        snprintf(text, sizeof text, "{\"features\": %lld}", (long long)features);
    return topt_training_operator(t, kind, name, "", text);
}

PUBLIC int topt_training_placeholder(struct topt_training *t, const char *name,
                                     int64_t features)
{
    return counted(t, "input", name, -1, features);
}

PUBLIC int topt_training_variable(struct topt_training *t, const char *name, int64_t rows,
                                  int64_t columns)
{
    return counted(t, "variable", name, rows > 0 ? rows : 0, columns);
}

/* A kernel's call in the words of the interface. */
static struct topt_own_positions positions_of(const struct topt_own_call *c)
{
    return (struct topt_own_positions){.n = c->n,
                                       .width = c->width,
                                       .outputs = c->out,
                                       .parameters = c->parameters,
                                       .is_double = c->is_double,
                                       .x = c->x,
                                       .w = c->w,
                                       .y = c->y,
                                       .dy = c->dy,
                                       .dx = c->dx,
                                       .dw = c->dw};
}

static void own_forward(void *ctx, const struct topt_own_call *c)
{
    const struct topt_own_operator *o = ctx;
    struct topt_own_positions p = positions_of(c);
    o->forward(o->ctx, &p);
}

static void own_backward(void *ctx, const struct topt_own_call *c)
{
    const struct topt_own_operator *o = ctx;
    struct topt_own_positions p = positions_of(c);
    o->backward(o->ctx, &p);
}

static int keep_own(struct topt_training *t, const char *name,
                    const struct topt_own_operator *what, struct topt_error *err)
{
    if (!what->forward || !what->backward)
        return topt_fail(err, TOPT_ERR_INVAL, "'%.80s' has no forward, or no backward",
                         name);
    struct topt_own_operator *o = malloc(sizeof *o);
    if (!o || TOPT_ROOM(t->own, t->nown, t->own_cap, 4)) {
        free(o);
        return topt_nomem(err, NULL);
    }
    *o = *what;
    t->own[t->nown++] = o;
    struct topt_own own = {
        .name = name, .forward = own_forward, .backward = own_backward, .ctx = o};
    return topt_train_own(t->train, &own, err);
}

PUBLIC int topt_training_own(struct topt_training *t, const char *name, const char *input,
                             const struct topt_own_operator *what)
{
    struct topt_error err = {0};
    const struct {
        const char *name;
        int64_t n;
    } count[] = {
        {"features", what->outputs}, {"extra", what->parameters}, {"flops", what->flops}};
    if (t->err.code)
        return -1;
    json_t *of = json_object();
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i].n)
            json_object_set_new(of, count[i].name, json_integer(count[i].n));
    if (what->deviation > 0)
        json_object_set_new(of, "init_std", json_real(what->deviation));
    char *text = topt_json_text(of, 0);
    int rc = text ? topt_training_operator(t, "own", name, input, text) : 0;
    if (text && !rc)
        rc = done(t, keep_own(t, name, what, &err), &err);
    else if (!text)
        rc = done(t, topt_nomem(&err, NULL), &err);
    json_decref(of);
    free(text);
    return rc;
}

PUBLIC int topt_training_loss(struct topt_training *t, const char *kind,
                              const char *input)
{
    return topt_training_operator(t, kind, "loss", input, NULL);
}

PUBLIC int topt_training_optimizer(struct topt_training *t, const char *name, double lr)
{
    struct topt_error err = {0};
    int rc = check_early(t, name, &err);
    if (!rc && !(lr >= 0))
        rc = topt_fail(&err, TOPT_ERR_INVAL,
                       "a learning rate of %g; give more than 0, or 0 for the usual one",
                       lr);
    if (!rc)
        rc = topt_optimizer_parse(name, &t->optimizer, &err);
    t->lr = lr;
    t->chosen = !rc;
    return done(t, rc, &err);
}

PUBLIC int topt_training_option(struct topt_training *t, const char *name,
                                const char *value)
{
    struct topt_error err = {0};
    return t->err.code ? -1 : done(t, topt_train_set(t->train, name, value, &err), &err);
}

/* ---- its strategy ------------------------------------------------------------------ */

/* The same on every rank: no rank waits for another that has failed. */
static int agreed(struct topt_training *t, int rc, const struct topt_error *err)
{
    if (!t->err.code)
        t->shared = 1;
    return done(t, rc, err);
}

/* The document as a model. */
static int take_model(struct topt_training *t)
{
    struct topt_error err = {0};
    if (t->err.code)
        return -1;
    struct topt_model *m = topt_model_from_json(t->doc, &err);
    if (!m)
        return done(t, -1, &err);
    topt_train_take_model(t->train, m);
    t->settled = 1;
    return 0;
}

PUBLIC int topt_training_find_strategy(struct topt_training *t, const char *hardware,
                                       int64_t memory_bytes)
{
    struct topt_error err = {0};
    return take_model(t)
               ? -1
               : agreed(t,
                        topt_train_find_strategy(t->train, hardware, t->optimizer,
                                                 memory_bytes, &err),
                        &err);
}

PUBLIC int topt_training_ask_strategy(struct topt_training *t, const char *url,
                                      const char *hardware, int64_t memory_bytes)
{
    struct topt_error err = {0};
    return take_model(t)
               ? -1
               : agreed(t,
                        topt_train_ask_strategy(t->train, url, hardware, t->optimizer,
                                                memory_bytes, &err),
                        &err);
}

PUBLIC int topt_training_load_strategy(struct topt_training *t, const char *path)
{
    struct topt_error err = {0};
    if (t->err.code)
        return -1;
    t->settled = 1;
    if (agreed(t, topt_train_load_strategy(t->train, path, &err), &err))
        return -1;
    enum topt_optimizer of = topt_train_plan(t->train)->settings.optimizer;
    return !t->chosen || of == t->optimizer
               ? 0
               : agreed(t,
                        topt_fail(&err, TOPT_ERR_INVAL,
                                  "'%.100s' is a plan for %s, not for %s", path,
                                  topt_optimizer_name(of),
                                  topt_optimizer_name(t->optimizer)),
                        &err);
}

PUBLIC const char *topt_training_plan(struct topt_training *t)
{
    if (!t->plan && !t->err.code)
        t->plan = topt_train_plan_text(t->train);
    return t->plan;
}

/* ---- training ---------------------------------------------------------------------- */

PUBLIC int topt_training_build(struct topt_training *t, const char *data, uint64_t seed)
{
    struct topt_error err = {0};
    t->seed = seed;
    return t->err.code
               ? -1
               : agreed(t, topt_train_build(t->train, data, t->lr, seed, &err), &err);
}

PUBLIC int topt_training_build_from(struct topt_training *t,
                                    topt_training_samples *samples, void *ctx,
                                    uint64_t seed)
{
    struct topt_error err = {0};
    t->seed = seed;
    return t->err.code
               ? -1
               : agreed(t,
                        topt_train_build_from(t->train, samples, ctx, t->lr, seed, &err),
                        &err);
}

PUBLIC int topt_training_run(struct topt_training *t, int64_t steps, double *ret_losses)
{
    struct topt_error err = {0};
    if (t->err.code)
        return -1;
    for (int64_t i = 0; i < steps; i++)
        if (topt_train_run(t->train, 1, ret_losses ? ret_losses + i : NULL, &err))
            return agreed(t, -1, &err);
    return 0;
}

PUBLIC int topt_training_evaluate(struct topt_training *t, const char *data,
                                  int64_t batches, double *ret_loss)
{
    struct topt_error err = {0};
    return t->err.code ? -1
                       : agreed(t,
                                topt_train_evaluate(t->train, data, t->seed, batches,
                                                    ret_loss, &err),
                                &err);
}

PUBLIC int topt_training_evaluate_from(struct topt_training *t,
                                       topt_training_samples *samples, void *ctx,
                                       int64_t batches, double *ret_loss,
                                       double *ret_right)
{
    struct topt_error err = {0};
    return t->err.code ? -1
                       : agreed(t,
                                topt_train_evaluate_from(t->train, samples, ctx, batches,
                                                         ret_loss, ret_right, &err),
                                &err);
}

/* ---- what it gives back ------------------------------------------------------------- */

PUBLIC int64_t topt_training_outputs(struct topt_training *t)
{
    struct topt_error err = {0};
    int64_t n = t->err.code ? -1 : topt_train_output_size(t->train, &err);
    return done(t, n < 0, &err) ? -1 : n;
}

PUBLIC int topt_training_predict(struct topt_training *t, topt_training_samples *samples,
                                 void *ctx, double *ret)
{
    struct topt_error err = {0};
    return t->err.code
               ? -1
               : agreed(t, topt_train_predict(t->train, samples, ctx, ret, &err), &err);
}

PUBLIC const char *topt_training_parameter_name(struct topt_training *t, int k)
{
    return t->err.code || k < 0 ||
                   topt_train_parameter_name(t->train, k, t->name, sizeof t->name)
               ? NULL
               : t->name;
}

PUBLIC int64_t topt_training_parameter_size(struct topt_training *t, const char *name)
{
    struct topt_error err = {0};
    return t->err.code ? -1 : topt_train_parameter_size(t->train, name, &err);
}

PUBLIC int topt_training_parameter(struct topt_training *t, const char *name, double *ret)
{
    struct topt_error err = {0};
    return t->err.code ? -1
                       : agreed(t, topt_train_parameter(t->train, name, ret, &err), &err);
}

PUBLIC int topt_training_save(struct topt_training *t, const char *folder)
{
    struct topt_error err = {0};
    return t->err.code ? -1 : agreed(t, topt_train_save(t->train, folder, &err), &err);
}

PUBLIC int topt_training_load(struct topt_training *t, const char *folder)
{
    struct topt_error err = {0};
    return t->err.code ? -1 : agreed(t, topt_train_load(t->train, folder, &err), &err);
}

PUBLIC int topt_training_load_weights(struct topt_training *t, const char *folder,
                                      const char *adapters)
{
    struct topt_error err = {0};
    return t->err.code
               ? -1
               : agreed(t, topt_train_load_weights(t->train, folder, adapters, &err),
                        &err);
}

PUBLIC int topt_training_save_weights(struct topt_training *t, const char *config,
                                      const char *folder, int merge)
{
    struct topt_error err = {0};
    return t->err.code
               ? -1
               : agreed(t, topt_train_save_weights(t->train, config, folder, merge, &err),
                        &err);
}
