/* main.c - toptd: starts its parts in order, waits for a signal, stops them in reverse.
 *
 *   main thread          signals and a tick a second
 *   connection threads   http.c: a few for all clients; they only move bytes
 *   handler threads      handlers.c: a few; they ask the store, and name the jobs to wait for
 *   slot threads         jobs.c: --workers of them and one for short questions; each waits for its
 *                        worker process, the only program that holds the solver
 *   clock thread         jobs.c: deadlines, and telling those who wait
 *   confirming thread    confirm.c: asks Slurm whose the jobs are that were reported
 *   planning thread      planned.c: has Slurm's queue planned while somebody looks at it
 *
 * Locks, in rank: http.lock, tasks.lock, jobs.lock, then the leaves (handlers, admit,
 * warm, store, confirm, planned).  None is held while a search or a handler runs. */
#include "http.h"
#include "listen.h"
#include "observations.h"
#include "planned.h"
#include "service.h"
#include "topt_json.h"
#include "topt_log.h"
#include "topt_text.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    STOP_ANSWER_MS = 300,  /* for handlers to say that we stop */
    STOP_SEARCH_MS = 1200, /* for worker processes to be ended */
    RESERVED = 1,          /* slots for short questions alone */
    /* Searches of one user: one runs and four wait, so that a user's script of many holds
     * nobody up; short questions are those of an array of jobs. */
    RUNNING_PER_UID = 1,
    QUEUED_PER_UID = 4,
    SUBMIT_PER_UID = 64,
    SUBMIT_QUEUE = 1024,
    BRIEF_MS =
        200, /* a short question that waited so long is answered without what stands beside it */
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

/* Settings as they were read, by age; requests may still look at an old one. */
struct settings {
    struct config config;
    struct settings *older;
};

struct daemon {
    int argc;
    char **argv;
    struct settings *settings; /* the newest */
    struct server server;
    struct http *http;
    int socket_made, proxy_socket_made, port;
    char worker[PATH_MAX];
    char proxy_socket[TOPT_PLACE_PATH];
    sigset_t signals;
};

static const struct config *config_of(const struct daemon *d)
{
    return &d->settings->config;
}

