/* topt_elastic.h - a job of Slurm that takes several numbers of GPUs: its plans, one for
 * each shape, travel in its environment, and what they promise stands in its comment,
 * which whoever sees the queue can read.
 *
 * A shape is nodes x GPUs of each.  The plan that the job was submitted with is in
 * SLURM_TOPT_*, as that of any job; of each other shape there are the two variables
 * below.  SLURM_TOPT_ELASTIC lists these shapes. Slurm's plugin compiles elastic.c itself.
 * Thread safety: plain values; reentrant. */
#ifndef TOPT_ELASTIC_H
#define TOPT_ELASTIC_H

#include <stdint.h>

#include "topt_error.h"
#include "topt_text.h"

enum { TOPT_ELASTIC_MOST = 12, TOPT_ELASTIC_NAME = 64, TOPT_ELASTIC_WORD = 1024 };

#define TOPT_ELASTIC_VARIABLE "SLURM_TOPT_ELASTIC"

struct topt_elastic {
    struct topt_elastic_shape {
        int64_t nodes, gpus_per_node;
        int64_t time_ns; /* predicted, of a step */
    } shape[TOPT_ELASTIC_MOST];
    int n, submitted;      /* which of them the job was submitted with */
    double min_efficiency; /* that the job asked for; 0: it said nothing */
    int by_node;           /* a task for each node, not for each GPU */
    int64_t steps;         /* that the job trains; 0: it said nothing */
};

int64_t topt_elastic_gpus(const struct topt_elastic_shape *s);

/* Its place among the shapes, or -1. */
int topt_elastic_find(const struct topt_elastic *e, int64_t nodes, int64_t gpus_per_node);

/* The names of the variables that hold the numbers and the document of the plan of a shape. */
void topt_elastic_plan_name(int64_t nodes, int64_t gpus_per_node,
                            char ret[TOPT_ELASTIC_NAME]);
void topt_elastic_document_name(int64_t nodes, int64_t gpus_per_node,
                                char ret[TOPT_ELASTIC_NAME]);

/* Append the comment's word,
 * "topt-elastic=1x2:48876832501,1x4:23000000000*;min-efficiency=0.8;tasks=node;steps=900":
 * each shape with its nanoseconds a step, '*' behind the one that was submitted. */
void topt_elastic_word(const struct topt_elastic *e, struct topt_text *out);

/* Find such a word in a comment: 1, 0 where there is none, or none that makes sense. */
int topt_elastic_read(const char *comment, struct topt_elastic *ret);

/* Append the comment without such words. */
void topt_elastic_strip(const char *comment, struct topt_text *out);

#endif
