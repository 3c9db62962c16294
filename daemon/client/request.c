/* request.c - one request to toptd by libcurl, and is it toptd that answers? */
#include "request.h"
#include "topt_clock.h"
#include "topt_credential.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECT_MS = 5000, SILENT_MS = 1000 };

/* A wait, as a line on the terminal that is written over. */
struct wait {
    const char *doing;
    int64_t began_ms, shown_s; /* the last that was written; 0: none */
};

static int show_wait(void *to, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct wait *w = to;
    int64_t ms = topt_clock_ms() - w->began_ms;
    (void)a, (void)b, (void)c, (void)d;
    if (ms >= SILENT_MS && ms / 1000 > w->shown_s) {
        w->shown_s = ms / 1000;
        fprintf(stderr, "\r\033[K%s, %lld s", w->doing, (long long)w->shown_s);
        fflush(stderr);
    }
    return 0;
}

static size_t take(char *data, size_t size, size_t n, void *to)
{
    struct topt_text *t = to;
    topt_text_put(t, data, size * n);
    return t->oom ? 0 : size * n;
}

/* The value of a header's line where it is 'name', else NULL. */
static const char *value_of(const char *line, size_t len, const char *name,
                            size_t *ret_len)
{
    size_t skip = strlen(name);
    if (len <= skip || strncasecmp(line, name, skip) || line[skip++] != ':')
        return NULL;
    while (skip < len && line[skip] == ' ')
        skip++;
    while (len > skip && (line[len - 1] == '\r' || line[len - 1] == '\n'))
        len--;
    *ret_len = len - skip;
    return line + skip;
}

static size_t take_header(char *data, size_t size, size_t n, void *to)
{
    struct client_reply *r = to;
    size_t len;
    const char *v = value_of(data, size * n, "location", &len);
    if (v && len < sizeof r->location) {
        memcpy(r->location, v, len);
        r->location[len] = '\0';
    }
    v = value_of(data, size * n, "retry-after", &len);
    if (v)
        r->retry_after_s = atoi(v);
    v = value_of(data, size * n, TOPT_ANSWER_HEADER, &len);
    if (v && !r->signature && !(r->signature = strndup(v, len)))
        return 0;
    return size * n;
}

void client_reply_fini(struct client_reply *r)
{
    free(r->signature);
    topt_text_fini(&r->body);
    *r = (struct client_reply){0};
}

void client_add_query(struct topt_text *path, const char *key, const char *value)
{
    char *encoded = curl_easy_escape(NULL, value, 0);
    int more = path->s && strchr(path->s, '?');
    if (encoded)
        topt_text_add(path, "%c%s=%s", more ? '&' : '?', key, encoded);
    else
        path->oom = 1;
    curl_free(encoded);
}

void client_add_segment(struct topt_text *path, const char *part)
{
    char *encoded = curl_easy_escape(NULL, part, 0);
    if (encoded)
        topt_text_add(path, "%s", encoded);
    else
        path->oom = 1;
    curl_free(encoded);
}

/* The URL for libcurl; sets the socket.  0, or -1. */
static int set_url(CURL *c, const struct client_request *q, struct topt_text *url,
                   struct topt_error *err)
{
    if (!strncmp(q->url, "unix:", 5)) {
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, q->url + 5);
        topt_text_add(url, "http://localhost%s", q->path);
    } else if (!strncmp(q->url, "http://", 7)) {
        size_t n = strlen(q->url);
        while (n && q->url[n - 1] == '/')
            n--;
        topt_text_put(url, q->url, n);
        topt_text_add(url, "%s", q->path);
    } else {
        return topt_fail(err, TOPT_ERR_USAGE,
                         "'%s' is no server's URL: unix:/PATH or http://HOST:PORT",
                         q->url);
    }
    if (url->oom)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    curl_easy_setopt(c, CURLOPT_URL, url->s);
    return 0;
}

static void set_request(CURL *c, const struct client_request *q, struct client_reply *ret,
                        struct curl_slist *headers, char *why)
{
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L); /* what is signed is what is sent */
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, q->timeout_ms);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &ret->body);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, ret);
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, q->method);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    if (q->body) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, q->body);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
    }
}

/* The connection of a request. */
struct line {
    const struct topt_trust *trust;
    curl_socket_t fd;
    struct topt_error err; /* of a listener who is not trusted */
};

