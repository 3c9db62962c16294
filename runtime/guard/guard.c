/* guard.c - the thread that sees ranks end, stop or stand still, and what it does then. */
#include "topt_guard.h"
#include "topt_clock.h"
#include "link.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TURN_MS = 200,   /* the thread looks so often */
    TELL_MS = 500,   /* and tells others so often */
    SETTLE_MS = 300, /* after a first failure: is it due to a rank that is gone? */
    GRACE_MS = 1500, /* until a rank that was told to end does so by itself */
    LINE = 512
};

/* A rank as this one knows it. */
struct seen {
    struct topt_guard_frame last;
    int64_t heard_ms, moved_ms; /* last word; last time that 'count' grew */
    int gone, done, failed;
    char text[256]; /* of its failure */
};

struct topt_guard {
    struct topt_comm *comm;
    struct topt_guard_options o;
    struct topt_run_place place;
    struct topt_guard_link *link;
    struct topt_guard_self *self;
    struct seen *seen; /* by rank; of ranks above 0 only rank 0's and their own */
    int connected, started;
    pthread_t thread;
    atomic_int look, stop, failing;
    struct topt_error failure; /* before 'failing' is set */
    int64_t turn_ms, told_ms, trouble_ms;
};

static void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
              NULL);
}

static struct topt_guard_frame own_place(struct topt_guard *g)
{
    struct topt_guard_frame f = {.word = TOPT_GUARD_HERE};
    f.count = atomic_load_explicit(&g->place.count, memory_order_acquire);
    f.step = atomic_load_explicit(&g->place.step, memory_order_relaxed);
    f.instr = atomic_load_explicit(&g->place.instr, memory_order_relaxed);
    f.waits = atomic_load_explicit(&g->place.waits, memory_order_relaxed);
    return f;
}

static void note(struct seen *s, const struct topt_guard_frame *f, int64_t now)
{
    if (f->count != s->last.count)
        s->moved_ms = now;
    s->heard_ms = now;
    s->last = *f;
}

/* ---- the end ----------------------------------------------------------------------- */

/* A stopped rank on this machine would outlive the job. */
static void end_silent(const struct topt_guard *g, int64_t now)
{
    for (int r = 0; r < g->comm->size; r++)
        if (r != g->comm->rank && !g->seen[r].gone && !g->seen[r].done &&
            g->seen[r].heard_ms && now - g->seen[r].heard_ms > 2 * TELL_MS + 1000 &&
            g->self[r].machine == g->self[g->comm->rank].machine)
            kill((pid_t)g->self[r].pid, SIGKILL);
}

static _Noreturn void abort_all(struct topt_guard *g, enum topt_err code)
{
    int status = topt_err_exit(code);
    struct topt_guard_frame end = {.word = TOPT_GUARD_END, .code = (int32_t)code};
    for (int r = 1; r < g->comm->size && !g->comm->rank && g->connected; r++)
        topt_guard_put(&g->link[r], &end);
    end_silent(g, topt_clock_ms());
    sleep_ms(100); /* what was sent arrives before this end of it closes */
    fflush(NULL);
    signal(SIGALRM, SIG_DFL);
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    alarm(3); /* where even that hangs */
    g->comm->ops->abort(g->comm, status);
    _exit(status);
}

static _Noreturn void speak(struct topt_guard *g, enum topt_err code, const char *line)
{
    g->o.last_words(g->o.ctx, code, line);
    abort_all(g, code);
}

/* Somebody else speaks; the communicator's abort is on its way. */
static _Noreturn void end_quietly(struct topt_guard *g, enum topt_err code)
{
    sleep_ms(strcmp(g->comm->ops->name, "mpi") ? 200 : GRACE_MS);
    _exit(topt_err_exit(code));
}

/* ---- in words ---------------------------------------------------------------------- */

static void add(char *line, const char *text)
{
    size_t len = strlen(line);
    snprintf(line + len, LINE - len, "%s", text);
}

