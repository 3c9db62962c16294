/* policy.h - which jobs a site takes without a plan, and the shape of those that carry one.
 *
 * Pure: knows no Slurm.  Thread safety: plain values. */
#ifndef TOPT_JOB_SUBMIT_POLICY_H
#define TOPT_JOB_SUBMIT_POLICY_H

#include <stdint.h>

#include "topt_error.h"

enum { POLICY_ROWS = 64, POLICY_NAME = 64 };

/* Lines of a file: "cap PARTITION GPUS", a job without a plan has at most so many;
 * "require PARTITION", a job of more than one GPU has a plan.  PARTITION "*" is any, "-"
 * that of jobs that name none; '#' begins a remark. */
struct policy {
    struct policy_row {
        char partition[POLICY_NAME];
        int64_t most; /* GPUs without a plan */
        int is_cap;
    } row[POLICY_ROWS];
    int n;
};
int policy_read(const char *text, struct policy *ret,
                struct topt_error *err) TOPT_MUST_CHECK;

/* A job as far as this looks at it; 0: not said. */
struct policy_job {
    const char *partition; /* or several with commas between; "" the default one */
    int64_t gpus, nodes, gpus_per_node, tasks;
};

/* The plan that a job carries in its environment. */
struct policy_plan {
    char id[POLICY_NAME + 16];
    int64_t nodes, gpus_per_node, tasks;
    /* Shapes of further plans, "1x4 4x4"; of the environment, "" where there are none. */
    const char *others;
};
/* 1 with '*ret' where there is one, 0 where there is none, -1 where it doesn't add up. */
int policy_plan(char *const *environment, uint32_t n, struct policy_plan *ret,
                struct topt_error *err);

/* May the job without a plan be taken?  -1 with a line for the user. */
int policy_allows(const struct policy *p, const struct policy_job *job,
                  struct topt_error *err) TOPT_MUST_CHECK;

/* May an ordinary user change a waiting job so?  'job' is what the change says, 'partition' NULL
 * where it does not, and then any line may be the job's.  The rest of the job is unknown
 * here, so a change of nodes says the GPUs, and one of GPUs the nodes (NumNodes), unless there is
 * no cap that this could pass.  -1 with a line for the user. */
struct policy_change {
    struct policy_job job;
    int says_gpus, says_nodes;
};
int policy_allows_change(const struct policy *p, const struct policy_change *c,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Has the job the plan's shape, or that of a further one with as many tasks a node?  (Of
 * numbers of nodes of which Slurm may choose the least is the job's.) */
int policy_is_shaped(const struct policy_job *job, const struct policy_plan *plan);

#endif
