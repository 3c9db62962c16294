/* jobs.c - the queue of searches, its workers, single flight, and tasks.
 *
 *      submit ──> [ queue ] ──> running ──> done | failed | canceled
 *                     └── canceled (nobody is interested any more) ──┘
 *
 * Queued and running jobs are in 'active', where equal keys meet.  A job lives as long as
 * anybody holds a reference: the active list, waiters, tasks.  Jobs hold no result: the
 * worker's callback has put it into the store before the job is done, so what is cached and
 * what is fresh are read in the same way.
 *
 * Lists are short (queue + workers, and at most max_tasks tasks), so they are walked. */
#include "jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

struct job {
    struct jobs *owner;
    struct jobs_work work;
    atomic_bool cancel; /* read by the search without the lock */
    /* guarded by owner->lock */
    enum job_state state;
    int refs, interest, past_limit;
    int64_t submitted_ms, started_ms, ended_ms;
    struct topt_error err;
    struct job *next; /* in active: oldest first */
};

struct task {
    char id[24];
    struct job *job;
    int canceled;
    struct task *next;
};

/* Somebody to be told of a job's end. */
struct watch {
    struct job *job;
    int64_t at_ms;
    void (*done)(void *ctx);
    void *ctx;
    struct watch *next;
};

struct jobs {
    struct jobs_config config;
    pthread_t *thread, notifier;
    int nthreads, notifying;
    pthread_mutex_t
        lock;            /* first in rank; guards all below and the jobs' marked fields */
    pthread_cond_t work; /* workers: something was queued, or stopping */
    pthread_cond_t change; /* waiters: a job has ended */
    int stopping, queued, running, ntasks;
    struct job *active;
    struct task *tasks; /* newest first */
    struct watch *watches;
    int leaving; /* the notifier is to end */
};

const char *job_state_name(enum job_state s)
{
    static const char *const names[] = {"queued", "running", "done", "failed",
                                        "canceled"};
    return names[s];
}

