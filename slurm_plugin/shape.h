/* shape.h - nodes, GPUs and tasks: what the user's own options allow, and whether a plan
 * keeps within it.
 *
 * Pure: knows no Slurm, only the texts of its options.  Plain values, no threads. */
#ifndef TOPT_SHAPE_H
#define TOPT_SHAPE_H

#include <stdint.h>

#include "answer.h"
#include "ask.h"
#include "topt_error.h"

/* What the job's own options say; 0 and "" where they say nothing. */
struct topt_bounds {
    int64_t nodes;         /* -N, the upper end of a range */
    int64_t gpus;          /* --gpus */
    int64_t gpus_per_node; /* --gpus-per-node, or gpu in --gres */
    int64_t tasks;         /* -n */
    int64_t tasks_per_node;
    char gpu_type[64]; /* "a100" of --gpus=a100:4 */
};

/* "2", "1-4", "2-", "1,2,4": the most nodes. */
int topt_shape_nodes(const char *text, int64_t *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* "4", "a100:4", "gpu:4", "gpu:a100:4", "gpu": a count and, where given, a type. */
int topt_shape_gpus(const char *text, int64_t *ret, char type[64],
                    struct topt_error *err) TOPT_MUST_CHECK;

/* Split the text of --gres: entries for GPUs are counted (several types are refused),
 * all others are appended to 'others' with commas. */
int topt_shape_gres(const char *text, int64_t *ret_gpus, char type[64],
                    struct topt_text *others, struct topt_error *err) TOPT_MUST_CHECK;

/* The most GPUs that the job's options and --topt-max-gpus allow, 0 for no bound.  Fails
 * when --topt-gpus is above it, or when mini-time has no number at all. */
int topt_shape_bound(const struct topt_ask *ask, const struct topt_bounds *b,
                     int64_t *ret_bound, struct topt_error *err) TOPT_MUST_CHECK;

/* Fails, naming the option, when the plan needs more than the options allow. */
int topt_shape_fits(const struct topt_bounds *b, const struct topt_answer *plan,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* Does the job ask for GPUs itself? */
int topt_shape_asks_gpus(const struct topt_bounds *b);

/* Name the options in words, as "-N 1, --gpus=4"; "" when there are none. */
char *topt_shape_words(const struct topt_bounds *b, char *buf, size_t size);

#endif
