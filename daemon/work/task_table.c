/* task_table.c - users' handles on jobs.
 *
 *      live ──> ended (its job has)          remembered a while, then forgotten
 *       │ ^
 *       │ └── asked for again, while the job runs for others
 *       ├──> lost (nobody asked for long)
 *       └──> canceled (told so)
 *
 * A live task holds an interest in its job, the others a bare reference.  Each live task has one
 * notice at its job, which is its timer, too. */
#include "task_table.h"
#include "topt_clock.h"
#include "topt_hash.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { BUCKETS = 1024 };
enum task_state { LIVE, ENDED, LOST, CANCELED };

struct owner;

struct task {
    char id[24];
    struct tasks *all;
    struct owner *owner;
    struct job *job;
    enum task_state state;
    int refs; /* the table's, and the notice's */
    int64_t asked_until_ms, ended_ms;
    struct task *next;                 /* of the bucket */
    TAILQ_ENTRY(task) mine, everyones; /* not LIVE: in the order of their ends */
};
TAILQ_HEAD(task_list, task);

/* A user who has tasks. */
struct owner {
    int64_t uid;
    int ntasks;
    struct task_list ended;
    struct owner *next;
};

struct tasks {
    struct tasks_config config;
    pthread_mutex_t lock; /* guards all */
    int ntasks, closed;
    struct task *bucket[BUCKETS];
    struct owner *owners[BUCKETS];
    struct task_list ended;
};

int tasks_create(const struct tasks_config *config, struct tasks **ret,
                 struct topt_error *err)
{
    struct tasks *t = calloc(1, sizeof *t);
    if (!t)
        return topt_nomem(err, NULL);
    t->config = *config;
    TAILQ_INIT(&t->ended);
    pthread_mutex_init(&t->lock, NULL);
    *ret = t;
    return 0;
}

/* ---- the table; lock held ------------------------------------------------------------------ */

static struct owner **owner_bucket(struct tasks *t, int64_t uid)
{
    return &t->owners[topt_hash(&uid, sizeof uid, 0) % BUCKETS];
}

static struct owner *find_owner(struct tasks *t, int64_t uid)
{
    struct owner *o = *owner_bucket(t, uid);
    while (o && o->uid != uid)
        o = o->next;
    return o;
}

static struct owner *add_owner(struct tasks *t, int64_t uid)
{
    struct owner **at = owner_bucket(t, uid), *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->uid = uid;
    o->next = *at;
    TAILQ_INIT(&o->ended);
    return *at = o;
}

/* The owner has one task less. */
static void leave_owner(struct tasks *t, struct owner *o)
{
    if (--o->ntasks > 0)
        return;
    struct owner **at = owner_bucket(t, o->uid);
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    free(o);
}

static struct task **bucket_of(struct tasks *t, const char *id)
{
    return &t->bucket[topt_hash(id, strlen(id), 0) % BUCKETS];
}

static struct task *find(struct tasks *t, int64_t uid, const char *id)
{
    struct task *k = *bucket_of(t, id);
    while (k && strcmp(k->id, id))
        k = k->next;
    return k && (uid == TASKS_ADMIN || k->owner->uid == uid) ? k : NULL;
}

static void unref(struct task *k)
{
    if (!--k->refs)
        free(k);
}

static void set_ended(struct task *k, enum task_state state)
{
    k->state = state;
    k->ended_ms = topt_clock_ms();
    TAILQ_INSERT_TAIL(&k->owner->ended, k, mine);
    TAILQ_INSERT_TAIL(&k->all->ended, k, everyones);
}

static void remove_ended(struct task *k)
{
    TAILQ_REMOVE(&k->owner->ended, k, mine);
    TAILQ_REMOVE(&k->all->ended, k, everyones);
}

/* Off the table, one that is not live. */
static void forget(struct task *k)
{
    struct tasks *t = k->all;
    struct task **at = bucket_of(t, k->id);
    remove_ended(k);
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    leave_owner(t, k->owner);
    t->ntasks--;
    if (k->state == ENDED)
        job_release(k->job);
    else
        job_drop(k->job);
    unref(k);
}