static int64_t clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static struct timespec deadline(int64_t at_ms)
{
    return (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
}

static int ended(const struct job *job)
{
    return job->state >= JOB_DONE;
}

static void destroy_work(const struct jobs_config *config, struct jobs_work *work)
{
    if (work->data)
        config->destroy(work->data);
    free(work->key);
    *work = (struct jobs_work){0};
}

/* Drop a reference; the lock is held on entry and on return. */
static void unref(struct job *job)
{
    if (--job->refs)
        return;
    destroy_work(&job->owner->config, &job->work);
    free(job);
}

static void remove_active(struct job *job)
{
    struct job **at = &job->owner->active;
    while (*at && *at != job)
        at = &(*at)->next;
    if (*at)
        *at = job->next;
    job->next = NULL;
}

/* The job is over: take it off the list and tell everybody.  Lock held. */
static void end_job(struct job *job, enum job_state state)
{
    struct jobs *j = job->owner;
    if (job->state == JOB_QUEUED)
        j->queued--;
    else
        j->running--;
    job->state = state;
    job->ended_ms = clock_ms();
    remove_active(job);
    pthread_cond_broadcast(&j->change);
    unref(job);
}

/* ---- workers ----------------------------------------------------------------------------- */

static struct job *next_queued(struct jobs *j, int quick_only)
{
    struct job *job = j->active;
    while (job && (job->state != JOB_QUEUED || (quick_only && !job->work.is_quick)))
        job = job->next;
    return job;
}

/* Lock held; let go while the search runs. */
static void run_one(struct jobs *j, struct job *job)
{
    job->state = JOB_RUNNING;
    job->started_ms = clock_ms();
    j->queued--;
    j->running++;
    pthread_mutex_unlock(&j->lock);
    struct topt_error err = {0};
    int rc = j->config.run(j->config.ctx, job->work.data, &job->cancel, &err);
    pthread_mutex_lock(&j->lock);
    enum job_state state = JOB_DONE;
    if (rc < 0) {
        int gave_up = err.code == TOPT_ERR_CANCELED && !job->past_limit;
        state = gave_up ? JOB_CANCELED : JOB_FAILED;
        if (job->past_limit && err.code == TOPT_ERR_CANCELED)
            topt_fail(&err, TOPT_ERR_CANCELED, "the search passed the limit of %lld s",
                      (long long)(j->config.limit_ms / 1000));
        job->err = err;
    }
    end_job(job, state);
}

static void work(struct jobs *j, int quick_only)
{
    pthread_mutex_lock(&j->lock);
    for (;;) {
        struct job *job = next_queued(j, quick_only);
        if (job)
            run_one(j, job);
        else if (j->stopping)
            break;
        else
            pthread_cond_wait(&j->work, &j->lock);
    }
    pthread_mutex_unlock(&j->lock);
}

static void *worker(void *arg)
{
    work(arg, 0);
    return NULL;
}

static void *quick_worker(void *arg)
{
    work(arg, 1);
    return NULL;
}

/* ---- telling who waits ------------------------------------------------------------------- */

/* Take the watches that are due; '*ret_next_ms' is when the next one is.  Lock held. */
static struct watch *take_due(struct jobs *j, int64_t *ret_next_ms)
{
    struct watch *due = NULL;
    int64_t now = clock_ms();
    *ret_next_ms = now + 3600 * 1000;
    for (struct watch **at = &j->watches; *at;) {
        struct watch *w = *at;
        if (ended(w->job) || j->stopping || w->at_ms <= now) {
            *at = w->next;
            w->next = due;
            due = w;
        } else {
            *ret_next_ms = w->at_ms < *ret_next_ms ? w->at_ms : *ret_next_ms;
            at = &w->next;
        }
    }
    return due;
}

static void *notifier(void *arg)
{
    struct jobs *j = arg;
    int64_t next_ms;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        struct watch *due = take_due(j, &next_ms);
        struct timespec until = deadline(next_ms);
        if (!due && j->leaving)
            break;
        if (!due) {
            pthread_cond_timedwait(&j->change, &j->lock, &until);
            continue;
        }
        pthread_mutex_unlock(&j->lock);
        for (struct watch *next; due; due = next) {
            next = due->next;
            due->done(due->ctx);
            free(due);
        }
        pthread_mutex_lock(&j->lock);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

void job_notify(struct job *job, int64_t ms, void (*done)(void *ctx), void *ctx)
{
    struct jobs *j = job->owner;
    struct watch *w = calloc(1, sizeof *w);
    if (!w) { /* told at once, it finds that the job has not ended */
        done(ctx);
        return;
    }
    *w = (struct watch){.job = job, .at_ms = clock_ms() + ms, .done = done, .ctx = ctx};
    pthread_mutex_lock(&j->lock);
    w->next = j->watches;
    j->watches = w;
    pthread_cond_broadcast(&j->change);
    pthread_mutex_unlock(&j->lock);
}

int job_withdraw(struct job *job, void *ctx)
{
    struct jobs *j = job->owner;
    pthread_mutex_lock(&j->lock);
    struct watch **at = &j->watches;
    while (*at && (*at)->ctx != ctx)
        at = &(*at)->next;
    struct watch *w = *at;
    if (w)
        *at = w->next;
    pthread_mutex_unlock(&j->lock);
    free(w);
    return w != NULL;
}

static void init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

static int start_worker(struct jobs *j, struct topt_error *err)
{
    int rc = pthread_create(&j->thread[j->nthreads], NULL,
                            j->nthreads ? worker : quick_worker, j);
    if (rc)
        return topt_fail(err, TOPT_ERR_NOMEM, "start a worker: %s", strerror(rc));
    char name[16];
    snprintf(name, sizeof name, "search-%d", j->nthreads % 1000);
    pthread_setname_np(j->thread[j->nthreads++], name);
    return 0;
}

int jobs_create(const struct jobs_config *config, struct jobs **ret,
                struct topt_error *err)
{
    struct jobs *j = calloc(1, sizeof *j);
    if (!j || !(j->thread = calloc((size_t)config->workers + 1, sizeof *j->thread))) {
        free(j);
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    }
    j->config = *config;
    pthread_mutex_init(&j->lock, NULL);
    init_cond(&j->work);
    init_cond(&j->change);
    while (j->nthreads <= config->workers) /* one more, for quick jobs */
        if (start_worker(j, err) < 0) {
            jobs_stop(j);
            if (jobs_join(j, 1000) == 0)
                jobs_destroy(j);
            return -1;
        }
    if (pthread_create(&j->notifier, NULL, notifier, j) == 0)
        j->notifying = 1;
    *ret = j;
    return 0;
}

/* ---- stopping ---------------------------------------------------------------------------- */

void jobs_stop(struct jobs *j)
{
    pthread_mutex_lock(&j->lock);
    j->stopping = 1;
    for (struct job *job = j->active, *next; job; job = next) {
        next = job->next;
        atomic_store(&job->cancel, true);
        if (job->state == JOB_QUEUED) {
            topt_fail(&job->err, TOPT_ERR_CANCELED, "the server is stopping");
            end_job(job, JOB_CANCELED);
        }
    }
    pthread_cond_broadcast(&j->work);
    pthread_cond_broadcast(&j->change);
    pthread_mutex_unlock(&j->lock);
}

int jobs_join(struct jobs *j, int64_t grace_ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts); /* what pthread_timedjoin_np counts in */
    int64_t at = ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + grace_ms;
    ts = deadline(at);
    while (j->nthreads) {
        if (pthread_timedjoin_np(j->thread[j->nthreads - 1], NULL, &ts))
            return -1;
        j->nthreads--;
    }
    return 0;
}

void jobs_destroy(struct jobs *j)
{
    if (!j)
        return;
    pthread_mutex_lock(&j->lock);
    j->leaving = 1;
    pthread_cond_broadcast(&j->change);
    pthread_mutex_unlock(&j->lock);
    if (j->notifying)
        pthread_join(j->notifier, NULL);
    pthread_mutex_lock(&j->lock);
    for (struct task *t = j->tasks, *next; t; t = next) {
        next = t->next;
        unref(t->job);
        free(t);
    }
    pthread_mutex_unlock(&j->lock);
    pthread_cond_destroy(&j->work);
    pthread_cond_destroy(&j->change);
    pthread_mutex_destroy(&j->lock);
    free(j->thread);
    free(j);
}

/* ---- submitting and waiting -------------------------------------------------------------- */

static struct job *find_active(struct jobs *j, const char *key)
{
    struct job *job = j->active;
    while (job && (atomic_load(&job->cancel) || strcmp(job->work.key, key)))
        job = job->next;
    return job;
}

static void append_active(struct jobs *j, struct job *job)
{
    struct job **at = &j->active;
    while (*at)
        at = &(*at)->next;
    *at = job;
}

/* A new job in the queue with one reference of the list; lock held. */
static int enqueue(struct jobs *j, struct jobs_work *work, struct job **ret,
                   struct topt_error *err)
{
    int idle = j->config.workers - j->running;
    if (!work->is_quick && j->queued >= j->config.queue + (idle > 0 ? idle : 0))
        return topt_fail(err, TOPT_ERR_LIMIT, "%d searches are waiting already",
                         j->queued);
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    *job = (struct job){.owner = j, .work = *work, .refs = 1, .submitted_ms = clock_ms()};
    *work = (struct jobs_work){0};
    append_active(j, job);
    j->queued++;
    pthread_cond_broadcast(&j->work);
    *ret = job;
    return 0;
}

int jobs_submit(struct jobs *j, struct jobs_work *work, struct job **ret, int *ret_shared,
                struct topt_error *err)
{
    struct job *job = NULL;
    int rc = 0;
    pthread_mutex_lock(&j->lock);
    if (j->stopping)
        rc = topt_fail(err, TOPT_ERR_CANCELED, "the server is stopping");
    else if ((job = find_active(j, work->key)))
        *ret_shared = 1;
    else
        rc = enqueue(j, work, &job, err);
    if (rc == 0) {
        job->refs++;
        job->interest++;
        *ret = job;
    }
    pthread_mutex_unlock(&j->lock);
    destroy_work(&j->config, work); /* empty where it was queued */
    return rc;
}

static int jobs_ahead(const struct job *job)
{
    int n = 0;
    for (const struct job *o = job->owner->active; o && o != job; o = o->next)
        n += o->state == JOB_QUEUED;
    return n;
}

void job_wait(struct job *job, int64_t ms, struct job_status *ret)
{
    struct jobs *j = job->owner;
    struct timespec until = deadline(clock_ms() + ms);
    pthread_mutex_lock(&j->lock);
    while (!ended(job) && !j->stopping && ms > 0)
        if (pthread_cond_timedwait(&j->change, &j->lock, &until) == ETIMEDOUT)
            break;
    *ret = (struct job_status){.state = job->state, .err = job->err};
    ret->elapsed_ms = (ended(job) ? job->ended_ms : clock_ms()) - job->submitted_ms;
    if (job->state == JOB_QUEUED)
        ret->ahead = jobs_ahead(job);
    if (j->stopping && !ended(job)) {
        ret->state = JOB_CANCELED;
        topt_fail(&ret->err, TOPT_ERR_CANCELED, "the server is stopping");
    }
    pthread_mutex_unlock(&j->lock);
}

void *job_data(struct job *job)
{
    return job->work
        .data; /* set before the job was shared, kept until its last reference */
}

/* One less is interested; the last one cancels.  Lock held. */
static void lose_interest(struct job *job)
{
    if (--job->interest || ended(job))
        return;
    atomic_store(&job->cancel, true);
    if (job->state == JOB_QUEUED) {
        topt_fail(&job->err, TOPT_ERR_CANCELED, "canceled");
        end_job(job, JOB_CANCELED);
    }
}

void job_release(struct job *job)
{
    struct jobs *j = job->owner;
    pthread_mutex_lock(&j->lock);
    lose_interest(job);
    unref(job);
    pthread_mutex_unlock(&j->lock);
}

/* ---- tasks ------------------------------------------------------------------------------- */

static void forget(struct jobs *j, struct task **at)
{
    struct task *t = *at;
    *at = t->next;
    j->ntasks--;
    unref(t->job);
    free(t);
}

/* Forget tasks that ended before 'before'.  With 'one', only the oldest of them. */
static void forget_old(struct jobs *j, int64_t before, int one)
{
    struct task **oldest = NULL;
    for (struct task **at = &j->tasks; *at;) {
        struct job *job = (*at)->job;
        int old = ended(job) && job->ended_ms <= before;
        if (old && !one) {
            forget(j, at);
            continue;
        }
        if (old)
            oldest = at;
        at = &(*at)->next;
    }
    if (oldest)
        forget(j, oldest);
}

int job_to_task(struct job *job, char ret_id[24], struct topt_error *err)
{
    struct jobs *j = job->owner;
    uint64_t random;
    struct task *t = calloc(1, sizeof *t);
    if (!t || getrandom(&random, sizeof random, 0) != sizeof random) {
        free(t);
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    }
    snprintf(t->id, sizeof t->id, "t-%016llx", (unsigned long long)random);
    snprintf(ret_id, sizeof t->id, "%s", t->id);
    t->job = job;
    pthread_mutex_lock(&j->lock);
    if (j->ntasks >= j->config.max_tasks)
        forget_old(j, INT64_MAX, 1);
    int full = j->ntasks >= j->config.max_tasks;
    if (!full) {
        t->next = j->tasks;
        j->tasks = t;
        j->ntasks++;
    }
    pthread_mutex_unlock(&j->lock);
    if (!full)
        return 0;
    free(t);
    return topt_fail(err, TOPT_ERR_LIMIT, "too many tasks are remembered already");
}

static struct task *find_task(struct jobs *j, const char *id)
{
    struct task *t = j->tasks;
    while (t && strcmp(t->id, id))
        t = t->next;
    return t;
}

struct job *task_find(struct jobs *j, const char *id, int *ret_canceled)
{
    pthread_mutex_lock(&j->lock);
    struct task *t = find_task(j, id);
    struct job *job = t ? t->job : NULL;
    if (job) {
        job->refs++;
        *ret_canceled = t->canceled;
    }
    pthread_mutex_unlock(&j->lock);
    return job;
}

void task_release(struct job *job)
{
    struct jobs *j = job->owner;
    pthread_mutex_lock(&j->lock);
    unref(job);
    pthread_mutex_unlock(&j->lock);
}

int task_cancel(struct jobs *j, const char *id)
{
    pthread_mutex_lock(&j->lock);
    struct task *t = find_task(j, id);
    if (t && !t->canceled && !ended(t->job)) {
        t->canceled = 1;
        lose_interest(t->job);
    }
    pthread_mutex_unlock(&j->lock);
    return t ? 0 : -1;
}

void jobs_tick(struct jobs *j)
{
    int64_t now = clock_ms();
    pthread_mutex_lock(&j->lock);
    forget_old(j, now - j->config.task_keep_ms, 0);
    for (struct job *job = j->active; job; job = job->next)
        if (job->state == JOB_RUNNING && now - job->started_ms > j->config.limit_ms) {
            job->past_limit = 1;
            atomic_store(&job->cancel, true);
        }
    pthread_mutex_unlock(&j->lock);
}

void jobs_count(struct jobs *j, struct jobs_counts *ret)
{
    pthread_mutex_lock(&j->lock);
    *ret = (struct jobs_counts){j->queued, j->running, j->ntasks};
    pthread_mutex_unlock(&j->lock);
}