/* "rank 2", "ranks 1, 2 and 5", "ranks 1, 2, 3 and 12 more". */
static void add_ranks(char *line, const int *rank, int n)
{
    char part[48];
    int shown = n > 6 ? 5 : n;
    add(line, n == 1 ? "rank " : "ranks ");
    for (int i = 0; i < shown; i++) {
        const char *before = !i ? "" : i + 1 == shown && shown == n ? " and " : ", ";
        snprintf(part, sizeof part, "%s%d", before, rank[i]);
        add(line, part);
    }
    if (shown < n) {
        snprintf(part, sizeof part, " and %d more", n - shown);
        add(line, part);
    }
}

static void add_place(struct topt_guard *g, char *line, const struct seen *s)
{
    char what[160], step[48];
    g->o.describe(g->o.ctx, s->last.instr, what, sizeof what);
    add(line, what);
    snprintf(step, sizeof step, " in step %lld", (long long)s->last.step + 1);
    if (s->last.instr >= 0)
        add(line, step);
}

static void add_host(const struct topt_guard *g, char *line, int rank)
{
    char text[112];
    snprintf(text, sizeof text, " (process %lld on %s)", (long long)g->self[rank].pid,
             g->self[rank].host);
    add(line, text);
}

static _Noreturn void speak_of_gone(struct topt_guard *g, const int *rank, int n)
{
    char line[LINE] = "";
    add_ranks(line, rank, n);
    if (n == 1)
        add_host(g, line, rank[0]);
    add(line, n == 1 ? " has ended" : " have ended");
    add(line,
        " without a word: killed, or out of memory; the last that was heard of it: ");
    add_place(g, line, &g->seen[rank[0]]);
    speak(g, TOPT_ERR_DEVICE, line);
}

/* Those who wait at the earliest place, and those who are not there. */
static _Noreturn void speak_of_still(struct topt_guard *g, int64_t now)
{
    char line[LINE] = "", text[96];
    int n = g->comm->size, first = -1, nmissing = 0, nwaiting = 0;
    int *missing = calloc(2 * (size_t)n, sizeof *missing), *waiting = missing + n;
    for (int r = 0; r < n; r++) {
        const struct seen *s = &g->seen[r];
        int silent = now - s->heard_ms > 1000 * g->o.seconds;
        if (s->last.waits && !silent &&
            (first < 0 || s->last.count < g->seen[first].last.count))
            first = r;
    }
    for (int r = 0; r < n && missing; r++) {
        const struct seen *s = &g->seen[r];
        int silent = now - s->heard_ms > 1000 * g->o.seconds;
        if (silent || (first >= 0 &&
                       (s->last.count < g->seen[first].last.count ||
                        (s->last.count == g->seen[first].last.count && !s->last.waits))))
            missing[nmissing++] = r;
        else
            waiting[nwaiting++] = r;
    }
    if (!missing) {
        speak(g, TOPT_ERR_DEVICE, "a rank stands still");
    } else if (nmissing) {
        const struct seen *s = &g->seen[missing[0]];
        int64_t quiet = (now - s->heard_ms) / 1000;
        add_ranks(line, missing, nmissing);
        if (nmissing == 1)
            add_host(g, line, missing[0]);
        if (quiet > g->o.seconds / 2 + 1)
            snprintf(text, sizeof text, " stopped or cut off: silent for %lld s",
                     (long long)quiet);
        else
            snprintf(text, sizeof text, " stuck for %lld s",
                     (long long)(now - s->moved_ms) / 1000);
        add(line, nmissing == 1 ? " is" : " are");
        add(line, text);
        add(line, ", last heard of at ");
        add_place(g, line, s);
        if (first >= 0 && nwaiting) {
            add(line, "; ");
            add_ranks(line, waiting, nwaiting);
            add(line, nwaiting == 1 ? " waits at " : " wait at ");
            add_place(g, line, &g->seen[first]);
        }
    } else {
        snprintf(text, sizeof text, "all %d ranks have stood still for %lld s at ", n,
                 (long long)g->o.seconds);
        add(line, text);
        add_place(g, line, &g->seen[first >= 0 ? first : 0]);
        add(line, "; the network, or MPI, is stuck");
    }
    speak(g, TOPT_ERR_DEVICE, line);
}

