/* routes.c - which handler answers which method and path. */
#include "route_table.h"
#include "server.h"

#include <stdio.h>
#include <string.h>

const struct route routes[] = {
#define X(METHOD, path, handler) {#METHOD, path, handler},
    TOPTD_ROUTES(X)
#undef X
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

struct reply dispatch(struct request *q)
{
    const char *method = strcmp(q->method, "HEAD") ? q->method : "GET";
    int there = 0;
    for (const struct route *r = routes; r->method; r++) {
        if (!matches(r->path, q->path, q->arg))
            continue;
        if (!strcmp(r->method, method))
            return r->handle(q);
        there |= bit_of(r->method);
    }
    if (!there)
        return reply_error(q, 404, "not_found", NULL, NULL, "no such resource");
    struct reply r = reply_error(q, 405, "method_not_allowed", NULL, NULL,
                                 "the resource does not take this method");
    r.allow = allow_of[there];
    return r;
}
