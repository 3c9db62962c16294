/* http.c - connections and the way of a request through the server.
 *
 *      accept ──> headers ──> body ──> admitted? ── kept reply (warm.c)? ──> sent
 *                                          │ else the connection is suspended
 *                                          v
 *             (over TCP a signer asks munged who it is)
 *                  a handler thread answers ──> (a signer) ──> resumed ──> sent
 *                        └─ or waits for a job ──> a handler thread goes on ──> resumed ──> sent
 *
 * A few threads serve all connections (epoll); none of them ever waits for anything but sockets,
 * so thousands of connections cost a little memory each.  libmicrohttpd knows one time-out; how
 * long a client may take for its headers, for its body and to take the answer is kept here, and a
 * connection that is over its time is shut down by http_tick. */
#include "http.h"
#include "topt_clock.h"
#include "admit.h"
#include "encode.h"
#include "handlers.h"
#include "refuse.h"
#include "topt_credential.h"
#include "topt_log.h"
#include "topt_pool.h"
#include "warm.h"

#include <ctype.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_LISTENERS = 3,
    MAX_POLLERS = 4,
    HANDLER_THREADS = 4,
    SIGNER_THREADS = 2, /* that wait for munged; nobody else does */
    SIGNER_MS = 5000,   /* longest wait for one of them, then munged is taken to hang */
    HEADER_BYTES =
        16 << 10, /* of a connection: its request's headers, and a piece of its body */
    HEADER_MS =
        2000, /* from a connection, or a request's first line, to the last header */
    SEND_MS = 30000,  /* to take the answer */
    CROWDED_MS = 100, /* how old an unknown connection is that makes room for another */
    WARM_PART = 16,   /* of --cache-bytes: replies in memory, 64 MiB of 1 GiB */
    KNOWN = 64,       /* connections of a user */
    UNKNOWN = 32,     /* of a peer, on which no request has come yet */
    KEPT_BODY =
        256 << 10, /* a larger body is not worth a digest in a thread that serves all */
};
static const int64_t body_bytes = (int64_t)512 << 20;

struct listener {
    struct http *http;
    struct MHD_Daemon *daemon;
    enum door door;
};

enum stage { HEADERS, BODY, WORKING, SENDING, IDLE };

/* A client.  On the list from accept to close. */
struct connection {
    struct http *http;
    int fd;
    enum door door;
    char peer[64];  /* "uid 1000", "10.0.0.7" */
    char local[64]; /* of TCP: the address that the client came to */
    int is_near;    /* the peer is on this machine */
    uid_t uid;      /* of the peer of a Unix socket; -1 elsewhere */
    gid_t gid;
    int pid;
    struct admit_share share; /* guarded by admit's lock */
    /* guarded by http->lock */
    enum stage stage;
    int64_t since_ms;
    int is_known,
        has_ended; /* ended: nothing more comes, though its request is not whole */
    struct connection *next, **prev;
};

/* A request, from its first line until its answer is sent. */
struct exchange {
    struct request request;
    struct http *http;
    struct connection *connection;
    struct MHD_Connection *mc;
    struct topt_text body;
    int begun; /* its headers are there */
    int refused; /* ADMIT_..., or -1: too long; read on for a while, so that it can be told */
    size_t dropped;
    int64_t started_ms;
    int is_urgent, is_answered, may_keep;
    int is_known; /* who asks was found out */
    struct warm_key key;
    unsigned long long epoch;
    struct evidence evidence;
    struct reply reply;
    char *signature; /* of the reply, to who came by MUNGE; owned */
    struct handlers_call call;
    int64_t queued_ms; /* since when it waits for a signer */
    /* guarded by http->lock, while it is suspended */
    handler *then;
    struct job *waits_for;
    struct exchange *next, **prev;
    char path[512], target[];
};

