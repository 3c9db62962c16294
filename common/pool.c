/* pool.c - a few threads that do the numbered pieces of one job at a time.
 *
 * A search is a long row of short level-synchronous jobs, so the threads are kept: they
 * sleep on a condition until the round counter moves. */
#include "topt_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct worker {
    struct topt_pool *pool;
    pthread_t thread;
    int number;
};

struct topt_pool {
    int nthreads;
    /* The lock guards round, busy, stop, work and ctx. */
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    unsigned long round;
    int busy, stop;
    void (*work)(void *ctx, int worker);
    void *ctx;
    int nstarted;
    struct worker worker[];
};

static void *loop(void *arg)
{
    struct worker *w = arg;
    struct topt_pool *p = w->pool;
    unsigned long seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->round == seen && !p->stop)
            pthread_cond_wait(&p->start, &p->lock);
        if (p->stop)
            break;
        seen = p->round;
        pthread_mutex_unlock(&p->lock);
        p->work(p->ctx, w->number);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct topt_pool *topt_pool_create(int nthreads, struct topt_error *err)
{
    if (nthreads < 1)
        nthreads = 1;
    struct topt_pool *p = calloc(1, sizeof *p + (size_t)nthreads * sizeof p->worker[0]);
    if (!p) {
        topt_fail(err, TOPT_ERR_NOMEM, "out of memory for %d threads", nthreads);
        return NULL;
    }
    p->nthreads = nthreads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    pthread_cond_init(&p->done, NULL);
    for (int i = 1; i < nthreads; i++) {
        struct worker *w = &p->worker[i];
        *w = (struct worker){.pool = p, .number = i};
        if (pthread_create(&w->thread, NULL, loop, w)) {
            topt_fail(err, TOPT_ERR_LIMIT, "can't start thread %d of %d", i + 1,
                      nthreads);
            topt_pool_destroy(p);
            return NULL;
        }
        p->nstarted = i;
    }
    return p;
}

void topt_pool_destroy(struct topt_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = 1;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i <= p->nstarted; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->start);
    pthread_cond_destroy(&p->done);
    free(p);
}

int topt_pool_threads(const struct topt_pool *p)
{
    return p->nthreads;
}

void topt_pool_run(struct topt_pool *p, void (*work)(void *ctx, int worker), void *ctx)
{
    pthread_mutex_lock(&p->lock);
    p->work = work;
    p->ctx = ctx;
    p->busy = p->nstarted;
    p->round++;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    work(ctx, 0);
    pthread_mutex_lock(&p->lock);
    while (p->busy)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

int topt_pool_processors(void)
{
    enum { MOST = 8 };
    cpu_set_t set;
    CPU_ZERO(&set);
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return n < 1 ? 1 : n > MOST ? MOST : n;
}
