/* route_table.h - all routes: a method, a path, who answers, and the least role that may ask.
 *
 * X(METHOD, path, handler, ROLE); "{...}" stands for one segment of a path, two of them
 * at most.  routes.c looks requests up in it; the description of the API
 * (daemon/page/document.c) describes these routes and no others, and can't be made while
 * one of them is not described. */
#ifndef TOPTD_ROUTE_TABLE_H
#define TOPTD_ROUTE_TABLE_H

#define TOPTD_ROUTES(X)                                                                  \
    X(POST, "/v1/plan", api_plan, USER)                                                  \
    X(GET, "/v1/plans", api_plans, USER)                                                 \
    X(GET, "/v1/plans/{id}", api_plan_get, USER)                                         \
    X(GET, "/v1/plans/{id}/launch", api_plan_launch, USER)                               \
    X(GET, "/v1/plans/{id}/schedule", api_plan_schedule, USER)                           \
    X(DELETE, "/v1/plans/{id}", api_disown, USER)                                        \
    X(PUT, "/v1/plans/{id}/groups/{group}", api_share, USER)                             \
    X(DELETE, "/v1/plans/{id}/groups/{group}", api_unshare, USER)                        \
    X(GET, "/v1/tasks", api_tasks, USER)                                                 \
    X(GET, "/v1/tasks/{id}", api_task_get, USER)                                         \
    X(DELETE, "/v1/tasks/{id}", api_task_delete, USER)                                   \
    X(POST, "/v1/models", api_model_add, USER)                                           \
    X(GET, "/v1/models", api_models, USER)                                               \
    X(GET, "/v1/models/{id}", api_model_get, USER)                                       \
    X(DELETE, "/v1/models/{id}", api_disown, USER)                                       \
    X(GET, "/v1/models/{id}/curve", api_model_curve, USER)                               \
    X(GET, "/v1/models/{id}/frontier", api_model_frontier, USER)                         \
    X(PUT, "/v1/models/{id}/groups/{group}", api_share, USER)                            \
    X(DELETE, "/v1/models/{id}/groups/{group}", api_unshare, USER)                       \
    X(POST, "/v1/hardware", api_hw_add, ADMIN)                                           \
    X(GET, "/v1/hardware", api_hw_list, USER)                                            \
    X(GET, "/v1/hardware/{id}", api_hw_get, USER)                                        \
    X(PUT, "/v1/hardware/{id}", api_hw_replace, ADMIN)                                   \
    X(DELETE, "/v1/hardware/{id}", api_hw_retire, ADMIN)                                 \
    X(GET, "/v1/observations", api_observations, USER)                                   \
    X(POST, "/v1/observations", api_observation_add, USER)                               \
    X(DELETE, "/v1/observations/{id}", api_observation_drop, ADMIN)                      \
    X(GET, "/v1/corrections", api_corrections, USER)                                     \
    X(DELETE, "/v1/corrections/{id}/{hw}", api_correction_reset, ADMIN)                  \
    X(GET, "/v1/queue", api_queue, USER)                                                 \
    X(GET, "/livez", api_livez, NOBODY)                                                  \
    X(GET, "/readyz", api_readyz, NOBODY)                                                \
    X(GET, "/metrics", api_metrics, OPERATOR)                                            \
    X(GET, "/openapi.json", api_openapi, NOBODY)                                         \
    X(GET, "/", api_dashboard, NOBODY)                                                   \
    X(GET, "/dashboard.js", api_dashboard_js, NOBODY)                                    \
    X(GET, "/dashboard.css", api_dashboard_css, NOBODY)

#endif