/* ---- a live task's timer --------------------------------------------------------------------- */

/* The task's interest ends, whose job may go on for others.  Lock held. */
static void give_up(struct task *k, enum task_state state)
{
    job_keep(k->job);
    job_release(k->job);
    set_ended(k, state);
}

static void on_notice(void *ctx);

static int watch(struct task *k, int64_t ms, struct topt_error *err)
{
    int rc = job_try_notify(k->job, ms, on_notice, k, err);
    k->refs += rc == 0;
    return rc;
}

static void look_after(struct task *k)
{
    struct job_status st;
    int64_t left = k->asked_until_ms + k->all->config.unpolled_ms - topt_clock_ms();
    job_status(k->job, &st);
    if (st.state >= JOB_DONE)
        set_ended(k, ENDED);
    else if (left <= 0 || watch(k, left, NULL) < 0)
        give_up(k, LOST);
}

/* Its job has ended, or it is time to see whether anybody asks. */
static void on_notice(void *ctx)
{
    struct task *k = ctx;
    struct tasks *t = k->all;
    pthread_mutex_lock(&t->lock);
    if (k->state == LIVE && !t->closed)
        look_after(k);
    unref(k);
    pthread_mutex_unlock(&t->lock);
}

/* ---- from outside ------------------------------------------------------------------ */

/* Room for one more of this user; lock held. */
static enum jobs_refusal make_room(struct tasks *t, const struct owner *o,
                                   struct topt_error *err)
{
    const struct tasks_config *c = &t->config;
    if (o->uid != LANES_NOBODY && o->ntasks > c->per_uid) { /* the new one counts */
        if (TAILQ_EMPTY(&o->ended)) {
            topt_fail(
                err, TOPT_ERR_LIMIT,
                "%d tasks of yours are not done yet; cancel one, or ask again later",
                o->ntasks - 1);
            return JOBS_QUOTA;
        }
        forget(TAILQ_FIRST(&o->ended));
    }
    if (t->ntasks >= c->max && !TAILQ_EMPTY(&t->ended))
        forget(TAILQ_FIRST(&t->ended));
    if (t->ntasks < c->max)
        return JOBS_TAKEN;
    topt_fail(err, TOPT_ERR_LIMIT, "%d tasks are not done yet", t->ntasks);
    return JOBS_FULL;
}

static enum jobs_refusal add(struct tasks *t, struct owner *o, struct task *k,
                             struct job *job, struct topt_error *err)
{
    struct task **at = bucket_of(t, k->id);
    k->all = t;
    k->owner = o;
    k->job = job;
    k->refs = 1;
    k->asked_until_ms = topt_clock_ms();
    if (watch(k, t->config.unpolled_ms, err) < 0)
        return JOBS_NOMEM;
    k->next = *at;
    *at = k;
    t->ntasks++;
    return JOBS_TAKEN;
}

enum jobs_refusal task_add(struct tasks *t, struct job *job, int64_t uid, char ret_id[24],
                           struct topt_error *err)
{
    uint64_t random;
    enum jobs_refusal rc = JOBS_NOMEM;
    struct task *k = calloc(1, sizeof *k);
    if (!k || getrandom(&random, sizeof random, 0) != sizeof random) {
        topt_nomem(err, NULL);
        free(k);
        return rc;
    }
    snprintf(k->id, sizeof k->id, "t-%016llx", (unsigned long long)random);
    snprintf(ret_id, sizeof k->id, "%s", k->id);
    pthread_mutex_lock(&t->lock);
    struct owner *o = find_owner(t, uid);
    if (o || (o = add_owner(t, uid))) {
        o->ntasks++; /* so that the owner stays */
        rc = make_room(t, o, err);
        if (rc == JOBS_TAKEN)
            rc = add(t, o, k, job, err);
        if (rc != JOBS_TAKEN)
            leave_owner(t, o);
    } else {
        topt_nomem(err, NULL);
    }
    pthread_mutex_unlock(&t->lock);
    if (rc != JOBS_TAKEN)
        free(k);
    return rc;
}

