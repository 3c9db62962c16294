/* main.c - toptd: starts its parts in order, waits for a signal, stops them in reverse.
 *
 *   main thread          signals and a tick a second
 *   connection threads   http.c: one a client; handlers parse, ask the store, wait for jobs
 *   search threads       jobs.c: --workers of them; only they call the solver's searches
 *
 * Locks, in rank: jobs.lock, then the leaves http.lock and store.lock.  No two are ever held
 * at once, and none while a search runs. */
#include "http.h"
#include "listen.h"
#include "planner.h"
#include "topt_log.h"
#include "topt_near.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STOP_ANSWER_MS = 300,  /* for handlers to say that we stop */
    STOP_SEARCH_MS = 1200, /* for searches to notice that they are canceled */
    MAX_TASKS = 1024,
    TASK_KEEP_MS = 10 * 60 * 1000,
};

struct daemon {
    struct config config;
    struct server server;
    struct http *http;
    int socket_made, port;
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

static int start(struct daemon *d, struct topt_error *err)
{
    const struct config *c = &d->config;
    struct server *s = &d->server;
    s->config = c;
    s->started = (int64_t)time(NULL);
    if (store_open(c->state_dir, &s->store, err) < 0)
        return -1;
    store_limits(s->store, c->cache_bytes, c->keep_plans_days);
    if (check_default_hw(s, err) < 0)
        return -1;
    const struct jobs_config jobs = {.workers = (int)c->workers,
                                     .queue = (int)c->queue,
                                     .limit_ms = c->search_limit * 1000,
                                     .max_tasks = MAX_TASKS,
                                     .task_keep_ms = TASK_KEEP_MS,
                                     .ctx = s,
                                     .run = search_run,
                                     .destroy = search_destroy};
    if (jobs_create(&jobs, &s->jobs, err) < 0)
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
        jobs_tick(d->server.jobs);
        http_tick(d->http);
        store_keep(d->server.store, (int64_t)time(NULL));
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
    jobs_destroy(s->jobs);
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
        if (d.config.backup_to)
            rc = store_backup(d.config.state_dir, d.config.backup_to, &err);
        else
            rc = start(&d, &err);
        if (rc == 0 && !d.config.backup_to) {
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
