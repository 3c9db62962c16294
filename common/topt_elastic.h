/* topt_elastic.h - a job of Slurm that takes several numbers of GPUs: its plans, one for
 * each shape, travel in its environment, and what they promise stands in its comment,
 * which whoever sees the queue can read.
 *
 * A shape is nodes x GPUs of each.  The plan that the job was submitted with is in
 * SLURM_TOPT_*, as that of any job; of each other shape there are the two variables
 * below.  SLURM_TOPT_ELASTIC lists these shapes.  A job that agreed to GPUs of other kinds has
 * plans for other partitions, too: a kind is a partition, kind 0 what the job was submitted to, of
 * which there may be several.  Its GPUs' type is no part of that, as Slurm changes no waiting job's.
 * SLURM_TOPT_KINDS lists the partitions, by which a job knows on which kind it runs.  Slurm's plugin compiles elastic.c itself.
 * Thread safety: plain values; reentrant. */
#ifndef TOPT_ELASTIC_H
#define TOPT_ELASTIC_H

#include <stdint.h>

#include "topt_error.h"
#include "topt_text.h"

enum {
    TOPT_ELASTIC_MOST = 12,
    TOPT_ELASTIC_KINDS = 4,
    TOPT_ELASTIC_NAME = 64,
    TOPT_ELASTIC_PARTITIONS = 128,
    TOPT_ELASTIC_WORD = 1536
};

#define TOPT_ELASTIC_VARIABLE       "SLURM_TOPT_ELASTIC"
#define TOPT_ELASTIC_KINDS_VARIABLE "SLURM_TOPT_KINDS"

struct topt_elastic {
    struct topt_elastic_shape {
        int64_t nodes, gpus_per_node;
        int64_t time_ns; /* predicted, of a step */
        int kind;
    } shape[TOPT_ELASTIC_MOST];
    char kind[TOPT_ELASTIC_KINDS][TOPT_ELASTIC_PARTITIONS]; /* partitions, '+' between */
    int nkinds;            /* 0: the job stays in its partition */
    int n, submitted;      /* which of them the job was submitted with */
    double min_efficiency; /* that the job asked for; 0: it said nothing */
    int by_node;           /* a task for each node, not for each GPU */
    int64_t steps;         /* that the job trains; 0: it said nothing */
    int requeues; /* it goes on from what it saved: it may be stopped, and wait again */
};

int64_t topt_elastic_gpus(const struct topt_elastic_shape *s);

/* Its place among the shapes, or -1. */
int topt_elastic_find(const struct topt_elastic *e, int64_t nodes, int64_t gpus_per_node,
                      int kind);

/* The kind of a job in these partitions (commas between); 0 where the job agreed to no other, -1 where
 * it is none of them. */
int topt_elastic_kind_of(const struct topt_elastic *e, const char *partitions);

/* Add a kind, of 'partitions' with commas between: its number, or -1 where there is no room, or a
 * name that the comment can't hold. */
int topt_elastic_add_kind(struct topt_elastic *e, const char *partitions);

/* "1x4", and of other kinds than 0 "1x4_1": what names a shape's variables. */
void topt_elastic_tag(int64_t nodes, int64_t gpus_per_node, int kind,
                      char ret[TOPT_ELASTIC_NAME]);
/* The names of the variables that hold the numbers and the document of the plan of a shape. */
void topt_elastic_plan_name(const char *tag, char ret[TOPT_ELASTIC_NAME]);
void topt_elastic_document_name(const char *tag, char ret[TOPT_ELASTIC_NAME]);

/* The value of SLURM_TOPT_KINDS, "fast+also,slow", and which of them a partition is of: 0 where there are
 * none, -1 where it is in none. */
void topt_elastic_kinds(const struct topt_elastic *e, struct topt_text *out);
int topt_elastic_kind_in(const char *kinds, const char *partition);

/* Append the comment's word,
 * "topt-elastic=1x2:48876832501,1x4:23000000000*;min-efficiency=0.8;tasks=node;steps=900":
 * each shape with its nanoseconds a step, '*' behind the one that was submitted; ";requeue" of a job that may be
 * stopped.  Of several kinds
 * "topt-elastic=1x4:23000000000*,1x8:29000000000@1;kinds=fast+also,slow". */
void topt_elastic_word(const struct topt_elastic *e, struct topt_text *out);

/* Find such a word in a comment: 1, 0 where there is none, or none that makes sense. */
int topt_elastic_read(const char *comment, struct topt_elastic *ret);

/* Append the comment without such words. */
void topt_elastic_strip(const char *comment, struct topt_text *out);

#endif
