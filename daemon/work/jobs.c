/* jobs.c - slots that do jobs, single flight, orders, and notices.
 *
 *      submit ──> waiting ──> running ──> done | failed | canceled
 *                    │  ^        │
 *                    │  └────────┘ demoted: it took too long for the submit lane
 *                    └── canceled (nobody is interested any more)
 *
 * Jobs that wait or run are active: in a hash by key, where equal keys meet.  A job lives
 * as long as anybody holds a reference: the active ones, who submitted, tasks.
 *
 * One thread is the clock: it rings alarms (of jobs: demote, stop, kill; of notices: time
 * is up) and calls who wanted to be told, so that nobody is called twice or under a lock. */
#include "jobs.h"
#include "topt_clock.h"
#include "heap.h"
#include "topt_hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 4096, SLOW_SHARE = 8 };
#define NEVER INT64_MAX

struct notice;

struct alarm {
    struct heap_item item; /* first */
    int64_t at_ms;
    struct job *job;
    struct notice *notice; /* NULL: the job's own */
};

/* Somebody who wants to be told. */
struct notice {
    struct alarm alarm;
    void (*done)(void *ctx);
    void *ctx;
    int due;                  /* in jobs.due, else in its job's list */
    TAILQ_ENTRY(notice) link; /* of either */
    TAILQ_ENTRY(notice) bucket;
};
TAILQ_HEAD(notices, notice);

struct job {
    struct lanes_item item; /* first; jobs.lock, as all below but orders */
    struct jobs *owner;
    struct jobs_work work;
    atomic_int orders; /* read by the slot without the lock */
    enum job_state state;
    int refs, interest, canceled, demoted, past_limit;
    int64_t submitted_ms, started_ms, ended_ms;
    int64_t budget_ms; /* RUNNING in the submit lane */
    struct topt_error err;
    struct job_progress progress;
    struct slot *slot; /* RUNNING */
    struct alarm alarm;
    struct notices notices;
    TAILQ_ENTRY(job) link; /* active */
    struct job *next;      /* of the bucket, active */
};

enum { SLOT_PROBLEMS = 4 /* as many as a worker remembers: kept.h */ };

struct slot {
    struct jobs *owner;
    int number, wake_fd;
    enum lanes_slot takes;
    pthread_t thread;
    int waits;                       /* for work; jobs.lock, as those below */
    struct job *handed;              /* started for it by another slot; NULL: none */
    uint64_t problem[SLOT_PROBLEMS]; /* of its last work, the latest first; 0: none */
};

struct jobs {
    struct jobs_config config;
    struct slot *slot;
    int nslots;
    pthread_t clock;
    int has_clock;
    pthread_mutex_t lock;       /* guards all below and the jobs' fields */
    pthread_cond_t submit_work; /* reserved slots: something for them, or stopping */
    pthread_cond_t work;        /* the others */
    pthread_cond_t tick;   /* the clock: an earlier alarm, something is due, or 'quit' */
    pthread_cond_t change; /* job_wait: a job has ended */
    int stopping, quit, idle; /* idle: slots for searches that wait */
    struct lanes *lanes;
    struct heap alarms;
    struct notices due;
    TAILQ_HEAD(, job) active;
    struct job *bucket[BUCKETS];
    struct notices notice_bucket[BUCKETS];
    uint64_t seed;
};

const char *job_state_name(enum job_state s)
{
    static const char *const names[] = {"queued", "running", "done", "failed",
                                        "canceled"};
    return names[s];
}

static int ended(const struct job *job)
{
    return job->state >= JOB_DONE;
}

/* ---- alarms and orders; lock held --------------------------------------------------------- */

static int before(const struct heap_item *a, const struct heap_item *b)
{
    return ((const struct alarm *)a)->at_ms < ((const struct alarm *)b)->at_ms;
}

/* In the heap from the beginning, so that later nothing can fail. */
static int add_alarm(struct jobs *j, struct alarm *a, int64_t at_ms)
{
    a->at_ms = at_ms;
    if (heap_add(&j->alarms, &a->item) < 0)
        return -1;
    if (heap_first(&j->alarms) == &a->item)
        pthread_cond_signal(&j->tick);
    return 0;
}

