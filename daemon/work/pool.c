/* pool.c - asking worker processes, and replacing those that fail. */
#include "pool.h"
#include "topt_clock.h"
#include "process.h"
#include "topt_log.h"
#include "topt_text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CANCEL_MS = 1000,       /* from an order to cancel to killing */
    CANCEL_SUBMIT_MS = 100, /* the same on a reserved slot, which others wait for */
    FIRST_MS = 30000,       /* for what is asked at the start */
    BACKOFF_MS =
        100, /* before the third process in a row that fails; then twice as long */
    BACKOFF_MOST_MS = 5000,
    SEARCH_NICE = 10 /* reserved slots get the processor first */
};

struct pool_slot {
    struct process process;
    int failures;    /* processes in a row that answered nothing */
    int64_t rest_ms; /* no new one before */
};

struct pool {
    struct pool_config config;
    atomic_llong lost;
    struct pool_slot slot[];
};

/* One question to one process. */
struct call {
    struct pool *pool;
    struct pool_slot *slot;
    const struct job_run *run; /* NULL: at the start */
    struct frame *request, *reply;
    int seen;        /* orders that were passed on */
    int64_t kill_ms; /* when patience ends; 0: not at all */
};

int pool_create(const struct pool_config *config, struct pool **ret,
                struct topt_error *err)
{
    struct pool *p = calloc(1, sizeof *p + (size_t)config->slots * sizeof *p->slot);
    if (!p)
        return topt_nomem(err, NULL);
    p->config = *config;
    *ret = p;
    return 0;
}

void pool_destroy(struct pool *p)
{
    int status;
    for (int i = 0; p && i < p->config.slots; i++)
        process_end(&p->slot[i].process, &status);
    free(p);
}

long long pool_lost(const struct pool *p)
{
    return atomic_load(&p->lost);
}

/* ---- orders --------------------------------------------------------------------------------- */

static int orders(const struct call *c)
{
    return c->run ? run_orders(c->run) : 0;
}

static int is_reserved(const struct call *c)
{
    return c->slot - c->pool->slot < c->pool->config.reserved;
}

static void tell(struct call *c, enum frame_type type)
{
    struct frame f = {0};
    struct topt_error err;
    frame_begin(&f, type);
    int is_whole = frame_end(&f, &err) == 0;
    if ((!is_whole && type != FRAME_BRIEF) || /* without it the answer is longer */
        (is_whole && frame_send(&f, c->slot->process.fd, &err) <= 0))
        c->kill_ms = 1; /* it listens to nothing */
    frame_fini(&f);
}

/* Pass on what is new.  Returns whether the process is to be killed. */
static int follow(struct call *c)
{
    int now = orders(c), fresh = now & ~c->seen;
    c->seen = now;
    if (fresh & ORDER_STOP)
        tell(c, FRAME_STOP);
    if (fresh & ORDER_BRIEF)
        tell(c, FRAME_BRIEF);
    if (fresh & ORDER_CANCEL) {
        c->kill_ms = topt_clock_ms() + (is_reserved(c) ? CANCEL_SUBMIT_MS : CANCEL_MS);
        tell(c, FRAME_CANCEL);
    }
    return now & ORDER_KILL || (c->kill_ms && topt_clock_ms() >= c->kill_ms);
}

/* Wait for the process, an order, or the end of patience. */
static void await(const struct call *c, short events, int64_t until_ms)
{
    eventfd_t n;
    int wake = c->run ? c->run->wake_fd : -1;
    struct pollfd fds[2] = {
        {.fd = c->slot->process.pid ? c->slot->process.fd : -1, .events = events},
        {.fd = wake, .events = POLLIN}};
    int64_t left = until_ms ? until_ms - topt_clock_ms() : -1;
    if (until_ms && left < 0)
        left = 0;
    if (poll(fds, 2, left > INT_MAX ? INT_MAX : (int)left) > 0 && fds[1].revents)
        (void)!eventfd_read(wake, &n);
}

/* ---- a process ------------------------------------------------------------------------------ */

/* It failed at what it was at: two start at once, those after them later and later. */
static void count_failure(struct pool_slot *s)
{
    int64_t rest = BACKOFF_MS;
    s->failures++;
    for (int i = 3; i < s->failures && rest < BACKOFF_MOST_MS; i++)
        rest *= 2;
    s->rest_ms = s->failures < 3 ? 0 : topt_clock_ms() + rest;
}

static int start(struct call *c, struct topt_error *err)
{
    const struct pool_config *config = &c->pool->config;
    int rc = process_start(&c->slot->process, config->program, config->memory,
                           is_reserved(c) ? 0 : SEARCH_NICE, err);
    if (rc < 0)
        count_failure(c->slot);
    return rc;
}

