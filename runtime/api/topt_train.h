/* topt_train.h - a model written in C, its strategy found and run, in a page.
 *
 *     topt_train_open(&argc, &argv, "mlp", 32, 64, &t, &err);           every rank
 *     int table = topt_train_variable(t, "table", 128, 256);
 *     int x = topt_train_embedding(t, "tokens", table);
 *     x = topt_train_linear(t, "hidden", x, 1024);
 *     x = topt_train_apply(t, "unary", "gelu", 1, &x, &(struct topt_attrs){...});
 *     x = topt_train_matmul(t, "logits", topt_train_linear(t, "out", x, 256), table);
 *     topt_train_loss(t, x);
 *     topt_train_find_strategy(t, "hw.json", TOPT_MOMENTUM, 0, &err);   for all the ranks
 *     topt_train_build(t, "text.txt", 0, 1, &err);                      program, weights
 *     topt_train_run(t, 100, losses, &err);
 *     topt_train_close(t);
 *
 * Under mpirun or srun the ranks are the devices; alone it is one.  An operator that
 * can't be makes its tensor -1, which every later call passes on;
 * topt_train_find_strategy() then fails with the first reason.  Thread safety: one
 * thread a process, one training at a time. */
#ifndef TOPT_TRAIN_H
#define TOPT_TRAIN_H

#include "topt_plan.h"
#include "topt_runtime.h"

struct topt_train;

int topt_train_open(int *argc, char ***argv, const char *name, int64_t batch, int64_t seq,
                    struct topt_train **ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_train_close(struct topt_train *t);

/* Operators; each returns its tensor, or -1.  Names are unique in the model. */
int topt_train_variable(struct topt_train *t, const char *name, int64_t rows,
                        int64_t cols);
int topt_train_embedding(struct topt_train *t, const char *name, int table);
int topt_train_matmul(struct topt_train *t, const char *name, int x, int weight);
int topt_train_linear(struct topt_train *t, const char *name, int x, int64_t features);
/* Any kind of the operator table. */
int topt_train_apply(struct topt_train *t, const char *kind, const char *name,
                     int ninputs, const int *inputs, const struct topt_attrs *attrs);
int topt_train_loss(struct topt_train *t, int logits);
/* Register the functions of operator 'own->name', of the kind "own"; copied.  Before the training is built. */
int topt_train_own(struct topt_train *t, const struct topt_own *own,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* The fastest strategy on as many devices as there are ranks, within 'memory_bytes'
 * each (0: what the profile's device has).  Rank 0 searches, the others get its plan.
 * INFEASIBLE where nothing fits. */
int topt_train_find_strategy(struct topt_train *t, const char *hw,
                             enum topt_optimizer optimizer, int64_t memory_bytes,
                             struct topt_error *err) TOPT_MUST_CHECK;
/* The same from the toptd at 'url' (NULL: the one that `topt client` finds), by a profile
 * that it knows; rank 0 asks, by the program `topt` of $PATH.  NOTFOUND where it gives
 * none. */
int topt_train_ask_strategy(struct topt_train *t, const char *url, const char *hw,
                            enum topt_optimizer optimizer, int64_t memory_bytes,
                            struct topt_error *err) TOPT_MUST_CHECK;
/* The strategy of a plan document in a file, whose model is then the one that is trained.  Rank 0
 * reads it, the others get it. */
int topt_train_load_strategy(struct topt_train *t, const char *path,
                             struct topt_error *err) TOPT_MUST_CHECK;
/* A finished model instead of one that is written here; 'm' is owned by 't'. */
void topt_train_take_model(struct topt_train *t, struct topt_model *m);
/* The plan as it came; freed by the caller, NULL where there is none. */
char *topt_train_plan_text(const struct topt_train *t);
const struct topt_plan_doc *topt_train_plan(const struct topt_train *t); /* or NULL */

/* Samples from the program itself, as topt_training_samples in topt.h says; each rank is asked for
 * its part of the batch. */
int topt_train_build_from(struct topt_train *t,
                          int (*samples)(void *ctx, const char *name, int64_t step,
                                         int64_t first, int64_t n, void *numbers),
                          void *ctx, double lr, uint64_t seed,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* Samples from 'data' as topt_feed_open() takes it; weights from 'seed'; 'lr' 0: the
 * optimizer's default. */
int topt_train_build(struct topt_train *t, const char *data, double lr, uint64_t seed,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* 'steps' more steps; their losses in ret_losses (may be NULL), the same on every
 * rank. */
int topt_train_run(struct topt_train *t, int steps, double *ret_losses,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* The mean loss of 'n' batches of other data. */
int topt_train_evaluate(struct topt_train *t, const char *data, uint64_t seed, int64_t n,
                        double *ret_loss, struct topt_error *err) TOPT_MUST_CHECK;

/* An option by its name; INVAL where it comes too late.  The words are copied. */
int topt_train_set(struct topt_train *t, const char *name, const char *value,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* A checkpoint after the steps so far into 'folder', as `topt run --checkpoint` writes it, and the
 * last one there; steps go on behind it. */
int topt_train_save(struct topt_train *t, const char *folder,
                    struct topt_error *err) TOPT_MUST_CHECK;
int topt_train_load(struct topt_train *t, const char *folder,
                    struct topt_error *err) TOPT_MUST_CHECK;
/* As topt_weights_load() and topt_weights_save(). */
int topt_train_load_weights(struct topt_train *t, const char *folder,
                            const char *adapters, struct topt_error *err) TOPT_MUST_CHECK;
int topt_train_save_weights(struct topt_train *t, const char *config, const char *folder,
                            int merge, struct topt_error *err) TOPT_MUST_CHECK;

/* The k-th parameter's name ("hidden.w"); -1 past the last. */
int topt_train_parameter_name(const struct topt_train *t, int k, char *ret, size_t size);
/* Numbers of a parameter, -1 where there is none of that name; and all of them, row-major, on
 * every rank. */
int64_t topt_train_parameter_size(const struct topt_train *t, const char *name,
                                  struct topt_error *err);
int topt_train_parameter(struct topt_train *t, const char *name, double *ret,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* As topt_session_evaluate(), over batches of the program's own samples. */
int topt_train_evaluate_from(struct topt_train *t,
                             int (*samples)(void *ctx, const char *name, int64_t step,
                                            int64_t first, int64_t n, void *numbers),
                             void *ctx, int64_t n, double *ret_loss, double *ret_right,
                             struct topt_error *err) TOPT_MUST_CHECK;
/* What the loss reads for a batch (step 0) of such samples, row-major, on every rank:
 * topt_train_output_size() numbers (-1: nothing is built).  Labels are not asked for. */
int64_t topt_train_output_size(const struct topt_train *t, struct topt_error *err);
int topt_train_predict(struct topt_train *t,
                       int (*samples)(void *ctx, const char *name, int64_t step,
                                      int64_t first, int64_t n, void *numbers),
                       void *ctx, double *ret, struct topt_error *err) TOPT_MUST_CHECK;

int topt_train_rank(const struct topt_train *t);
int topt_train_size(const struct topt_train *t);

#endif
