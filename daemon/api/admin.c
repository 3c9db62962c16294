/* admin.c - is it alive, is it ready, how much has it done, and the pages. */
#include "embed.h"
#include "server.h"

#include <stdio.h>
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

static void gauge(struct topt_text *t, const char *name, const char *help,
                  long long value)
{
    topt_text_add(t, "# HELP %s %s\n# TYPE %s gauge\n%s %lld\n", name, help, name, name,
                  value);
}

struct reply api_metrics(struct request *q)
{
    struct server *s = q->server;
    struct topt_text t = {0};
    struct jobs_counts n;
    jobs_count(s->jobs, &n);
#define X(field, name, help)                                                             \
    topt_text_add(&t,                                                                    \
                  "# HELP " name " " help "\n# TYPE " name " counter\n" name " %lld\n",  \
                  (long long)atomic_load(&s->metrics.field));
    TOPTD_METRICS(X)
#undef X
    gauge(&t, "topt_queue_length", "Searches that wait", n.queued);
    gauge(&t, "topt_searches_running", "Searches that run", n.running);
    gauge(&t, "topt_submit_queue_length", "Short questions that wait", n.submit_queued);
    gauge(&t, "topt_submit_running", "Short questions that run", n.submit_running);
    gauge(&t, "topt_workers_lost",
          "Worker processes that crashed, ran out of memory or hung", pool_lost(s->pool));
    gauge(&t, "topt_tasks", "Tasks remembered", tasks_count(s->tasks));
    gauge(&t, "topt_uptime_seconds", "Seconds since the start",
          (long long)time(NULL) - (long long)s->started);
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "text/plain; version=0.0.4", t.s);
}

struct reply api_openapi(struct request *q)
{
    (void)q;
    return reply_fixed(200, "application/json", openapi_json);
}

struct reply api_dashboard(struct request *q)
{
    (void)q;
    return reply_fixed(200, "text/html; charset=utf-8", dashboard_html);
}