/* ---- rank 0 looks ------------------------------------------------------------------ */

static int failed_rank(const struct topt_guard *g)
{
    for (int r = 0; r < g->comm->size; r++)
        if (g->seen[r].failed)
            return r;
    return -1;
}

static _Noreturn void speak_of_failure(struct topt_guard *g, int r)
{
    char line[LINE];
    if (g->comm->size > 1 && r)
        snprintf(line, sizeof line, "rank %d: %s", r, g->seen[r].text);
    else
        snprintf(line, sizeof line, "%s", g->seen[r].text);
    speak(g, (enum topt_err)g->seen[r].failed, line);
}

static void look_at_ends(struct topt_guard *g, int64_t now)
{
    int size = g->comm->size > 0 ? g->comm->size : 1, n = 0;
    int *gone = calloc((size_t)size, sizeof *gone);
    int failed = failed_rank(g);
    for (int r = 0; r < size && gone; r++)
        if (g->seen[r].gone)
            gone[n++] = r;
    if (!n && failed < 0) {
        free(gone);
        return;
    }
    if (!g->trouble_ms)
        g->trouble_ms = now;
    if (n)
        speak_of_gone(g, gone, n);
    free(gone);
    if (now - g->trouble_ms > SETTLE_MS)
        speak_of_failure(g, failed);
}

static void look_for_stillness(struct topt_guard *g, int64_t now)
{
    int64_t most = 1000 * g->o.seconds, moved = 0;
    if (!most)
        return;
    for (int r = 0; r < g->comm->size; r++) {
        if (g->seen[r].done)
            return; /* the end: who is done does not move */
        if (now - g->seen[r].heard_ms > most)
            speak_of_still(g, now);
        moved = g->seen[r].moved_ms > moved ? g->seen[r].moved_ms : moved;
    }
    if (atomic_load(&g->look) && now - moved > most)
        speak_of_still(g, now);
}

/* ---- the others look --------------------------------------------------------------- */

/* Rank 0 is gone or silent: the first that is left speaks, and where no abort reaches the
 * others only that one. */
static _Noreturn void speak_for_rank_0(struct topt_guard *g, const char *what)
{
    char line[LINE] = "rank 0";
    int mpi = !strcmp(g->comm->ops->name, "mpi"), turn = g->comm->rank - 1;
    sleep_ms(turn > 8 ? 4000 : 500 * turn); /* others end by the abort meanwhile */
    if (turn && !mpi)
        end_quietly(g, TOPT_ERR_DEVICE);
    add_host(g, line, 0);
    add(line, what);
    add(line, "; the last that was heard of it: ");
    add_place(g, line, &g->seen[0]);
    if (g->self[0].machine == g->self[g->comm->rank].machine && !g->seen[0].gone)
        kill((pid_t)g->self[0].pid, SIGKILL);
    speak(g, TOPT_ERR_DEVICE, line);
}

static void look_at_rank_0(struct topt_guard *g, int64_t now)
{
    const struct seen *s = &g->seen[0];
    if (s->done)
        return;
    if (s->gone)
        speak_for_rank_0(g, " has ended without a word: killed, or out of memory");
    if (g->o.seconds && now - s->heard_ms > 1000 * g->o.seconds + 1000)
        speak_for_rank_0(g, " is stopped or cut off");
}