static int canceled(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_CANCELED, "canceled");
}

/* A process that listens. */
static int have_process(struct call *c, struct topt_error *err)
{
    int status = 0;
    char how[96];
    struct pool_slot *s = c->slot;
    if (s->process.pid && !process_is_there(&s->process)) {
        process_reap(&s->process, &status);
        process_how(status, how, sizeof how);
        topt_log(TOPT_LOG_WARN, "pool: an idle worker process %s", how);
    }
    while (!s->process.pid && s->rest_ms > topt_clock_ms()) {
        if (orders(c) & (ORDER_CANCEL | ORDER_KILL))
            return canceled(err);
        await(c, 0, s->rest_ms);
    }
    return s->process.pid ? 0 : start(c, err);
}

static void lose(struct call *c, const char *how)
{
    struct topt_error err;
    atomic_fetch_add(&c->pool->lost, 1);
    topt_log(TOPT_LOG_WARN, "pool: the worker process of slot %d %s",
             (int)(c->slot - c->pool->slot), how);
    count_failure(c->slot);
    if (!c->slot->rest_ms && start(c, &err) < 0)
        topt_log(TOPT_LOG_ERR, "pool: %s", err.text);
}

static const char *what(const struct call *c)
{
    return c->request->type == FRAME_PLAN ? "search" : "import";
}

/* Killed because it was ordered, or did not end after it was. */
static int kill_it(struct call *c, struct topt_error *err)
{
    int status;
    process_end(&c->slot->process, &status);
    if (c->run) {
        c->slot->failures = 0; /* it did nothing wrong */
        c->slot->rest_ms = 0;
        if (!(orders(c) & ORDER_KILL))
            lose(c, "did not end when it was told to, and was killed");
        return canceled(err);
    }
    return topt_fail(err, TOPT_ERR_IO, "'%s' does not answer", c->pool->config.program);
}

/* Its process is gone, or of no use any more. */
static int out_of_memory(struct call *c, struct topt_error *err)
{
    char memory[32];
    int status;
    process_end(&c->slot->process, &status);
    lose(c, "ran out of memory, and is replaced");
    c->slot->failures = 0; /* it is not the program that is broken */
    c->slot->rest_ms = 0;
    if (!c->pool->config.memory)
        return topt_fail(err, TOPT_ERR_NOMEM, "the %s ran out of memory", what(c));
    return topt_fail(err, TOPT_ERR_NOMEM,
                     "the %s needed more memory than the %s this server gives a search",
                     what(c),
                     topt_show_bytes(c->pool->config.memory, memory, sizeof memory));
}

static int died(struct call *c, struct topt_error *err)
{
    int status = 0;
    char how[96];
    process_reap(&c->slot->process, &status);
    process_how(status, how, sizeof how);
    if (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_NOMEM)
        return out_of_memory(c, err);
    lose(c, how);
    if (orders(c) & (ORDER_CANCEL | ORDER_KILL))
        return canceled(err);
    return topt_fail(err, TOPT_ERR_INTERNAL, "the %s's process %s", what(c), how);
}

/* There is no memory for what it says: the rest of that can't be read either. */
static int too_much(struct call *c, struct topt_error *err)
{
    int status = 0;
    process_end(&c->slot->process, &status);
    lose(c, "was killed: there is no memory for its answer");
    return topt_nomem(err, "an answer");
}

static int talks_nonsense(struct call *c, struct topt_error *err)
{
    int status = 0;
    process_end(&c->slot->process, &status);
    lose(c, "sent an invalid answer, and was killed");
    return topt_fail(err, TOPT_ERR_INTERNAL, "the %s's process sent an invalid answer",
                     what(c));
}

/* ---- asking --------------------------------------------------------------------------------- */

static int send_request(struct call *c, struct topt_error *err)
{
    struct topt_error broken;
    c->request->at = 0;
    for (;;) {
        int rc = frame_send(c->request, c->slot->process.fd, &broken);
        if (rc > 0)
            return 0;
        if (rc < 0)
            return died(c, err);
        if (orders(c) & (ORDER_CANCEL | ORDER_KILL) ||
            (c->kill_ms && topt_clock_ms() > c->kill_ms))
            return kill_it(c, err);
        await(c, POLLOUT, c->kill_ms);
    }
}

