/* server.h - a request, its reply, and the handlers between them.
 *
 * net/ turns connections into requests and replies into responses; the other files here hold
 * the handlers, which know nothing of libmicrohttpd.  A handler runs in one of a few threads
 * that all share, so it never waits: it answers at once, or names a job and who goes on when
 * that has ended or time is up (reply_wait).
 *
 * Thread safety: a request and its reply belong to one thread at a time; the server is shared. */
#ifndef TOPTD_SERVER_H
#define TOPTD_SERVER_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caller.h"
#include "config.h"
#include "correction.h"
#include "cost.h"
#include "metrics.h"
#include "one_line.h"
#include "operation.h"
#include "topt_query.h"
#include "site.h"
#include "topt_answer_lines.h"
#include "topt_digest.h"
#include "store.h"
#include "task_table.h"

enum { EPOCHS = 256 };

struct server {
    _Atomic(const struct config *) config; /* replaced by SIGHUP; old ones stay valid */
    struct store *store;
    struct pool *pool; /* worker processes */
    struct jobs *jobs;
    struct tasks *tasks;
    struct site *site;       /* where jobs of Slurm go */
    struct planned *planned; /* when those that wait start; NULL: there is no Slurm */
    struct shipped shipped;  /* profiles that come with the program */
    struct roles *roles;
    uid_t proxy_uid; /* who may send logins on the proxy's socket */
    struct metrics metrics;
    struct costs costs;
    /* Counts changes of hardware, owners and documents: replies that were kept before one are
     * not given again. */
    atomic_ullong epoch;
    /* The same of changes that concern one user alone, by uid; some share a count. */
    atomic_ullong own_epoch[EPOCHS];
    struct confirm
        *confirm; /* asks Slurm whose jobs are that are reported; NULL: nobody does */
    atomic_bool stopping;
    int64_t started; /* Unix seconds */
};

enum { MAX_PAIRS = 48, MAX_ARGS = 2, ARG_SIZE = 80 };

struct request {
    struct server *server;
    struct caller caller; /* nobody until it was found out who asks */
    const char *peer;     /* "uid 1000", "10.0.0.7" */
    int is_near;          /* from this machine: a Unix socket, or a loopback address */
    char id[24];
    const char *method, *path;
    const char *target;                  /* path and query as they were sent */
    char arg[ARG_SIZE], group[ARG_SIZE]; /* the {id} and {group} of the path */
    struct topt_pair pair[MAX_PAIRS];
    int npairs;
    char *body; /* NUL-terminated; a handler may take it (request_take_body) */
    size_t body_len;
    int is_json;    /* Content-Type: application/json */
    int wants_text; /* Accept: text/plain */
    int wants_csv;  /* Accept: text/csv */
    int wants_openmetrics;
    int takes_gzip;            /* Accept-Encoding */
    const char *if_none_match; /* NULL: not sent */
    const char *fields;        /* of an answer, with commas between; NULL: all of it */
    /* Of a job in Slurm: the GPU type to set on it, and in words what bounds it ("": nothing). */
    char gpu_type[SITE_NAME], limit[240];
    struct site_place
        place[SITE_PLACES]; /* of a job that names several partitions: where it can go */
    int nplaces;
    int64_t named; /* nodes that the job names: a plan with fewer can't run on them */
    /* Of a search among more nodes than the job's -N allows, so as to say what they would
     * give: the most GPUs that it allows, and that in words; 0: there is no such limit. */
    int64_t most;
    char within[240];
    char note
        [240]; /* of a job in Slurm that has whole nodes: what follows; "": it hasn't */
    enum topt_lines_shown shows; /* what text/plain shows of its answer */
    enum metrics_lane lane;      /* of a question, once it is known */
    int is_gone;                 /* the client went while its request waited */
    /* A handler's own, kept while the request waits; freed with the request. */
    void *state;
    void (*state_free)(void *state);
};

struct reply;
typedef struct reply handler(struct request *q);

struct reply {
    int status; /* 0: not yet, see reply_wait */
    struct job *job;
    int64_t wait_ms;
    handler *then;
    int keep; /* the same request of the same user may be given the same reply */
    const char *type;
    char *body; /* owned; NULL for a static one */
    const char *fixed;
    size_t len;
    char location[64];
    int retry_after; /* seconds, 0 none */
    int max_age;     /* seconds that a client may keep it, 0 not at all */
    char etag[96];   /* names what never changes under this address; "": it may */
    int is_gzip;
    const char *vary;  /* the request's headers that decide the form; NULL: none */
    const char *error; /* the word of a refusal; static */
    const char *allow;
};

struct route {
    const char *method, *path; /* "{...}" stands for one segment */
    handler *handle;
    enum role least; /* who may ask; handlers look whose a document or a task is */
};
extern const struct route routes[]; /* ended by a NULL method */

