/* metrics.h - what is counted, and how Prometheus is told.
 *
 * Each thing that is counted is a row of a table below; labels have few values, none of
 * them a client's.  A scrape reads what is there and holds nobody up.
 *
 * Thread safety: any thread; atomic additions, no lock. */
#ifndef TOPTD_METRICS_H
#define TOPTD_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "caller.h"
#include "route_table.h"

/* X(field, name without _total, help): what is added up with atomic_fetch_add. */
#define METRICS_COUNTERS(X)                                                              \
    X(requests, "topt_requests", "Requests answered")                                    \
    X(errors_4xx, "topt_client_errors", "Requests refused with 4xx")                     \
    X(errors_5xx, "topt_server_errors", "Requests failed with 5xx")                      \
    X(cache_hits, "topt_cache_hits", "Questions answered from the store")                \
    X(searches, "topt_searches", "Searches started")                                     \
    X(remembered, "topt_memo_answers",                                                   \
      "Questions answered from prices that a worker had cached")                         \
    X(shared, "topt_searches_shared", "Questions that joined a running search")          \
    X(failed, "topt_searches_failed", "Searches that failed or were canceled")           \
    X(refused, "topt_queue_full", "Questions refused because the queue was full")        \
    X(workers_restarted, "topt_workers_restarted",                                       \
      "Processes of workers that were lost and started again")

/* Who waits for what; a question's lane, or none. */
enum metrics_lane {
    METRICS_NO_LANE, /* no question */
    METRICS_WARM,    /* sent again without work */
    METRICS_SUBMIT,
    METRICS_SEARCH,
    METRICS_LANES
};
enum metrics_outcome {
    METRICS_OK,
    METRICS_PENDING,    /* 202: a task */
    METRICS_INFEASIBLE, /* 422 */
    METRICS_REFUSED,    /* the client's affair */
    METRICS_FAILED,     /* ours */
    METRICS_GONE,       /* the client did not wait */
    METRICS_OUTCOMES
};
enum metrics_found {
    METRICS_FOUND,
    METRICS_NOTHING_FITS,
    METRICS_SEARCH_FAILED,
    METRICS_CANCELED,
    METRICS_FOUNDS
};

/* Why requests are refused, by the word of the envelope. */
#define METRICS_REASONS(X)                                                               \
    X("invalid")                                                                         \
    X("usage")                                                                           \
    X("unauthorized")                                                                    \
    X("forbidden")                                                                       \
    X("not_found")                                                                       \
    X("method_not_allowed")                                                              \
    X("not_acceptable")                                                                  \
    X("conflict")                                                                        \
    X("canceled")                                                                        \
    X("limit")                                                                           \
    X("unsupported_media_type")                                                          \
    X("infeasible")                                                                      \
    X("undecided")                                                                       \
    X("too_many")                                                                        \
    X("queue_full")                                                                      \
    X("busy")                                                                            \
    X("stopping")                                                                        \
    X("search_limit")                                                                    \
    X("no_munge")                                                                        \
    X("no_default")                                                                      \
    X("slurm")                                                                           \
    X("no_room")                                                                         \
    X("io")                                                                              \
    X("store")                                                                           \
    X("out_of_memory")                                                                   \
    X("internal")                                                                        \
    X("other")
#define METRICS_ONE(word)                           +1
#define METRICS_ROUTE(METHOD, path, handler, least) +1
enum {
    METRICS_NREASONS = 0 METRICS_REASONS(METRICS_ONE),
    METRICS_NROUTES = 0 TOPTD_ROUTES(METRICS_ROUTE),
    METRICS_BOUNDS = 18,
    METRICS_ROLES = ROLE_ADMIN + 1
};

/* How long something took: how often at most each bound, and beyond. */
struct metrics_times {
    atomic_llong bucket[METRICS_BOUNDS + 1], sum_ms;
};

struct metrics {
#define X(field, name, help) atomic_llong field;
    METRICS_COUNTERS(X)
#undef X
    atomic_llong connections; /* open */
    atomic_llong refusal[METRICS_NREASONS][METRICS_ROLES];
    /* The last route: none. */
    struct metrics_times request[METRICS_NROUTES + 1][METRICS_LANES][METRICS_OUTCOMES];
    struct metrics_times search[METRICS_LANES][METRICS_FOUNDS];
};

/* A request of 'role' was answered.  'route' is its row in the table, -1: none; 'error'
 * the word of its refusal, or NULL. */
void metrics_request(struct metrics *m, int route, enum metrics_lane lane, enum role role,
                     int status, const char *error, int64_t ms);
void metrics_search(struct metrics *m, enum metrics_lane lane, enum metrics_found found,
                    int64_t ms);

/* What is measured when it is asked for.  Rows of the same name stand together. */
struct metrics_gauge {
    const char *name, *help;
    const char *lane; /* a label, or NULL */
    double value;
};

/* Everything, as OpenMetrics or as Prometheus' older text; owned, NULL without memory.
 * 'gauges' end with a NULL name. */
char *metrics_text(const struct metrics *m, const struct metrics_gauge *gauges,
                   int openmetrics);

#endif