static curl_socket_t open_socket(void *to, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct line *l = to;
    (void)purpose;
    l->fd = socket(a->family, a->socktype, a->protocol);
    return l->fd;
}

/* Connected, and nothing sent yet. */
static int check_listener(void *to, char *a, char *b, int c, int d)
{
    struct line *l = to;
    (void)a, (void)b, (void)c, (void)d;
    return topt_trust_peer(l->trust, l->fd, &l->err) < 0 ? CURL_PREREQFUNC_ABORT
                                                         : CURL_PREREQFUNC_OK;
}

static CURLcode perform(CURL *c, const struct client_request *q, struct topt_error *err)
{
    struct wait w = {.doing = q->doing && *q->doing ? q->doing : "asking the planner",
                     .began_ms = q->began_ms};
    struct line l = {.trust = q->trust, .fd = -1};
    if (!strncmp(q->url, "unix:", 5)) {
        curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
        curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, &l);
        curl_easy_setopt(c, CURLOPT_PREREQFUNCTION, check_listener);
        curl_easy_setopt(c, CURLOPT_PREREQDATA, &l);
    }
    if (q->began_ms && isatty(STDERR_FILENO)) {
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, show_wait);
        curl_easy_setopt(c, CURLOPT_XFERINFODATA, &w);
    }
    CURLcode code = curl_easy_perform(c);
    if (w.shown_s)
        fprintf(stderr, "\r\033[K");
    *err = l.err;
    return code;
}

/* Sign the request where it goes over TCP: '*ret' is the value of Authorization, or NULL. */
static int sign(const struct client_request *q, const char *url,
                struct curl_slist **headers, char **ret, struct topt_error *err)
{
    const char *target = strchr(url + strlen("http://"), '/');
    const struct topt_asked asked = {q->method, target ? target : "/", q->body,
                                     q->body ? q->body_len : 0};
    struct topt_text line = {0};
    if (!strncmp(q->url, "unix:", 5))
        return 0;
    if (topt_credential_ask(q->trust, &asked, ret, err) < 0)
        return -1;
    topt_text_add(&line, "Authorization: %s", *ret);
    if (!line.oom)
        *headers = curl_slist_append(*headers, line.s);
    topt_text_fini(&line);
    return 0;
}

/* Over TCP: is it the daemon's answer?  An outage's body that nobody signed is left out. */
static int check(const struct client_request *q, const char *authorization,
                 struct client_reply *r, struct topt_error *err)
{
    const struct topt_answered a = {(int)r->status, r->body.s, r->body.len};
    int rc = topt_credential_check_answer(q->trust, q->url, r->signature, authorization,
                                          &a, err);
    if (rc > 0)
        topt_text_fini(&r->body);
    return rc < 0 ? -1 : 0;
}

int client_ask(const struct client_request *q, struct client_reply *ret,
               struct topt_error *err)
{
    char why[CURL_ERROR_SIZE] = "", type[80], *authorization = NULL;
    struct topt_text url = {0};
    struct topt_error distrust = {0};
    struct curl_slist *headers = NULL;
    *ret = (struct client_reply){0};
    CURL *c = curl_easy_init();
    if (!c)
        return topt_fail(err, TOPT_ERR_NOMEM, "libcurl did not start");
    int rc = set_url(c, q, &url, err);
    if (rc == 0) {
        snprintf(type, sizeof type, "Content-Type: %s", q->type ? q->type : "");
        headers = curl_slist_append(headers, "Accept: application/json");
        if (q->body)
            headers = curl_slist_append(headers, type);
        rc = sign(q, url.s, &headers, &authorization, err);
    }
    if (rc == 0) {
        set_request(c, q, ret, headers, why);
        CURLcode code = perform(c, q, &distrust);
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &ret->status);
        if (distrust.code)
            rc = topt_fail(err, distrust.code, "%s: %s", q->url, distrust.text);
        else if (code != CURLE_OK)
            rc = topt_fail(
                err, TOPT_ERR_IO,
                "no answer from %s: %s; is toptd running? (its log says why not)", q->url,
                *why ? why : curl_easy_strerror(code));
        else if (authorization)
            rc = check(q, authorization, ret, err);
        topt_text_put(&ret->body, "", 0);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    topt_text_fini(&url);
    free(authorization);
    if (rc < 0)
        client_reply_fini(ret);
    return rc;
}
