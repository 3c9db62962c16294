/* topt.h - train a model by the best strategy for the ranks that a program was started on.
 *
 *     struct topt_training *t = topt_training_open(&argc, &argv, "digits", 64, 1);
 *     topt_training_placeholder(t, "image", 784);
 *     topt_training_operator(t, "linear", "out", "image", "{\"features\": 10}");
 *     topt_training_loss(t, "cross_entropy", "out");
 *     topt_training_optimizer(t, "adam", 0.001);
 *     topt_training_find_strategy(t, "lab-cpu", 0);
 *     topt_training_build(t, "images", 1);
 *     topt_training_run(t, 100, losses);
 *     topt_training_close(t);
 *
 * Every rank makes the same calls in the same order, and each call gives all ranks the same
 * result: 0, or -1, and topt_training_error() says why.  Once a call has failed those after it
 * fail, too, so that a program may look at the end alone.  Started by mpirun or srun the ranks
 * are the devices; alone it is one.
 *
 * Thread safety: one thread a process, one training at a time; another may be opened when it is
 * closed.  MPI is ended at the exit of the program, where it was started here. */
#ifndef TOPT_H
#define TOPT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct topt_training;

/* A model of that name, 'batch' samples a step over all ranks, 'seq' positions a sample (1
 * where there are none).  NULL where memory does not suffice; MPI is started where it is not yet.
 */
struct topt_training *topt_training_open(int *argc, char ***argv, const char *name,
                                         int64_t batch, int64_t seq);
void topt_training_close(struct topt_training *t); /* NULL, too */

/* Why the first call failed that did; "" where none has. */
const char *topt_training_error(const struct topt_training *t);
/* 1 on the rank that is to say so: where one rank fails, all calls fail. */
int topt_training_speaks(const struct topt_training *t);
int topt_training_rank(const struct topt_training *t);
int topt_training_size(const struct topt_training *t);

/* ---- the model: each call names a tensor, by which later ones know it -------------- */

/* Samples of real numbers. */
int topt_training_placeholder(struct topt_training *t, const char *name,
                              int64_t features);
/* A trained matrix that several operators may read. */
int topt_training_variable(struct topt_training *t, const char *name, int64_t rows,
                           int64_t columns);
/* An operator of the table in formats/model.md: its kind, its name, the names of its inputs with
 * commas between ("" for none), and its attributes as a JSON object (NULL for none). */
int topt_training_operator(struct topt_training *t, const char *kind, const char *name,
                           const char *inputs, const char *attributes);
/* An operator of the program's own, which makes numbers of each position by itself.  Its extents and
 * its cost are what the search goes by; samples and positions may lie on any rank, a position's
 * numbers and the parameters stay together. */
struct topt_own_positions {
    int64_t n, width; /* positions at hand; numbers of each in x */
    int64_t outputs, parameters;
    int is_double;     /* numbers are double, else float */
    const void *x, *w; /* [n, width]; the parameters */
    void *y;           /* forward writes [n, outputs] */
    const void *dy;    /* backward: the slopes of the loss by y */
    void *dx,
        *dw; /* it writes those by x, and adds those by w; NULL: nobody wants them */
};
struct topt_own_operator {
    int64_t outputs; /* numbers of a position that it makes; 0: as many as it takes */
    int64_t
        parameters; /* of all positions, trained; they start normal with 'deviation', 0: 0.02 */
    double deviation;
    int64_t flops; /* operations of a position forward; backward counts twice as much */
    void (*forward)(void *ctx, const struct topt_own_positions *p);
    void (*backward)(void *ctx, const struct topt_own_positions *p);
    void *ctx;
};
/* Such an operator in the model, on CPUs; 'what' is copied.  Before topt_training_load_strategy() for
 * each of the plan's that is one. */
int topt_training_own(struct topt_training *t, const char *name, const char *input,
                      const struct topt_own_operator *what);
/* "cross_entropy" or "mse" of a tensor against the samples' labels; a model has one. */
int topt_training_loss(struct topt_training *t, const char *kind, const char *input);
/* sgd, momentum, adam or adamw; 'lr' 0: its default.  Like operators, before the strategy. */
int topt_training_optimizer(struct topt_training *t, const char *name, double lr);

/* An option by its name and value, as `topt plan` and `topt run` have them.  Before the
 * strategy: train ("lora:8"), dtype (f32, f64), micro-batches.  Before the training is built:
 * schedule (constant, cosine), steps (where the cosine ends), warmup, min-lr, clip,
 * weight-decay, dropout, attention-dropout, adapter-dropout, balance, tokenizer. */