static void set_alarm(struct jobs *j, struct alarm *a, int64_t at_ms)
{
    a->at_ms = at_ms;
    heap_moved(&j->alarms, &a->item);
    if (heap_first(&j->alarms) == &a->item)
        pthread_cond_signal(&j->tick);
}

static void give_order(struct job *job, enum job_order order)
{
    atomic_fetch_or(&job->orders, order);
    if (job->slot && eventfd_write(job->slot->wake_fd, 1) < 0)
        return; /* its counter is full: it is readable already */
}

int run_orders(const struct job_run *run)
{
    return atomic_load(&run->job->orders);
}

void run_tell(const struct job_run *run, const struct job_progress *progress)
{
    struct jobs *j = run->job->owner;
    pthread_mutex_lock(&j->lock);
    run->job->progress = *progress;
    pthread_mutex_unlock(&j->lock);
}

static int64_t stop_at(const struct job *job)
{
    const struct jobs_config *c = &job->owner->config;
    return job->started_ms + c->limit_ms - c->margin_ms;
}

/* A job of the submit lane is at the end of its budget. */
static void demote(struct job *job, int64_t now)
{
    struct jobs *j = job->owner;
    if (job->slot->takes == SLOT_SUBMIT || !lanes_may_run(&job->item)) {
        job->demoted = 1;
        set_alarm(j, &job->alarm, NEVER);
        give_order(job, ORDER_CANCEL);
    } else {
        lanes_demote(j->lanes, &job->item, 1, now);
        set_alarm(j, &job->alarm, stop_at(job));
    }
}

/* The alarm of a running job. */
static void ring(struct job *job, int64_t now)
{
    struct jobs *j = job->owner;
    if (job->state != JOB_RUNNING) {
        set_alarm(j, &job->alarm, NEVER);
    } else if (job->item.lane == LANE_SUBMIT && now < job->started_ms + job->budget_ms) {
        set_alarm(j, &job->alarm, job->started_ms + job->budget_ms);
        if (job->work.is_brief)
            give_order(job, ORDER_BRIEF);
    } else if (job->item.lane == LANE_SUBMIT) {
        demote(job, now);
    } else if (!(atomic_load(&job->orders) & ORDER_STOP)) {
        set_alarm(j, &job->alarm, job->started_ms + j->config.limit_ms);
        give_order(job, ORDER_STOP);
    } else {
        job->past_limit = 1;
        set_alarm(j, &job->alarm, NEVER);
        give_order(job, ORDER_KILL);
    }
}

/* ---- notices; lock held -------------------------------------------------------------------- */

static struct notices *notices_of(struct jobs *j, const void *ctx)
{
    return &j->notice_bucket[topt_hash(&ctx, sizeof ctx, 0) % BUCKETS];
}

static void make_due(struct notice *n)
{
    struct jobs *j = n->alarm.job->owner;
    heap_remove(&j->alarms, &n->alarm.item);
    TAILQ_REMOVE(&n->alarm.job->notices, n, link);
    TAILQ_INSERT_TAIL(&j->due, n, link);
    n->due = 1;
    pthread_cond_signal(&j->tick);
}

static void tell_all(struct job *job)
{
    while (!TAILQ_EMPTY(&job->notices))
        make_due(TAILQ_FIRST(&job->notices));
    pthread_cond_broadcast(&job->owner->change);
}

/* Lock let go meanwhile. */
static void call_one(struct jobs *j, struct notice *n)
{
    TAILQ_REMOVE(&j->due, n, link);
    TAILQ_REMOVE(notices_of(j, n->ctx), n, bucket);
    pthread_mutex_unlock(&j->lock);
    n->done(n->ctx);
    free(n);
    pthread_mutex_lock(&j->lock);
}

static void ring_one(const struct alarm *a, int64_t now)
{
    if (a->notice)
        make_due(a->notice);
    else
        ring(a->job, now);
}

