/* http.h - connections: libmicrohttpd's side of the server.
 * Thread safety: start, tick and stop belong to the main thread. */
#ifndef TOPTD_HTTP_H
#define TOPTD_HTTP_H

#include "authenticate.h"
#include "server.h"

struct http;

/* Serve on listening sockets (taken, also on failure).  One set of connection limits for
 * all of them. */
int http_create(struct server *server, struct http **ret,
                struct topt_error *err) TOPT_MUST_CHECK;
int http_listen(struct http *h, int fd, enum door door,
                struct topt_error *err) TOPT_MUST_CHECK;

/* Cut off clients that take too long, and let go of what those who went have waited for; about
 * once a second. */
void http_tick(struct http *h);

/* Connections that are open. */
int http_connections(struct http *h);

/* Give running handlers 'grace_ms' to answer, close everything, free: 0.  -1 where a handler does
 * not end; then 'h' must stay.  NULL is fine. */
int http_destroy(struct http *h, int64_t grace_ms);

#endif
