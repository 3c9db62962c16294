/* http.c - connections: libmicrohttpd's side of the server.
 *
 * One thread a connection, with a bound on their number: a handler may then simply wait for
 * a search, and a slow client holds up nobody else.  libmicrohttpd closes connections that
 * fall silent; a client that keeps dripping bytes is cut off by http_tick once it has been
 * sending one request for too long.
 *
 * Who can reach us: anybody on this machine.  A web page in somebody's browser is not
 * anybody: requests by TCP must name a loopback host, and a foreign Origin is refused. */
#include "http.h"
#include "topt_log.h"

#include <ctype.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

enum { MAX_LISTENERS = 2, STACK_BYTES = 4 << 20, HEADER_BYTES = 64 << 10 };

struct listener {
    struct http *http;
    struct MHD_Daemon *daemon;
    int port;
};

/* A client.  On the list from accept to close. */
struct connection {
    int fd, uid, pid;
    int64_t since_ms; /* it has been sending a request since then; 0 while we work */
    struct connection *next, **prev;
};

struct http {
    struct server *server;
    struct listener listener[MAX_LISTENERS];
    int nlisteners;
    pthread_mutex_t lock; /* leaf; guards connections, their since_ms, busy */
    pthread_cond_t idle;  /* busy fell to 0 */
    struct connection *connections;
    int busy;
    atomic_ullong next_id;
};

/* A request on its way in. */
struct exchange {
    struct request request;
    struct topt_text body;
    int too_long, busy; /* busy: counted in http->busy */
    struct http *http;
    int64_t started_ms;
    struct connection *connection;
    char content_type[80], path[512];
};

static int64_t clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- the list of connections ------------------------------------------------------------- */

static void opened(struct http *h, struct MHD_Connection *mc, void **context)
{
    struct connection *c = calloc(1, sizeof *c);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = c;
    if (!c || !info)
        return;
    *c = (struct connection){.fd = info->connect_fd, .uid = -1, .since_ms = clock_ms()};
    struct ucred cred;
    socklen_t len = sizeof cred;
    if (!getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.pid) {
        c->uid = (int)cred.uid;
        c->pid = (int)cred.pid;
    }
    pthread_mutex_lock(&h->lock);
    c->next = h->connections;
    c->prev = &h->connections;
    if (c->next)
        c->next->prev = &c->next;
    h->connections = c;
    pthread_mutex_unlock(&h->lock);
}

static void closed(struct http *h, struct connection *c)
{
    pthread_mutex_lock(&h->lock);
    if (c->prev) {
        *c->prev = c->next;
        if (c->next)
            c->next->prev = c->prev;
    }
    pthread_mutex_unlock(&h->lock);
    free(c);
}

static void notify(void *cls, struct MHD_Connection *mc, void **context,
                   enum MHD_ConnectionNotificationCode code)
{
    struct listener *l = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        opened(l->http, mc, context);
    else if (*context)
        closed(l->http, *context);
}

/* A request of 'x' is being answered, from when it is whole until the answer is sent. */
static void set_busy(struct exchange *x, int busy)
{
    struct http *h = x->http;
    pthread_mutex_lock(&h->lock);
    h->busy += busy - x->busy;
    x->busy = busy;
    if (x->connection)
        x->connection->since_ms = busy ? 0 : clock_ms();
    if (!h->busy)
        pthread_cond_signal(&h->idle);
    pthread_mutex_unlock(&h->lock);
}

void http_tick(struct http *h)
{
    int64_t oldest = clock_ms() - h->server->config->request_timeout * 1000;
    pthread_mutex_lock(&h->lock);
    for (struct connection *c = h->connections; c; c = c->next)
        if (c->since_ms && c->since_ms < oldest)
            shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_unlock(&h->lock);
}

/* ---- reading a request ------------------------------------------------------------------- */

static const char *header(struct MHD_Connection *mc, const char *name)
{
    return MHD_lookup_connection_value(mc, MHD_HEADER_KIND, name);
}

/* Is 'value' "type" or "type; ..."? */
static int is_type(const char *value, const char *type)
{
    size_t n = strlen(type);
    return value && !strncasecmp(value, type, n) &&
           (!value[n] || value[n] == ';' || isspace((unsigned char)value[n]));
}

/* Does Accept prefer text/plain?  It does where it stands before any JSON or wildcard. */
static int accepts_text(const char *accept)
{
    if (!accept)
        return 0;
    const char *text = strcasestr(accept, "text/plain"),
               *json = strcasestr(accept, "json");
    return text && (!json || text < json);
}

static enum MHD_Result add_pair(void *cls, enum MHD_ValueKind kind, const char *key,
                                size_t key_size, const char *value, size_t value_size)
{
    struct request *q = cls;
    (void)kind;
    if (q->npairs == MAX_PAIRS || strlen(key) != key_size ||
        (value && strlen(value) != value_size)) {
        q->npairs = -1; /* too many, or bytes of zero */
        return MHD_NO;
    }
    q->pair[q->npairs++] = (struct query_pair){key, value};
    return MHD_YES;
}

