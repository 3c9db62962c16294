/* confirm.c - see confirm.h: a short list in the order of arrival. */
#include "confirm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct report {
    int64_t id, job, uid;
    int tries;
};

struct confirm {
    struct confirm_config config;
    pthread_t thread;
    pthread_mutex_t lock; /* leaf; guards all below; not held while Slurm is asked */
    pthread_cond_t wake;
    struct report waiting[CONFIRM_ROOM];
    int n, stopping;
};

int confirm_add(struct confirm *c, int64_t id, int64_t job, int64_t uid)
{
    int mine = 0, there = 0;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->n; i++) {
        mine += c->waiting[i].uid == uid;
        there |= c->waiting[i].id == id;
    }
    int fits = there || (c->n < CONFIRM_ROOM && mine < CONFIRM_EACH);
    if (fits && !there)
        c->waiting[c->n++] = (struct report){.id = id, .job = job, .uid = uid};
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    return fits;
}

/* The first one, taken; lock held. */
static struct report take(struct confirm *c)
{
    struct report r = c->waiting[0];
    memmove(c->waiting, c->waiting + 1, (size_t)--c->n * sizeof *c->waiting);
    return r;
}

/* It could not be asked: last in line, and a while later.  Lock held. */
static void postpone(struct confirm *c, struct report r)
{
    struct timespec until;
    if (++r.tries < CONFIRM_TRIES && c->n < CONFIRM_ROOM)
        c->waiting[c->n++] = r;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += c->config.pause_ms % 1000 * 1000000;
    until.tv_sec += c->config.pause_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!c->stopping && !pthread_cond_timedwait(&c->wake, &c->lock, &until))
        ;
}

static void *run(void *arg)
{
    struct confirm *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->stopping) {
        if (!c->n) {
            pthread_cond_wait(&c->wake, &c->lock);
            continue;
        }
        struct report r = take(c);
        pthread_mutex_unlock(&c->lock);
        int rc = c->config.ask(c->config.ctx, r.job, r.uid);
        if (rc > 0)
            c->config.confirmed(c->config.ctx, r.id);
        pthread_mutex_lock(&c->lock);
        if (rc < 0)
            postpone(c, r);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int confirm_create(const struct confirm_config *config, struct confirm **ret,
                   struct topt_error *err)
{
    struct confirm *c = calloc(1, sizeof *c);
    if (!c)
        return topt_nomem(err, NULL);
    c->config = *config;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    int rc = pthread_create(&c->thread, NULL, run, c);
    if (rc) {
        free(c);
        return topt_fail(err, TOPT_ERR_IO, "can't start a thread: %s", strerror(rc));
    }
    pthread_setname_np(c->thread, "confirm");
    *ret = c;
    return 0;
}

void confirm_destroy(struct confirm *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = 1;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
