/* server.h - a request, its reply, and the handlers between them.
 *
 * http.c turns connections into requests and replies into responses; the other files here hold the
 * handlers, which know nothing of libmicrohttpd.  A handler runs in its connection's thread:
 * it parses, asks the store, submits jobs and waits, but never searches.
 * Thread safety: a request and its reply belong to one connection; the server is shared. */
#ifndef TOPTD_SERVER_H
#define TOPTD_SERVER_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls.h"
#include "config.h"
#include "one_line.h"
#include "query.h"
#include "store.h"
#include "tasks.h"

/* Counters of /metrics. */
#define TOPTD_METRICS(X)                                                                 \
    X(requests, "topt_requests_total", "Requests answered")                              \
    X(errors_4xx, "topt_client_errors_total", "Requests refused with 4xx")               \
    X(errors_5xx, "topt_server_errors_total", "Requests failed with 5xx")                \
    X(cache_hits, "topt_cache_hits_total", "Questions answered from the store")          \
    X(searches, "topt_searches_total", "Searches started")                               \
    X(shared, "topt_searches_shared_total", "Questions that joined a running search")    \
    X(failed, "topt_searches_failed_total", "Searches that failed or were canceled")     \
    X(refused, "topt_queue_full_total", "Questions refused because the queue was full")  \
    X(search_ms, "topt_search_milliseconds_total", "Time spent searching")

struct metrics {
#define X(field, name, help) atomic_llong field;
    TOPTD_METRICS(X)
#undef X
};

struct server {
    const struct config *config;
    struct store *store;
    struct pool *pool;
    struct jobs *jobs;
    struct tasks *tasks;
    struct shipped shipped; /* profiles that come with the program */
    struct metrics metrics;
    atomic_bool stopping;
    int64_t started; /* Unix seconds */
};

enum { MAX_PAIRS = 32 };

struct request {
    struct server *server;
    char id[24];
    const char *method, *path;
    char arg[80]; /* the {id} of the path */
    struct query_pair pair[MAX_PAIRS];
    int npairs;
    const char *body; /* NUL-terminated */
    size_t body_len;
    int is_json;    /* Content-Type: application/json */
    int wants_text; /* Accept: text/plain */
};

struct reply {
    int status;
    const char *type;
    char *body; /* owned; NULL for a static one */
    const char *fixed;
    size_t len;
    char location[64];
    int retry_after; /* seconds, 0 none */
    const char *allow;
};

typedef struct reply handler(const struct request *q);

struct route {
    const char *method, *path; /* "{id}" stands for one segment */
    handler *handle;
};
extern const struct route routes[]; /* ended by a NULL method */

/* Find and call the handler; 404 and 405 where there is none.  Fills q->arg. */
struct reply dispatch(struct request *q);

/* ---- replies ------------------------------------------------------------------------------ */

struct reply reply_json(int status, json_t *takes);
struct reply reply_owned(int status, const char *type, char *takes);
struct reply reply_fixed(int status, const char *type, const char *text);
/* One error, as the envelope or as text lines.  'source' and 'nearest' may be NULL. */
struct reply reply_error(const struct request *q, int status, const char *name,
                         const char *source, const char *nearest,
                         const char *description);
/* The same from an error value, its status and name from the common table. */
struct reply reply_fail(const struct request *q, const char *source,
                        const struct topt_error *err);
void reply_fini(struct reply *r);
/* Refuse every query parameter.  0, or -1 with '*ret' filled. */
int no_parameters(const struct request *q, struct reply *ret);

/* ---- handlers, by file --------------------------------------------------------------------- */

handler api_plan, api_plans, api_plan_get, api_task_get, api_task_delete; /* plans.c */
handler api_model_curve, api_model_frontier;
handler api_model_add, api_models, api_model_get; /* documents.c */
handler api_hw_add, api_hw_list, api_hw_get;
handler api_livez, api_readyz, api_metrics, api_openapi, api_dashboard; /* admin.c */

/* Whoever asks: nobody is known yet. */
enum { NOBODY = LANES_NOBODY };

/* Why a job or a task was not taken. */
struct reply refused(const struct request *q, enum jobs_refusal why,
                     const struct topt_error *err);

/* Have it read (taken; NULL: 'err' says why not) by a worker process, and wait.  The job, whose data it
 * is, to be released; NULL with '*ret' filled. */
struct job *read_now(const struct request *q, struct reading *takes,
                     const struct topt_error *err, struct reply *ret);

/* A profile by id or name ("" is the default one): owned strings. */
int find_hw(struct server *s, const char *key, char **ret_id, char **ret_doc,
            struct topt_error *err) TOPT_MUST_CHECK;

/* A model by id or name: owned strings. */
int find_model(struct server *s, const char *key, char **ret_id, char **ret_name,
               char **ret_doc, struct topt_error *err) TOPT_MUST_CHECK;

#endif
