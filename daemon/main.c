/* main.c - toptd: starts its parts in order, waits for a signal, stops them in reverse.
 *
 *   main thread          signals and a tick a second
 *   connection threads   http.c: one a client; handlers parse, ask the store, wait for jobs
 *   slot threads         jobs.c: --workers of them and one for short questions; each waits for its
 *                        worker process, the only program that holds the solver
 *   clock thread         jobs.c: deadlines, and telling those who wait
 *
 * Locks, in rank: tasks.lock, jobs.lock, then the leaves http.lock and store.lock.  None is held
 * while a search runs. */
#include "http.h"
#include "listen.h"
#include "topt_log.h"
#include "topt_near.h"
#include "topt_text.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STOP_ANSWER_MS = 300,  /* for handlers to say that we stop */
    STOP_SEARCH_MS = 1200, /* for worker processes to be ended */
    RESERVED = 1,          /* slots for short questions alone */
    /* Searches of one user: one runs and four wait, so that a user's script of many holds nobody up;
     * short questions are those of an array of jobs. */
    RUNNING_PER_UID = 1,
    QUEUED_PER_UID = 4,
    SUBMIT_PER_UID = 64,
    SUBMIT_QUEUE = 1024,
    SLOW_MS =
        60 *
        1000, /* who sent a short question that wasn't has less time for the next ones */
    MARGIN_PART = 10,           /* a tenth of --search-limit, */
    MARGIN_MOST_MS = 30 * 1000, /* or so long, is for answering with the best so far */
    MAX_TASKS = 4096,
    TASKS_PER_UID = 128,
    TASK_KEEP_MS = 10 * 60 * 1000,
    UNPOLLED_MS = 30 * 1000, /* a client asks every few seconds, or is gone */
};

struct daemon {
    struct config config;
    struct server server;
    struct http *http;
    int socket_made, port;
    char worker[PATH_MAX];
    sigset_t signals;
};

static int set_log(const struct config *c, struct topt_error *err)
{
    static const struct {
        const char *name;
        enum topt_level level;
    } levels[] = {{"error", TOPT_LOG_ERR},
                  {"warning", TOPT_LOG_WARN},
                  {"info", TOPT_LOG_INFO},
                  {"debug", TOPT_LOG_DEBUG}};
    struct topt_near near = {.name = c->log_level};
    char meant[TOPT_NEAR_WORDS];
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        topt_near_try(&near, levels[i].name);
        if (!strcmp(levels[i].name, c->log_level)) {
            topt_log_init("toptd", levels[i].level, getenv("JOURNAL_STREAM") != NULL);
            return 0;
        }
    }
    return topt_fail(err, TOPT_ERR_USAGE,
                     "unknown --log-level '%.40s'%s (one of error, warning, info, debug)",
                     c->log_level, topt_near_words(&near, meant));
}

