/* http.c - the least HTTP that asks one question.
 *
 * The caller is sbatch with a person before it, so the rule is one deadline for everything:
 * the socket never blocks, each wait is a poll() for what is left of the time, and names are
 * not looked up (a resolver keeps its own time).  A server that answers before it has read
 * the whole body (413, say) is heard: readable wins over writable.
 *
 * A reply ends by Content-Length, by its last chunk, or by the connection's end.
 *
 * libmunge has time limits of its own: where munged hangs they come before the deadline
 * is looked at again, but there sbatch, whose submission munged signs too, hangs as well. */
#include "http.h"
#include "topt_clock.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "topt_credential.h"
#include "topt_text.h"

enum { REPLY_LIMIT = 192 << 10 }; /* a plan and some lines */

union address {
    struct sockaddr any;
    struct sockaddr_un un;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

struct talk {
    int fd;
    int64_t deadline_ms, said_ms;
    void (*waiting)(void); /* NULL: called, or nothing to call */
    const char *url;
};

void topt_http_fini(struct topt_http_reply *reply)
{
    free(reply->body);
    free(reply->signature);
    *reply = (struct topt_http_reply){0};
}

/* --- the reply ---------------------------------------------------------------------- */

/* The value of header 'name' within [head, end), or NULL; lines end in CRLF or LF. */
static const char *find_header(const char *head, const char *end, const char *name,
                               size_t *ret_len)
{
    size_t name_len = strlen(name);
    while (head < end) {
        const char *nl = memchr(head, '\n', (size_t)(end - head));
        const char *stop = nl ? nl : end;
        if ((size_t)(stop - head) > name_len && head[name_len] == ':' &&
            strncasecmp(head, name, name_len) == 0) {
            const char *v = head + name_len + 1;
            while (v < stop && (*v == ' ' || *v == '\t'))
                v++;
            while (stop > v && isspace((unsigned char)stop[-1]))
                stop--;
            *ret_len = (size_t)(stop - v);
            return v;
        }
        if (!nl)
            break;
        head = nl + 1;
    }
    return NULL;
}

/* One past the blank line that ends the head, or NULL. */
static const char *end_of_head(const char *bytes, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++) {
        if (bytes[i] != '\n')
            continue;
        if (bytes[i + 1] == '\n')
            return bytes + i + 2;
        if (i + 2 < len && bytes[i + 1] == '\r' && bytes[i + 2] == '\n')
            return bytes + i + 3;
    }
    return NULL;
}

static int take_body(struct topt_text *t, int status, struct topt_http_reply *ret,
                     struct topt_error *err)
{
    topt_text_put(t, "", 0);
    if (t->oom) {
        topt_text_fini(t);
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the planner's answer");
    }
    *ret = (struct topt_http_reply){.status = status, .body = t->s, .len = t->len};
    return 1;
}

/* Put the chunks together.  Returns 1 when the last one is there, 0 for more, -1. */
static int join_chunks(const char *p, size_t len, struct topt_text *out)
{
    const char *end = p + len;
    for (;;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return end - p > 64 ? -1 : 0;
        size_t size = 0;
        const char *digit = p;
        for (; isxdigit((unsigned char)*digit); digit++) {
            int c = tolower((unsigned char)*digit);
            size = size * 16 + (size_t)(c <= '9' ? c - '0' : c - 'a' + 10);
            if (size > REPLY_LIMIT)
                return -1;
        }
        if (digit == p)
            return -1;
        if (size == 0)
            return 1;
        p = nl + 1;
        if ((size_t)(end - p) < size)
            return 0;
        topt_text_put(out, p, size);
        p += size;
        nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return end - p > 2 ? -1 : 0;
        p = nl + 1;
    }
}

