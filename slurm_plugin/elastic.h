/* elastic.h - which other numbers of GPUs a job with --topt-elastic is planned for, and
 * what is said of them.
 *
 * Pure: knows no Slurm.  Plain values, no threads. */
#ifndef TOPT_SLURM_ELASTIC_H
#define TOPT_SLURM_ELASTIC_H

#include "ask.h"
#include "host.h"
#include "shape.h"
#include "topt_elastic.h"

/* Numbers that are still to be asked: those that the job names, or of "auto" halves and
 * doubles of the plan's own, the nearest first, each way until there is no plan. */
struct elastic_counts {
    int64_t list[TOPT_ELASTIC_MOST];
    int n, at;        /* of the list; n 0: auto */
    int64_t down, up; /* next; 0: none */
    int64_t most;     /* that the job's options allow; 0: any */
    int is_up;        /* the one asked last */
};
void elastic_begin(const struct topt_ask *ask, const struct topt_bounds *bounds,
                   const struct topt_answer *plan, struct elastic_counts *ret,
                   struct topt_elastic *ret_shapes);
/* 0: no more. */
int64_t elastic_next(struct elastic_counts *c, const struct topt_elastic *e);
/* Whether there is a plan of the last one. */
void elastic_tell(struct elastic_counts *c, int found);

/* 0 where there is no room, or it is there. */
int elastic_add(int64_t nodes, int64_t gpus_per_node, int64_t time_ns, int kind,
                struct topt_elastic *e);

/* The next partition that the job names, of 'named', and that is of no kind yet; what is left of the
 * list is at '*named'. 0: no more. */
int elastic_next_kind(const char **named, const struct topt_elastic *e,
                      char ret[TOPT_ELASTIC_PARTITIONS]);

/* What the job's options become.  'version' is Slurm's: from 23.02 on it takes a list of
 * numbers of nodes. */
void elastic_host(const struct topt_elastic *e, const struct topt_host *h, int version,
                  struct topt_host_elastic *ret);

/* "1, 2 and 8": all but the one that is submitted, of its kind; and those of other kinds, "4 in
 * partition slow".  They return 'buf'. */
char *elastic_kinds(const struct topt_elastic *e, char *buf, size_t size);
char *elastic_list(const struct topt_elastic *e, char *buf, size_t size);

#endif