int topt_training_option(struct topt_training *t, const char *name, const char *value);

/* ---- its strategy ---------------------------------------------------------------------------- */

/* The fastest on as many devices as there are ranks, by a hardware profile (a name or a
 * file), within 'memory_bytes' of each (0: what the profile's devices have). */
int topt_training_find_strategy(struct topt_training *t, const char *hardware,
                                int64_t memory_bytes);
/* The same from a running toptd at 'url', NULL for the one that `topt client` finds, by a
 * profile that it knows. Rank 0 asks, by the program `topt`, which is to be on its $PATH. */
int topt_training_ask_strategy(struct topt_training *t, const char *url,
                               const char *hardware, int64_t memory_bytes);
/* Or that of a plan document, as `topt plan -o` writes it;
 * its model is the one that is trained, and nothing else needs to be said of it.  An
 * optimizer that was chosen has to be the plan's. */
int topt_training_load_strategy(struct topt_training *t, const char *path);
/* The plan as a document, until the next call; NULL before there is one. */
const char *topt_training_plan(struct topt_training *t);

/* ---- training ------------------------------------------------------------------------------- */

/* The program of every rank, its memory, and weights from 'seed'.  'data': what `topt run
 * --data` takes. */
int topt_training_build(struct topt_training *t, const char *data, uint64_t seed);
/* Samples that the program has itself.  Fills 'numbers' with samples [first, first + n) of the batch
 * of a step, counted from 0, for a tensor by its name: a placeholder, an operator that takes tokens,
 * or "loss", whose are the labels.  Sample after sample: float for real numbers, int32_t for tokens
 * and classes.  0, or -1 where it can't: then the step fails on every rank.
 * Each rank is asked for its own part of the batch alone, whatever the strategy: where that wants
 * samples on other ranks, too, they are sent there within the step. */
typedef int topt_training_samples(void *ctx, const char *name, int64_t step,
                                  int64_t first, int64_t n, void *numbers);
/* As topt_training_build, from such samples; 'ctx' is passed on. */
int topt_training_build_from(struct topt_training *t, topt_training_samples *samples,
                             void *ctx, uint64_t seed);
/* So many steps more; their losses, the same on every rank, in 'ret_losses' unless that is NULL. */
int topt_training_run(struct topt_training *t, int64_t steps, double *ret_losses);
/* The mean loss of 'batches' batches of other data; nothing is trained. */
int topt_training_evaluate(struct topt_training *t, const char *data, int64_t batches,
                           double *ret_loss);

/* The same of samples as topt_training_build_from takes them, of a training that was built from
 * such; '*ret_right': the share of the labels whose class has the largest number (NAN: it has no
 * classes). */
int topt_training_evaluate_from(struct topt_training *t, topt_training_samples *samples,
                                void *ctx, int64_t batches, double *ret_loss,
                                double *ret_right);

/* ---- what it gives back --------------------------------------------------------------- */

/* Numbers that the loss reads for a batch (-1: nothing is built), and these for samples of the
 * program's, sample after sample, on every rank; the labels are not asked for. */
int64_t topt_training_outputs(struct topt_training *t);
int topt_training_predict(struct topt_training *t, topt_training_samples *samples,
                          void *ctx, double *ret);
/* The k-th parameter's name ("hidden.w"), until the next call; NULL past the last.  Numbers of
 * one (-1: there is none), and they, row after row, on every rank. */
const char *topt_training_parameter_name(struct topt_training *t, int k);
int64_t topt_training_parameter_size(struct topt_training *t, const char *name);
int topt_training_parameter(struct topt_training *t, const char *name, double *ret);
/* A checkpoint into a folder, as `topt run --checkpoint` writes it, and the last one there: steps go
 * on behind it, under any strategy of the model. */
int topt_training_save(struct topt_training *t, const char *folder);
int topt_training_load(struct topt_training *t, const char *folder);
/* Weights as Hugging Face's libraries have them, of a plan that was made from such a model:
 * from a folder ('adapters' a folder of PEFT's, or NULL), and into one by the names of a
 * config.json; with 'merge' adapters are added to the weights. */
int topt_training_load_weights(struct topt_training *t, const char *folder,
                               const char *adapters);
int topt_training_save_weights(struct topt_training *t, const char *config,
                               const char *folder, int merge);

#ifdef __cplusplus
}
#endif
#endif
