/* whole.h - a toptd inside of a test: all its parts but main.c, with workers as
 * processes, on a Unix socket.
 *
 * Thread safety: whole_start, whole_tick and whole_stop belong to one thread. */
#ifndef TOPT_TEST_WHOLE_H
#define TOPT_TEST_WHOLE_H

#include "http.h"
#include "listen.h"
#include "topt_log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct whole {
    struct config config;
    struct server server;
    struct http *http;
    char dir[64], socket[80];
};

static int whole_parts(struct whole *w, const char *worker, struct topt_error *err)
{
    struct server *s = &w->server;
    const struct config *c = &w->config;
    const struct tasks_config tasks = {
        .max = 64, .per_uid = 16, .keep_ms = 1000, .unpolled_ms = 1000};
    const struct jobs_config jobs = {.reserved = 1,
                                     .workers = 1,
                                     .lanes = {.queue = 4,
                                               .running_per_uid = 1,
                                               .queued_per_uid = 4,
                                               .submit_queue = 64,
                                               .submit_per_uid = 64,
                                               .slow_ms = 1000},
                                     .limit_ms = 5000,
                                     .margin_ms = 1000,
                                     .demote_ms = 500,
                                     .ctx = s};
    const struct pool_config pool = {
        .program = worker, .slots = 2, .reserved = 1, .memory = (int64_t)512 << 20};
    atomic_store(&s->config, c);
    if (roles_create(NULL, NULL, &s->roles, err) < 0 ||
        store_open(c->state_dir, &s->store, err) < 0 ||
        site_create("", NULL, &s->site, err) < 0 ||
        pool_create(&pool, &s->pool, err) < 0 ||
        shipped_load(s->pool, &s->shipped, err) < 0 ||
        tasks_create(&tasks, &s->tasks, err) < 0 ||
        jobs_create(&jobs, &s->jobs, err) < 0 || http_create(s, &w->http, err) < 0)
        return -1;
    int fd = listen_unix(w->socket, err);
    return fd < 0 ? -1 : http_listen(w->http, fd, DOOR_UNIX, err);
}

/* In a new folder below 'where'; the profile 'hw' is the default. */
static int whole_start(struct whole *w, const char *where, const char *worker,
                       const char *hw, struct topt_error *err)
{
    memset(w, 0, sizeof *w);
    snprintf(w->dir, sizeof w->dir, "%.40s/toptd-XXXXXX", where);
    if (!mkdtemp(w->dir))
        return topt_fail(err, TOPT_ERR_IO, "%s", w->dir);
    snprintf(w->socket, sizeof w->socket, "%s/s", w->dir);
    char *argv[] = {(char *)"toptd",
                    (char *)"--socket",
                    w->socket,
                    (char *)"--state",
                    w->dir,
                    (char *)"--hw",
                    (char *)hw,
                    (char *)"--config",
                    (char *)"/dev/null",
                    (char *)"--body-limit",
                    (char *)"1MiB",
                    (char *)"--idle-timeout",
                    (char *)"2",
                    NULL};
    signal(SIGPIPE, SIG_IGN);
    topt_log_init("toptd", TOPT_LOG_ERR, 0);
    if (config_load(&w->config, (int)(sizeof argv / sizeof *argv) - 1, argv, err) < 0)
        return -1;
    return whole_parts(w, worker, err);
}

__attribute__((unused)) static void whole_tick(struct whole *w)
{
    tasks_tick(w->server.tasks);
    http_tick(w->http);
}

__attribute__((unused)) static int whole_connect(const struct whole *w)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", w->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* 0, or -1 where something would not end. */
__attribute__((unused)) static int whole_stop(struct whole *w)
{
    struct server *s = &w->server;
    char command[120];
    atomic_store(&s->stopping, true);
    jobs_stop(s->jobs);
    if (http_destroy(w->http, 3000) < 0 || jobs_join(s->jobs, 5000) < 0)
        return -1;
    tasks_destroy(s->tasks);
    jobs_destroy(s->jobs);
    pool_destroy(s->pool);
    shipped_fini(&s->shipped);
    site_destroy(s->site);
    store_close(s->store);
    roles_destroy(s->roles);
    config_fini(&w->config);
    snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
    return system(command) ? -1 : 0;
}

#endif
