/* route_table.h - all routes: a method, a path, and who answers.
 *
 * X(METHOD, path, handler); "{id}" stands for one segment of a path.  routes.c looks requests up in it; the
 * description of the API (daemon/page/document.c) describes these routes and no others, and can't be made
 * while one of them is not described. */
#ifndef TOPTD_ROUTE_TABLE_H
#define TOPTD_ROUTE_TABLE_H

#define TOPTD_ROUTES(X)                                                                  \
    X(POST, "/v1/plan", api_plan)                                                        \
    X(GET, "/v1/plans", api_plans)                                                       \
    X(GET, "/v1/plans/{id}", api_plan_get)                                               \
    X(GET, "/v1/tasks/{id}", api_task_get)                                               \
    X(DELETE, "/v1/tasks/{id}", api_task_delete)                                         \
    X(POST, "/v1/models", api_model_add)                                                 \
    X(GET, "/v1/models", api_models)                                                     \
    X(GET, "/v1/models/{id}", api_model_get)                                             \
    X(GET, "/v1/models/{id}/curve", api_model_curve)                                     \
    X(GET, "/v1/models/{id}/frontier", api_model_frontier)                               \
    X(POST, "/v1/hardware", api_hw_add)                                                  \
    X(GET, "/v1/hardware", api_hw_list)                                                  \
    X(GET, "/v1/hardware/{id}", api_hw_get)                                              \
    X(GET, "/livez", api_livez)                                                          \
    X(GET, "/readyz", api_readyz)                                                        \
    X(GET, "/metrics", api_metrics)                                                      \
    X(GET, "/openapi.json", api_openapi)                                                 \
    X(GET, "/", api_dashboard)

#endif