struct http {
    struct server *server;
    struct listener listener[MAX_LISTENERS];
    int nlisteners;
    struct admit *admit;
    struct handlers *handlers, *signers;
    struct warm *warm;
    pthread_mutex_t
        lock; /* guards the lists and what is marked so; before jobs' lock in rank */
    pthread_cond_t idle; /* busy fell to 0 */
    struct connection *connections;
    struct exchange *suspended;
    int busy; /* requests that are whole and whose answer is not yet sent */
    int closing;
    atomic_ullong next_id;
};

/* ---- connections ------------------------------------------------------------------------- */

/* A numeric address; one of IPv4 is written so on a socket of IPv6 too. */
static void write_address(const struct sockaddr_storage *a, socklen_t len, char *ret,
                          size_t size)
{
    static const char mapped[] = "::ffff:";
    if (getnameinfo((const struct sockaddr *)a, len, ret, (socklen_t)size, NULL, 0,
                    NI_NUMERICHOST)) {
        snprintf(ret, size, "unknown");
        return;
    }
    size_t skip = sizeof mapped - 1;
    if (!strncmp(ret, mapped, skip) && strchr(ret, '.'))
        memmove(ret, ret + skip, strlen(ret + skip) + 1);
}

/* Who is at the other end, as far as the socket tells. */
static void name_peer(struct connection *c)
{
    struct ucred cred;
    struct sockaddr_storage addr;
    socklen_t len = sizeof cred, addr_len = sizeof addr;
    c->uid = (uid_t)-1;
    c->gid = (gid_t)-1;
    if (c->door != DOOR_TCP) {
        c->is_near = 1;
        if (!getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.pid) {
            c->uid = cred.uid;
            c->gid = cred.gid;
            c->pid = (int)cred.pid;
        }
        snprintf(c->peer, sizeof c->peer, "uid %d", (int)c->uid);
        return;
    }
    snprintf(c->peer, sizeof c->peer, "unknown");
    if (!getpeername(c->fd, (struct sockaddr *)&addr, &addr_len))
        write_address(&addr, addr_len, c->peer, sizeof c->peer);
    addr_len = sizeof addr;
    if (!getsockname(c->fd, (struct sockaddr *)&addr, &addr_len))
        write_address(&addr, addr_len, c->local, sizeof c->local);
    c->is_near = !strncmp(c->peer, "127.", 4) || !strcmp(c->peer, "::1");
}

/* A peer has too many connections on which nothing has come: its oldest makes room for the new
 * one, unless all are so young that they may still become requests and there are not too many of
 * those either.  Lock held. */
static void make_room(struct http *h, struct connection *mine)
{
    struct connection *oldest = mine;
    int young = 0;
    for (struct connection *c = h->connections; c; c = c->next) {
        if (c->is_known || strcmp(c->peer, mine->peer))
            continue;
        young++;
        if (c->since_ms < oldest->since_ms)
            oldest = c;
    }
    if (topt_clock_ms() - oldest->since_ms >= CROWDED_MS || young > 4 * UNKNOWN)
        shutdown(oldest->fd, SHUT_RDWR);
}

static void opened(struct listener *l, struct MHD_Connection *mc, void **context)
{
    struct http *h = l->http;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *c = calloc(1, sizeof *c);
    *context = c;
    if (!c || !info) {
        if (info)
            shutdown(info->connect_fd, SHUT_RDWR);
        return;
    }
    *c = (struct connection){
        .http = h, .fd = info->connect_fd, .door = l->door, .since_ms = topt_clock_ms()};
    name_peer(c);
    enum admit_verdict verdict = admit_open(h->admit, c->peer, &c->share);
    pthread_mutex_lock(&h->lock);
    c->next = h->connections;
    c->prev = &h->connections;
    if (c->next)
        c->next->prev = &c->next;
    h->connections = c;
    atomic_fetch_add(&h->server->metrics.connections, 1);
    if (verdict == ADMIT_TOO_MANY)
        make_room(h, c);
    else if (verdict == ADMIT_NO_ROOM)
        shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_unlock(&h->lock);
}