static struct exchange *exchange_create(struct listener *l, struct MHD_Connection *mc,
                                        const char *url, const char *method)
{
    struct exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    struct request *q = &x->request;
    const char *type = header(mc, "Content-Type");
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->connection = info ? info->socket_context : NULL;
    x->started_ms = clock_ms();
    x->http = l->http;
    q->server = l->http->server;
    q->method = method;
    snprintf(x->path, sizeof x->path, "%s", url);
    q->path = x->path;
    snprintf(q->id, sizeof q->id, "r-%llu", atomic_fetch_add(&l->http->next_id, 1) + 1);
    snprintf(x->content_type, sizeof x->content_type, "%s", type ? type : "");
    q->is_json = is_type(type, "application/json");
    q->wants_text = accepts_text(header(mc, "Accept"));
    return x;
}

static void completed(void *cls, struct MHD_Connection *mc, void **context,
                      enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *context;
    (void)cls;
    (void)mc;
    (void)code;
    if (!x)
        return;
    set_busy(x, 0);
    topt_text_fini(&x->body);
    free(x);
    *context = NULL;
}

/* More of the body.  Returns 0, or -1 to drop the connection. */
static int take_body(struct exchange *x, const char *data, size_t n)
{
    size_t limit = (size_t)x->request.server->config->body_limit;
    if (x->too_long) { /* read on for a while, so that the refusal can be read */
        x->body.len += n;
        return x->body.len > 4 * limit ? -1 : 0;
    }
    if (x->body.len + n > limit) {
        x->too_long = 1;
        return 0;
    }
    topt_text_put(&x->body, data, n);
    return x->body.oom ? -1 : 0;
}

/* ---- what is refused before any handler sees it ------------------------------------------ */

/* "127.0.0.1:80", "localhost", "[::1]:80"... with our port. */
static int host_is_ours(const char *host, int port)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]", NULL};
    char with_port[40];
    for (int i = 0; names[i]; i++) {
        snprintf(with_port, sizeof with_port, "%s:%d", names[i], port);
        if (!strcasecmp(host, names[i]) || !strcasecmp(host, with_port))
            return 1;
    }
    return 0;
}

static int is_foreign(struct MHD_Connection *mc, int port)
{
    const char *host = header(mc, "Host"), *origin = header(mc, "Origin");
    if (!port)
        return origin != NULL; /* no browser speaks to a Unix socket */
    if (!host || !host_is_ours(host, port))
        return 1;
    return origin && (strncmp(origin, "http://", 7) || strcasecmp(origin + 7, host));
}

static int bad_type(const struct exchange *x, struct MHD_Connection *mc)
{
    const char *encoding = header(mc, "Content-Encoding");
    const char *charset = strcasestr(x->content_type, "charset=");
    if (encoding && strcasecmp(encoding, "identity"))
        return 1;
    if (is_type(x->content_type, "multipart/form-data"))
        return 1;
    return charset && strncasecmp(charset + 8, "utf-8", 5) &&
           strncasecmp(charset + 8, "\"utf-8", 6) &&
           strncasecmp(charset + 8, "us-ascii", 8);
}

static struct reply too_long(const struct request *q)
{
    char text[80];
    snprintf(text, sizeof text, "the body is longer than %lld bytes",
             (long long)q->server->config->body_limit);
    return reply_error(q, 413, "limit", "body", NULL, text);
}

static struct reply answer(struct listener *l, struct exchange *x,
                           struct MHD_Connection *mc)
{
    struct request *q = &x->request;
    MHD_get_connection_values_n(mc, MHD_GET_ARGUMENT_KIND, add_pair, q);
    if (is_foreign(mc, l->port))
        return reply_error(q, 403, "forbidden", "Host", NULL,
                           "requests must come from this machine, not from a web page");
    if (x->too_long)
        return too_long(q);
    if (bad_type(x, mc))
        return reply_error(q, 415, "unsupported_media_type", "Content-Type", NULL,
                           "send the document itself in UTF-8: no form, no compression");
    if (q->npairs < 0)
        return reply_error(q, 400, "invalid", "query", NULL,
                           "too many parameters, or zero bytes in one");
    q->body = x->body.s ? x->body.s : "";
    q->body_len = x->body.len;
    return dispatch(q);
}

/* ---- answering --------------------------------------------------------------------------- */