/* Find and call the handler; 404 and 405 where there is none, 401 and 403 where the caller may not.
 * Fills q->arg. */
struct reply dispatch(struct request *q);

/* May anybody ask for /metrics from where the request comes? */
int metrics_are_open(const struct request *q);

/* The row of the route that a request means, or -1.  Fills q->arg. */
int route_of(struct request *q);
/* Changes with all that decides what this user is answered; changed_for is for changes of
 * one user's. */
unsigned long long epoch_of(const struct server *s, int64_t uid);
void changed_for(struct server *s, int64_t uid);

/* Whose a document becomes that this request makes: the caller's, or the daemon's own
 * where it is not known. */
int64_t asker(const struct request *q);

/* What the caller may read, for the store: what is the caller's own or is shared with one of the
 * caller's groups.  NULL, which is all, for an admin. */
struct reader {
    struct store_who who;
    uint32_t gid[ROLES_GROUPS];
};
const struct store_who *reader_of(const struct request *q, struct reader *r);

/* The body, which is the caller's to free from now on. */
char *request_take_body(struct request *q, size_t *ret_len);
/* Free what the request owns. */
void request_fini(struct request *q);

/* ---- replies ------------------------------------------------------------------------------ */

/* Go on with 'then' when 'job' has ended, after 'ms', or when the client has gone (then
 * q->is_gone): it gives the job back. */
struct reply reply_wait(struct job *job, int64_t ms, handler *then);

struct reply reply_json(int status, json_t *takes);
struct reply reply_owned(int status, const char *type, char *takes);
struct reply reply_fixed(int status, const char *type, const char *text);
/* One error, as the envelope or as text lines.  'source' and 'nearest' may be NULL.  A 401 or 403
 * leaves a line in the log. */
struct reply reply_error(const struct request *q, int status, const char *name,
                         const char *source, const char *nearest,
                         const char *description);
/* The same from an error value, its status and name from the common table. */
struct reply reply_fail(const struct request *q, const char *source,
                        const struct topt_error *err);
void reply_fini(struct reply *r);

/* Refuse a body of JSON with too many values or too deep, before it is parsed.  0, or -1 with
 * '*ret' filled. */
int check_body(const struct request *q, struct reply *ret);
/* The page of a list that is asked for: ?limit=N, at most 'most', and ?before=ID, the last one
 * seen.  0, or -1 with '*ret' filled. */
int page_of(const struct request *q, int most, struct store_page *page,
            struct reply *ret);
/* A list under its name, and whether there is more of it; NULL is refused by 'err'. */
struct reply reply_page(const struct request *q, const char *key, json_t *list,
                        const struct store_page *page, const struct topt_error *err);
/* Say that the reply is named by 'id', so never changes; of who has it already the answer
 * is a 304.  1 where the client has it: then '*ret' is that. */
int reply_is_known(const struct request *q, const char *id, struct reply *ret);
void reply_named(struct reply *r, const char *id);
/* Take ?fields=a,b out of the query.  0, or -1 with '*ret' filled. */
int take_fields(struct request *q, struct reply *ret);
/* Refuse every query parameter.  0, or -1 with '*ret' filled. */
int no_parameters(const struct request *q, struct reply *ret);

/* ---- handlers, by file --------------------------------------------------------------------- */

handler api_plan, api_plans, api_plan_get, api_plan_launch,
    api_plan_schedule; /* plans.c */
handler api_model_curve, api_model_frontier;
handler api_tasks, api_task_get, api_task_delete; /* tasks.c */
handler api_queue;                                /* waiting.c */
handler api_model_add, api_models, api_model_get; /* documents.c */
handler api_hw_add, api_hw_replace, api_hw_retire, api_hw_list, api_hw_get;
handler api_share, api_unshare, api_disown;                          /* sharing.c */
handler api_observations, api_observation_add, api_observation_drop; /* observations.c */
handler api_corrections, api_correction_reset;
handler api_livez, api_readyz, api_metrics, api_openapi; /* admin.c */
handler api_dashboard, api_dashboard_js, api_dashboard_css;

/* Who a question waits with. */
enum metrics_lane lane_of(const struct topt_query *q);
/* Operations as jobs: searches.c */
extern const struct job_kind operation_kind;

/* A profile by id or name ("" is the default one): owned strings.  'err' is not NULL. */
int find_hw(struct server *s, const char *key, char **ret_id, char **ret_doc,
            struct topt_error *err) TOPT_MUST_CHECK;

/* A model by id or name, among those that the caller may read: owned strings. */
int find_model(const struct request *q, const char *key, char **ret_id, char **ret_name,
               char **ret_doc, struct topt_error *err) TOPT_MUST_CHECK;

#endif