static void closed(struct http *h, struct connection *c)
{
    pthread_mutex_lock(&h->lock);
    if (c->prev) {
        *c->prev = c->next;
        if (c->next)
            c->next->prev = c->prev;
        atomic_fetch_sub(&h->server->metrics.connections, 1);
    }
    pthread_mutex_unlock(&h->lock);
    admit_close(h->admit, &c->share);
    free(c);
}

static void notify(void *cls, struct MHD_Connection *mc, void **context,
                   enum MHD_ConnectionNotificationCode code)
{
    struct listener *l = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        opened(l, mc, context);
    else if (*context)
        closed(l->http, *context);
}

static int is_busy(enum stage stage)
{
    return stage == WORKING || stage == SENDING;
}

/* The request of 'c' has come to 'stage'. */
static void enter(struct connection *c, enum stage stage)
{
    struct http *h = c->http;
    pthread_mutex_lock(&h->lock);
    h->busy += is_busy(stage) - is_busy(c->stage);
    c->stage = stage;
    c->since_ms = topt_clock_ms();
    c->has_ended = 0;
    c->is_known = c->is_known || stage > HEADERS;
    if (!h->busy)
        pthread_cond_signal(&h->idle);
    pthread_mutex_unlock(&h->lock);
}

/* How long a connection may stay at its stage; 0: as long as we take. */
static int64_t most_ms(const struct connection *c)
{
    const struct config *config = c->http->server->config;
    const int64_t most[] = {[HEADERS] = HEADER_MS,
                            [BODY] = config->request_timeout * 1000,
                            [WORKING] = 0,
                            [SENDING] = SEND_MS,
                            [IDLE] = config->idle_timeout * 1000};
    return most[c->stage];
}

/* ---- waiting for jobs -------------------------------------------------------------------- */

/* The job that 'x' waits for has ended, or its time is up. */
static void ready(void *ctx)
{
    struct exchange *x = ctx;
    pthread_mutex_lock(&x->http->lock);
    x->waits_for = NULL;
    pthread_mutex_unlock(&x->http->lock);
    handlers_add(x->http->handlers, &x->call, x->is_urgent);
}

/* Go on with 'x' though its job still runs.  Lock held, which 'ready' takes first. */
static void stop_waiting(struct exchange *x, int is_gone)
{
    if (!x->waits_for || !job_withdraw(x->waits_for, x))
        return;
    x->waits_for = NULL;
    x->request.is_gone = is_gone;
    handlers_add(x->http->handlers, &x->call, x->is_urgent);
}

