/* topt_runtime.h - training by a plan: what `topt run` does, as a library.
 *
 *     struct topt_plan_doc *plan;  struct topt_comm *comm;  struct topt_session *s;
 *     topt_comm_open(&argc, &argv, &comm, &err)           every rank
 *     topt_plan_load("plan.json", &plan, &err)
 *     topt_comm_bind(comm, &plan->mesh, &err)             rank = device of the plan
 *     topt_device_open_host(plan->settings.dtype, &device, &err)
 *     topt_session_create(plan->program, comm, &device, &options, &s, &err)
 *     for (...) topt_session_step(s, &loss, &err)
 *
 * Whole tensors are initialised from one seed by counting elements, then only the
 * local block is filled, so every plan starts from the same weights.  The losses of a
 * run depend on the plan by rounding alone.  Errors: a failed step leaves the other
 * ranks waiting; abort the communicator.  Thread safety: one thread a process. */
#ifndef TOPT_RUNTIME_H
#define TOPT_RUNTIME_H

#include <jansson.h>
#include <stdint.h>

#include "topt_comm.h"
#include "topt_device.h"
#include "topt_lower.h"
#include "topt_run_place.h"

/* ---- samples ----------------------------------------------------------------------- */

/* Where samples come from.  A load fills 'ret' with the numbers of one data operand
 * inside 'box' (row-major), for a step counted from 0; samples of the box are counted
 * in the global batch.  The same call gives the same numbers on every rank. */
struct topt_feed {
    int (*load)(void *ctx, const struct topt_op *op, int operand, int64_t step,
                const struct topt_box *box, int32_t *ret, struct topt_error *err);
    /* The same for operands that take real numbers, in f32 or f64; may be NULL. */
    int (*load_real)(void *ctx, const struct topt_op *op, int operand, int64_t step,
                     const struct topt_box *box, enum topt_dtype dtype, void *ret,
                     struct topt_error *err);
    /* Labels of a step's batch that count; those of a load that don't are below 0.  NULL:
     * all count. */
    int64_t (*labels)(void *ctx, int64_t step);
    /* The positions [ret[0], ret[1]) of a sample that its text fills, the rest being padding, which attention does
     * not look at: of the encoder's input ('encoder') or of the model's other one.  NULL: there is no padding. */
    void (*filled)(void *ctx, int encoder, int64_t step, int64_t sample, int32_t ret[2]);
    void (*close)(void *ctx); /* may be NULL */
    void *ctx;
    const char
        *kind; /* "text", "tokens", "records", "idx", "images", "csv", "synthetic" */
    uint64_t digest; /* of all that was read: equal where the samples are */
    /* How numbers are made of what is read, of text and csv; the feed's. */
    const void *preprocessing;
};

/* Samples for the global model 'm', told apart by what is there (gzip is unpacked):
 *   "synthetic"   made from the seed, with a relation between input and labels to learn
 *   idx           the images of a classifier, scaled to -1..1; labels in the file that is
 *                 named like theirs; of a directory the images whose name starts with "train"
 *   images        a folder with a folder of pictures (PNG, PNM) for each class, in order of name,
 *                 cut to the model's shape and scaled to its size, -1..1
 *   csv           lines of features, then the class or the targets; a first line of names;
 *                 features are scaled to mean 0 and deviation 1
 *   tokens        "*.bin", or a folder of such: 16-bit numbers (nanoGPT), or a header and
 *                 16-bit or 32-bit numbers (llm.c)
 *   text          a file, or all of a directory in order of name: character by character,
 *                 numbered in order of their byte values; a sample is a window of seq + 1
 * NULL: synthetic where the model takes real numbers, else USAGE. */
