/* routes.c - which handler answers which method and path. */
#include "server.h"

#include <stdio.h>
#include <string.h>

/* Who may do what: a role may do what the roles below it may.  Of models, plans and tasks a user sees
 * those that are the user's own or are shared with a group of theirs. */
const struct route routes[] = {
    {"POST", "/v1/plan", api_plan, ROLE_USER},
    {"GET", "/v1/plans", api_plans, ROLE_USER},
    {"GET", "/v1/plans/{id}", api_plan_get, ROLE_USER},
    {"GET", "/v1/tasks/{id}", api_task_get, ROLE_USER},
    {"DELETE", "/v1/tasks/{id}", api_task_delete, ROLE_USER},
    {"POST", "/v1/models", api_model_add, ROLE_USER},
    {"GET", "/v1/models", api_models, ROLE_USER},
    {"GET", "/v1/models/{id}", api_model_get, ROLE_USER},
    {"GET", "/v1/models/{id}/curve", api_model_curve, ROLE_USER},
    {"GET", "/v1/models/{id}/frontier", api_model_frontier, ROLE_USER},
    {"POST", "/v1/hardware", api_hw_add, ROLE_ADMIN},
    {"GET", "/v1/hardware", api_hw_list, ROLE_USER},
    {"GET", "/v1/hardware/{id}", api_hw_get, ROLE_USER},
    {"GET", "/livez", api_livez, ROLE_NOBODY},
    {"GET", "/readyz", api_readyz, ROLE_NOBODY},
    {"GET", "/metrics", api_metrics, ROLE_OPERATOR}, /* but see --open-metrics */
    {"GET", "/openapi.json", api_openapi, ROLE_NOBODY},
    {"GET", "/", api_dashboard, ROLE_NOBODY},
    {0}};

/* Does 'path' have the shape of 'pattern'?  The {id} goes to 'arg'. */
static int matches(const char *pattern, const char *path, char arg[80])
{
    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return 0;
            continue;
        }
        size_t n = strcspn(path, "/");
        if (!n || n >= 80)
            return 0;
        memcpy(arg, path, n);
        arg[n] = '\0';
        if (!query_is_name(arg, 79))
            return 0;
        path += n;
        pattern = strchr(pattern, '}') + 1;
    }
    return !*path;
}

static enum role least_of(const struct route *r, const struct request *q)
{
    if (r->handle == api_metrics && q->is_near && q->server->config->metrics_are_open)
        return ROLE_NOBODY;
    return r->least;
}

static struct reply call(const struct route *r, struct request *q)
{
    char text[160];
    enum role least = least_of(r, q);
    if (q->caller.role >= least)
        return r->handle(q);
    if (q->caller.role == ROLE_NOBODY)
        return reply_error(
            q, 401, "unauthorized", NULL, NULL,
            q->server->config->uses_munge
                ? "who asks is not known: ask with a credential of MUNGE, as "
                  "topt client does, or over the Unix socket"
                : "who asks is not known: ask over the Unix socket");
    snprintf(text, sizeof text, "that takes an %s, and you are %s", role_name(least),
             q->caller.role == ROLE_OPERATOR ? "an operator" : "a user");
    return reply_error(q, 403, "forbidden", NULL, NULL, text);
}

struct reply dispatch(struct request *q)
{
    const char *method = strcmp(q->method, "HEAD") ? q->method : "GET";
    static const char *const known[] = {"GET, HEAD", "POST", "DELETE"};
    const char *allow = NULL;
    for (const struct route *r = routes; r->method; r++) {
        if (!matches(r->path, q->path, q->arg))
            continue;
        if (!strcmp(r->method, method))
            return call(r, q);
        allow = *r->method == 'G' ? known[0] : *r->method == 'P' ? known[1] : known[2];
    }
    if (!allow)
        return reply_error(q, 404, "not_found", NULL, NULL, "no such resource");
    struct reply r = reply_error(q, 405, "method_not_allowed", NULL, NULL,
                                 "the resource does not take this method");
    r.allow = allow;
    return r;
}
