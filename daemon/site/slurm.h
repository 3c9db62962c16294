/* slurm.h - what scontrol says of partitions, nodes, reservations and the configuration
 * that bounds a job: read from its text. Thread safety: plain values. */
#ifndef TOPTD_SITE_SLURM_H
#define TOPTD_SITE_SLURM_H

#include <stddef.h>
#include <stdint.h>

#include "accounts.h"
#include "units.h"
#include "topt_error.h"

enum { SITE_NAME = 64, SITE_WORDS = 256, SITE_LIST = 512, SITE_TYPES = 4 };

struct site_partition {
    char name[SITE_NAME], qos[SITE_NAME];
    /* Who may use it: "" is everybody; with commas between. */
    char allow_accounts[SITE_LIST], deny_accounts[SITE_LIST], allow_qos[SITE_LIST],
        deny_qos[SITE_LIST], allow_groups[SITE_LIST];
    int is_default, is_up, is_root_only;
    int is_whole; /* jobs have its nodes for themselves: OverSubscribe=EXCLUSIVE */
    int64_t max_nodes, max_time_s; /* 0: no limit */
    int64_t max_cpus, max_mem_mib; /* of a job on a node; 0: no limit */
    /* Where the job says nothing; 0: no such default.  Memory is in MiB. */
    int64_t def_cpus_per_gpu, def_mem_per_gpu, def_mem_per_cpu;
};

struct site_node {
    char name[SITE_NAME];
    char partitions[SITE_WORDS], features[SITE_WORDS]; /* with commas between */
    char reservations[SITE_WORDS];                     /* that it belongs to */
    int is_up;
    int64_t cpus, memory_mib;
    int ntypes;
    struct {
        char type[SITE_NAME]; /* "": GPUs of no type */
        int64_t count;
        int64_t used; /* where that was asked for (scontrol -d), as the two below */
    } gpu[SITE_TYPES];
    int64_t cpus_used, memory_used_mib;
    int is_reserved; /* now, for others than who names the reservation; where use was asked for */
};

struct site_reservation {
    char name[SITE_NAME], partition[SITE_NAME]; /* "": any partition */
    /* Who may use it, "" being everybody; with commas between, and '-' before who may not. */
    char users[SITE_LIST], accounts[SITE_LIST], groups[SITE_LIST];
    int64_t start_s, end_s; /* since 1970; 0: not known */
    int is_flexible;        /* its jobs may run longer, and elsewhere */
    int64_t gpus;           /* reserved, of any type; 0: all of its nodes */
};

struct site_slurm {
    struct site_partition *partition;
    struct site_node *node;
    struct site_reservation *reservation;
    size_t npartitions, nnodes, nreservations;
    int counts_memory; /* memory is given out as CPUs are, not only looked at */
    struct site_accounts accounts; /* empty where no accounting limits jobs */
};

/* The output of `scontrol -o show partition`, `node`, `reservation` and `config`; ""
 * where it isn't known. */
struct site_said {
    const char *partitions, *nodes, *reservations, *config;
};

/* Lines that can't be understood are passed over.  -1 without memory, or where there is no
 * partition at all. */
int site_slurm_read(const struct site_said *said, struct site_slurm *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
void site_slurm_fini(struct site_slurm *s);
int site_slurm_is_same(const struct site_slurm *a, const struct site_slurm *b);

/* The value of 'key' in a line of 'len' bytes: 1 and cut to fit, 0 and "" where it isn't
 * there, or where 'once' is said and it is there twice: a job's name and comment are its
 * owner's to choose. */
int site_value_of(const char *line, size_t len, const char *key, int once, char *ret,
                  size_t size);

/* A time in local words ("2026-11-23T06:07:01"), since 1970; 0 where there is none. */
int64_t site_time_of(const char *line, size_t len, const char *key);

/* Does `scontrol -o show job=N` say that the job, which has started, is of the user?  1 or 0. */
int site_slurm_job_is_of(const char *said, int64_t job, int64_t uid);

/* Is the node 'name' of a list as Slurm writes it: "n[1-3,07-10],gpu1-[0-1]"? */
int site_host_is_in(const char *list, size_t len, const char *name);

/* Does `scontrol show config` say that limits of accounting are enforced? */
int site_enforces_limits(const char *config);

#endif
