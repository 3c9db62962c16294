/* topt_progress.h - what a long computation is at, for somebody who watches.
 *
 * Who computes stores, who watches loads, neither waits: a library gets a pointer among its
 * options (NULL: nobody watches) and needs no clock and no callback, so that watching can't
 * change a result.  Fields are told one by one; together they may be of different moments.
 * Thread safety: any number of threads. */
#ifndef TOPT_PROGRESS_H
#define TOPT_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum topt_phase { TOPT_PHASE_PRICING, TOPT_PHASE_SEARCHING, TOPT_PHASE_CHECKING };

struct topt_progress {
    atomic_int phase;
    atomic_int_least64_t gpus, nodes; /* what is looked at; 0: not of devices */
    /* of the choices for the whole model, from 1 */
    atomic_int_least64_t variant, variants;
    atomic_int_least64_t priced; /* configurations, and rows of tables, of this variant */
    atomic_int_least64_t points; /* found on the frontier that is searched now */
    atomic_int_least64_t checked; /* of them, by the checker */
    atomic_int_least64_t parts;   /* of it that are still to be searched */
    atomic_int_least64_t gap;     /* how much slower than the best its points may be, in
                                    millionths; -1: not known */
};

#define TOPT_PROGRESS(p, field, value)                                                   \
    do {                                                                                 \
        if (p)                                                                           \
            atomic_store_explicit(&(p)->field, (value), memory_order_relaxed);           \
    } while (0)

/* One more of 'field'. */
#define TOPT_PROGRESS_ONE(p, field)                                                      \
    do {                                                                                 \
        if (p)                                                                           \
            atomic_fetch_add_explicit(&(p)->field, 1, memory_order_relaxed);             \
    } while (0)

/* For commands: a line on standard error that says what 'progress' says, from the second
 * second on until topt_watch_stop() erases it.  Nothing happens where standard error is no
 * terminal, or with 'quiet'.  One watch a process, from its main thread. */
struct topt_watch {
    struct topt_progress progress;
    int running;
    pthread_t thread;
    pthread_mutex_t lock; /* guards 'stop' */
    pthread_cond_t wake;
    int stop;
};
/* What to compute with: '&w->progress', or NULL where nobody watches. */
struct topt_progress *topt_watch_start(struct topt_watch *w, int quiet);
void topt_watch_stop(struct topt_watch *w);

#endif