static int set_log(const struct daemon *d, const struct config *c, struct topt_error *err)
{
    int level = config_log_level(c, err);
    if (level < 0)
        return -1;
    if (d->settings) /* threads run by now */
        topt_log_level((enum topt_level)level);
    else
        topt_log_init("toptd", (enum topt_level)level, getenv("JOURNAL_STREAM") != NULL);
    return 0;
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

static int start_tcp(struct daemon *d, const struct service_sockets *given,
                     struct topt_error *err)
{
    const struct config *c = config_of(d);
    char text[16];
    int fd = given->tcp;
    d->port = given->port;
    if (fd < 0)
        fd = listen_tcp(c->listen, c->uses_munge, &d->port, err);
    if (fd < 0 || http_listen(d->http, fd, DOOR_TCP, err) < 0)
        return -1;
    topt_log(TOPT_LOG_INFO, "http: listening on port %d%s%s, %s", d->port,
             given->tcp < 0 ? " of " : ", handed over", given->tcp < 0 ? c->listen : "",
             c->uses_munge ? "for users by MUNGE" : "without authentication");
    int n = snprintf(text, sizeof text, "%d\n", d->port);
    return c->port_file ? topt_write_file(c->port_file, text, (size_t)n, err) : 0;
}

static int start_local(struct daemon *d, const struct service_sockets *given,
                       struct topt_error *err)
{
    const char *path = config_of(d)->socket_path;
    int fd = given->local;
    if (fd < 0) {
        fd = listen_unix(path, err);
        d->socket_made = fd >= 0;
    }
    if (fd < 0 || http_listen(d->http, fd, DOOR_UNIX, err) < 0)
        return -1;
    topt_log(TOPT_LOG_INFO, "http: listening on %s",
             d->socket_made ? path : "the socket that was handed over");
    return 0;
}

static int start_proxy(struct daemon *d, struct topt_error *err)
{
    const struct config *c = config_of(d);
    gid_t gid;
    if (login_uid(c->proxy_uid, &d->server.proxy_uid, &gid, err) < 0) {
        err->code = TOPT_ERR_USAGE;
        return topt_wrap(err, "--proxy-uid");
    }
    int fd = listen_unix(c->proxy_socket, err);
    if (fd < 0)
        return -1;
    snprintf(d->proxy_socket, sizeof d->proxy_socket, "%s", c->proxy_socket);
    d->proxy_socket_made = 1;
    if (http_listen(d->http, fd, DOOR_PROXY, err) < 0)
        return -1;
    topt_log(TOPT_LOG_INFO, "http: listening on %s, for the proxy of uid %d",
             c->proxy_socket, (int)d->server.proxy_uid);
    return 0;
}

static int start_http(struct daemon *d, struct topt_error *err)
{
    struct service_sockets given;
    if (service_sockets(&given, err) < 0 || http_create(&d->server, &d->http, err) < 0 ||
        start_local(d, &given, err) < 0)
        return -1;
    if (config_of(d)->proxy_socket && start_proxy(d, err) < 0)
        return -1;
    return config_of(d)->listen || given.tcp >= 0 ? start_tcp(d, &given, err) : 0;
}

/* A default profile that does not exist is an error now, not at the first question. */
static int check_default_hw(struct server *s, struct topt_error *err)
{
    char *id, *doc;
    if (!atomic_load(&s->config)->hw)
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

/* Each profile of the site's table is handed to 'look'; ends where that fails. */
static int each_profile(const struct config *c,
                        int (*look)(void *ctx, const struct site_row *row,
                                    struct topt_error *err),
                        void *ctx, struct topt_error *err)
{
    struct site_map map = {0};
    int rc = c->site_map ? site_map_read(c->site_map, &map, err) : 0;
    for (size_t i = 0; i < map.n && rc == 0; i++)
        rc = look(ctx, &map.row[i], err);
    site_map_fini(&map);
    return rc;
}

static int warn_of_unknown(void *server, const struct site_row *row,
                           struct topt_error *unused)
{
    struct server *s = server;
    struct topt_error why = {0};
    char *id = NULL, *doc = NULL;
    (void)unused;
    if (find_hw(s, row->profile, &id, &doc, &why) < 0)
        topt_log(TOPT_LOG_WARN, "site: partition '%s' in '%s': %s", row->partition,
                 atomic_load(&s->config)->site_map, why.text);
    free(id);
    free(doc);
    return 0;
}

/* A profile of the site's table that nobody has registered yet is named in the log; jobs of its
 * partitions are refused until it is there. */
static int name_unknown_profiles(struct server *s, struct topt_error *err)
{
    return each_profile(atomic_load(&s->config), warn_of_unknown, s, err);
}

/* Worker processes; the first one is asked for what profiles there are, which also shows
 * that it works. */
static int start_pool(struct daemon *d, struct topt_error *err)
{
    const struct config *c = config_of(d);
    char memory[32];
    struct pool_config pool = {.program = c->worker ? c->worker : d->worker,
                               .slots = RESERVED + (int)c->workers,
                               .reserved = RESERVED,
                               .memory = c->worker_memory};
    if (!c->worker && pool_usual_program(d->worker, sizeof d->worker, err) < 0)
        return -1;
    if (!pool.memory)
        pool.memory = pool_usual_memory(pool.slots);
    if (!c->check_config)
        topt_log(TOPT_LOG_INFO, "pool: %d worker processes of at most %s each",
                 pool.slots, topt_show_bytes(pool.memory, memory, sizeof memory));
    if (pool_create(&pool, &d->server.pool, err) < 0)
        return -1;
    return shipped_load(d->server.pool, &d->server.shipped, err);
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
        .brief_ms = BRIEF_MS,
        .demote_ms = c->submit_limit * 1000,
        .ctx = s};
    if (tasks_create(&tasks, &s->tasks, err) < 0)
        return -1;
    return jobs_create(&jobs, &s->jobs, err);
}

static void limit_store(struct store *s, const struct config *c)
{
    store_limits(s, c->cache_bytes, c->keep_plans_days);
    store_quota(s, c->user_documents, c->user_bytes);
}

/* topt-rightsize lies beside the worker.  Without it, or without Slurm, no queue is planned. */
static int start_planned(struct daemon *d, struct topt_error *err)
{
    char program[PATH_MAX];
    int rc = pool_usual_program(program, sizeof program, err);
    if (rc < 0)
        return -1;
    size_t folder = (size_t)(strrchr(program, '/') + 1 - program);
    snprintf(program + folder, sizeof program - folder, "topt-rightsize");
    rc = planned_create(program, config_of(d)->scontrol, &d->server.planned, err);
    if (rc < 0 && err->code == TOPT_ERR_NOTFOUND) {
        topt_log(TOPT_LOG_DEBUG, "queue: %s", err->text);
        topt_error_clear(err);
        rc = 0;
    }
    return rc;
}

static int start(struct daemon *d, struct topt_error *err)
{
    const struct config *c = config_of(d);
    struct server *s = &d->server;
    atomic_store(&s->config, c);
    s->started = (int64_t)time(NULL);
    if (roles_create(c->admins, c->operators, &s->roles, err) < 0 ||
        store_open(c->state_dir, &s->store, err) < 0)
        return -1;
    limit_store(s->store, c);
    if (site_create(c->scontrol, c->site_map, &s->site, err) < 0)
        return -1;
    if (start_pool(d, err) < 0 || check_default_hw(s, err) < 0 ||
        name_unknown_profiles(s, err) < 0 || start_jobs(s, err) < 0)
        return -1;
    if (start_planned(d, err) < 0)
        return -1;
    return observations_start(s, err) < 0 ? -1 : start_http(d, err);
}

/* Read settings once more; 1 where --help or --version was asked for. */
static int load(struct daemon *d, struct topt_error *err)
{
    struct settings *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    fresh->older = d->settings;
    int rc = config_load(&fresh->config, d->argc, d->argv, err);
    if (rc == 0)
        rc = set_log(d, &fresh->config, err);
    if (rc) {
        config_fini(&fresh->config);
        free(fresh);
        return rc;
    }
    d->settings = fresh;
    return 0;
}

/* SIGHUP: take up what can be changed while running, and say what can't. */
static void reload(struct daemon *d)
{
    struct topt_error err = {0};
    const struct config *was = config_of(d);
    service_reloading();
    if (load(d, &err) < 0) {
        topt_log(TOPT_LOG_ERR, "main: the settings stay as they were: %s", err.text);
    } else if (roles_read(d->server.roles, config_of(d)->admins, config_of(d)->operators,
                          &err) < 0) {
        topt_log(TOPT_LOG_ERR, "main: admins and operators stay as they were: %s",
                 err.text);
    } else {
        if (site_read_map(d->server.site, config_of(d)->site_map, &err) < 0)
            topt_log(TOPT_LOG_ERR, "main: the site's table stays as it was: %s",
                     err.text);
        const char *later = config_needs_restart(was, config_of(d));
        atomic_store(&d->server.config, config_of(d));
        limit_store(d->server.store, config_of(d));
        atomic_fetch_add(&d->server.epoch, 1);
        topt_log(TOPT_LOG_INFO, "main: settings were read again%s%s%s",
                 later ? "; --" : "", later ? later : "",
                 later ? " changes at the next start only" : "");
        if (name_unknown_profiles(&d->server, &err) < 0)
            topt_error_clear(&err); /* told above */
    }
    service_ready("answering");
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
        if (sig == SIGHUP)
            reload(d);
        tasks_tick(d->server.tasks);
        http_tick(d->http);
        if (site_tick(d->server.site))
            atomic_fetch_add(&d->server.epoch, 1);
        store_keep(d->server.store, (int64_t)time(NULL));
        service_alive();
    }
}