int topt_feed_open(const char *data, const struct topt_model *m, uint64_t seed,
                   struct topt_feed *ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Other data for the same model, read as 'first' reads its own: characters have the same
 * numbers (further ones come behind them, as far as the model has room), and features are
 * scaled alike.  INVAL where they are of another kind.  'first' is only read. */
int topt_feed_like(const struct topt_feed *first, const char *data,
                   const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* What is learnt of texts. */
enum topt_objective {
    TOPT_LEARN_BY_MODEL, /* what the model is for */
    TOPT_LEARN_NEXT,     /* at each position the next token */
    TOPT_LEARN_MASKED,   /* tokens that are hidden from an encoder */
    TOPT_LEARN_SPANS,    /* runs of tokens that are cut from what an encoder reads */
    TOPT_LEARN_LABELS    /* the classes of texts: of records alone */
};
/* Samples as a run is asked for them. */
struct topt_feed_request {
    const char *data;      /* as of topt_feed_open(), or records: *.jsonl */
    const char *tokenizer; /* a tokenizer.json or the folder of one; NULL: see below */
    enum topt_objective objective;
    int64_t mask; /* the token that hides others; negative: the tokenizer's */
    /* Samples of a text lie side by side, and each comes once before any comes again, in an order
     * of its own each time; else anywhere, at random.  Records always do. */
    int by_epoch;
    uint64_t seed;
};
/* Texts become tokens by the tokenizer (topt_tokenizer.h), each file with the token that ends a
 * text, where there is one; without it by character, with masks and gaps numbered behind
 * these.  'like' as 'first' of topt_feed_like(), or NULL.  INVAL where the model's loss asks
 * for what the data do not have: an encoder predicts no next token. */
int topt_feed_for(const struct topt_feed_request *q, const struct topt_feed *like,
                  const struct topt_model *m, struct topt_feed *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;
int topt_feed_synthetic(const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* Text from memory, which is copied. */
int topt_feed_text(const char *bytes, size_t len, const struct topt_model *m,
                   uint64_t seed, struct topt_feed *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
void topt_feed_close(struct topt_feed *f); /* an empty one, too */

/* ---- programs, before a session runs them ------------------------------------------- */

/* Put NORM into the step's end of a lowered program, before what follows from any update: then
 * gradients can be scaled by the norm of all of them, and are all alive at once. */
int topt_program_clip(struct topt_program *p, struct topt_error *err) TOPT_MUST_CHECK;
/* The time of NORM in a step. */
int64_t topt_clip_ns(const struct topt_program *p, const struct topt_hw *hw,
                     struct topt_router *router);

/* Kernels of a lowered program write where they read, as far as their rows allow it and nobody
 * reads that later, and copy no gradients; 'joins': those that a device may do in one pass with
 * the kernel before are marked.  Before buckets are made. */
int topt_program_in_place(struct topt_program *p, int joins,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* By how much that shortens a step. */
int64_t topt_in_place_saves_ns(const struct topt_program *p, const struct topt_hw *hw);
/* All-reduces of gradients at the end of a step become buckets: those below 'bytes' over the
 * same axes and of the same kind together until they are that many, each other by itself.
 * After topt_program_clip, where both are wanted. */
int topt_program_bucket(struct topt_program *p, int64_t bytes,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* By how much that shortens a step. */
int64_t topt_bucket_saves_ns(const struct topt_program *p, struct topt_router *router);

/* Where each buffer lies in one block of memory, whose size comes back: by buffer, multiples of
 * 'align'.  What is never alive has no place. */
int topt_program_offsets(const struct topt_program *p, int64_t align, int64_t *ret_offset,
                         int64_t *ret_bytes, struct topt_error *err) TOPT_MUST_CHECK;

/* ---- sessions ---------------------------------------------------------------------- */

struct topt_session;

/* Fractions that are dropped while a model is trained, 0: none: of what residual connections add
 * and of what goes into the first, of attention's weights, of what adapters read. */
struct topt_dropout {
    double residual, attention, adapter;
};
/* The program drops that of the session's; before topt_program_in_place(), which counts what
 * is alive anew. */
int topt_program_dropout(struct topt_program *p, const struct topt_dropout *d,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* The program keeps running statistics of its batch norms, by which evaluations norm, and which
 * checkpoints have; before topt_program_in_place(), too. */
int topt_program_running(struct topt_program *p, struct topt_error *err) TOPT_MUST_CHECK;

/* The learning rate of a step: up in a straight line over 'warmup' steps, then down along
 * half a cosine to 'lowest' at step 'last', where it stays; last 0: constant. */
struct topt_lr_schedule {
    int64_t warmup, last;
    double lowest;
};
double topt_lr_at(const struct topt_lr_schedule *s, double lr, int64_t step); /* from 0 */

enum { TOPT_SESSION_WORDS = 2 };

struct topt_session_options {
    double lr; /* 0: the optimizer's default */
    double
        weight_decay; /* of adamw, for what has 2 dimensions; 0: 0.01, negative: none */
    struct topt_lr_schedule schedule;
    double beta1, beta2, eps; /* 0: 0.9, 0.999, 1e-8; beta1 is momentum's share, too */
    /* Gradients are scaled so that the norm of all together is at most this; 0: not.  The
     * program has to have that norm (topt_program_clip). */
    double clip;
    struct topt_dropout dropout;
    /* What the balance of experts counts beside the loss, of each choice of theirs: over a sample of T
     * positions that take k of n experts each, n / (k T) times the sum over the experts of
     * the positions that take one, times the mean share that the router gives it; the mean over the
     * batch (DeepSeek-V2, 2024, "sequence-wise").  1 where all have equal parts.  0: not. */
    double balance;
    /* Operators that the program brings itself; borrowed. */
    const struct topt_own *own;
    int nown;
    /* Buckets (topt_program_bucket) are reduced behind backward, where the communicator can. */
    int overlap;
    uint64_t seed;
    struct topt_feed feed;
    /* Called before each UPDATE with the number of its instruction; may be NULL. */
    int (*before_update)(void *ctx, struct topt_session *s, int instr,
                         struct topt_error *err);
    /* Called after each instruction of a step with its number; may be NULL. */
    void (*ran)(void *ctx, int instr);
    /* What a rank has to say at the end of a step; goes with the loss.  May be NULL. */
    void (*say)(void *ctx, double word[TOPT_SESSION_WORDS]);
    void *ctx;
    struct topt_run_place *place; /* told what is run, for who watches; may be NULL */
};

/* sgd 0.1, momentum 0.02, adam and adamw 0.0003 */
double topt_default_lr(enum topt_optimizer o);

/* Can programs of these settings run?  INVAL for types, optimizers and offloading that only plans know. */
int topt_session_check(const struct topt_settings *s,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Runs the program's INIT section.  Borrows everything.  Every rank calls it; where
 * one rank fails, all do.  INVAL as topt_session_check says. */
int topt_session_create(const struct topt_program *p, struct topt_comm *comm,
                        struct topt_device *device,
                        const struct topt_session_options *options,
                        struct topt_session **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
void topt_session_destroy(struct topt_session *s);

/* One step of training; the mean loss over the global batch, the same on every rank. */
int topt_session_step(struct topt_session *s, double *ret_loss,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Sums over all ranks of what each had to say at the end of the last step; 0 where nobody has. */
const double *topt_session_heard(const struct topt_session *s);

/* The norm of all gradients in the last step, before scaling; 0 where the program has none. */
double topt_session_gradient_norm(const struct topt_session *s);
/* The balance of experts in the last step, 1 where all have equal parts: the mean over all choices of
 * experts; 0 where there are none, or it counts nothing. */
double topt_session_balance(const struct topt_session *s);
double topt_session_lr(const struct topt_session *s); /* of the last step */

/* The loss of forward alone over batches 0 to n - 1 of 'feed'; nothing is trained.
 * '*ret_right': of the labels that count the share whose logit is the largest; NAN where
 * the loss is no cross-entropy. */
int topt_session_evaluate(struct topt_session *s, const struct topt_feed *feed, int64_t n,
                          double *ret_loss, double *ret_right,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Numbers of what the loss reads for a whole batch. */
int64_t topt_session_outputs(const struct topt_session *s);
/* They, row-major, after forward alone over batch 0 of 'feed': on rank 0; every rank calls
 * it. */
int topt_session_predict(struct topt_session *s, const struct topt_feed *feed,
                         double *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* What the loss reads of one position of the first sample, after forward alone over batch 0 of
 * 'feed': a number for each of 'n' classes.  INVAL on more ranks than one. */
int topt_session_logits(struct topt_session *s, const struct topt_feed *feed,
                        int64_t position, double *ret, int64_t n,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Most bytes of buffers alive at once on this rank so far, each rounded up to the
 * granule: counted from what was allocated, apart from the plan's own figure. */
int64_t topt_session_peak_bytes(const struct topt_session *s);
/* Bytes of the one block in which all buffers lie; it is taken when the session is made. */
int64_t topt_session_arena_bytes(const struct topt_session *s);
/* Time spent on this rank in all steps so far.  Waiting for other ranks is part of
 * what the collectives took. */
struct topt_session_times {
    int64_t kernel_ns[TOPT_KERNEL_COUNT], kernel_calls[TOPT_KERNEL_COUNT];
    int64_t move_ns[TOPT_MOVE_ALL_REDUCE + 1], move_calls[TOPT_MOVE_ALL_REDUCE + 1];
    int64_t reduce_ns, update_ns,
        other_ns; /* inside operators; optimizer; all the rest */
};
struct topt_session_times topt_session_times(const struct topt_session *s);

/* Different rows that the samples of a step named, on the mean of all steps, of each operator's
 * table; 0 where its gradient is not rows, and before the first step.  'ret' has the model's
 * number of operators.  Every rank calls it. */
int topt_session_tables(struct topt_session *s, double *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

const struct topt_program *topt_session_program(const struct topt_session *s);

/* An instruction in words: "all-reduce of the gradient of 'w' of 'h0.mlp'". */
void topt_instr_words(const struct topt_program *p, int instr, char *buf, size_t size);

/* A live buffer as a whole tensor of doubles on rank 0 ('*ret' owned by the caller;
 * NULL on the others).  'ret_spread', may be NULL: largest difference between copies
 * that should be equal.  INVAL for partial layouts.  Every rank calls it. */
int topt_session_gather(struct topt_session *s, int buffer, double **ret, int64_t *ret_n,
                        double *ret_spread, struct topt_error *err) TOPT_MUST_CHECK;

#endif