/* No connections: a rank knows of itself alone. */
static void look_alone(struct topt_guard *g, int64_t now)
{
    char line[LINE];
    const struct seen *s = &g->seen[g->comm->rank];
    if (!g->o.seconds || !atomic_load(&g->look) ||
        now - s->moved_ms < 1000 * g->o.seconds)
        return;
    snprintf(line, sizeof line, "rank %d has stood still for %lld s at ", g->comm->rank,
             (long long)g->o.seconds);
    add_place(g, line, s);
    add(line,
        "; which ranks are missing is not known, since they can't connect to rank 0");
    speak(g, TOPT_ERR_DEVICE, line);
}

/* ---- the thread -------------------------------------------------------------------- */

/* A frame from 'rank'. */
static void hear(struct topt_guard *g, int rank, const struct topt_guard_frame *f,
                 int64_t now)
{
    struct seen *s = &g->seen[rank];
    switch (f->word) {
    case TOPT_GUARD_HERE:
        note(s, f, now);
        break;
    case TOPT_GUARD_FAILED:
        s->failed = f->code > 0 && f->code < TOPT_ERR_COUNT ? f->code : TOPT_ERR_INTERNAL;
        snprintf(s->text, sizeof s->text, "%s", f->text);
        break;
    case TOPT_GUARD_DONE:
        s->done = 1;
        break;
    case TOPT_GUARD_END:
        if (!rank)
            end_quietly(g, f->code > 0 && f->code < TOPT_ERR_COUNT
                               ? (enum topt_err)f->code
                               : TOPT_ERR_INTERNAL);
    }
}

static void listen_to(struct topt_guard *g, int rank, int64_t now)
{
    struct topt_guard_link *l = &g->link[g->comm->rank ? 0 : rank];
    int got = 0;
    while (l->fd >= 0 && (got = topt_guard_take(l)) > 0)
        hear(g, rank, &l->in, now);
    if (l->fd >= 0 && got < 0) {
        topt_guard_close(l);
        if (!g->seen[rank].done)
            g->seen[rank].gone = 1;
    }
}

static void tell(struct topt_guard *g, const struct topt_guard_frame *f)
{
    for (int r = 0; r < (g->comm->rank ? 1 : g->comm->size); r++)
        topt_guard_put(&g->link[r], f);
}

/* This rank's thread handed a failure over. */
static void tell_failure(struct topt_guard *g)
{
    struct seen *own = &g->seen[g->comm->rank];
    struct topt_guard_frame f = {.word = TOPT_GUARD_FAILED,
                                 .code = (int32_t)g->failure.code};
    if (own->failed)
        return;
    snprintf(f.text, sizeof f.text, "%s", g->failure.text);
    hear(g, g->comm->rank, &f, topt_clock_ms());
    if (!g->connected)
        speak_of_failure(g, g->comm->rank);
    if (g->comm->rank)
        tell(g, &f);
}

/* While this process itself was stopped nobody could be heard. */
static void forgive(struct topt_guard *g, int64_t now)
{
    int64_t slept = now - g->turn_ms - TURN_MS;
    for (int r = 0; r < g->comm->size && g->turn_ms && slept > 1000; r++) {
        g->seen[r].heard_ms += slept;
        g->seen[r].moved_ms += slept;
    }
    g->turn_ms = now;
}

static void turn(struct topt_guard *g)
{
    int64_t now = topt_clock_ms();
    struct topt_guard_frame own = own_place(g);
    forgive(g, now);
    note(&g->seen[g->comm->rank], &own, now);
    if (atomic_load(&g->failing))
        tell_failure(g);
    if (!g->connected) {
        look_alone(g, now);
        return;
    }
    if (now - g->told_ms >= TELL_MS) {
        tell(g, &own);
        g->told_ms = now;
    }
    for (int r = 0; r < (g->comm->rank ? 1 : g->comm->size); r++)
        if (r != g->comm->rank)
            listen_to(g, r, now);
    if (g->comm->rank) {
        look_at_rank_0(g, now);
    } else {
        look_at_ends(g, now);
        look_for_stillness(g, now);
    }
}