/* "HTTP/1.1 200 OK": 200, or -1. */
static int read_status(const char *line, const char *end)
{
    if (end - line < 12 || strncmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ')
        return -1;
    int status = 0;
    for (int i = 9; i < 12; i++) {
        if (!isdigit((unsigned char)line[i]))
            return -1;
        status = status * 10 + (line[i] - '0');
    }
    return status;
}

/* The body that follows the head.  Same returns as topt_http_parse. */
static int parse_body(const char *head, const char *body, size_t have, int eof,
                      int status, struct topt_http_reply *ret, struct topt_error *err)
{
    struct topt_text text = {0};
    size_t value_len = 0;
    const char *coding = find_header(head, body, "Transfer-Encoding", &value_len);
    if (coding && !(value_len == 7 && strncasecmp(coding, "identity", value_len) == 0)) {
        int rc = join_chunks(body, have, &text);
        if (rc == 1)
            return take_body(&text, status, ret, err);
        topt_text_fini(&text);
        if (rc < 0 || eof)
            return topt_fail(err, TOPT_ERR_IO, "the planner's answer has broken chunks");
        return 0;
    }
    const char *length = find_header(head, body, "Content-Length", &value_len);
    if (length) {
        char digits[16] = "";
        int64_t want = 0;
        if (value_len < sizeof digits)
            memcpy(digits, length, value_len);
        if (topt_parse_int(digits, 0, REPLY_LIMIT, &want, NULL))
            return topt_fail(err, TOPT_ERR_IO, "the planner's answer has a bad length");
        if (have < (size_t)want && eof)
            return topt_fail(err, TOPT_ERR_IO, "the planner's answer was cut off");
        if (have < (size_t)want)
            return 0;
        have = (size_t)want;
    } else if (!eof) {
        return 0;
    }
    topt_text_put(&text, body, have);
    return take_body(&text, status, ret, err);
}

/* What else of the head is of interest.  1, or -1 without memory. */
static int take_headers(const char *head, const char *end, struct topt_http_reply *ret,
                        struct topt_error *err)
{
    size_t n = 0;
    int64_t seconds = 0;
    char digits[8] = "";
    const char *v = find_header(head, end, "Retry-After", &n);
    if (v && n < sizeof digits) {
        memcpy(digits, v, n);
        if (!topt_parse_int(digits, 0, 3600, &seconds, NULL))
            ret->retry_after_s = (int)seconds;
    }
    v = find_header(head, end, TOPT_ANSWER_HEADER, &n);
    if (v && !(ret->signature = strndup(v, n))) {
        topt_http_fini(ret);
        return topt_nomem(err, "the planner's answer");
    }
    return 1;
}

int topt_http_parse(const char *bytes, size_t len, int eof, struct topt_http_reply *ret,
                    struct topt_error *err)
{
    const char *body = end_of_head(bytes, len);
    if (!body) {
        if (eof)
            return topt_fail(err, len ? TOPT_ERR_IO : TOPT_ERR_BUSY,
                             len ? "the planner's answer was cut off"
                                 : "the planner closed the connection without an answer");
        return 0;
    }
    int status = read_status(bytes, body);
    if (status < 0)
        return topt_fail(err, TOPT_ERR_IO,
                         "the server at that address doesn't speak HTTP");
    const char *head = memchr(bytes, '\n', len);
    int rc =
        parse_body(head + 1, body, len - (size_t)(body - bytes), eof, status, ret, err);
    return rc == 1 ? take_headers(head + 1, body, ret, err) : rc;
}

/* --- the connection ----------------------------------------------------------------- */

static int read_unix(const char *path, union address *ret, socklen_t *ret_len)
{
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof ret->un.sun_path)
        return -1;
    ret->un.sun_family = AF_UNIX;
    memcpy(ret->un.sun_path, path, n + 1);
    *ret_len = sizeof ret->un;
    return 0;
}

/* "1.2.3.4:80/", "[::1]:80", "localhost:80": split at the colon.  -1 when it doesn't fit
 * or the port is no port. */
static int split_host(const char *p, char *host, size_t size, uint16_t *ret_port)
{
    const char *after;
    size_t n = strcspn(p, ":/");
    int64_t port = 80;
    char number[8] = "";
    if (*p == '[' && strchr(p, ']')) {
        n = strcspn(++p, "]");
        after = p + n + 1;
    } else {
        after = p + n;
    }
    if (n >= size)
        return -1;
    memcpy(host, p, n);
    host[n] = '\0';
    if (*after == ':') {
        size_t digits = strcspn(++after, "/");
        if (digits >= sizeof number)
            return -1;
        memcpy(number, after, digits);
        if (topt_parse_int(number, 1, 65535, &port, NULL))
            return -1;
    }
    *ret_port = htons((uint16_t)port);
    return 0;
}

