/* routes.c - which handler answers which method and path. */
#include "route_table.h"
#include "server.h"

#include <stdio.h>
#include <string.h>

/* Who may do what: a role may do what the roles below it may.  Of models, plans and tasks
 * a user sees those that are the user's own or are shared with a group of theirs. */
const struct route routes[] = {
#define X(METHOD, path, handler, LEAST) {#METHOD, path, handler, ROLE_##LEAST},
    TOPTD_ROUTES(X)
#undef X
        {0}};

/* Does 'path' have the shape of 'pattern'?  What stands for each {...} goes to 'arg'. */
static int matches(const char *pattern, const char *path, char arg[MAX_ARGS][ARG_SIZE])
{
    int nargs = 0;
    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return 0;
            continue;
        }
        size_t n = strcspn(path, "/");
        if (!n || n >= ARG_SIZE || nargs == MAX_ARGS)
            return 0;
        memcpy(arg[nargs], path, n);
        arg[nargs][n] = '\0';
        if (!topt_is_name(arg[nargs++], ARG_SIZE - 1))
            return 0;
        path += n;
        pattern = strchr(pattern, '}') + 1;
    }
    return !*path;
}

static enum role least_of(const struct route *r, const struct request *q)
{
    return r->handle == api_metrics && metrics_are_open(q) ? ROLE_NOBODY : r->least;
}

static struct reply call(const struct route *r, struct request *q)
{
    char text[160];
    enum role least = least_of(r, q);
    if (q->caller.role >= least)
        return r->handle(q);
    if (q->caller.role == ROLE_NOBODY)
        return reply_error(q, 401, "unauthorized", NULL, NULL,
                           q->server->config->uses_munge
                               ? "unauthenticated request: use a MUNGE credential, as "
                                 "topt client does, or the Unix socket"
                               : "unauthenticated request: use the Unix socket");
    snprintf(text, sizeof text, "that takes an %s, and you are %s", role_name(least),
             q->caller.role == ROLE_OPERATOR ? "an operator" : "a user");
    return reply_error(q, 403, "forbidden", NULL, NULL, text);
}

/* What an Allow says, by the bits of methods that there are. */
enum { GET = 1, POST = 2, PUT = 4, DELETE = 8 };
static const char *const allow_of[16] = {
    [GET] = "GET, HEAD",
    [POST] = "POST",
    [GET | POST] = "GET, HEAD, POST",
    [PUT] = "PUT",
    [GET | PUT] = "GET, HEAD, PUT",
    [POST | PUT] = "POST, PUT",
    [GET | POST | PUT] = "GET, HEAD, POST, PUT",
    [DELETE] = "DELETE",
    [GET | DELETE] = "GET, HEAD, DELETE",
    [POST | DELETE] = "POST, DELETE",
    [GET | POST | DELETE] = "GET, HEAD, POST, DELETE",
    [PUT | DELETE] = "PUT, DELETE",
    [GET | PUT | DELETE] = "GET, HEAD, PUT, DELETE",
    [POST | PUT | DELETE] = "POST, PUT, DELETE",
    [GET | POST | PUT | DELETE] = "GET, HEAD, POST, PUT, DELETE",
};

static int bit_of(const char *method)
{
    return *method == 'G' ? GET : *method == 'D' ? DELETE : method[1] == 'O' ? POST : PUT;
}

/* The row of the route, or -1 with the methods that its path takes. */
static int find(struct request *q, int *ret_there)
{
    const char *method = strcmp(q->method, "HEAD") ? q->method : "GET";
    char arg[MAX_ARGS][ARG_SIZE] = {{0}};
    *ret_there = 0;
    for (int i = 0; routes[i].method; i++) {
        if (!matches(routes[i].path, q->path, arg))
            continue;
        memcpy(q->arg, arg[0], sizeof q->arg);
        memcpy(q->group, arg[1], sizeof q->group);
        if (!strcmp(routes[i].method, method))
            return i;
        *ret_there |= bit_of(routes[i].method);
    }
    return -1;
}

int route_of(struct request *q)
{
    int there;
    return find(q, &there);
}

struct reply dispatch(struct request *q)
{
    int there, i = find(q, &there);
    if (i >= 0)
        return call(&routes[i], q);
    if (!there)
        return reply_error(q, 404, "not_found", NULL, NULL, "no such resource");
    struct reply r = reply_error(q, 405, "method_not_allowed", NULL, NULL,
                                 "the resource does not take this method");
    r.allow = allow_of[there];
    return r;
}
