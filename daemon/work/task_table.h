/* task_table.h - handles on jobs for clients that come back later.
 *
 * A task is one user's interest in a job.  It ends when it is canceled, or when nobody has
 * asked for it for a while; a later question takes it up again, if the job still runs.
 * Others do not see it.  Tasks that ended are remembered for a while; where a user, or
 * all, have too many, the user's oldest that ended is forgotten first.
 *
 * Thread safety: any thread.  Its lock is above that of jobs in rank. */
#ifndef TOPTD_TASK_TABLE_H
#define TOPTD_TASK_TABLE_H

#include "jobs.h"

struct tasks;

/* Who may see every task. */
enum { TASKS_ADMIN = -1 };

struct tasks_config {
    int max, per_uid;    /* remembered: in all, of one user */
    int64_t keep_ms;     /* how long after its end */
    int64_t unpolled_ms; /* nobody asks for so long: no interest any more */
};

int tasks_create(const struct tasks_config *config, struct tasks **ret,
                 struct topt_error *err) TOPT_MUST_CHECK;
void tasks_destroy(struct tasks *t); /* after jobs_join, before jobs_destroy */

/* Turn the caller's interest into a task, "t-<16 hex>"; replaces job_release where it gives
 * JOBS_TAKEN. */
enum jobs_refusal task_add(struct tasks *t, struct job *job, int64_t uid, char ret_id[24],
                           struct topt_error *err) TOPT_MUST_CHECK;

/* The job of a task of that user, to be given back with task_release; NULL where the user has none
 * of the id.  It counts as asked for until 'wait_ms' from now. */
struct job *task_find(struct tasks *t, int64_t uid, const char *id, int64_t wait_ms,
                      int *ret_canceled);
void task_release(struct job *job);

/* Give the task up; 0, or -1 where the user has none of the id. */
int task_cancel(struct tasks *t, int64_t uid, const char *id);

/* A task as its user sees it in a list. */
struct task_line {
    char id[24];
    int64_t uid;
    enum job_state state;
    int ahead;          /* of a queued one */
    int64_t elapsed_ms; /* since its search was asked for */
    struct job_progress progress;
};
/* All tasks of that user, the oldest search first; owned.  NULL with '*ret_n' -1 without
 * memory, and with 0 where there are none. */
struct task_line *tasks_list(struct tasks *t, int64_t uid, int *ret_n);

/* Forget what ended long ago; about once a second. */
void tasks_tick(struct tasks *t);
int tasks_count(struct tasks *t);

#endif