static int has_gone(const struct connection *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* Has the client stopped in the middle of a body?  Seen twice, since the thread that
 * serves it may be about to read the last of it.  Lock held. */
static int has_stopped(struct connection *c)
{
    int unread = 0, was = c->has_ended;
    c->has_ended =
        c->stage == BODY && has_gone(c) && !ioctl(c->fd, FIONREAD, &unread) && !unread;
    return was && c->has_ended;
}

void http_tick(struct http *h)
{
    int64_t now = topt_clock_ms();
    pthread_mutex_lock(&h->lock);
    for (struct connection *c = h->connections; c; c = c->next)
        if ((most_ms(c) && now - c->since_ms > most_ms(c)) || has_stopped(c))
            shutdown(c->fd, SHUT_RDWR);
    for (struct exchange *x = h->suspended; x; x = x->next)
        if (x->waits_for && has_gone(x->connection))
            stop_waiting(x, 1);
    pthread_mutex_unlock(&h->lock);
}

/* ---- answering --------------------------------------------------------------------------- */

static void add_headers(struct MHD_Response *response, const struct reply *r)
{
    char seconds[16], cache[60] = "private, no-store", tag[sizeof r->etag + 10];
    if (r->type)
        MHD_add_response_header(response, "Content-Type", r->type);
    if (r->max_age)
        snprintf(cache, sizeof cache, "private, max-age=%d%s", r->max_age,
                 *r->etag ? ", immutable" : "");
    if (*r->etag) {
        snprintf(tag, sizeof tag, "\"%s%s\"", r->etag, r->is_gzip ? "-gzip" : "");
        MHD_add_response_header(response, "ETag", tag);
    }
    if (r->is_gzip)
        MHD_add_response_header(response, "Content-Encoding", "gzip");
    if (r->vary)
        MHD_add_response_header(response, "Vary", r->vary);
    MHD_add_response_header(response, "Cache-Control", cache);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(
        response, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'");
    if (*r->location)
        MHD_add_response_header(response, "Location", r->location);
    if (r->allow)
        MHD_add_response_header(response, "Allow", r->allow);
    if (r->retry_after) {
        snprintf(seconds, sizeof seconds, "%d", r->retry_after);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
}

static void account(struct exchange *x, int status, const char *error,
                    enum topt_level level)
{
    struct request *q = &x->request;
    metrics_request(&q->server->metrics, route_of(q), q->lane, q->caller.role, status,
                    error, topt_clock_ms() - x->started_ms);
    char path[128];
    snprintf(path, sizeof path, "%.120s", x->path);
    for (char *p = path; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    topt_log(level, "%s: %.16s %s: %d in %lld ms, uid %d pid %d", x->request.id,
             x->request.method, path, status,
             (long long)(topt_clock_ms() - x->started_ms), (int)x->request.caller.uid,
             x->connection->pid);
}

/* Queue the reply, whose body is taken. */
static enum MHD_Result respond(struct exchange *x, struct reply *r)
{
    struct http *h = x->http;
    size_t len = r->len;
    struct MHD_Response *response =
        r->body ? MHD_create_response_from_buffer(r->len, r->body, MHD_RESPMEM_MUST_FREE)
                : MHD_create_response_from_buffer(r->len, (void *)(uintptr_t)r->fixed,
                                                  MHD_RESPMEM_PERSISTENT);
    if (!response) {
        reply_fini(r);
        return MHD_NO;
    }
    if (!r->type && r->status != 204 && r->status != 304)
        r->type = "application/json";
    add_headers(response, r);
    if (r->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "MUNGE");
    if (x->signature)
        MHD_add_response_header(response, TOPT_ANSWER_HEADER, x->signature);
    int stopping = atomic_load(&h->server->stopping);
    if (stopping || r->status == 429)
        MHD_add_response_header(response, "Connection", "close");
    account(x, r->status, r->error, TOPT_LOG_INFO);
    enter(x->connection, SENDING);
    enum MHD_Result rc = MHD_queue_response(x->mc, (unsigned)r->status, response);
    if (r->keep && x->may_keep && !stopping && rc == MHD_YES)
        warm_keep(h->warm, &x->key, x->epoch, response, r->status, len);
    else
        MHD_destroy_response(response);
    return rc;
}

/* The reply is there: back to the threads that serve connections.  'x' may be gone after. */
static void finish(struct exchange *x)
{
    struct http *h = x->http;
    pthread_mutex_lock(&h->lock);
    *x->prev = x->next;
    if (x->next)
        x->next->prev = x->prev;
    x->is_answered = 1;
    pthread_mutex_unlock(&h->lock);
    MHD_resume_connection(x->mc);
}

static struct reply refuse_crowd(const struct request *q, enum admit_verdict verdict)
{
    return verdict == ADMIT_TOO_MANY
               ? reply_error(
                     q, 429, "too_many", NULL, NULL,
                     "you have too many connections or bodies under way here; try "
                     "again when some have ended")
               : reply_error(q, 503, "busy", NULL, NULL,
                             "the server has too many requests under way");
}

/* Find out who asks; who was only an address until now is counted as that user.  0, or -1 with
 * '*ret' filled. */
static int find_caller(struct exchange *x, struct reply *ret)
{
    struct request *q = &x->request;
    char user[32];
    if (authenticate(q, &x->evidence, ret) < 0)
        return -1;
    x->is_known = 1;
    if (x->evidence.door == DOOR_UNIX || q->caller.role == ROLE_NOBODY)
        return 0;
    snprintf(user, sizeof user, "uid %d", (int)q->caller.uid);
    enum admit_verdict verdict =
        admit_request(x->http->admit, &x->connection->share, user, x->is_urgent);
    if (verdict == ADMIT)
        return 0;
    *ret = refuse_crowd(q, verdict);
    return -1;
}

/* The handler, or who goes on after a wait; before the first, who asks. */
static struct reply go_on(struct exchange *x)
{
    struct request *q = &x->request;
    struct reply r;
    if (x->then)
        return x->then(q);
    if (!x->is_known && find_caller(x, &r) < 0) {
        reply_fini(&x->reply);
        return r;
    }
    if (x->reply.status) { /* refused already, but who asks is to get a signed answer */
        r = x->reply;
        x->reply = (struct reply){0};
        return r;
    }
    return dispatch(q);
}

/* ---- signers: threads that ask munged, so that one that hangs delays no other reply ---- */

static void to_signers(struct exchange *x, void (*run)(void *ctx))
{
    x->queued_ms = topt_clock_ms();
    x->call = (struct handlers_call){.run = run, .ctx = x};
    handlers_add(x->http->signers, &x->call, x->is_urgent);
}

static int is_late(const struct exchange *x)
{
    return topt_clock_ms() - x->queued_ms > SIGNER_MS;
}

static void sign_reply(void *ctx)
{
    struct exchange *x = ctx;
    if (is_late(x))
        topt_log(TOPT_LOG_ERR, "%s: the answer is not signed: munged does not answer",
                 x->request.id);
    else
        x->signature = authenticate_reply(&x->request, &x->evidence, &x->reply);
    finish(x);
}

/* The reply is made. */
static void answered(struct exchange *x, struct reply r)
{
    encode_reply(&x->request, &r);
    x->reply = r;
    if (x->request.caller.how == HOW_MUNGE)
        to_signers(x, sign_reply);
    else
        finish(x);
}

/* In a handler thread. */
static void handle_request(void *ctx)
{
    struct exchange *x = ctx;
    struct reply r = go_on(x);
    if (r.status) {
        answered(x, r);
        return;
    }
    pthread_mutex_lock(&x->http->lock);
    x->then = r.then;
    x->waits_for = r.job;
    pthread_mutex_unlock(&x->http->lock);
    job_notify(r.job, r.wait_ms, ready, x);
}

static void to_handlers(struct exchange *x)
{
    x->call = (struct handlers_call){.run = handle_request, .ctx = x};
    handlers_add(x->http->handlers, &x->call, x->is_urgent);
}

/* In a signer: who asks by a credential? */
static void find_signer(void *ctx)
{
    struct exchange *x = ctx;
    struct reply r;
    if (is_late(x)) {
        r = reply_error(&x->request, 503, "no_munge", NULL, NULL,
                        "munged does not answer: ask over the Unix socket, or later");
    } else if (find_caller(x, &r) == 0) {
        to_handlers(x);
        return;
    }
    reply_fini(&x->reply);
    answered(x, r);
}

/* Suspend the connection and hand its request to the handlers; 0 where they are about to end. */
static int suspend(struct exchange *x)
{
    struct http *h = x->http;
    pthread_mutex_lock(&h->lock);
    if (h->closing) {
        pthread_mutex_unlock(&h->lock);
        return 0;
    }
    MHD_suspend_connection(x->mc);
    x->next = h->suspended;
    x->prev = &h->suspended;
    if (x->next)
        x->next->prev = &x->next;
    h->suspended = x;
    pthread_mutex_unlock(&h->lock);
    if (x->connection->door == DOOR_TCP && x->evidence.authorization)
        to_signers(x, find_signer);
    else
        to_handlers(x);
    return 1;
}

/* ---- reading a request ------------------------------------------------------------------- */

/* Does Accept prefer 'type'?  It does where it stands before any JSON. */
static int accepts(const char *accept, const char *type)
{
    if (!accept)
        return 0;
    const char *text = strcasestr(accept, type), *json = strcasestr(accept, "json");
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
    q->pair[q->npairs++] = (struct topt_pair){key, value};
    return MHD_YES;
}

/* The first line of a request is there.  NULL drops the connection. */
static void *exchange_create(void *cls, const char *target, struct MHD_Connection *mc)
{
    struct listener *l = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *c = info ? info->socket_context : NULL;
    size_t len = strlen(target);
    struct exchange *x = c ? calloc(1, sizeof *x + len + 1) : NULL;
    if (!x)
        return NULL;
    memcpy(x->target, target, len + 1);
    x->http = l->http;
    x->connection = c;
    x->mc = mc;
    x->started_ms = topt_clock_ms();
    enter(c, HEADERS);
    return x;
}

static void completed(void *cls, struct MHD_Connection *mc, void **context,
                      enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *context;
    (void)cls, (void)mc, (void)code;
    if (!x)
        return;
    admit_forget_body(x->http->admit, &x->connection->share);
    enter(x->connection, IDLE);
    request_fini(&x->request);
    reply_fini(&x->reply); /* where it never went out */
    free(x->signature);
    topt_text_fini(&x->body);
    free(x);
    *context = NULL;
}

struct counted {
    const char *name;
    int n;
};

static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    struct counted *c = cls;
    (void)kind, (void)value;
    c->n += !strcasecmp(key, c->name);
    return MHD_YES;
}

/* What there is to tell by who asks. */
static struct evidence evidence_of(struct MHD_Connection *mc, const struct connection *c)
{
    const struct config *config = c->http->server->config;
    struct counted logins = {.name = config->proxy_header};
    if (c->door == DOOR_PROXY)
        MHD_get_connection_values(mc, MHD_HEADER_KIND, count_header, &logins);
    return (struct evidence){.door = c->door,
                             .uid = c->uid,
                             .gid = c->gid,
                             .authorization = refuse_header(mc, "Authorization"),
                             .login = refuse_header(mc, config->proxy_header),
                             .logins = logins.n};
}

/* The headers are there. */
static void begin(struct exchange *x, const char *url, const char *method)
{
    static char none[] = "";
    struct request *q = &x->request;
    x->begun = 1;
    q->server = x->http->server;
    const struct connection *c = x->connection;
    x->evidence = evidence_of(x->mc, c);
    q->caller = (struct caller){(uid_t)-1, (gid_t)-1, ROLE_NOBODY, HOW_UNKNOWN};
    if (c->door == DOOR_UNIX) /* for the log; the role is found out by a handler thread */
        q->caller.uid = c->uid;
    q->peer = c->peer;
    q->is_near = c->is_near;
    q->method = method;
    snprintf(x->path, sizeof x->path, "%s", url);
    q->path = x->path;
    q->target = x->target;
    q->body = none;
    snprintf(q->id, sizeof q->id, "r-%llu", atomic_fetch_add(&x->http->next_id, 1) + 1);
    q->is_json = refuse_is_type(refuse_header(x->mc, "Content-Type"), "application/json");
    const char *accept = refuse_header(x->mc, "Accept");
    q->wants_text = accepts(accept, "text/plain");
    q->wants_csv = accepts(accept, "text/csv");
    q->takes_gzip = encode_takes_gzip(refuse_header(x->mc, "Accept-Encoding"));
    q->if_none_match = refuse_header(x->mc, "If-None-Match");
    q->wants_openmetrics =
        accept && strcasestr(accept, "application/openmetrics-text") != NULL;
    x->is_urgent = !strcmp(method, "POST") && !strcmp(url, "/v1/plan");
    enter(x->connection, BODY);
}

/* More of the body.  Returns 0, or -1 to drop the connection. */
static int take_body(struct exchange *x, const char *data, size_t n)
{
    size_t limit = (size_t)x->request.server->config->body_limit;
    if (!x->refused && x->body.len + n > limit)
        x->refused = -1;
    if (!x->refused)
        x->refused = (int)admit_body(x->http->admit, &x->connection->share, (int64_t)n);
    if (x->refused) {
        x->dropped += n;
        return x->dropped > 4 * limit ? -1 : 0;
    }
    topt_text_put(&x->body, data, n);
    return x->body.oom ? -1 : 0;
}

/* What is refused once the whole request is there; 0, or 1 with '*ret' filled. */
static int refuse(struct exchange *x, struct reply *ret)
{
    struct request *q = &x->request;
    const struct connection *c = x->connection;
    if (refuse_request(q, x->mc, c->door == DOOR_TCP ? c->local : NULL, ret))
        return 1;
    if (x->refused)
        *ret = x->refused < 0 ? refuse_too_long(q)
                              : refuse_crowd(q, (enum admit_verdict)x->refused);
    return x->refused != 0;
}

/* An answer that was given lately to the same user?  Over TCP and from the proxy it is not
 * known yet who asks. */
static int send_kept(struct exchange *x)
{
    struct http *h = x->http;
    struct request *q = &x->request;
    int status;
    x->may_keep =
        x->connection->door == DOOR_UNIX && q->body_len <= KEPT_BODY && !q->if_none_match;
    if (!x->may_keep)
        return 0;
    warm_key(q, &x->key);
    x->epoch = epoch_of(q->server, q->caller.uid);
    if (!warm_send(h->warm, &x->key, x->epoch, x->mc, &status))
        return 0;
    q->lane = METRICS_WARM;
    account(x, status, NULL, TOPT_LOG_DEBUG);
    atomic_fetch_add(&q->server->metrics.cache_hits, 1);
    enter(x->connection, SENDING);
    return 1;
}

/* The whole request is there. */
static enum MHD_Result serve(struct exchange *x)
{
    struct request *q = &x->request;
    struct reply r;
    MHD_get_connection_values_n(x->mc, MHD_GET_ARGUMENT_KIND, add_pair, q);
    int is_refused = refuse(x, &r);
    /* What was refused for more than its length can be answered under a signature. */
    if (is_refused &&
        (x->refused || x->connection->door != DOOR_TCP || !x->evidence.authorization))
        return respond(x, &r);
    if (x->body.len) {
        q->body = x->body.s;
        q->body_len = x->body.len;
        x->body = (struct topt_text){0};
    }
    if (is_refused)
        x->reply = r;
    else if (send_kept(x))
        return MHD_YES;
    enter(x->connection, WORKING);
    if (suspend(x))
        return MHD_YES;
    reply_fini(&x->reply);
    r = reply_error(q, 503, "stopping", NULL, NULL, "the server is stopping");
    return respond(x, &r);
}

/* Who comes over TCP with a credential, or from the proxy, is counted when it is known who that is.
 */
static enum admit_verdict admit_now(struct exchange *x)
{
    const struct connection *c = x->connection;
    if (c->door == DOOR_PROXY || (c->door == DOOR_TCP && x->evidence.authorization))
        return ADMIT;
    return admit_request(x->http->admit, &x->connection->share, c->peer, x->is_urgent);
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *mc, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **context)
{
    struct exchange *x = *context;
    struct reply r;
    (void)cls, (void)version, (void)mc;
    if (!x)
        return MHD_NO;
    if (!x->begun) {
        begin(x, url, method);
        enum admit_verdict verdict = admit_now(x);
        if (verdict != ADMIT)
            r = refuse_crowd(&x->request, verdict);
        else if (!refuse_length(&x->request, x->mc, &r))
            return MHD_YES;
        return respond(x, &r);
    }
    if (*size) {
        int rc = take_body(x, data, *size);
        *size = 0;
        return rc < 0 ? MHD_NO : MHD_YES;
    }
    if (x->is_answered) {
        r = x->reply;
        x->reply = (struct reply){0};
        return respond(x, &r);
    }
    return serve(x);
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
    const struct config *c = server->config;
    int connections = (int)c->connections;
    const struct admit_config admit = {.connections = connections,
                                       .reserved = connections / 8,
                                       .known = KNOWN,
                                       .unknown = UNKNOWN,
                                       .bodies = body_bytes,
                                       .bodies_of_peer = body_bytes / 4};
    struct http *h = calloc(1, sizeof *h);
    if (!h)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    h->server = server;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->idle, NULL);
    *ret = h;
    if (admit_create(&admit, &h->admit, err) < 0 ||
        warm_create(c->cache_bytes / WARM_PART, &h->warm, err) < 0)
        return -1;
    if (handlers_create(SIGNER_THREADS, &h->signers, err) < 0)
        return -1;
    return handlers_create(HANDLER_THREADS, &h->handlers, err);
}

int http_listen(struct http *h, int fd, enum door door, struct topt_error *err)
{
    struct listener *l = &h->listener[h->nlisteners];
    *l = (struct listener){.http = h, .door = door};
    int pollers = topt_pool_processors();
    pollers = pollers > MAX_POLLERS ? MAX_POLLERS : pollers;
    unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    /* libmicrohttpd shares its limit out among its threads; ours is the one that counts. */
    unsigned limit = (unsigned)(h->server->config->connections + 64) * (unsigned)pollers;
    l->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, l, MHD_OPTION_EXTERNAL_LOGGER, mhd_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, notify, l, MHD_OPTION_URI_LOG_CALLBACK,
        exchange_create, l, MHD_OPTION_CONNECTION_LIMIT, limit,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)(pollers > 1 ? pollers : 0),
        MHD_OPTION_END);
    if (!l->daemon) {
        shutdown(fd, SHUT_RDWR);
        return topt_fail(err, TOPT_ERR_IO, "the HTTP server did not start");
    }
    h->nlisteners++;
    return 0;
}

