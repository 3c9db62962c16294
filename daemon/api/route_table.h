/* route_table.h - all routes: a method, a path, who answers, and whom.
 *
 * X(METHOD, path, handler, least role); "{id}" stands for one segment of a path.  Of models, plans and tasks a
 * user sees those that are the user's own or are shared with a group of theirs.  An operator may read
 * /metrics, and whoever is near where --open-metrics is set.  routes.c looks requests up in it; the
 * description of the API (daemon/page/document.c) describes these routes and no others, and can't be made
 * while one of them is not described. */
#ifndef TOPTD_ROUTE_TABLE_H
#define TOPTD_ROUTE_TABLE_H

#define TOPTD_ROUTES(X)                                                                  \
    X(POST, "/v1/plan", api_plan, ROLE_USER)                                             \
    X(GET, "/v1/plans", api_plans, ROLE_USER)                                            \
    X(GET, "/v1/plans/{id}", api_plan_get, ROLE_USER)                                    \
    X(GET, "/v1/tasks/{id}", api_task_get, ROLE_USER)                                    \
    X(DELETE, "/v1/tasks/{id}", api_task_delete, ROLE_USER)                              \
    X(POST, "/v1/models", api_model_add, ROLE_USER)                                      \
    X(GET, "/v1/models", api_models, ROLE_USER)                                          \
    X(GET, "/v1/models/{id}", api_model_get, ROLE_USER)                                  \
    X(GET, "/v1/models/{id}/curve", api_model_curve, ROLE_USER)                          \
    X(GET, "/v1/models/{id}/frontier", api_model_frontier, ROLE_USER)                    \
    X(POST, "/v1/hardware", api_hw_add, ROLE_ADMIN)                                      \
    X(GET, "/v1/hardware", api_hw_list, ROLE_USER)                                       \
    X(GET, "/v1/hardware/{id}", api_hw_get, ROLE_USER)                                   \
    X(GET, "/livez", api_livez, ROLE_NOBODY)                                             \
    X(GET, "/readyz", api_readyz, ROLE_NOBODY)                                           \
    X(GET, "/metrics", api_metrics, ROLE_OPERATOR)                                       \
    X(GET, "/openapi.json", api_openapi, ROLE_NOBODY)                                    \
    X(GET, "/", api_dashboard, ROLE_NOBODY)

#endif