static int read_url(const char *url, union address *ret, socklen_t *ret_len,
                    struct topt_error *err)
{
    char host[64];
    uint16_t port = 0;
    memset(ret, 0, sizeof *ret);
    if (strncmp(url, "unix:", 5) == 0) {
        if (read_unix(url + 5, ret, ret_len))
            return topt_fail(err, TOPT_ERR_INVAL, "'%s' holds no usable socket path",
                             url);
        return 0;
    }
    if (strncmp(url, "http://", 7) != 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%s' is neither unix:/path nor http://ADDRESS:PORT", url);
    if (split_host(url + 7, host, sizeof host, &port))
        return topt_fail(err, TOPT_ERR_INVAL, "'%s' isn't understood", url);
    if (strcmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    if (inet_pton(AF_INET, host, &ret->in.sin_addr) == 1) {
        ret->in.sin_family = AF_INET;
        ret->in.sin_port = port;
        *ret_len = sizeof ret->in;
        return 0;
    }
    if (inet_pton(AF_INET6, host, &ret->in6.sin6_addr) == 1) {
        ret->in6.sin6_family = AF_INET6;
        ret->in6.sin6_port = port;
        *ret_len = sizeof ret->in6;
        return 0;
    }
    return topt_fail(err, TOPT_ERR_INVAL,
                     "'%s': the address must be numeric (names aren't looked up)", url);
}

/* Milliseconds until something is to be done; who waits with us is told when it is time. */
static int patience(struct talk *t)
{
    int64_t now = topt_clock_ms(), until = t->deadline_ms;
    if (t->waiting && now >= t->said_ms && now < until) {
        t->waiting();
        t->waiting = NULL;
    }
    if (t->waiting && t->said_ms < until)
        until = t->said_ms;
    return until - now > 1 << 30 ? 1 << 30 : until > now ? (int)(until - now) : 0;
}

/* Wait for 'events'; fails past the deadline. */
static int wait_for(struct talk *t, short events, short *ret, struct topt_error *err)
{
    struct pollfd p = {.fd = t->fd, .events = events};
    for (;;) {
        int left = patience(t);
        int n = left <= 0 ? 0 : poll(&p, 1, left);
        if ((n < 0 && errno == EINTR) || (n == 0 && topt_clock_ms() < t->deadline_ms))
            continue;
        if (n < 0)
            return topt_fail(err, TOPT_ERR_IO, "poll: %s", strerror(errno));
        if (n == 0)
            return topt_fail(err, TOPT_ERR_CANCELED, "no answer from %s in time", t->url);
        *ret = p.revents;
        return 0;
    }
}

static int connect_to(struct talk *t, struct topt_error *err)
{
    union address a;
    socklen_t len = 0, size = sizeof(int);
    short ready = 0;
    int sys = 0;
    if (read_url(t->url, &a, &len, err))
        return -1;
    t->fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (t->fd < 0)
        return topt_fail(err, TOPT_ERR_IO, "socket: %s", strerror(errno));
    if (!connect(t->fd, &a.any, len))
        return 0;
    sys = errno;
    if (sys == EINPROGRESS || sys == EINTR) {
        if (wait_for(t, POLLOUT, &ready, err))
            return -1;
        if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &sys, &size))
            sys = errno;
    }
    if (sys == 0)
        return 0;
    /* A Unix socket whose queue is full says EAGAIN: as good as a hanging daemon. */
    return topt_fail(
        err,
        sys == EAGAIN || sys == ECONNREFUSED || sys == ECONNRESET ? TOPT_ERR_BUSY
                                                                  : TOPT_ERR_IO,
        "no answer from %s: %s", t->url, sys == EAGAIN ? "too busy" : strerror(sys));
}

