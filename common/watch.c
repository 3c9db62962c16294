/* watch.c - the line that says what a command is at.
 *
 * A thread of its own wakes a few times a second and writes what it reads, so that the
 * computation has nothing to do with clocks or terminals.  Signals stay with the main thread. */
#include "topt_progress.h"
#include "topt_clock.h"
#include "topt_text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { SILENT_MS = 1000, EVERY_MS = 250 };

static int64_t load(const atomic_int_least64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

static void describe_phase(const struct topt_progress *p, struct topt_text *t)
{
    int64_t gap = load(&p->gap), points = load(&p->points);
    switch (atomic_load(&p->phase)) {
    case TOPT_PHASE_PRICING:
        topt_text_add(t, "pricing: %" PRId64 " configurations and rows",
                      load(&p->priced));
        break;
    case TOPT_PHASE_SEARCHING:
        topt_text_add(t, "searching: %" PRId64 " points, %" PRId64 " parts left", points,
                      load(&p->parts));
        if (points && gap >= 0)
            topt_text_add(t, ", within %.3g %%", (double)gap / 1e4);
        break;
    default:
        topt_text_add(t, "checking: %" PRId64 " of %" PRId64 " points", load(&p->checked),
                      points);
    }
}

static void describe(const struct topt_progress *p, double seconds, struct topt_text *t)
{
    int64_t gpus = load(&p->gpus), nodes = load(&p->nodes), variants = load(&p->variants);
    if (gpus)
        topt_text_add(t, "%" PRId64 " GPU%s on %" PRId64 " node%s, ", gpus,
                      gpus > 1 ? "s" : "", nodes, nodes > 1 ? "s" : "");
    if (variants > 1)
        topt_text_add(t, "choice %" PRId64 " of %" PRId64 ", ", load(&p->variant),
                      variants);
    describe_phase(p, t);
    topt_text_add(t, ", %.0f s", seconds);
}

static int columns(void)
{
    struct winsize w;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col > 10 ? w.ws_col : 80;
}

static void draw(const struct topt_watch *w, double seconds)
{
    struct topt_text t = {0};
    describe(&w->progress, seconds, &t);
    if (!t.oom)
        fprintf(stderr, "\r\033[K%.*s", columns() - 1, t.s);
    fflush(stderr);
    topt_text_fini(&t);
}

static struct timespec later(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void *watch(void *arg)
{
    struct topt_watch *w = arg;
    struct timespec next = later(SILENT_MS);
    int64_t began_ns = topt_clock_ns();
    int drawn = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (!pthread_cond_timedwait(&w->wake, &w->lock, &next) || w->stop)
            continue;
        pthread_mutex_unlock(&w->lock);
        draw(w, (double)(topt_clock_ns() - began_ns) / 1e9);
        drawn = 1;
        next = later(EVERY_MS);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    if (drawn)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    return NULL;
}

struct topt_progress *topt_watch_start(struct topt_watch *w, int quiet)
{
    sigset_t all, before;
    memset(w, 0, sizeof *w);
    if (quiet || !isatty(STDERR_FILENO))
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->running = !pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return w->running ? &w->progress : NULL;
}

void topt_watch_stop(struct topt_watch *w)
{
    if (!w->running)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = 1;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    w->running = 0;
}