int http_connections(struct http *h)
{
    return admit_count(h->admit);
}

/* Wait until every request is answered, for so long.  0, or -1 where one is not. */
static int wait_idle(struct http *h, int64_t grace_ms)
{
    int64_t until = topt_clock_ms() + grace_ms;
    pthread_mutex_lock(&h->lock);
    h->closing = 1;
    while (h->busy && topt_clock_ms() < until) {
        struct timespec ts;
        clock_gettime(CLOCK_REALTIME, &ts);
        ts.tv_nsec += 20 * 1000000;
        ts.tv_sec += ts.tv_nsec / 1000000000;
        ts.tv_nsec %= 1000000000;
        for (struct exchange *x = h->suspended; x; x = x->next)
            stop_waiting(x, 0);
        pthread_cond_timedwait(&h->idle, &h->lock, &ts);
    }
    int rc = h->suspended ? -1 : 0;
    pthread_mutex_unlock(&h->lock);
    return rc;
}

/* libmicrohttpd shuts the socket that it listens on down as it stops.  One that was handed over is
 * the service manager's too, and the next toptd's: it is taken back before, and only closed. */
static void stop_listening(struct listener *l)
{
    int fd = MHD_quiesce_daemon(l->daemon);
    MHD_stop_daemon(l->daemon);
    if (fd >= 0)
        close(fd);
}

int http_destroy(struct http *h, int64_t grace_ms)
{
    if (!h)
        return 0;
    if (wait_idle(h, grace_ms) < 0)
        return -1;
    handlers_destroy(h->signers);
    handlers_destroy(h->handlers);
    for (int i = 0; i < h->nlisteners; i++)
        stop_listening(&h->listener[i]);
    warm_destroy(h->warm);
    admit_destroy(h->admit);
    pthread_cond_destroy(&h->idle);
    pthread_mutex_destroy(&h->lock);
    free(h);
    return 0;
}
