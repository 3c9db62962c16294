/* bound.h - what a job may have in the partition that it goes to, and which profile that
 * is: the site's table and Slurm's limits put together.  Thread safety: reentrant. */
#ifndef TOPTD_SITE_BOUND_H
#define TOPTD_SITE_BOUND_H

#include "site_job.h"
#include "slurm.h"

enum { SITE_PLACES = 8 };

/* The site's table: which profile the GPUs of a type in a partition have; "*" is any. */
struct site_row {
    char partition[SITE_NAME], type[SITE_NAME], profile[SITE_NAME + 16];
    int is_whole; /* jobs there have whole nodes, whatever they ask for */
};
struct site_map {
    struct site_row *row;
    size_t n;
};

/* Lines of PARTITION TYPE PROFILE [whole]; '#' begins a remark.  The first row that fits
 * counts. */
int site_map_read(const char *path, struct site_map *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;
void site_map_fini(struct site_map *m);

/* A partition where a job can go, and the most that it can have there. */
struct site_place {
    char name[SITE_NAME];
    int64_t nodes, gpus_per_node, gpus; /* gpus: of accounting; 0: no such limit */
};

struct site_bound {
    char profile[SITE_NAME + 16]; /* of the table; "" where it isn't said */
    char gpu_type[SITE_NAME];     /* to be set on the job; "": none */
    int64_t nodes, gpus_per_node; /* at most; 0: not known */
    int64_t
        of_node; /* as gpus_per_node, but for CPUs and memory that a job needs with each */
    int64_t gpus;      /* that accounting allows; 0: no such limit */
    int64_t all_nodes; /* as 'nodes', but for -N */
    int64_t named;     /* nodes that -w names: the job has at least so many */
    char words[200];   /* what bounds it, as "partition 'a', MaxNodes=1, 4 GPUs a node" */
    char all_words[200]; /* what does but for -N */
    /* Why the job has whole nodes, as "partition 'a' (OverSubscribe=EXCLUSIVE)"; "": it
     * has what it asks for. */
    char whole[120];
    /* Of a job that names several partitions: those with the profile and type above. */
    struct site_place place[SITE_PLACES];
    int nplaces;
};

/* 'hw' is the profile that was asked for, or "".  Either part may be NULL.  INFEASIBLE with
 * the limit, and the partition that would do, where the job can't run at all; INVAL where
 * the table says nothing of it. */
int site_bound(const struct site_slurm *s, const struct site_map *map,
               const struct site_job *job, const char *hw, struct site_bound *ret,
               struct topt_error *err) TOPT_MUST_CHECK;

/* Another partition where the job would have more than 'gpus' GPUs of the same profile:
 * its name, or NULL. */
const char *site_other(const struct site_slurm *s, const struct site_map *map,
                       const struct site_job *job, const char *hw, int64_t gpus);

/* Can a job of these partitions (with commas between) and this constraint use the node? */
int site_node_serves(const struct site_node *n, const char *partitions,
                     const char *constraint);

#endif
