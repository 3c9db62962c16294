/* shape.h - nodes, GPUs and tasks: what the user's own options allow, and whether a plan
 * keeps within it; how many tasks a job has.
 *
 * Pure: knows no Slurm, only the texts of its options.  Plain values, no threads. */
#ifndef TOPT_SHAPE_H
#define TOPT_SHAPE_H

#include <stdint.h>

#include "answer.h"
#include "ask.h"
#include "topt_elastic.h"
#include "topt_error.h"

/* What the job's own options say; 0 and "" where they say nothing. */
struct topt_bounds {
    int by_node;           /* one task a node rather than one a GPU: topt_shape_settle */
    int64_t nodes;         /* -N, the upper end of a range */
    int64_t gpus;          /* --gpus */
    int64_t gpus_per_node; /* --gpus-per-node, or gpu in --gres */
    int64_t tasks;         /* -n */
    int64_t tasks_per_node;
    int64_t gpus_per_task; /* --gpus-per-task, or GPUs in --tres-per-task */
    int64_t tasks_per_gpu; /* --ntasks-per-gpu */
    char gpu_type[64];     /* "a100" of --gpus=a100:4 */
    char partition
        [TOPT_ELASTIC_PARTITIONS]; /* of another kind, in place of the job's own */
};

/* "2", "1-4", "2-", "1,2,4": the most nodes. */
int topt_shape_nodes(const char *text, int64_t *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* "4", "a100:4", "gpu:4", "gpu:a100:4", "gpu": a count and, where given, a type. */
int topt_shape_gpus(const char *text, int64_t *ret, char type[64],
                    struct topt_error *err) TOPT_MUST_CHECK;

/* The same of --tres-per-task, whose entries are as "cpu=4" or "gres/gpu:a100=2". */
int topt_shape_tres(const char *text, int64_t *ret_gpus, char type[64],
                    struct topt_text *others, struct topt_error *err) TOPT_MUST_CHECK;

/* Whether a task is for a GPU or for a node: as --topt-tasks says, else what the options
 * mean together.  One task a node, several tasks on as many nodes with more GPUs than
 * that, or a task of several GPUs mean a task a node; so does a framework other than topt
 * where they say nothing of tasks. */
void topt_shape_settle(const struct topt_ask *ask, struct topt_bounds *b);

/* The tasks of a job with this plan, and of each of its nodes. */
int64_t topt_shape_tasks(const struct topt_bounds *b, const struct topt_answer *plan);
int64_t topt_shape_tasks_per_node(const struct topt_bounds *b,
                                  const struct topt_answer *plan);

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