static void stop(struct daemon *d)
{
    struct server *s = &d->server;
    service_stopping();
    atomic_store(&s->stopping, true);
    if (s->jobs)
        jobs_stop(s->jobs);
    int stuck = http_destroy(d->http, STOP_ANSWER_MS);
    if (d->socket_made)
        unlink(config_of(d)->socket_path);
    if (d->proxy_socket_made)
        unlink(d->proxy_socket);
    if (d->port && config_of(d)->port_file)
        unlink(config_of(d)->port_file);
    if (s->jobs && (stuck || jobs_join(s->jobs, STOP_SEARCH_MS) < 0)) {
        topt_log(TOPT_LOG_WARN, "main: a %s does not end; leaving without it",
                 stuck ? "request" : "search");
        _exit(EXIT_SUCCESS); /* the store is whole at any moment */
    }
    observations_stop(s);
    planned_destroy(s->planned);
    tasks_destroy(s->tasks);
    jobs_destroy(s->jobs);
    pool_destroy(s->pool);
    shipped_fini(&s->shipped);
    site_destroy(s->site);
    store_close(s->store);
    roles_destroy(s->roles);
}

/* Are the users and groups of the settings there? */
static int check_people(const struct config *c, struct topt_error *err)
{
    struct roles *r = NULL;
    uid_t uid;
    gid_t gid;
    if (roles_create(c->admins, c->operators, &r, err) < 0)
        return -1;
    roles_destroy(r);
    if (c->proxy_uid && login_uid(c->proxy_uid, &uid, &gid, err) < 0) {
        err->code = TOPT_ERR_USAGE;
        return topt_wrap(err, "--proxy-uid");
    }
    return 0;
}

