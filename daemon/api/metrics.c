/* metrics.c - see metrics.h. */
#include "metrics.h"
#include "topt_text.h"

#include <stdio.h>
#include <string.h>

static const char *const reasons[] = {
#define X(word) word,
    METRICS_REASONS(X)
#undef X
};
static const char *const lanes[] = {"none", "warm", "submit", "search"};
static const char *const outcomes[] = {"ok",      "pending", "infeasible",
                                       "refused", "failed",  "gone"};
static const char *const founds[] = {"found", "infeasible", "failed", "canceled"};
static const char *const route_names[] = {
#define X(METHOD, path, handler, least) #METHOD " " path,
    TOPTD_ROUTES(X)
#undef X
        "none"};

/* Milliseconds, and as a label. */
static const struct bound {
    int64_t ms;
    const char *seconds;
} bounds[METRICS_BOUNDS] = {{1, "0.001"},      {2, "0.002"},      {5, "0.005"},
                            {10, "0.01"},      {20, "0.02"},      {50, "0.05"},
                            {100, "0.1"},      {200, "0.2"},      {500, "0.5"},
                            {1000, "1.0"},     {2000, "2.0"},     {5000, "5.0"},
                            {10000, "10.0"},   {30000, "30.0"},   {60000, "60.0"},
                            {120000, "120.0"}, {300000, "300.0"}, {600000, "600.0"}};

static void add_time(struct metrics_times *t, int64_t ms)
{
    int i = 0;
    while (i < METRICS_BOUNDS && ms > bounds[i].ms)
        i++;
    atomic_fetch_add_explicit(&t->bucket[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->sum_ms, ms, memory_order_relaxed);
}

static int reason_of(const char *error, int status)
{
    int i = 0;
    if (!error)
        error = status == 503 ? "out_of_memory" : status == 422 ? "infeasible" : "other";
    while (i < METRICS_NREASONS - 1 && strcmp(reasons[i], error))
        i++;
    return i;
}

static enum metrics_outcome outcome_of(int status)
{
    return status == 202   ? METRICS_PENDING
           : status == 422 ? METRICS_INFEASIBLE
           : status == 499 ? METRICS_GONE
           : status >= 500 ? METRICS_FAILED
           : status >= 400 ? METRICS_REFUSED
                           : METRICS_OK;
}

void metrics_request(struct metrics *m, int route, enum metrics_lane lane, enum role role,
                     int status, const char *error, int64_t ms)
{
    if (route < 0 || route >= METRICS_NROUTES)
        route = METRICS_NROUTES;
    add_time(&m->request[route][lane][outcome_of(status)], ms);
    atomic_fetch_add(&m->requests, 1);
    if (status < 400 || status == 499)
        return;
    atomic_fetch_add(status >= 500 ? &m->errors_5xx : &m->errors_4xx, 1);
    atomic_fetch_add(&m->refusal[reason_of(error, status)][role], 1);
}

void metrics_search(struct metrics *m, enum metrics_lane lane, enum metrics_found found,
                    int64_t ms)
{
    add_time(&m->search[lane][found], ms);
}

/* ---- as text ----------------------------------------------------------------------------- */

struct page {
    struct topt_text text;
    int openmetrics;
};

/* Of a family: the older text names counters as their samples are named, and has no "info". */
static void head(struct page *p, const char *name, const char *type, const char *help)
{
    int counts = !strcmp(type, "counter"), info = !strcmp(type, "info");
    const char *suffix = p->openmetrics ? "" : counts ? "_total" : info ? "_info" : "";
    topt_text_add(&p->text, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name,
                  suffix, info && !p->openmetrics ? "gauge" : type);
}

static long long count_of(const struct metrics_times *t)
{
    long long n = 0;
    for (int i = 0; i <= METRICS_BOUNDS; i++)
        n += atomic_load(&t->bucket[i]);
    return n;
}

/* The samples of a histogram, where there are any. */
static void add_times(struct page *p, const char *name, const char *labels,
                      const struct metrics_times *t)
{
    long long so_far = 0, sum = atomic_load(&t->sum_ms);
    if (!count_of(t))
        return;
    for (int i = 0; i <= METRICS_BOUNDS; i++) {
        so_far += atomic_load(&t->bucket[i]);
        topt_text_add(&p->text, "%s_bucket{%s,le=\"%s\"} %lld\n", name, labels,
                      i < METRICS_BOUNDS ? bounds[i].seconds : "+Inf", so_far);
    }
    topt_text_add(&p->text, "%s_count{%s} %lld\n%s_sum{%s} %lld.%03lld\n", name, labels,
                  so_far, name, labels, sum / 1000, sum % 1000);
}

static void add_requests(struct page *p, const struct metrics *m)
{
    static const char name[] = "topt_request_seconds";
    char labels[160];
    head(p, name, "histogram", "From a request's first line to its answer");
    for (int r = 0; r <= METRICS_NROUTES; r++)
        for (int l = 0; l < METRICS_LANES; l++)
            for (int o = 0; o < METRICS_OUTCOMES; o++) {
                snprintf(labels, sizeof labels, "route=\"%s\",lane=\"%s\",outcome=\"%s\"",
                         route_names[r], lanes[l], outcomes[o]);
                add_times(p, name, labels, &m->request[r][l][o]);
            }
}

static void add_searches(struct page *p, const struct metrics *m)
{
    static const char name[] = "topt_search_seconds";
    char labels[80];
    head(p, name, "histogram", "Time of a search");
    for (int l = 0; l < METRICS_LANES; l++)
        for (int f = 0; f < METRICS_FOUNDS; f++) {
            snprintf(labels, sizeof labels, "lane=\"%s\",outcome=\"%s\"", lanes[l],
                     founds[f]);
            add_times(p, name, labels, &m->search[l][f]);
        }
}

static void add_gauges(struct page *p, const struct metrics_gauge *g)
{
    for (const char *last = ""; g->name; last = g++->name) {
        if (strcmp(last, g->name))
            head(p, g->name, "gauge", g->help);
        if (g->lane)
            topt_text_add(&p->text, "%s{lane=\"%s\"} %.16g\n", g->name, g->lane,
                          g->value);
        else
            topt_text_add(&p->text, "%s %.16g\n", g->name, g->value);
    }
}

char *metrics_text(const struct metrics *m, const struct metrics_gauge *gauges,
                   int openmetrics)
{
    struct page p = {.openmetrics = openmetrics};
#define X(field, name, help)                                                             \
    head(&p, name, "counter", help);                                                     \
    topt_text_add(&p.text, name "_total %lld\n", (long long)atomic_load(&m->field));
    METRICS_COUNTERS(X)
#undef X
    head(&p, "topt_refusals", "counter", "Requests refused, by reason and role");
    for (int i = 0; i < METRICS_NREASONS; i++)
        for (int r = 0; r < METRICS_ROLES; r++)
            topt_text_add(&p.text,
                          "topt_refusals_total{reason=\"%s\",role=\"%s\"} %lld\n",
                          reasons[i], role_name((enum role)r),
                          (long long)atomic_load(&m->refusal[i][r]));
    add_requests(&p, m);
    add_searches(&p, m);
    add_gauges(&p, gauges);
    head(&p, "topt_build", "info", "The program that answers");
    topt_text_add(&p.text, "topt_build_info{version=\"%s\"} 1\n", TOPT_VERSION);
    if (openmetrics)
        topt_text_add(&p.text, "# EOF\n");
    if (p.text.oom)
        topt_text_fini(&p.text);
    return p.text.s;
}