static void add_headers(struct MHD_Response *response, const struct reply *r)
{
    char seconds[16];
    MHD_add_response_header(response, "Content-Type", r->type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(
        response, "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src "
        "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'");
    if (*r->location)
        MHD_add_response_header(response, "Location", r->location);
    if (r->allow)
        MHD_add_response_header(response, "Allow", r->allow);
    if (r->retry_after) {
        snprintf(seconds, sizeof seconds, "%d", r->retry_after);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
}

static void account(const struct exchange *x, int status)
{
    struct metrics *m = &x->request.server->metrics;
    atomic_fetch_add(&m->requests, 1);
    if (status >= 500)
        atomic_fetch_add(&m->errors_5xx, 1);
    else if (status >= 400)
        atomic_fetch_add(&m->errors_4xx, 1);
    char path[128];
    snprintf(path, sizeof path, "%.120s", x->path);
    for (char *p = path; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    const struct connection *c = x->connection;
    topt_log(TOPT_LOG_INFO, "%s: %.16s %s: %d in %lld ms, uid %d pid %d", x->request.id,
             x->request.method, path, status, (long long)(clock_ms() - x->started_ms),
             c ? c->uid : -1, c ? c->pid : -1);
}

/* Queue the reply, whose body is taken. */
static enum MHD_Result respond(struct MHD_Connection *mc, const struct exchange *x,
                               struct reply *r)
{
    struct MHD_Response *response =
        r->body ? MHD_create_response_from_buffer(r->len, r->body, MHD_RESPMEM_MUST_FREE)
                : MHD_create_response_from_buffer(r->len, (void *)(uintptr_t)r->fixed,
                                                  MHD_RESPMEM_PERSISTENT);
    if (!response) {
        reply_fini(r);
        return MHD_NO;
    }
    if (!r->type)
        r->type = "application/json";
    add_headers(response, r);
    if (atomic_load(&x->request.server->stopping))
        MHD_add_response_header(response, "Connection", "close");
    account(x, r->status);
    enum MHD_Result rc = MHD_queue_response(mc, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return rc;
}

/* The whole request is there.  libmicrohttpd's silence timer must not run while we work. */
static enum MHD_Result serve(struct listener *l, struct exchange *x,
                             struct MHD_Connection *mc)
{
    MHD_set_connection_option(mc, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    set_busy(x, 1);
    struct reply r = answer(l, x, mc);
    enum MHD_Result rc = respond(mc, x, &r);
    MHD_set_connection_option(mc, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)l->http->server->config->idle_timeout);
    return rc;
}

/* Refused by its announced length alone. */
static int announced_too_long(const struct exchange *x, struct MHD_Connection *mc)
{
    const char *length = header(mc, "Content-Length");
    return length && strtoull(length, NULL, 10) >
                         (unsigned long long)x->request.server->config->body_limit;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *mc, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **context)
{
    struct listener *l = cls;
    struct exchange *x = *context;
    (void)version;
    if (!x) {
        *context = x = exchange_create(l, mc, url, method);
        if (!x)
            return MHD_NO;
        if (!announced_too_long(x, mc))
            return MHD_YES;
        struct reply r = too_long(&x->request);
        return respond(mc, x, &r);
    }
    if (*size) {
        int rc = take_body(x, data, *size);
        *size = 0;
        return rc < 0 ? MHD_NO : MHD_YES;
    }
    return serve(l, x, mc);
}

/* ---- life -------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void mhd_log(void *cls, const char *format,
                                                          va_list ap)
{
    char text[300];
    (void)cls;
    vsnprintf(text, sizeof text, format, ap);
    text[strcspn(text, "\n")] = '\0';
    topt_log(TOPT_LOG_DEBUG, "http: %s", text);
}

int http_create(struct server *server, struct http **ret, struct topt_error *err)
{
    struct http *h = calloc(1, sizeof *h);
    if (!h)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    h->server = server;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->idle, NULL);
    *ret = h;
    return 0;
}

int http_listen(struct http *h, int fd, int port, struct topt_error *err)
{
    struct listener *l = &h->listener[h->nlisteners];
    *l = (struct listener){.http = h, .port = port};
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    l->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, l, MHD_OPTION_EXTERNAL_LOGGER, mhd_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, notify, l, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)h->server->config->connections, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)h->server->config->idle_timeout, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADER_BYTES, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
        MHD_OPTION_END);
    if (!l->daemon) {
        shutdown(fd, SHUT_RDWR);
        return topt_fail(err, TOPT_ERR_IO, "the HTTP server did not start");
    }
    h->nlisteners++;
    return 0;
}

static void wait_idle(struct http *h, int64_t grace_ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    int64_t at = ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + grace_ms;
    ts = (struct timespec){.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
    pthread_mutex_lock(&h->lock);
    while (h->busy)
        if (pthread_cond_timedwait(&h->idle, &h->lock, &ts))
            break;
    pthread_mutex_unlock(&h->lock);
}

void http_destroy(struct http *h, int64_t grace_ms)
{
    if (!h)
        return;
    wait_idle(h, grace_ms);
    for (int i = 0; i < h->nlisteners; i++)
        MHD_stop_daemon(h->listener[i].daemon);
    pthread_cond_destroy(&h->idle);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
