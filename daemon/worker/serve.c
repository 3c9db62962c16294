/* serve.c - listening while something is computed.
 *
 *      main thread   the socket: requests, stop and cancel in; progress and answers out
 *      work thread   one request at a time
 *
 * When the socket's other end is gone, nobody waits for anything: the process ends at once. */
#include "serve.h"
#include "answer.h"
#include "planner.h"
#include "sanitized.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TELL_MS = 250, ARENAS = 4, KEEP_FREE = 64 << 20 };

struct server {
    int fd, done_fd; /* done_fd: readable when the answer is there */
    struct planner *planner;
    struct watch watch;
    struct frame request, reply; /* the work thread's while busy */
    int busy;                    /* the main thread's */
    char told[256];              /* last progress */
    pthread_mutex_t lock;        /* guards 'go' */
    pthread_cond_t wake;
    int go;
};

/* ---- the work thread --------------------------------------------------------------- */

/* A large search leaves its memory to the machine. */
static void trim(void)
{
    struct mallinfo2 m = mallinfo2();
    if (m.fordblks > KEEP_FREE)
        malloc_trim(0);
}

static void *work(void *arg)
{
    struct server *s = arg;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        while (!s->go)
            pthread_cond_wait(&s->wake, &s->lock);
        s->go = 0;
        pthread_mutex_unlock(&s->lock);
        answer(s->planner, &s->request, &s->watch, &s->reply);
        trim();
        pthread_mutex_lock(&s->lock); /* what was written is seen by who wakes */
        pthread_mutex_unlock(&s->lock);
        if (eventfd_write(s->done_fd, 1) < 0)
            _exit(EXIT_FAILURE);
    }
    return NULL;
}

/* ---- progress ---------------------------------------------------------------------- */