/* Threads inherit the mask, so only the main thread gets them. */
static void block_signals(struct daemon *d)
{
    sigemptyset(&d->signals);
    sigaddset(&d->signals, SIGTERM);
    sigaddset(&d->signals, SIGINT);
    sigaddset(&d->signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &d->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int start_tcp(struct daemon *d, struct topt_error *err)
{
    const char *file = d->config.port_file;
    char text[16];
    int fd = listen_tcp(d->config.listen, &d->port, err);
    if (fd < 0 || http_listen(d->http, fd, d->port, err) < 0)
        return -1;
    topt_log(TOPT_LOG_INFO, "http: listening on port %d of %s", d->port,
             d->config.listen);
    int n = snprintf(text, sizeof text, "%d\n", d->port);
    return file ? topt_write_file(file, text, (size_t)n, err) : 0;
}

static int start_http(struct daemon *d, struct topt_error *err)
{
    if (http_create(&d->server, &d->http, err) < 0)
        return -1;
    int fd = listen_unix(d->config.socket_path, err);
    if (fd < 0)
        return -1;
    d->socket_made = 1;
    if (http_listen(d->http, fd, 0, err) < 0)
        return -1;
    topt_log(TOPT_LOG_INFO, "http: listening on %s", d->config.socket_path);
    return d->config.listen ? start_tcp(d, err) : 0;
}

/* A default profile that does not exist is an error now, not at the first question. */
static int check_default_hw(struct server *s, struct topt_error *err)
{
    char *id, *doc;
    if (!s->config->hw)
        return 0;
    if (find_hw(s, "", &id, &doc, err) < 0) {
        if (err->code == TOPT_ERR_NOTFOUND)
            err->code = TOPT_ERR_USAGE;
        return topt_wrap(err, "--hw");
    }
    free(id);
    free(doc);
    return 0;
}

/* Worker processes; the first one is asked for what profiles there are, which also shows that it works. */
static int start_pool(struct daemon *d, struct topt_error *err)
{
    const struct config *c = &d->config;
    char memory[32];
    struct pool_config pool = {.program = c->worker ? c->worker : d->worker,
                               .slots = RESERVED + (int)c->workers,
                               .reserved = RESERVED,
                               .memory = c->worker_memory};
    if (!c->worker && pool_usual_program(d->worker, sizeof d->worker, err) < 0)
        return -1;
    if (!pool.memory)
        pool.memory = pool_usual_memory(pool.slots);
    topt_log(TOPT_LOG_INFO, "pool: %d worker processes of at most %s each", pool.slots,
             topt_show_bytes(pool.memory, memory, sizeof memory));
    if (pool_create(&pool, &d->server.pool, err) < 0)
        return -1;
    return call_shipped(d->server.pool, &d->server.shipped, err);
}

static int start_jobs(struct server *s, struct topt_error *err)
{
    const struct config *c = s->config;
    int64_t limit = c->search_limit * 1000, margin = limit / MARGIN_PART;
    const struct tasks_config tasks = {.max = MAX_TASKS,
                                       .per_uid = TASKS_PER_UID,
                                       .keep_ms = TASK_KEEP_MS,
                                       .unpolled_ms = UNPOLLED_MS};
    const struct jobs_config jobs = {
        .reserved = RESERVED,
        .workers = (int)c->workers,
        .lanes = {.queue = (int)c->queue,
                  .running_per_uid = RUNNING_PER_UID,
                  .queued_per_uid = QUEUED_PER_UID,
                  .submit_queue = SUBMIT_QUEUE,
                  .submit_per_uid = SUBMIT_PER_UID,
                  .slow_ms = SLOW_MS},
        .limit_ms = limit,
        .margin_ms = margin < MARGIN_MOST_MS ? margin : MARGIN_MOST_MS,
        .demote_ms = c->submit_limit * 1000,
        .ctx = s};
    if (tasks_create(&tasks, &s->tasks, err) < 0)
        return -1;
    return jobs_create(&jobs, &s->jobs, err);
}

static int start(struct daemon *d, struct topt_error *err)
{
    const struct config *c = &d->config;
    struct server *s = &d->server;
    s->config = c;
    s->started = (int64_t)time(NULL);
    if (start_pool(d, err) < 0 || store_open(c->state_dir, &s->store, err) < 0 ||
        check_default_hw(s, err) < 0 || start_jobs(s, err) < 0)
        return -1;
    return start_http(d, err);
}

/* Until SIGTERM or SIGINT. */
static void serve(struct daemon *d)
{
    const struct timespec second = {.tv_sec = 1};
    for (;;) {
        int sig = sigtimedwait(&d->signals, NULL, &second);
        if (sig == SIGTERM || sig == SIGINT) {
            topt_log(TOPT_LOG_INFO, "main: stopping on signal %d", sig);
            return;
        }
        tasks_tick(d->server.tasks);
        http_tick(d->http);
    }
}

static void stop(struct daemon *d)
{
    struct server *s = &d->server;
    atomic_store(&s->stopping, true);
    if (s->jobs)
        jobs_stop(s->jobs);
    http_destroy(d->http, STOP_ANSWER_MS);
    if (d->socket_made)
        unlink(d->config.socket_path);
    if (d->port && d->config.port_file)
        unlink(d->config.port_file);
    if (s->jobs && jobs_join(s->jobs, STOP_SEARCH_MS) < 0) {
        topt_log(TOPT_LOG_WARN, "main: a search does not end; leaving without it");
        _exit(EXIT_SUCCESS); /* the store is whole at any moment */
    }
    tasks_destroy(s->tasks);
    jobs_destroy(s->jobs);
    pool_destroy(s->pool);
    shipped_fini(&s->shipped);
    store_close(s->store);
}

int main(int argc, char **argv)
{
    static struct daemon d;
    struct topt_error err = {0};
    int status = EXIT_SUCCESS;
    int rc = config_load(&d.config, argc, argv, &err);
    if (rc == 0)
        rc = set_log(&d.config, &err);
    if (rc == 0) {
        json_object_seed(0); /* before there are threads */
        block_signals(&d);
        rc = start(&d, &err);
        if (rc == 0) {
            topt_log(TOPT_LOG_INFO, "main: ready, state in %s", d.config.state_dir);
            serve(&d);
        }
        stop(&d);
    }
    if (rc < 0) {
        fprintf(stderr, "toptd: %s\n", err.text);
        status = topt_err_exit(err.code);
    }
    config_fini(&d.config);
    return status;
}
