/* run_state.h - inside `topt run`: what a rank has. */
#ifndef TOPT_RUNTIME_RUN_STATE_H
#define TOPT_RUNTIME_RUN_STATE_H

#include "devices.h"
#include "report.h"
#include "topt_checkpoint.h"
#include "topt_guard.h"

enum {
    TOPT_EXIT_STOPPED = 143, /* told to end by a signal: as shells count SIGTERM */
    TOPT_EXIT_SAVED = 75     /* the same, with all that was done in a checkpoint */
};

struct topt_metrics;

struct topt_run_args {
    const char *data, *dtype, *optimizer, *report, *gradients, *device, *comm,
        *checkpoint, *tokenizer;
    int64_t every, keep;
    int resume;
    int64_t steps, seed, memory, watchdog;
    double lr, weight_decay, min_lr, beta1, beta2, eps, clip, balance;
    struct topt_dropout dropout;
    int64_t bucket; /* bytes */
    int overlap;
    int64_t warmup, eval_every, eval_batches;
    const char *schedule, *eval_data, *metrics, *weights, *adapters, *save_weights,
        *config;
    const char *objective, *order;
    int64_t mask_token;
    int quiet, json, times, merge;
};

struct topt_run {
    struct topt_run_args args;
    const char *plan_arg;
    struct topt_comm *comm, *host; /* of the devices, of the hosts; may be the same */
    struct topt_guard *guard;      /* NULL for a single process */
    struct topt_plan_doc *plan;
    struct topt_program *own; /* lowered again for other settings, or NULL */
    const struct topt_program *program;
    int64_t clip_bytes; /* that gradients take which wait for their norm */
    struct topt_run_device device;
    struct topt_feed feed, eval_feed;
    struct topt_metrics *metrics; /* rank 0, with --metrics */
    struct topt_session *session;
    struct topt_saver *saver; /* NULL without --checkpoint */
    int64_t first, saved;     /* steps before this run; in a checkpoint */
    double *named;            /* of the report */
    double *loss;             /* by step of this run */
    int64_t *step_ns;
    atomic_int_least64_t steps; /* that are in these */
    int64_t start_rss, shown_ns;
    int stopped;       /* by a signal */
    char ended[80];    /* then: after which step */
    json_t *gradients; /* index of those written */
    struct topt_run_report report;
};

/* A line for people on rank 0, where it matters to them. */
void topt_run_note(const struct topt_run *r, const char *fmt, ...) TOPT_PRINTF(2, 3);
/* The same of what may not be what they want; --quiet does not hide it. */
void topt_run_warn(const struct topt_run *r, const char *fmt, ...) TOPT_PRINTF(2, 3);
/* A line "VmHWM:  123 kB" of /proc/self/status, in bytes; 0 where there is none. */
int64_t topt_run_status_bytes(const char *key);

#endif
