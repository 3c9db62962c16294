/* host.h - the options of an sbatch, salloc or srun: of the one that loaded the plugin,
 * or of the sbatch that `topt sbatch` is about to become.
 *
 * Every option has a name and a text, so neither structures nor private headers of Slurm
 * are needed. */
#ifndef TOPT_SLURM_HOST_H
#define TOPT_SLURM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "shape.h"
#include "topt_elastic.h"

enum { TOPT_HOST_TEXTS = 96 };

/* Texts that 'get' handed out, until topt_host_drop. */
struct topt_host_texts {
    char *text[TOPT_HOST_TEXTS];
    int n;
};

struct topt_host {
    void *opt;
    int (*set)(void *opt, const char *name, const char *value, bool early); /* 0: done */
    char *(*get)(void *opt, const char *name);
    bool (*isset)(void *opt, const char *name);
    bool (*reset)(void *opt, const char *name);
    void (*release)(void **text);  /* frees a text; NULL: they are not the caller's */
    struct topt_host_texts *texts; /* NULL: as well */
};

/* Free the texts; nobody uses them any longer. */
void topt_host_drop(const struct topt_host *h);

/* What the user asked on the command line, in #SBATCH lines or by Slurm's variables. */
int topt_host_bounds(const struct topt_host *h, struct topt_bounds *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Append what else of the job bounds its plan, "&slurm_partition=gpu&slurm_time=60";
 * nothing where it says nothing. */
void topt_host_about(const struct topt_host *h, const struct topt_bounds *bounds,
                     struct topt_text *out);

/* The partitions that the job names, with commas between; "" where it names none. */
const char *topt_host_partitions(const struct topt_host *h);

/* Of a job that takes several shapes: what its comment says of them (topt_elastic.h), and
 * the numbers of nodes of which Slurm may choose, as "1,2,4"; "" where it may not. */
struct topt_host_elastic {
    char word[TOPT_ELASTIC_WORD], nodes[160];
};

/* Give the job the plan's shape: nodes, GPUs on each, one task for each GPU or for each
 * node; 'elastic' NULL: no other. On failure the options are what they were. */
int topt_host_resize(const struct topt_host *h, const struct topt_answer *plan,
                     const struct topt_bounds *bounds,
                     const struct topt_host_elastic *elastic,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The options that topt_host_resize sets or resets; the comment it only adds to. */
#define TOPT_HOST_TOUCHED                                                                \
    "gpus", "gpus-per-task", "gpus-per-socket", "gres", "ntasks-per-gpu",                \
        "tres-per-task", "nodes", "gpus-per-node", "ntasks", "ntasks-per-node",          \
        "partition"

/* Is it one of the options that topt_host_resize sets or resets? */
int topt_host_touches(const char *name);

/* srun --jobid: a step of a job that exists. */
int topt_host_is_step(const struct topt_host *h);

#endif
