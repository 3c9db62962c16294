/* routes.c - which handler answers which method and path. */
#include "server.h"

#include <stdio.h>
#include <string.h>

const struct route routes[] = {{"POST", "/v1/plan", api_plan},
                               {"GET", "/v1/plans", api_plans},
                               {"GET", "/v1/plans/{id}", api_plan_get},
                               {"GET", "/v1/tasks/{id}", api_task_get},
                               {"DELETE", "/v1/tasks/{id}", api_task_delete},
                               {"POST", "/v1/models", api_model_add},
                               {"GET", "/v1/models", api_models},
                               {"GET", "/v1/models/{id}", api_model_get},
                               {"GET", "/v1/models/{id}/curve", api_model_curve},
                               {"GET", "/v1/models/{id}/frontier", api_model_frontier},
                               {"POST", "/v1/hardware", api_hw_add},
                               {"GET", "/v1/hardware", api_hw_list},
                               {"GET", "/v1/hardware/{id}", api_hw_get},
                               {"GET", "/livez", api_livez},
                               {"GET", "/readyz", api_readyz},
                               {"GET", "/metrics", api_metrics},
                               {"GET", "/openapi.json", api_openapi},
                               {"GET", "/", api_dashboard},
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

struct reply dispatch(struct request *q)
{
    const char *method = strcmp(q->method, "HEAD") ? q->method : "GET";
    static const char *const known[] = {"GET, HEAD", "POST", "DELETE"};
    const char *allow = NULL;
    for (const struct route *r = routes; r->method; r++) {
        if (!matches(r->path, q->path, q->arg))
            continue;
        if (!strcmp(r->method, method))
            return r->handle(q);
        allow = *r->method == 'G' ? known[0] : *r->method == 'P' ? known[1] : known[2];
    }
    if (!allow)
        return reply_error(q, 404, "not_found", NULL, NULL, "no such resource");
    struct reply r = reply_error(q, 405, "method_not_allowed", NULL, NULL,
                                 "the resource does not take this method");
    r.allow = allow;
    return r;
}