static void *run_clock(void *arg)
{
    struct jobs *j = arg;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        struct alarm *a = (struct alarm *)heap_first(&j->alarms);
        int64_t now = topt_clock_ms();
        if (!TAILQ_EMPTY(&j->due)) {
            call_one(j, TAILQ_FIRST(&j->due));
        } else if (a && a->at_ms <= now) {
            ring_one(a, now);
        } else if (j->quit) {
            break;
        } else if (a && a->at_ms < NEVER) {
            struct timespec until = topt_clock_timespec(a->at_ms);
            pthread_cond_timedwait(&j->tick, &j->lock, &until);
        } else {
            pthread_cond_wait(&j->tick, &j->lock);
        }
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* ---- jobs; lock held ------------------------------------------------------------------------ */

static struct job **bucket_of(struct jobs *j, const char *key)
{
    return &j->bucket[topt_hash(key, strlen(key), j->seed) % BUCKETS];
}

static void destroy_work(struct jobs_work *work)
{
    if (work->data)
        work->kind->destroy(work->data);
    free(work->key);
    *work = (struct jobs_work){0};
}

static void unref(struct job *job)
{
    if (--job->refs)
        return;
    heap_remove(&job->owner->alarms, &job->alarm.item);
    destroy_work(&job->work);
    free(job);
}

static void remove_active(struct job *job)
{
    struct job **at = bucket_of(job->owner, job->work.key);
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    TAILQ_REMOVE(&job->owner->active, job, link);
}

/* The job is over: take it off the lists and tell everybody. */
static void end_job(struct job *job, enum job_state state)
{
    struct jobs *j = job->owner;
    lanes_leave(j->lanes, &job->item);
    job->state = state;
    job->ended_ms = topt_clock_ms();
    set_alarm(j, &job->alarm, NEVER);
    remove_active(job);
    if (job->work.kind->trim)
        job->work.kind->trim(job->work.data);
    tell_all(job);
    unref(job);
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* What the slot's run came to. */
static void conclude(struct job *job, int rc, struct topt_error *err)
{
    struct jobs *j = job->owner;
    int gave_up = rc < 0 && err->code == TOPT_ERR_CANCELED;
    if (gave_up && job->demoted && !job->canceled && !j->stopping) {
        atomic_store(&job->orders, 0);
        job->demoted = 0;
        job->state = JOB_QUEUED;
        job->progress = (struct job_progress){0};
        lanes_demote(j->lanes, &job->item, 0, topt_clock_ms());
        pthread_cond_signal(&j->work);
        return;
    }
    if (gave_up && job->past_limit)
        topt_fail(err, TOPT_ERR_CANCELED, "the search passed the limit of %lld s",
                  (long long)(j->config.limit_ms / 1000));
    if (rc < 0)
        job->err = *err;
    end_job(job, rc == 0                       ? JOB_DONE
                 : gave_up && !job->past_limit ? JOB_CANCELED
                                               : JOB_FAILED);
}

/* Where among the slot's problems; SLOT_PROBLEMS: nowhere. */
static int place_of(const struct slot *slot, uint64_t problem)
{
    int at = 0;
    while (at < SLOT_PROBLEMS && slot->problem[at] != problem)
        at++;
    return at;
}

static void remember(struct slot *slot, uint64_t problem)
{
    int at = place_of(slot, problem);
    if (!problem)
        return;
    for (at = at < SLOT_PROBLEMS ? at : SLOT_PROBLEMS - 1; at > 0; at--)
        slot->problem[at] = slot->problem[at - 1];
    slot->problem[0] = problem;
}

/* How good a slot is for a problem: it remembers it, or at least can do the problem's searches too. */
static int worth(const struct slot *slot, uint64_t problem)
{
    return 2 * (place_of(slot, problem) < SLOT_PROBLEMS) + (slot->takes != SLOT_SUBMIT);
}

/* The slot that took the job, or one that is free for it too and is better for its problem. */
static struct slot *best_slot(struct slot *taker, const struct job *job)
{
    struct jobs *j = taker->owner;
    struct slot *best = taker;
    for (int i = 0; job->work.problem && i < j->nslots; i++) {
        struct slot *s = &j->slot[i];
        if (s->waits && !s->handed &&
            (s->takes != SLOT_SUBMIT || job->item.lane == LANE_SUBMIT) &&
            worth(s, job->work.problem) > worth(best, job->work.problem))
            best = s;
    }
    return best;
}

/* Lock held. */
static void start_job(struct slot *slot, struct job *job)
{
    struct jobs *j = slot->owner;
    eventfd_t old;
    job->state = JOB_RUNNING;
    job->started_ms = topt_clock_ms();
    job->slot = slot;
    job->budget_ms = j->config.demote_ms;
    if (lanes_slow(j->lanes, &job->item, job->started_ms))
        job->budget_ms /= SLOW_SHARE;
    set_alarm(j, &job->alarm,
              job->item.lane == LANE_SUBMIT ? job->started_ms + job->budget_ms / 2
                                            : stop_at(job));
    (void)!eventfd_read(slot->wake_fd, &old); /* orders to the job before */
    if (job->item.lane == LANE_SUBMIT && job->work.is_brief &&
        job->started_ms - job->submitted_ms >= j->config.brief_ms)
        give_order(job, ORDER_BRIEF);
    remember(slot, job->work.problem);
}

/* Lock held; let go while the job, which was started, runs. */
static void run_job(struct slot *slot, struct job *job)
{
    struct jobs *j = slot->owner;
    const struct job_run run = {slot->number, slot->wake_fd, job};
    struct topt_error err = {0};
    pthread_mutex_unlock(&j->lock);
    int rc = job->work.kind->run(j->config.ctx, &run, job->work.data, &err);
    pthread_mutex_lock(&j->lock);
    job->slot = NULL;
    conclude(job, rc, &err);
}

/* The next job, started, for this slot or handed to another; NULL: there is none. */
static struct job *take_job(struct slot *slot)
{
    struct jobs *j = slot->owner;
    struct job *job = (struct job *)lanes_take(j->lanes, slot->takes);
    if (!job)
        return NULL;
    struct slot *best = best_slot(slot, job);
    start_job(best, job);
    if (best != slot) {
        best->handed = job;
        pthread_cond_broadcast(best->takes == SLOT_SUBMIT ? &j->submit_work : &j->work);
    }
    return job;
}

static void wait_for_work(struct slot *slot)
{
    struct jobs *j = slot->owner;
    int searches = slot->takes != SLOT_SUBMIT;
    slot->waits = 1;
    j->idle += searches;
    pthread_cond_wait(searches ? &j->work : &j->submit_work, &j->lock);
    j->idle -= searches;
    slot->waits = 0;
}

static void *run_slot(void *arg)
{
    struct slot *slot = arg;
    struct jobs *j = slot->owner;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        struct job *job = slot->handed;
        slot->handed = NULL;
        if (!job && !j->stopping)
            job = take_job(slot);
        if (job && job->slot == slot)
            run_job(slot, job);
        else if (!job && j->stopping)
            break;
        else if (!job)
            wait_for_work(slot);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* ---- starting and stopping ------------------------------------------------------------------ */

static void init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

static int start_thread(pthread_t *thread, void *(*run)(void *), void *arg,
                        const char *name, struct topt_error *err)
{
    int rc = pthread_create(thread, NULL, run, arg);
    if (rc)
        return topt_fail(err, TOPT_ERR_IO, "can't start a thread: %s", strerror(rc));
    pthread_setname_np(*thread, name);
    return 0;
}

static int start_slot(struct jobs *j, struct topt_error *err)
{
    struct slot *s = &j->slot[j->nslots];
    char name[16];
    int last = j->config.reserved + j->config.workers - 1;
    *s = (struct slot){.owner = j,
                       .number = j->nslots,
                       .takes = j->nslots < j->config.reserved ? SLOT_SUBMIT
                                : j->nslots < last             ? SLOT_SUBMIT_FIRST
                                                               : SLOT_SEARCH_FIRST,
                       .wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    if (s->wake_fd < 0)
        return topt_fail(err, TOPT_ERR_IO, "can't make an eventfd: %s", strerror(errno));
    snprintf(name, sizeof name, "%s-%d", s->takes == SLOT_SUBMIT ? "submit" : "search",
             s->number % 1000);
    if (start_thread(&s->thread, run_slot, s, name, err) < 0) {
        close(s->wake_fd);
        return -1;
    }
    j->nslots++;
    return 0;
}

static void free_jobs(struct jobs *j)
{
    lanes_destroy(j->lanes);
    heap_fini(&j->alarms);
    pthread_cond_destroy(&j->submit_work);
    pthread_cond_destroy(&j->work);
    pthread_cond_destroy(&j->tick);
    pthread_cond_destroy(&j->change);
    pthread_mutex_destroy(&j->lock);
    free(j->slot);
    free(j);
}

static struct jobs *make_jobs(const struct jobs_config *config, struct topt_error *err)
{
    struct jobs *j = calloc(1, sizeof *j);
    if (!j) {
        topt_nomem(err, NULL);
        return NULL;
    }
    j->config = *config;
    j->alarms.before = before;
    TAILQ_INIT(&j->due);
    TAILQ_INIT(&j->active);
    for (int i = 0; i < BUCKETS; i++)
        TAILQ_INIT(&j->notice_bucket[i]);
    pthread_mutex_init(&j->lock, NULL);
    init_cond(&j->submit_work);
    init_cond(&j->work);
    init_cond(&j->tick);
    init_cond(&j->change);
    j->slot = calloc((size_t)(config->reserved + config->workers), sizeof *j->slot);
    j->lanes = lanes_create(&config->lanes, err);
    if (!j->slot || !j->lanes || getrandom(&j->seed, sizeof j->seed, 0) < 0) {
        topt_nomem(err, NULL);
        free_jobs(j);
        return NULL;
    }
    return j;
}

int jobs_create(const struct jobs_config *config, struct jobs **ret,
                struct topt_error *err)
{
    struct jobs *j = make_jobs(config, err);
    if (!j)
        return -1;
    int rc = start_thread(&j->clock, run_clock, j, "clock", err);
    j->has_clock = rc == 0;
    while (rc == 0 && j->nslots < config->reserved + config->workers)
        rc = start_slot(j, err);
    if (rc < 0) {
        jobs_stop(j);
        if (jobs_join(j, 1000) == 0)
            jobs_destroy(j);
        return -1;
    }
    *ret = j;
    return 0;
}

void jobs_stop(struct jobs *j)
{
    pthread_mutex_lock(&j->lock);
    j->stopping = 1;
    for (struct job *job = TAILQ_FIRST(&j->active), *next; job; job = next) {
        next = TAILQ_NEXT(job, link);
        if (job->state == JOB_QUEUED) {
            topt_fail(&job->err, TOPT_ERR_CANCELED, "the server is stopping");
            end_job(job, JOB_CANCELED);
        } else {
            give_order(job, ORDER_KILL);
            tell_all(job);
        }
    }
    pthread_cond_broadcast(&j->submit_work);
    pthread_cond_broadcast(&j->work);
    pthread_mutex_unlock(&j->lock);
}

int jobs_join(struct jobs *j, int64_t grace_ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts); /* what pthread_timedjoin_np counts in */
    ts = topt_clock_timespec(ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + grace_ms);
    while (j->nslots) {
        if (pthread_timedjoin_np(j->slot[j->nslots - 1].thread, NULL, &ts))
            return -1;
        close(j->slot[--j->nslots].wake_fd);
    }
    pthread_mutex_lock(&j->lock);
    j->quit = 1;
    pthread_cond_signal(&j->tick);
    pthread_mutex_unlock(&j->lock);
    if (j->has_clock)
        pthread_join(j->clock, NULL);
    j->has_clock = 0;
    return 0;
}

void jobs_destroy(struct jobs *j)
{
    if (j)
        free_jobs(j);
}

void jobs_count(struct jobs *j, struct jobs_counts *ret)
{
    struct lanes_counts n;
    pthread_mutex_lock(&j->lock);
    lanes_count(j->lanes, &n);
    pthread_mutex_unlock(&j->lock);
    *ret = (struct jobs_counts){n.queued[LANE_SEARCH], n.running[LANE_SEARCH],
                                n.queued[LANE_SUBMIT], n.running[LANE_SUBMIT], n.users};
}

/* ---- submitting ----------------------------------------------------------------------------- */

static struct job *find_active(struct jobs *j, const char *key)
{
    struct job *job = *bucket_of(j, key);
    while (job && (job->canceled || job->past_limit || strcmp(job->work.key, key)))
        job = job->next;
    return job;
}

static void add_active(struct jobs *j, struct job *job)
{
    struct job **bucket = bucket_of(j, job->work.key);
    job->next = *bucket;
    *bucket = job;
    TAILQ_INSERT_TAIL(&j->active, job, link);
    pthread_cond_signal(&j->work);
    if (job->item.lane == LANE_SUBMIT)
        pthread_cond_signal(&j->submit_work);
}

/* A new job that waits, with one reference of the active ones. */
static enum jobs_refusal enqueue(struct jobs *j, struct jobs_work *work, struct job **ret,
                                 struct topt_error *err)
{
    int quota = 0;
    struct job *job = calloc(1, sizeof *job);
    if (!job || add_alarm(j, &job->alarm, NEVER) < 0) {
        free(job);
        topt_nomem(err, NULL);
        return JOBS_NOMEM;
    }
    job->owner = j;
    job->alarm.job = job;
    job->refs = 1;
    job->submitted_ms = topt_clock_ms();
    job->item = (struct lanes_item){.uid = work->uid,
                                    .lane = work->lane,
                                    .cost = work->cost,
                                    .now_ms = job->submitted_ms};
    TAILQ_INIT(&job->notices);
    if (lanes_add(j->lanes, &job->item, j->idle, &quota, err) < 0) {
        unref(job);
        return err->code == TOPT_ERR_NOMEM ? JOBS_NOMEM : quota ? JOBS_QUOTA : JOBS_FULL;
    }
    job->work = *work;
    *work = (struct jobs_work){0};
    add_active(j, job);
    *ret = job;
    return JOBS_TAKEN;
}

enum jobs_refusal jobs_submit(struct jobs *j, struct jobs_work *work, struct job **ret,
                              int *ret_shared, struct topt_error *err)
{
    struct job *job = NULL;
    struct topt_error unread;
    enum jobs_refusal rc = JOBS_TAKEN;
    err = err ? err : &unread;
    *ret_shared = 0;
    pthread_mutex_lock(&j->lock);
    if (j->stopping) {
        topt_fail(err, TOPT_ERR_CANCELED, "the server is stopping");
        rc = JOBS_STOPPING;
    } else if ((job = find_active(j, work->key))) {
        *ret_shared = 1;
    } else {
        rc = enqueue(j, work, &job, err);
    }
    if (rc == JOBS_TAKEN) {
        job->refs++;
        job->interest++;
        *ret = job;
    }
    pthread_mutex_unlock(&j->lock);
    destroy_work(work); /* empty where it was queued */
    return rc;
}

/* ---- looking, waiting, giving up ------------------------------------------------------------- */

static void look(const struct job *job, struct job_status *ret)
{
    struct jobs *j = job->owner;
    *ret = (struct job_status){.state = job->state,
                               .err = job->err,
                               .lane = job->item.lane,
                               .progress = job->progress};
    ret->elapsed_ms = (ended(job) ? job->ended_ms : topt_clock_ms()) - job->submitted_ms;
    if (job->state == JOB_QUEUED)
        ret->ahead = lanes_ahead(j->lanes, &job->item);
    if (j->stopping && !ended(job)) {
        ret->state = JOB_CANCELED;
        topt_fail(&ret->err, TOPT_ERR_CANCELED, "the server is stopping");
    }
}

void job_status(struct job *job, struct job_status *ret)
{
    pthread_mutex_lock(&job->owner->lock);
    look(job, ret);
    pthread_mutex_unlock(&job->owner->lock);
}

void job_wait(struct job *job, int64_t ms, struct job_status *ret)
{
    struct jobs *j = job->owner;
    struct timespec until = topt_clock_timespec(topt_clock_ms() + ms);
    pthread_mutex_lock(&j->lock);
    while (!ended(job) && !j->stopping && ms > 0)
        if (pthread_cond_timedwait(&j->change, &j->lock, &until) == ETIMEDOUT)
            break;
    look(job, ret);
    pthread_mutex_unlock(&j->lock);
}

void *job_data(struct job *job)
{
    return job->work
        .data; /* set before the job was shared, kept until its last reference */
}

struct jobs *job_jobs(struct job *job)
{
    return job->owner;
}

int job_try_notify(struct job *job, int64_t ms, void (*done)(void *ctx), void *ctx,
                   struct topt_error *err)
{
    struct jobs *j = job->owner;
    struct notice *n = calloc(1, sizeof *n);
    if (!n)
        return topt_nomem(err, NULL);
    n->done = done;
    n->ctx = ctx;
    n->alarm.job = job;
    n->alarm.notice = n;
    pthread_mutex_lock(&j->lock);
    int rc = add_alarm(j, &n->alarm, topt_clock_ms() + (ms > 0 ? ms : 0));
    if (rc == 0) {
        TAILQ_INSERT_TAIL(&job->notices, n, link);
        TAILQ_INSERT_HEAD(notices_of(j, ctx), n, bucket);
        if (ended(job) || j->stopping)
            make_due(n);
    }
    pthread_mutex_unlock(&j->lock);
    if (rc < 0) {
        free(n);
        return topt_nomem(err, NULL);
    }
    return 0;
}

void job_notify(struct job *job, int64_t ms, void (*done)(void *ctx), void *ctx)
{
    struct topt_error err;
    if (job_try_notify(job, ms, done, ctx, &err) < 0)
        done(ctx);
}

int job_withdraw(struct job *job, const void *ctx)
{
    struct jobs *j = job->owner;
    struct notice *n;
    pthread_mutex_lock(&j->lock);
    TAILQ_FOREACH(n, notices_of(j, ctx), bucket)
    if (n->ctx == ctx && n->alarm.job == job)
        break;
    if (n) {
        if (!n->due)
            heap_remove(&j->alarms, &n->alarm.item);
        TAILQ_REMOVE(n->due ? &j->due : &job->notices, n, link);
        TAILQ_REMOVE(notices_of(j, ctx), n, bucket);
        free(n);
    }
    pthread_mutex_unlock(&j->lock);
    return n != NULL;
}

/* One less is interested; the last one cancels.  Lock held. */
static void lose_interest(struct job *job)
{
    if (--job->interest || ended(job))
        return;
    job->canceled = 1;
    if (job->state == JOB_QUEUED) {
        topt_fail(&job->err, TOPT_ERR_CANCELED, "canceled");
        end_job(job, JOB_CANCELED);
    } else {
        give_order(job, ORDER_CANCEL);
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

void job_keep(struct job *job)
{
    pthread_mutex_lock(&job->owner->lock);
    job->refs++;
    pthread_mutex_unlock(&job->owner->lock);
}

void job_drop(struct job *job)
{
    struct jobs *j = job->owner;
    pthread_mutex_lock(&j->lock);
    unref(job);
    pthread_mutex_unlock(&j->lock);
}

int job_rejoin(struct job *job)
{
    pthread_mutex_lock(&job->owner->lock);
    int good = !ended(job) && !job->canceled;
    job->interest += good;
    pthread_mutex_unlock(&job->owner->lock);
    return good ? 0 : -1;
}
