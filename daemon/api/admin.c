/* admin.c - is it alive, is it ready, how much has it done, and the pages. */
#include "embed.h"
#include "server.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

struct reply api_livez(struct request *q)
{
    (void)q;
    return reply_fixed(200, "text/plain", "ok\n");
}

/* Ready: the store answers, and there is room for a question. */
struct reply api_readyz(struct request *q)
{
    struct topt_error err = {0};
    struct jobs_counts n;
    if (atomic_load(&q->server->stopping))
        return reply_error(q, 503, "stopping", NULL, NULL, "the server is stopping");
    if (store_check(q->server->store, &err) < 0)
        return reply_error(q, 503, "store", NULL, NULL, err.text);
    jobs_count(q->server->jobs, &n);
    if (n.queued >= q->server->config->queue + q->server->config->workers)
        return reply_error(q, 503, "busy", NULL, NULL, "the queue is full");
    return reply_fixed(200, "text/plain", "ok\n");
}

/* Bytes of the files in the folder of the state; -1 where it can't be read. */
static double folder_bytes(const char *path)
{
    DIR *dir = opendir(path);
    double bytes = dir ? 0 : -1;
    struct stat st;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (!fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(st.st_mode))
            bytes += (double)st.st_size;
    if (dir)
        closedir(dir);
    return bytes;
}

static double free_bytes(const char *path)
{
    struct statvfs fs;
    return statvfs(path, &fs) ? -1 : (double)fs.f_bavail * (double)fs.f_frsize;
}

int metrics_are_open(const struct request *q)
{
    return q->is_near && q->server->config->metrics_are_open;
}

struct reply api_metrics(struct request *q)
{
    struct server *s = q->server;
    const struct config *c = s->config;
    struct jobs_counts n;
    jobs_count(s->jobs, &n);
    atomic_store(&s->metrics.workers_restarted, pool_lost(s->pool));
    const struct metrics_gauge gauges[] = {
        {"topt_queue_length", "Searches that wait", "search", n.queued},
        {"topt_queue_length", "Searches that wait", "submit", n.submit_queued},
        {"topt_queue_limit", "Searches that may wait", "search", (double)c->queue},
        {"topt_searches_running", "Searches that run", "search", n.running},
        {"topt_searches_running", "Searches that run", "submit", n.submit_running},
        {"topt_workers", "Searches that may run at once", NULL, (double)c->workers},
        {"topt_tasks", "Tasks remembered", NULL, tasks_count(s->tasks)},
        {"topt_connections", "Connections that are open", NULL,
         (double)atomic_load(&s->metrics.connections)},
        {"topt_connections_limit", "Connections that may be open", NULL,
         (double)c->connections},
        {"topt_store_bytes", "Size of the store's files", NULL,
         folder_bytes(c->state_dir)},
        {"topt_store_free_bytes", "Room where the store is", NULL,
         free_bytes(c->state_dir)},
        {"topt_uptime_seconds", "Seconds since the start", NULL,
         (double)(time(NULL) - s->started)},
        {0}};
    return reply_owned(200,
                       q->wants_openmetrics
                           ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                           : "text/plain; version=0.0.4",
                       metrics_text(&s->metrics, gauges, q->wants_openmetrics));
}

/* The same for everybody as long as the program runs. */
static struct reply page(const char *type, const char *text)
{
    struct reply r = reply_fixed(200, type, text);
    r.keep = 1;
    return r;
}

struct reply api_openapi(struct request *q)
{
    (void)q;
    return page("application/json", openapi_json);
}

struct reply api_dashboard(struct request *q)
{
    (void)q;
    return page("text/html; charset=utf-8", dashboard_html);
}

/* What the page consists of; short-lived, so that it and the page are of one version. */
static struct reply part(const char *type, const char *text)
{
    struct reply r = page(type, text);
    r.max_age = 60;
    return r;
}

struct reply api_dashboard_js(struct request *q)
{
    (void)q;
    return part("text/javascript; charset=utf-8", dashboard_js);
}

struct reply api_dashboard_css(struct request *q)
{
    (void)q;
    return part("text/css; charset=utf-8", dashboard_css);
}
