/* train_results.c - what a training gives back: checkpoints, weights, parameters by name,
 * and what its model says of samples. */
#include "tensors.h"
#include "topt_checkpoint.h"
#include "topt_weights.h"
#include "train_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- checkpoints ------------------------------------------------------------------- */

static int write_checkpoint(struct topt_train *t, struct topt_saver *v,
                            struct topt_error *err)
{
    const struct topt_model *m = t->plan->model;
    int is_cosine = t->options.schedule && !strcmp(t->options.schedule, "cosine");
    struct topt_checkpoint_facts f = {.step = t->steps,
                                      .batch = m->batch,
                                      .seq = m->seq,
                                      .seed = t->seed,
                                      .data = t->feed.digest,
                                      .schedule_last = is_cosine ? t->options.steps : 0};
    return topt_saver_begin(v, &f, err) || topt_saver_commit(v, err) ? -1 : 0;
}

int topt_train_save(struct topt_train *t, const char *folder, struct topt_error *err)
{
    enum { KEEP = 3 };
    struct topt_saver *v = NULL;
    if (topt_train_is_built(t, err) || topt_saver_open(t->session, folder, KEEP, &v, err))
        return -1;
    int rc = write_checkpoint(t, v, err);
    topt_saver_close(v);
    return rc;
}

int topt_train_load(struct topt_train *t, const char *folder, struct topt_error *err)
{
    struct topt_checkpoint_facts f;
    if (topt_train_is_built(t, err) ||
        topt_checkpoint_load(t->session, folder, NULL, NULL, &f, err))
        return -1;
    if (f.step < 0)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "there is no checkpoint in '%.200s'",
                         folder);
    t->steps = f.step;
    return 0;
}

int topt_train_load_weights(struct topt_train *t, const char *folder,
                            const char *adapters, struct topt_error *err)
{
    struct topt_weights_source from = {.dir = folder, .adapters = adapters};
    return topt_train_is_built(t, err) || topt_weights_load(t->session, &from, err) ? -1
                                                                                    : 0;
}

int topt_train_save_weights(struct topt_train *t, const char *config, const char *folder,
                            int merge, struct topt_error *err)
{
    struct topt_weights_folder to = {.dir = folder,
                                     .config = config,
                                     .merge = merge,
                                     .dropout = t->options.dropout.adapter};
    int64_t bytes;
    if (topt_train_is_built(t, err))
        return -1;
    int failed = topt_weights_check(t->program, config, merge, &bytes, err);
    return topt_comm_agree(t->comm, failed, err) ||
                   topt_weights_save(t->session, &to, err)
               ? -1
               : 0;
}

/* ---- parameters -------------------------------------------------------------------- */

/* The k-th parameter, or the one of that name (NULL: by number); -1: there is none. */
static int find_parameter(const struct topt_train *t, int k, const char *name,
                          struct topt_stay *ret, struct topt_error *err)
{
    struct topt_stay *stay = NULL;
    int n = 0, found = -1;
    if (topt_stays(t->program, &stay, &n, err))
        return -1;
    for (int i = 0; i < n && found < 0; i++) {
        int is_param = t->program->buffer[stay[i].buffer].cls == TOPT_CLASS_PARAM;
        if (is_param && (name ? !strcmp(stay[i].name, name) : k-- == 0))
            found = i;
    }
    if (found >= 0)
        *ret = stay[found];
    free(stay);
    return found >= 0 ? 0
                      : topt_fail(err, TOPT_ERR_NOTFOUND, "no parameter is named '%.80s'",
                                  name ? name : "");
}

static int64_t numbers_of(const struct topt_train *t, int buffer)
{
    struct topt_shape s = topt_stay_shape(t->program, buffer);
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++)
        n *= s.dim[d].count;
    return n;
}

int topt_train_parameter_name(const struct topt_train *t, int k, char *ret, size_t size)
{
    struct topt_stay stay;
    struct topt_error err;
    if (topt_train_is_built(t, &err) || find_parameter(t, k, NULL, &stay, &err))
        return -1;
    snprintf(ret, size, "%s", stay.name);
    return 0;
}

int64_t topt_train_parameter_size(const struct topt_train *t, const char *name,
                                  struct topt_error *err)
{
    struct topt_stay stay;
    return topt_train_is_built(t, err) || find_parameter(t, 0, name, &stay, err)
               ? -1
               : numbers_of(t, stay.buffer);
}

int topt_train_parameter(struct topt_train *t, const char *name, double *ret,
                         struct topt_error *err)
{
    struct topt_stay stay;
    double *whole = NULL;
    int64_t n;
    if (topt_train_is_built(t, err) || find_parameter(t, 0, name, &stay, err))
        return -1;
    int failed = topt_session_gather(t->session, stay.buffer, &whole, &n, NULL, err);
    if (!failed && whole)
        memcpy(ret, whole, (size_t)n * sizeof *ret);
    free(whole);
    int64_t bytes = numbers_of(t, stay.buffer) * (int64_t)sizeof *ret;
    return topt_comm_agree(t->comm, failed, err) ||
                   t->comm->ops->broadcast(t->comm, ret, bytes, err)
               ? -1
               : 0;
}

/* ---- what the model says ----------------------------------------------------------- */

/* Samples from the program itself are loaded in whole, which the program was lowered for. */
static int check_given(const struct topt_train *t, struct topt_error *err)
{
    if (topt_train_is_built(t, err))
        return -1;
    return t->given.samples
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "samples are given to what was built from samples");
}

int topt_train_evaluate_from(struct topt_train *t,
                             int (*samples)(void *ctx, const char *name, int64_t step,
                                            int64_t first, int64_t n, void *numbers),
                             void *ctx, int64_t n, double *ret_loss, double *ret_right,
                             struct topt_error *err)
{
    struct topt_asked given = {.samples = samples, .ctx = ctx};
    struct topt_feed feed = topt_train_feed_of(&given);
    return check_given(t, err) ||
                   topt_session_evaluate(t->session, &feed, n, ret_loss, ret_right,
                                         err) ||
                   topt_train_agree_given(t, &given, err)
               ? -1
               : 0;
}

int64_t topt_train_output_size(const struct topt_train *t, struct topt_error *err)
{
    return topt_train_is_built(t, err) ? -1 : topt_session_outputs(t->session);
}

int topt_train_predict(struct topt_train *t,
                       int (*samples)(void *ctx, const char *name, int64_t step,
                                      int64_t first, int64_t n, void *numbers),
                       void *ctx, double *ret, struct topt_error *err)
{
    struct topt_asked given = {.samples = samples, .ctx = ctx, .unlabelled = 1};
    struct topt_feed feed = topt_train_feed_of(&given);
    if (check_given(t, err))
        return -1;
    int64_t bytes = topt_session_outputs(t->session) * (int64_t)sizeof *ret;
    return topt_session_predict(t->session, &feed, ret, err) ||
                   topt_train_agree_given(t, &given, err) ||
                   t->comm->ops->broadcast(t->comm, ret, bytes, err)
               ? -1
               : 0;
}