static int64_t load(const atomic_int_least64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

static void put_best(const struct topt_progress *p, char *buf, size_t size)
{
    int64_t points = load(&p->points), gap = load(&p->gap);
    int n =
        points ? snprintf(buf, size, "%" PRId64 " point%s", points, points > 1 ? "s" : "")
               : 0;
    if (points && gap >= 0)
        snprintf(buf + n, size - (size_t)n, " within %.3g %%", (double)gap / 1e4);
}

static void put_phase(const struct topt_progress *p, char *buf, size_t size)
{
    static const char *const names[] = {"pricing", "searching", "checking"};
    int64_t gpus = load(&p->gpus), nodes = load(&p->nodes);
    int phase = atomic_load(&p->phase);
    const char *name = phase >= 0 && phase < 3 ? names[phase] : "working";
    if (gpus)
        snprintf(buf, size, "%s, %" PRId64 " GPU%s on %" PRId64 " node%s", name, gpus,
                 gpus > 1 ? "s" : "", nodes, nodes > 1 ? "s" : "");
    else
        snprintf(buf, size, "%s", name);
}

static int send_all(int fd, struct frame *f, struct topt_error *err)
{
    int rc;
    while ((rc = frame_send(f, fd, err)) == 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        poll(&p, 1, -1);
    }
    return rc < 0 ? -1 : 0;
}

/* What is new since the last time. */
static int tell(struct server *s, struct topt_error *err)
{
    const struct topt_progress *p = &s->watch.progress;
    char phase[96], best[96] = "", line[sizeof s->told];
    struct frame f = {0};
    put_phase(p, phase, sizeof phase);
    put_best(p, best, sizeof best);
    int64_t done = load(&p->variant), of = load(&p->variants);
    snprintf(line, sizeof line, "%s;%s;%" PRId64 ";%" PRId64, phase, best, done, of);
    if (!strcmp(line, s->told))
        return 0;
    memcpy(s->told, line, sizeof line);
    frame_begin(&f, FRAME_PROGRESS);
    frame_put_text(&f, phase);
    frame_put_int(&f, done);
    frame_put_int(&f, of);
    frame_put_text(&f, best);
    int rc = frame_end(&f, err) == 0 ? send_all(s->fd, &f, err) : 0;
    frame_fini(&f);
    return rc;
}

/* ---- the main thread --------------------------------------------------------------- */

static void begin(struct server *s, struct frame *in)
{
    struct frame old = s->request;
    s->request = *in; /* the other one receives what comes next */
    *in = old;
    memset(&s->watch, 0, sizeof s->watch);
    atomic_store(&s->watch.progress.gap, -1);
    s->told[0] = '\0';
    s->busy = 1;
    pthread_mutex_lock(&s->lock);
    s->go = 1;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

/* One frame from the daemon. */
static int take(struct server *s, struct frame *in, struct topt_error *err)
{
    struct watch *w = &s->watch;
    atomic_bool *order = in->type == FRAME_STOP     ? &w->stop
                         : in->type == FRAME_CANCEL ? &w->cancel
                         : in->type == FRAME_BRIEF  ? &w->brief
                                                    : NULL;
    if (order) {
        if (s->busy) /* else it was under way when the answer was */
            atomic_store(order, true);
    } else if (s->busy) {
        return topt_fail(err, TOPT_ERR_INTERNAL, "two requests at a time");
    } else {
        begin(s, in);
    }
    frame_expect(in);
    return 0;
}

static int reply_now(struct server *s, struct topt_error *err)
{
    eventfd_t n;
    (void)!eventfd_read(s->done_fd, &n);
    pthread_mutex_lock(&s->lock);
    pthread_mutex_unlock(&s->lock);
    s->busy = 0;
    if (!s->reply.len) /* not even a failure could be written */
        return topt_nomem(err, NULL);
    int rc = send_all(s->fd, &s->reply, err);
    frame_fini(&s->reply);
    frame_fini(&s->request);
    return rc;
}

static int listen_on(struct server *s, struct topt_error *err)
{
    struct frame in = {0};
    for (;;) {
        struct pollfd fds[2] = {{.fd = s->fd, .events = POLLIN},
                                {.fd = s->done_fd, .events = POLLIN}};
        int n = poll(fds, 2, s->busy ? TELL_MS : -1), rc = 0;
        if (n < 0 && errno != EINTR)
            return topt_fail(err, TOPT_ERR_IO, "poll: %s", strerror(errno));
        if (n == 0 && tell(s, err) < 0)
            return -1;
        if (n > 0 && fds[1].revents && reply_now(s, err) < 0)
            return -1;
        if (n > 0 && fds[0].revents && (rc = frame_receive(&in, s->fd, err)) < 0)
            return err->code == TOPT_ERR_IO ? 0 : -1; /* the daemon is gone */
        if (rc > 0 && take(s, &in, err) < 0)
            return -1;
    }
}

int serve(int fd, struct topt_error *err)
{
    static struct server s;
    pthread_t thread;
    s.fd = fd;
    s.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s.planner = planner_create();
    if (s.done_fd < 0 || !s.planner)
        return topt_nomem(err, NULL);
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.wake, NULL);
    int rc = pthread_create(&thread, NULL, work, &s);
    if (rc)
        return topt_fail(err, TOPT_ERR_IO, "can't start a thread: %s", strerror(rc));
    return listen_on(&s, err);
}

/* ---- before it listens ------------------------------------------------------------- */

static int limit_memory(long long bytes, struct topt_error *err)
{
#ifdef SANITIZED
    (void)bytes, (void)err;
    return 0;
#else
    const struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};
    if (bytes > 0 && setrlimit(RLIMIT_AS, &limit) < 0)
        return topt_fail(err, TOPT_ERR_IO, "can't limit the memory: %s", strerror(errno));
    mallopt(M_ARENA_MAX, ARENAS); /* each reserves address space */
    return 0;
#endif
}

int serve_alone(long long parent, long long memory, int more_nice, struct topt_error *err)
{
    FILE *f = fopen("/proc/self/oom_score_adj", "we");
    if (f) {
        fputs("500\n", f); /* of 1000: before whatever else runs here, and before toptd */
        fclose(f);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        return topt_fail(err, TOPT_ERR_CANCELED, "the parent process has ended");
    errno = 0;
    if (nice(more_nice) < 0 && errno)
        return topt_fail(err, TOPT_ERR_IO, "nice: %s", strerror(errno));
    if (chdir("/") < 0)
        return topt_fail(err, TOPT_ERR_IO, "chdir: %s", strerror(errno));
    return limit_memory(memory, err);
}
