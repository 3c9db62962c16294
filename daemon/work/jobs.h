/* jobs.h - searches: a bounded queue, workers, and one search for all who ask the same.
 *
 * A job is one search, known by its key.  Who submits a key that is queued or running joins
 * that job.  A job knows how many are interested; when the last one gives up, it is
 * canceled.  A task is one client's handle on a job, for clients that come back later.
 *
 * Thread safety: any thread.  One lock (jobs.c) guards queue, jobs and tasks; it is never
 * held while a search or the store runs ('destroy', which only frees, may be called under it). */
#ifndef TOPTD_JOBS_H
#define TOPTD_JOBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

struct jobs;
struct job;

/* What a job works on: made by the caller, run and destroyed by the callbacks. */
struct jobs_work {
    char *key;  /* equal keys are the same search */
    void *data; /* the callbacks' own */
    int is_quick; /* milliseconds: one more worker takes such jobs alone, and the queue's bound is
                     not theirs */
};

struct jobs_config {
    int workers, queue;   /* threads; jobs that may wait */
    int64_t limit_ms;     /* longest search */
    int max_tasks;        /* remembered; the oldest finished are forgotten first */
    int64_t task_keep_ms; /* how long a finished task is remembered */
    void *ctx;
    /* Do the search; polls 'cancel'.  Called by workers. */
    int (*run)(void *ctx, void *data, const atomic_bool *cancel, struct topt_error *err);
    void (*destroy)(void *data);
};

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_DONE, JOB_FAILED, JOB_CANCELED };
const char *job_state_name(enum job_state s);

struct job_status {
    enum job_state state;
    struct topt_error err; /* FAILED and CANCELED */
    int ahead;             /* QUEUED: jobs that start before */
    int64_t elapsed_ms;    /* since it was submitted, until it ended */
};

int jobs_create(const struct jobs_config *config, struct jobs **ret,
                struct topt_error *err) TOPT_MUST_CHECK;

/* Cancel everything, refuse what comes, wake who waits; idempotent. */
void jobs_stop(struct jobs *j);
/* Join the workers within 'grace_ms'.  0, or -1 where a search would not end; then 'j' must
 * stay. */
int jobs_join(struct jobs *j, int64_t grace_ms);
void jobs_destroy(struct jobs *j); /* after jobs_join gave 0 */

/* Queue 'work' (taken: destroyed in the end, on failure at once).  '*ret' is a job to be
 * given back with job_release; '*ret_shared' says that it was there already.  LIMIT where
 * the queue is full, CANCELED when stopping. */
int jobs_submit(struct jobs *j, struct jobs_work *work, struct job **ret, int *ret_shared,
                struct topt_error *err) TOPT_MUST_CHECK;

/* Wait until it has ended, or for 'ms'. */
void job_wait(struct job *job, int64_t ms, struct job_status *ret);
void *job_data(struct job *job);

/* Have 'done(ctx)' called once, when the job has ended, after 'ms', or when stopping: by a thread
 * of its own, no lock held.  The caller's interest in the job must last until then. */
void job_notify(struct job *job, int64_t ms, void (*done)(void *ctx), void *ctx);
/* No longer: 1 where 'done' will not be called for 'ctx', 0 where it was or is about to be.  Never
 * waits for a call. */
int job_withdraw(struct job *job, void *ctx);

/* No longer interested. */
void job_release(struct job *job);

/* Turn the caller's interest into a task, "t-<16 hex>"; replaces job_release. */
int job_to_task(struct job *job, char ret_id[24], struct topt_error *err) TOPT_MUST_CHECK;

/* The job of a task, to be given back with task_release; NULL where there is none. */
struct job *task_find(struct jobs *j, const char *id, int *ret_canceled);
void task_release(struct job *job);
/* Give the task up; 0, or -1 where there is none. */
int task_cancel(struct jobs *j, const char *id);

/* Forget old tasks and end searches past the limit; to be called about once a second. */
void jobs_tick(struct jobs *j);

struct jobs_counts {
    int queued, running, tasks;
};
void jobs_count(struct jobs *j, struct jobs_counts *ret);

#endif