/* Is the profile shipped, or in the store? */
static int check_profile(const struct daemon *d, const char *name, struct topt_error *err)
{
    if (shipped_find(&d->server.shipped, name))
        return 0;
    int rc = store_names_hw(config_of(d)->state_dir, name, err);
    return rc != 0
               ? rc < 0 ? -1 : 0
               : topt_fail(err, TOPT_ERR_USAGE,
                           "unknown hardware '%.80s': no shipped profile has the name, "
                           "and none that was registered in %.100s",
                           name, config_of(d)->state_dir);
}

static int check_row(void *daemon, const struct site_row *row, struct topt_error *err)
{
    return check_profile(daemon, row->profile, err) < 0
               ? topt_wrap(err, "partition '%s'", row->partition)
               : 0;
}

/* Are the profiles of the settings and of the site's table there?  Only a worker process knows
 * which are shipped. */
static int check_profiles(struct daemon *d, struct topt_error *err)
{
    const struct config *c = config_of(d);
    int rc = c->hw || c->site_map ? start_pool(d, err) : 0;
    if (rc == 0 && c->hw && check_profile(d, c->hw, err) < 0)
        rc = topt_wrap(err, "--hw");
    if (rc == 0 && each_profile(c, check_row, d, err) < 0) {
        err->code = TOPT_ERR_USAGE;
        rc = topt_wrap(err, "--site-map");
    }
    pool_destroy(d->server.pool);
    shipped_fini(&d->server.shipped);
    return rc;
}

/* As many descriptors as there may be connections, where the system lets us. */
static void allow_descriptors(const struct config *c)
{
    enum { OTHERS = 256 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    rlim_t want = (rlim_t)c->connections + OTHERS;
    if (limit.rlim_cur >= want)
        return;
    limit.rlim_cur = want < limit.rlim_max ? want : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < want)
        topt_log(TOPT_LOG_WARN,
                 "main: only %lld open files are allowed; --connections %lld "
                 "takes %lld",
                 (long long)limit.rlim_cur, (long long)c->connections, (long long)want);
}

static int run(struct daemon *d, struct topt_error *err)
{
    const struct config *c = config_of(d);
    if (c->check_config) {
        if (check_people(c, err) < 0 || check_profiles(d, err) < 0)
            return -1;
        printf("toptd: the settings can be read; socket %s, state %s%s%s\n",
               c->socket_path, c->state_dir, c->listen ? ", TCP " : "",
               c->listen ? c->listen : "");
        return 0;
    }
    if (c->backup_to) {
        if (store_backup(c->state_dir, c->backup_to, err) < 0)
            return -1;
        printf("toptd: %s is a checked copy of the store in %s\n", c->backup_to,
               c->state_dir);
        return 0;
    }
    json_object_seed(0); /* before there are threads */
    topt_json_watch_memory();
    allow_descriptors(c);
    block_signals(d);
    int rc = start(d, err);
    if (rc == 0) {
        topt_log(TOPT_LOG_INFO, "main: ready, state in %s", c->state_dir);
        service_ready("answering");
        serve(d);
    }
    stop(d);
    return rc;
}

int main(int argc, char **argv)
{
    static struct daemon d;
    struct topt_error err = {0};
    int status = EXIT_SUCCESS;
    d.argc = argc;
    d.argv = argv;
    int rc = load(&d, &err);
    if (rc == 0)
        rc = run(&d, &err);
    if (rc < 0) {
        fprintf(stderr, "toptd: %s\n", err.text);
        status = topt_err_exit(err.code);
    }
    for (struct settings *s = d.settings, *older; s; s = older) {
        older = s->older;
        config_fini(&s->config);
        free(s);
    }
    return status;
}