/* A lost task is asked for again; the interest is there. */
static void take_up(struct task *k, int64_t wait_ms)
{
    remove_ended(k);
    k->state = LIVE;
    if (watch(k, wait_ms + k->all->config.unpolled_ms, NULL) < 0)
        give_up(k, LOST);
}

struct job *task_find(struct tasks *t, int64_t uid, const char *id, int64_t wait_ms,
                      int *ret_canceled)
{
    struct job *job = NULL;
    pthread_mutex_lock(&t->lock);
    struct task *k = find(t, uid, id);
    if (k) {
        k->asked_until_ms = topt_clock_ms() + wait_ms;
        if (k->state == LOST && job_rejoin(k->job) == 0)
            take_up(k, wait_ms);
        *ret_canceled = k->state == CANCELED;
        job = k->job;
        job_keep(job);
    }
    pthread_mutex_unlock(&t->lock);
    return job;
}

void task_release(struct job *job)
{
    job_drop(job);
}

int task_cancel(struct tasks *t, int64_t uid, const char *id)
{
    struct job_status st;
    pthread_mutex_lock(&t->lock);
    struct task *k = find(t, uid, id);
    if (k && k->state == LIVE) {
        job_status(k->job, &st);
        if (st.state < JOB_DONE) {
            if (job_withdraw(k->job, k))
                unref(k);
            give_up(k, CANCELED);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return k ? 0 : -1;
}

static struct task_line line_of(const struct task *k)
{
    struct task_line line = {.uid = k->owner->uid};
    struct job_status st;
    job_status(k->job, &st);
    memcpy(line.id, k->id, sizeof line.id);
    line.state = k->state == CANCELED ? JOB_CANCELED : st.state;
    line.ahead = st.ahead;
    line.elapsed_ms = st.elapsed_ms;
    line.progress = st.progress;
    return line;
}

static int older(const void *a, const void *b)
{
    const struct task_line *x = a, *y = b;
    if (x->elapsed_ms != y->elapsed_ms)
        return x->elapsed_ms > y->elapsed_ms ? -1 : 1;
    return strcmp(x->id, y->id);
}

struct task_line *tasks_list(struct tasks *t, int64_t uid, int *ret_n)
{
    int n = 0;
    pthread_mutex_lock(&t->lock);
    const struct owner *o = uid == TASKS_ADMIN ? NULL : find_owner(t, uid);
    int room = uid == TASKS_ADMIN ? t->ntasks : o ? o->ntasks : 0;
    struct task_line *lines = room ? calloc((size_t)room, sizeof *lines) : NULL;
    for (int i = 0; lines && i < BUCKETS; i++)
        for (const struct task *k = t->bucket[i]; k && n < room; k = k->next)
            if (uid == TASKS_ADMIN || k->owner == o)
                lines[n++] = line_of(k);
    pthread_mutex_unlock(&t->lock);
    if (lines)
        qsort(lines, (size_t)n, sizeof *lines, older);
    *ret_n = room && !lines ? -1 : n;
    return lines;
}

void tasks_tick(struct tasks *t)
{
    struct task *k;
    int64_t before = topt_clock_ms() - t->config.keep_ms;
    pthread_mutex_lock(&t->lock);
    while ((k = TAILQ_FIRST(&t->ended)) && k->ended_ms <= before)
        forget(k);
    pthread_mutex_unlock(&t->lock);
}

int tasks_count(struct tasks *t)
{
    pthread_mutex_lock(&t->lock);
    int n = t->ntasks;
    pthread_mutex_unlock(&t->lock);
    return n;
}

void tasks_destroy(struct tasks *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->closed = 1;
    for (int i = 0; i < BUCKETS; i++)
        for (struct task *k; (k = t->bucket[i]);) {
            if (k->state == LIVE) {
                if (job_withdraw(k->job, k))
                    unref(k);
                set_ended(k, ENDED);
            }
            forget(k);
        }
    pthread_mutex_unlock(&t->lock);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