/* Send until done or until something is there to read. */
static int send_all(struct talk *t, const char *p, size_t len, struct topt_error *err)
{
    while (len > 0) {
        short ready = 0;
        if (wait_for(t, POLLIN | POLLOUT, &ready, err))
            return -1;
        if (ready & POLLIN)
            return 0;
        ssize_t n = send(t->fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return 0; /* what it said before it went may still be read */
        if (n < 0)
            return topt_fail(err, TOPT_ERR_IO, "sending to %s: %s", t->url,
                             strerror(errno));
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int receive(struct talk *t, struct topt_http_reply *ret, struct topt_error *err)
{
    struct topt_text got = {0};
    char chunk[4096];
    int rc = 0;
    while (rc == 0) {
        short ready = 0;
        if (wait_for(t, POLLIN, &ready, err)) {
            rc = -1;
            break;
        }
        ssize_t n = recv(t->fd, chunk, sizeof chunk, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0) {
            rc = topt_fail(err, errno == ECONNRESET ? TOPT_ERR_BUSY : TOPT_ERR_IO,
                           "%s broke off: %s", t->url, strerror(errno));
            break;
        }
        topt_text_put(&got, chunk, (size_t)n);
        if (got.oom || got.len > REPLY_LIMIT + 8192) {
            rc = topt_fail(err, TOPT_ERR_LIMIT, "the planner's answer is too long");
            break;
        }
        rc = topt_http_parse(got.s ? got.s : "", got.len, n == 0, ret, err);
    }
    topt_text_fini(&got);
    return rc == 1 ? 0 : -1;
}

/* --- who is at the other end ---------------------------------------------------------- */

static int is_unix(const char *url)
{
    return !strncmp(url, "unix:", 5);
}

/* Of a reply over TCP: is it the daemon's?  Gives back what is not to be believed. */
static int check_reply(const struct topt_http_request *q, const char *authorization,
                       struct topt_http_reply *r, struct topt_error *err)
{
    const struct topt_answered a = {r->status, r->body, r->len};
    int rc = topt_credential_check_answer(q->trust, q->url, r->signature, authorization,
                                          &a, err);
    if (rc > 0) {
        *r->body = '\0';
        r->len = 0;
    } else if (rc < 0) {
        topt_http_fini(r);
    }
    return rc < 0 ? -1 : 0;
}

/* The request's head.  '*ret_signed' is the value of Authorization, NULL on a Unix socket. */
static int write_head(const struct topt_http_request *q, struct topt_text *head,
                      char **ret_signed, struct topt_error *err)
{
    const struct topt_asked asked = {"POST", q->target, q->body, q->len};
    const char *host = is_unix(q->url) ? "localhost" : q->url + strlen("http://");
    *ret_signed = NULL;
    if (!is_unix(q->url) && topt_credential_ask(q->trust, &asked, ret_signed, err))
        return -1;
    topt_text_add(head,
                  "POST %s HTTP/1.1\r\nHost: %.*s\r\nAccept: text/plain\r\n"
                  "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n",
                  q->target, (int)strcspn(host, "/"), host, q->len);
    if (*ret_signed)
        topt_text_add(head, "Authorization: %s\r\n", *ret_signed);
    topt_text_add(head, "Connection: close\r\n\r\n");
    if (!head->oom)
        return 0;
    free(*ret_signed);
    *ret_signed = NULL;
    return topt_nomem(err, "the request");
}

int topt_http_post(const struct topt_http_request *q, struct topt_http_reply *ret,
                   struct topt_error *err)
{
    struct talk t = {.fd = -1,
                     .deadline_ms = topt_clock_ms() + q->timeout_ms,
                     .said_ms = q->said_ms,
                     .waiting = q->waiting,
                     .url = q->url};
    struct topt_text head = {0};
    char *authorization = NULL;
    int rc = -1;
    if (connect_to(&t, err) || (is_unix(q->url) && topt_trust_peer(q->trust, t.fd, err)))
        goto out;
    if (write_head(q, &head, &authorization, err) ||
        send_all(&t, head.s, head.len, err) || send_all(&t, q->body, q->len, err))
        goto out;
    rc = receive(&t, ret, err);
    if (rc == 0 && authorization)
        rc = check_reply(q, authorization, ret, err);
out:
    if (t.fd >= 0)
        close(t.fd);
    free(authorization);
    topt_text_fini(&head);
    return rc;
}
