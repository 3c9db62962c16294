/* handlers.c - see handlers.h: two queues, a few threads, one of them for the urgent queue. */
#include "handlers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64, STACK_BYTES = 1 << 20 };

struct queue {
    struct handlers_call *first, **end;
};

struct handlers {
    pthread_mutex_t lock;        /* leaf; guards all below */
    pthread_cond_t some, urgent; /* some: for threads of all calls */
    struct queue queue[2];       /* [1]: urgent */
    int stopping, nthreads;
    pthread_t thread[MAX_THREADS];
};

static struct handlers_call *take(struct handlers *h, int urgent_only)
{
    for (int urgent = 1; urgent >= urgent_only; urgent--) {
        struct queue *q = &h->queue[urgent];
        struct handlers_call *call = q->first;
        if (!call)
            continue;
        q->first = call->next;
        if (!q->first)
            q->end = &q->first;
        return call;
    }
    return NULL;
}

static void serve(struct handlers *h, int urgent_only)
{
    pthread_mutex_lock(&h->lock);
    for (;;) {
        struct handlers_call *call = take(h, urgent_only);
        if (call) {
            pthread_mutex_unlock(&h->lock);
            call->run(call->ctx);
            pthread_mutex_lock(&h->lock);
        } else if (h->stopping) {
            break;
        } else {
            pthread_cond_wait(urgent_only ? &h->urgent : &h->some, &h->lock);
        }
    }
    pthread_mutex_unlock(&h->lock);
}

static void *serve_all(void *h)
{
    serve(h, 0);
    return NULL;
}

static void *serve_urgent(void *h)
{
    serve(h, 1);
    return NULL;
}

static int start(struct handlers *h, int urgent_only, struct topt_error *err)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int rc = pthread_create(&h->thread[h->nthreads], &attr,
                            urgent_only ? serve_urgent : serve_all, h);
    pthread_attr_destroy(&attr);
    if (rc)
        return topt_fail(err, TOPT_ERR_NOMEM, "start a handler thread: %s", strerror(rc));
    pthread_setname_np(h->thread[h->nthreads++],
                       urgent_only ? "handle-submit" : "handle");
    return 0;
}

int handlers_create(int threads, struct handlers **ret, struct topt_error *err)
{
    struct handlers *h = calloc(1, sizeof *h);
    if (!h)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->some, NULL);
    pthread_cond_init(&h->urgent, NULL);
    for (int i = 0; i < 2; i++)
        h->queue[i].end = &h->queue[i].first;
    int rc = start(h, 1, err);
    for (int i = 0; i < threads && i < MAX_THREADS - 1 && rc == 0; i++)
        rc = start(h, 0, err);
    if (rc < 0)
        handlers_destroy(h);
    else
        *ret = h;
    return rc;
}

void handlers_add(struct handlers *h, struct handlers_call *call, int urgent)
{
    struct queue *q = &h->queue[!!urgent];
    call->next = NULL;
    pthread_mutex_lock(&h->lock);
    *q->end = call;
    q->end = &call->next;
    pthread_cond_signal(&h->some);
    if (urgent)
        pthread_cond_signal(&h->urgent);
    pthread_mutex_unlock(&h->lock);
}

void handlers_destroy(struct handlers *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    h->stopping = 1;
    pthread_cond_broadcast(&h->some);
    pthread_cond_broadcast(&h->urgent);
    pthread_mutex_unlock(&h->lock);
    for (int i = 0; i < h->nthreads; i++)
        pthread_join(h->thread[i], NULL);
    pthread_cond_destroy(&h->some);
    pthread_cond_destroy(&h->urgent);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
