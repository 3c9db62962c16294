/* train_parts.h - inside the library: what a training has. */
#ifndef TOPT_TRAIN_PARTS_H
#define TOPT_TRAIN_PARTS_H

#include "topt_train.h"

/* Samples that the program has itself. */
struct topt_asked {
    int (*samples)(void *ctx, const char *name, int64_t step, int64_t first, int64_t n,
                   void *numbers);
    void *ctx;
    struct topt_error err; /* there were none */
    int unlabelled;        /* labels are not asked for */
};

/* What topt_train_set() has been told; words are the training's own. */
struct topt_train_options {
    const char *train, *dtype, *schedule, *tokenizer;
    int64_t micro_batches, steps, warmup;
    double min_lr, clip, weight_decay, balance;
    struct topt_dropout dropout;
};

struct topt_train {
    struct topt_comm *comm;
    struct topt_model *model;
    int finished;            /* the model */
    char *text;              /* of the plan */
    struct topt_error first; /* what went wrong while the model was written */
    struct topt_plan_doc *plan;
    struct topt_program *program; /* the plan's, tuned */
    struct topt_device device;
    struct topt_feed feed;
    struct topt_asked given;
    struct topt_session *session;
    struct topt_train_options options;
    char **words; /* that options point to */
    int nwords, words_cap;
    struct topt_own *own; /* their names are the training's */
    int nown, own_cap;
    uint64_t seed;
    int64_t steps; /* done */
};

/* A feed of samples that the program has; 'given' stays. */
struct topt_feed topt_train_feed_of(struct topt_asked *given);
/* What 'given' lacked in an evaluation or a step, on every rank. */
int topt_train_agree_given(struct topt_train *t, const struct topt_asked *given,
                           struct topt_error *err) TOPT_MUST_CHECK;
/* -1 where nothing is built. */
int topt_train_is_built(const struct topt_train *t, struct topt_error *err);

#endif