static void wait_for_news(struct topt_guard *g, struct pollfd *w)
{
    int n = 0;
    for (int r = 0; r < (g->comm->rank ? 1 : g->comm->size); r++)
        if (g->link[r].fd >= 0)
            w[n++] = (struct pollfd){.fd = g->link[r].fd, .events = POLLIN};
    poll(w, (nfds_t)n, TURN_MS);
}

static void *run(void *arg)
{
    struct topt_guard *g = arg;
    struct pollfd *w = calloc((size_t)g->comm->size, sizeof *w);
    while (w && !atomic_load(&g->stop)) {
        wait_for_news(g, w);
        turn(g);
    }
    free(w);
    return NULL;
}

/* ---- for the thread that trains ---------------------------------------------------- */

static void destroy(struct topt_guard *g)
{
    if (!g)
        return;
    for (int r = 0; g->link && r < g->comm->size; r++)
        topt_guard_close(&g->link[r]);
    free(g->link);
    free(g->self);
    free(g->seen);
    free(g);
}

static struct topt_guard *create(struct topt_comm *comm,
                                 const struct topt_guard_options *o)
{
    struct topt_guard *g = calloc(1, sizeof *g);
    size_t n = (size_t)comm->size;
    if (!g)
        return NULL;
    g->comm = comm;
    g->o = *o;
    g->link = calloc(n, sizeof *g->link);
    g->self = calloc(n, sizeof *g->self);
    g->seen = calloc(n, sizeof *g->seen);
    atomic_store(&g->place.instr, TOPT_DOING_START);
    for (size_t r = 0; r < n && g->link; r++)
        g->link[r].fd = -1;
    if (g->link && g->self && g->seen)
        return g;
    destroy(g);
    return NULL;
}

/* The thread takes no signals: they are the program's. */
static int start_thread(struct topt_guard *g, struct topt_error *err)
{
    sigset_t all, before;
    int64_t now = topt_clock_ms();
    for (int r = 0; r < g->comm->size; r++) {
        g->seen[r].heard_ms = g->seen[r].moved_ms = now;
        g->seen[r].last.instr = TOPT_DOING_START;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&g->thread, NULL, run, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->started = !rc;
    return rc ? topt_fail(err, TOPT_ERR_NOMEM, "start a thread: %s", strerror(rc)) : 0;
}

int topt_guard_start(struct topt_comm *comm, const struct topt_guard_options *o,
                     struct topt_guard **ret, struct topt_error *err)
{
    *ret = NULL;
    if (comm->size == 1)
        return 0;
    struct topt_guard *g = create(comm, o);
    int failed = g ? 0 : topt_nomem(err, NULL);
    if (topt_comm_agree(comm, failed, err) ||
        topt_guard_connect(comm, g->link, g->self, &g->connected, err) ||
        topt_comm_agree(comm, start_thread(g, err), err)) {
        topt_guard_stop(g);
        return -1;
    }
    *ret = g;
    return 0;
}

void topt_guard_stop(struct topt_guard *g)
{
    struct topt_guard_frame done = {.word = TOPT_GUARD_DONE};
    if (!g)
        return;
    atomic_store(&g->stop, 1);
    if (g->started)
        pthread_join(g->thread, NULL);
    if (g->connected) {
        tell(g, &done);
        for (int r = 0; r < (g->comm->rank ? 1 : g->comm->size); r++)
            topt_guard_finish(&g->link[r]);
    }
    destroy(g);
}

void topt_guard_look(struct topt_guard *g, int on)
{
    if (g)
        atomic_store(&g->look, on);
}

struct topt_run_place *topt_guard_place(struct topt_guard *g)
{
    return g ? &g->place : NULL;
}

int topt_guard_connected(const struct topt_guard *g)
{
    return g && g->connected;
}

_Noreturn void topt_guard_fail(struct topt_guard *g, const struct topt_error *err)
{
    g->failure = *err;
    atomic_store(&g->failing, 1);
    for (;;) /* its thread ends the process */
        sleep_ms(1000);
}
