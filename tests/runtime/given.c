/* given.c - trains by a plan with samples of its own, and says what each rank was asked for.
 *
 * usage: given PLAN STEPS [LAST]   of which LAST have samples; prints "loss X" on rank 0 and "asked NAME N" on every rank */
#include "feed_model.h"
#include "random.h"
#include "tally.h"
#include "topt_train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct samples {
    const struct topt_model *model;
    int64_t last;                     /* no step from here on has samples */
    int64_t tokens, features, labels; /* samples of each that this rank was asked for */
};

/* A number of a sample, the same whoever asks. */
static uint64_t draw(const char *name, int64_t step, int64_t sample, int64_t k)
{
    return topt_random((uint64_t)name[0] + 977 * (uint64_t)step,
                       (uint64_t)(sample * 100000 + k));
}

static void put_whole(const char *name, int64_t step, int64_t sample, int64_t n,
                      int64_t classes, int32_t *ret)
{
    for (int64_t k = 0; k < n; k++)
        ret[k] = (int32_t)(draw(name, step, sample, k) % (uint64_t)classes);
}

static void put_real(const char *name, int64_t step, int64_t sample, int64_t n,
                     float *ret)
{
    for (int64_t k = 0; k < n; k++)
        ret[k] = (float)(draw(name, step, sample, k) % 2000) / 1000.0f - 1;
}

static int fill(void *ctx, const char *name, int64_t step, int64_t first, int64_t n,
                void *numbers)
{
    struct samples *s = ctx;
    struct topt_feed_needs m = topt_feed_needs_of(s->model);
    int64_t seq = s->model->seq;
    if (step >= s->last)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        if (!strcmp(name, m.loss->name) && m.classes)
            put_whole(name, step, first + i, m.answers, m.classes,
                      (int32_t *)numbers + i * m.answers);
        else if (!strcmp(name, m.loss->name))
            put_real(name, step, first + i, m.answers, (float *)numbers + i * m.answers);
        else if (m.tokens && !strcmp(name, m.tokens->name))
            put_whole(name, step, first + i, seq, m.vocab, (int32_t *)numbers + i * seq);
        else if (m.features && !strcmp(name, m.features->name))
            put_real(name, step, first + i, m.sample, (float *)numbers + i * m.sample);
        else
            return -1;
    }
    *(!strcmp(name, m.loss->name) ? &s->labels
      : m.tokens                  ? &s->tokens
                                  : &s->features) += n;
    return 0;
}

/* Between a LOAD and the next kernel of its operator there are the moves of what it loaded. */
static int64_t fed_ns(const struct topt_program *p, struct topt_router *router)
{
    struct topt_costing k = {p->model, NULL, &p->mesh, &p->settings, router, NULL};
    struct topt_tally t; /* it prices alone */
    int64_t ns = 0;
    int loads = -1, network;
    topt_tally_init(&t, &k);
    t.named = p->buffer;
    for (int n = p->micro_begin; n < p->micro_end; n++) {
        const struct topt_instr *i = &p->instr[n];
        if (i->kind == TOPT_I_KERNEL)
            loads = i->kernel == TOPT_K_LOAD ? i->op : -1;
        else if (i->kind == TOPT_I_MOVE && i->op == loads)
            ns += topt_tally_price(&t, i, &network).ns;
    }
    return ns * p->settings.micro_batches;
}

/* What the plan makes of samples that come as data parallel, by the prices of its profile. */
static int64_t moves_ns(const struct topt_train *t)
{
    struct topt_error err = {0};
    const struct topt_plan_doc *d = topt_train_plan(t);
    struct topt_program *p;
    if (topt_lower(d->micro, &d->mesh, &d->settings, d->strategy, d->router, 1, &p, &err))
        return -1;
    int64_t ns = fed_ns(p, d->router);
    topt_program_destroy(p);
    return ns;
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    struct topt_train *t;
    struct samples s = {.last = argc > 3 ? atoi(argv[3]) : 64};
    double loss[64];
    int steps = argc > 2 ? atoi(argv[2]) : 0;
    char plan[4096];
    if (steps < 1 || steps > 64)
        return 2;
    snprintf(plan, sizeof plan, "%s", argv[1]);
    if (argc > 4)
        return 2;
    if (topt_train_open(&argc, &argv, "given", 4, 1, &t, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int rc = topt_train_load_strategy(t, plan, &err);
    s.model = rc ? NULL : topt_train_plan(t)->model;
    rc = rc || topt_train_build_from(t, fill, &s, 0.05, 1, &err) ||
         topt_train_run(t, steps, loss, &err);
    for (int i = 0; i < steps && !rc && !topt_train_rank(t); i++)
        printf("loss %.9e\n", loss[i]);
    if (!rc)
        printf("moves %lld\n", (long long)moves_ns(t));
    if (!rc)
        printf("asked %lld %lld %lld\n", (long long)s.tokens, (long long)s.features,
               (long long)s.labels);
    else if (!topt_comm_failed_elsewhere(&err))
        fprintf(stderr, "topt given: %s\n", err.text);
    topt_train_close(t);
    return rc ? 1 : 0;
}
