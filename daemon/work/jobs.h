/* jobs.h - what takes time: two lanes of waiting jobs, slots that do them, and one search for all
 * who ask the same.
 *
 * A job is one piece of work, known by its key.  Who submits a key that waits or runs joins that
 * job.  A job knows how many are interested; when the last one gives up, it is canceled.
 *
 *      submit lane   milliseconds: questions of the uniform space, reading of bodies.  A slot is
 *                    reserved for it, the others take its jobs first.  What takes longer than
 *                    'demote_ms' on the reserved slot is given up there and waits again in the
 *                    search lane, where it counts for its user.
 *      search lane   all else; lanes.h says in which order.  The last slot takes these first, so
 *                    that no flood of short questions holds a search.
 *
 * Thread safety: any thread.  One lock (jobs.c) guards lanes and jobs; it is never held while a job
 * runs or 'done' is called ('destroy' and 'trim', which only free, may be called under it). */
#ifndef TOPTD_JOBS_H
#define TOPTD_JOBS_H

#include <stdatomic.h>
#include <stdint.h>

#include "lanes.h"
#include "topt_error.h"

struct jobs;
struct job;

/* ---- what runs --------------------------------------------------------------------------- */

/* What a job that runs is told; bits that are only ever added. */
enum job_order {
    ORDER_STOP = 1,   /* its time is nearly over: answer with the best so far */
    ORDER_CANCEL = 2, /* nobody waits: end, soon */
    ORDER_KILL = 4,   /* end at once */
    ORDER_BRIEF = 8   /* others wait: only what was asked for, nothing beside it */
};

/* What it says of itself while it runs. */
struct job_progress {
    char phase[96];   /* what it is at, in words; "": nothing was said */
    int64_t done, of; /* of: 0 where nobody knows how much there is */
    char best[96];    /* what was found so far, in words; "": nothing */
};

/* A job's view of its slot. */
struct job_run {
    int slot;    /* 0 .. slots-1, the same thread every time */
    int wake_fd; /* an eventfd, readable after an order; -1: none */
    struct job *job;
};
int run_orders(const struct job_run *run); /* bits of enum job_order */
void run_tell(const struct job_run *run, const struct job_progress *progress);

/* A kind of work. */
struct job_kind {
    /* Do it: 0, or -1; CANCELED where it ends because of an order.  'ctx' is jobs_config's. */
    int (*run)(void *ctx, const struct job_run *run, void *data, struct topt_error *err);
    /* Free what only 'run' needs: the job has ended, but is still looked at.  May be NULL. */
    void (*trim)(void *data);
    void (*destroy)(void *data);
};

struct jobs_work {
    char *key;  /* equal keys are the same work; owned */
    void *data; /* of its kind; owned */
    const struct job_kind *kind;
    int64_t uid; /* who asks; LANES_NOBODY: no quotas */
    enum job_lane lane;
    double cost;  /* expected seconds */
    int is_brief; /* of the submit lane: it may be told to be brief */
    /* Names what a slot remembers of earlier work, so that of free slots one that did work of the
     * name takes it; 0: nothing.  No more than time depends on it. */
    uint64_t problem;
};

/* ---- the whole --------------------------------------------------------------------------- */

struct jobs_config {
    int reserved,
        workers; /* slots: for the submit lane alone, for both.  At least one each */
    struct lanes_config lanes;
    int64_t limit_ms;  /* longest search: then it is killed */
    int64_t margin_ms; /* so long before it is told to stop */
    /* A job of the submit lane that waited so long, or that has run for half of its time, is
     * told to be brief where it may be. */
    int64_t brief_ms;
    int64_t
        demote_ms; /* longest job of the submit lane on a reserved slot; an eighth of that for
                             users who had one demoted lately */
    void *ctx;
};

int jobs_create(const struct jobs_config *config, struct jobs **ret,
                struct topt_error *err) TOPT_MUST_CHECK;

/* End everything, refuse what comes, tell who waits; idempotent. */
void jobs_stop(struct jobs *j);
/* Join the threads within 'grace_ms'.  0, or -1 where a job would not end; then 'j' must stay. */
int jobs_join(struct jobs *j, int64_t grace_ms);
void jobs_destroy(
    struct jobs *j); /* after jobs_join gave 0, and all jobs were given back */

struct jobs_counts {
    int queued, running; /* searches */
    int submit_queued, submit_running;
    int users;
};
void jobs_count(struct jobs *j, struct jobs_counts *ret);

/* ---- one job ----------------------------------------------------------------------------- */

enum jobs_refusal {
    JOBS_TAKEN,
    JOBS_QUOTA, /* this user has too many: 429 */
    JOBS_FULL,  /* all together have: 503 */
    JOBS_STOPPING,
    JOBS_NOMEM
};

/* Queue 'work' (taken: destroyed in the end, on failure at once) or join who does it already.
 * '*ret' is a job to be given back with job_release; '*ret_shared' says that it was there. */
enum jobs_refusal jobs_submit(struct jobs *j, struct jobs_work *work, struct job **ret,
                              int *ret_shared, struct topt_error *err) TOPT_MUST_CHECK;

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_DONE, JOB_FAILED, JOB_CANCELED };
const char *job_state_name(enum job_state s);

struct job_status {
    enum job_state state;
    struct topt_error err; /* FAILED and CANCELED */
    enum job_lane lane;
    int ahead;          /* QUEUED: about how many start before */
    int64_t elapsed_ms; /* since it was submitted, until it ended */
    struct job_progress progress;
};
void job_status(struct job *job, struct job_status *ret);
void *job_data(struct job *job); /* who did not run it may look when it is DONE */
struct jobs *job_jobs(struct job *job);

/* Have 'done(ctx)' called exactly once: when the job has ended, or after 'ms' at the
 * latest.  It is called by a thread of jobs that holds no lock, and must not block.  The
 * caller keeps the job until then.  Without memory it is called here and now. */
void job_notify(struct job *job, int64_t ms, void (*done)(void *ctx), void *ctx);
/* The same; -1 without memory: it will not be called. */
int job_try_notify(struct job *job, int64_t ms, void (*done)(void *ctx), void *ctx,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* Not any more.  1: it will not be called; 0: it was called, or is being called just now. */
int job_withdraw(struct job *job, const void *ctx);

/* Wait until it has ended, or for 'ms'. */
void job_wait(struct job *job, int64_t ms, struct job_status *ret);

/* No longer interested, and the job is given back. */
void job_release(struct job *job);
/* A reference without interest, given back with job_drop. */
void job_keep(struct job *job);
void job_drop(struct job *job);
/* Interested again, who has a reference: 0, or -1 where the job ended or is canceled. */
int job_rejoin(struct job *job);

#endif
