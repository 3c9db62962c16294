/* cli.h - the commands of topt-runtime, and what they share. */
#ifndef TOPT_RUNTIME_CLI_H
#define TOPT_RUNTIME_CLI_H

#include <stdio.h>

#include "topt_plan.h"
#include "topt_runtime.h"

/* Exit status of the process. */
int topt_cmd_run(int argc, char **argv);
int topt_cmd_profile(int argc, char **argv);

/* Rank as the launcher's environment has it, before there is a communicator; 0 alone. */
int topt_launch_rank(void);

/* The line "topt CMD: ..." on standard error. */
void topt_complain(const char *cmd, const struct topt_error *err);

/* A plan on every rank: rank 0 reads the file, or asks the server where 'arg' is the id of a
 * plan, and broadcasts it. */
int topt_plan_everywhere(struct topt_comm *comm, const char *arg,
                         struct topt_plan_doc **ret,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* What a rank computes on and how devices talk: 'device' "host" or "cuda", 'comm' "auto", "mpi",
 * "nccl" or "staged"; 'host' between the hosts.  auto: NCCL where each rank has a GPU of its
 * own, staged where they share. */
struct topt_module;
struct topt_run_device {
    const char *device, *comm;
    struct topt_comm *host;
    struct topt_device dev;
    const struct topt_module *module; /* NULL for the host */
    uint64_t identity;
};

/* Each rank by itself; close 'dev' afterwards. */
int topt_run_device_open(struct topt_run_device *d, enum topt_dtype dtype,
                         struct topt_error *err) TOPT_MUST_CHECK;
/* All ranks, after all have opened: the communicator of their sessions, which is 'host' itself
 * or borrows it. */
int topt_run_device_connect(struct topt_run_device *d, struct topt_comm **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

/* Whole of what a run measured. */
struct topt_run_report {
    const struct topt_plan_doc *plan;
    const struct topt_program *program; /* as it ran */
    int64_t predicted_time_ns, predicted_memory_bytes;
    const char *data;
    double lr;
    uint64_t seed;
    int64_t steps;                            /* done */
    const double *loss;                       /* by step */
    const int64_t *step_ns;                   /* by step */
    int64_t peak_bytes, process_growth_bytes; /* largest over ranks */
    struct topt_session_times times;          /* of rank 0 */
};

/* "topt-report/1"; new reference. */
json_t *topt_report_json(const struct topt_run_report *r);
/* Where rank 0's time went, a line a kernel and collective; the dearest first. */
void topt_report_print_times(const struct topt_run_report *r, FILE *out);
int64_t topt_median_ns(const int64_t *values, int64_t n);

#endif