static void pass_progress(const struct call *c)
{
    struct job_progress p = {0};
    snprintf(p.phase, sizeof p.phase, "%s", frame_get_text(c->reply));
    p.done = frame_get_int(c->reply);
    p.of = frame_get_int(c->reply);
    snprintf(p.best, sizeof p.best, "%s", frame_get_text(c->reply));
    if (c->run)
        run_tell(c->run, &p);
}

/* The next frame that is an answer. */
static int receive_answer(struct call *c, struct topt_error *err)
{
    struct topt_error broken;
    frame_expect(c->reply);
    for (;;) {
        int rc = frame_receive(c->reply, c->slot->process.fd, &broken);
        if (rc < 0)
            return broken.code == TOPT_ERR_IO      ? died(c, err)
                   : broken.code == TOPT_ERR_NOMEM ? too_much(c, err)
                                                   : talks_nonsense(c, err);
        if (rc > 0 && (c->reply->type == FRAME_DONE || c->reply->type == FRAME_FAIL))
            return 0;
        if (rc > 0 && c->reply->type != FRAME_PROGRESS)
            return talks_nonsense(c, err);
        if (rc > 0) {
            pass_progress(c);
            frame_expect(c->reply);
        }
        if (follow(c))
            return kill_it(c, err);
        if (rc == 0)
            await(c, POLLIN, c->kill_ms);
    }
}

static int fail(struct call *c, char source[POOL_SOURCE], struct topt_error *err)
{
    int64_t code = frame_get_int(c->reply);
    snprintf(source, POOL_SOURCE, "%s", frame_get_text(c->reply));
    const char *text = frame_get_text(c->reply);
    if (code == TOPT_ERR_NOMEM)
        return out_of_memory(c, err);
    if (code <= TOPT_OK || code >= TOPT_ERR_COUNT)
        code = TOPT_ERR_INTERNAL;
    return topt_fail(err, (enum topt_err)code, "%s", text);
}

static int ask(struct call *c, char source[POOL_SOURCE], struct topt_error *err)
{
    *source = '\0';
    if (have_process(c, err) < 0 || send_request(c, err) < 0 ||
        receive_answer(c, err) < 0)
        return -1;
    c->slot->failures = 0;
    return c->reply->type == FRAME_DONE ? 0 : fail(c, source, err);
}

int pool_ask(struct pool *p, const struct job_run *run, struct frame *request,
             struct frame *reply, char source[POOL_SOURCE], struct topt_error *err)
{
    struct call c = {.pool = p,
                     .slot = &p->slot[run->slot],
                     .run = run,
                     .request = request,
                     .reply = reply};
    return ask(&c, source, err);
}

int pool_ask_first(struct pool *p, struct frame *request, struct frame *reply,
                   struct topt_error *err)
{
    char source[POOL_SOURCE];
    struct call c = {.pool = p,
                     .slot = &p->slot[0],
                     .request = request,
                     .reply = reply,
                     .kill_ms = topt_clock_ms() + FIRST_MS};
    int status, rc = ask(&c, source, err);
    process_end(&c.slot->process, &status); /* it would die with this thread */
    return rc;
}

/* ---- what is usual --------------------------------------------------------------------------- */

/* The least limit of our control group and those above it; 0: none is known. */
static int64_t group_memory(void)
{
    char path[PATH_MAX], line[PATH_MAX] = "";
    int64_t least = 0;
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f) && strncmp(line, "0::", 3))
        line[0] = '\0';
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line[0] ? line + 3 : NULL, *slash; at; *slash = '\0') {
        long long v;
        if (snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", at) <
                (int)sizeof path &&
            (f = fopen(path, "re"))) {
            if (fscanf(f, "%lld", &v) == 1 && v > 0 && (!least || v < least))
                least = v;
            fclose(f);
        }
        if (!(slash = strrchr(at, '/')))
            break;
    }
    return least;
}

int64_t pool_usual_memory(int slots)
{
    struct sysinfo info;
    int64_t all = 0, group = group_memory(), least = (int64_t)1 << 30;
    if (sysinfo(&info) == 0)
        all = (int64_t)info.totalram * info.mem_unit;
    if (group && group < all)
        all = group;
    int64_t share = all / 4 * 3 / slots;
    return share > least ? share : least;
}

int pool_usual_program(char *ret, size_t size, struct topt_error *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return topt_fail(err, TOPT_ERR_IO,
                         "can't tell where this program lies: %s; give --worker",
                         strerror(errno));
    self[n] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
    }
    if (snprintf(ret, size, "%s/libexec/topt/toptd-worker", self) < (int)size)
        return 0;
    return topt_fail(err, TOPT_ERR_LIMIT,
                     "the path of toptd-worker is too long; give --worker");
}
