/* request.c - one request to toptd by libcurl. */
#include "request.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONNECT_MS = 5000, SILENT_MS = 1000 };

int64_t client_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A wait, as a line on the terminal that is written over. */
struct wait {
    int64_t began_ms, shown_s; /* the last that was written; 0: none */
};

static int show_wait(void *to, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct wait *w = to;
    int64_t ms = client_now_ms() - w->began_ms;
    (void)a, (void)b, (void)c, (void)d;
    if (ms >= SILENT_MS && ms / 1000 > w->shown_s) {
        w->shown_s = ms / 1000;
        fprintf(stderr, "\r\033[Kasking the planner, %lld s", (long long)w->shown_s);
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

static size_t take_header(char *data, size_t size, size_t n, void *to)
{
    struct client_reply *r = to;
    static const char name[] = "location:";
    size_t len = size * n, skip = sizeof name - 1;
    if (len > skip && !strncasecmp(data, name, skip)) {
        while (skip < len && data[skip] == ' ')
            skip++;
        while (len > skip && (data[len - 1] == '\r' || data[len - 1] == '\n'))
            len--;
        if (len - skip < sizeof r->location) {
            memcpy(r->location, data + skip, len - skip);
            r->location[len - skip] = '\0';
        }
    }
    return size * n;
}

void client_reply_fini(struct client_reply *r)
{
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
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, q->timeout_s);
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

static CURLcode perform(CURL *c, const struct client_request *q)
{
    struct wait w = {.began_ms = q->began_ms};
    if (q->began_ms && isatty(STDERR_FILENO)) {
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, show_wait);
        curl_easy_setopt(c, CURLOPT_XFERINFODATA, &w);
    }
    CURLcode code = curl_easy_perform(c);
    if (w.shown_s)
        fprintf(stderr, "\r\033[K");
    return code;
}

int client_ask(const struct client_request *q, struct client_reply *ret,
               struct topt_error *err)
{
    char why[CURL_ERROR_SIZE] = "", type[80];
    struct topt_text url = {0};
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
        set_request(c, q, ret, headers, why);
        CURLcode code = perform(c, q);
        if (code != CURLE_OK)
            rc = topt_fail(err, TOPT_ERR_IO,
                           "no answer from %s: %s; is toptd running? (`toptd` starts it)",
                           q->url, *why ? why : curl_easy_strerror(code));
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &ret->status);
        topt_text_put(&ret->body, "", 0);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    topt_text_fini(&url);
    if (rc < 0)
        client_reply_fini(ret);
    return rc;
}
