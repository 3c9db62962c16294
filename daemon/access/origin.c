/* origin.c - which web pages may speak to us. */
#include "origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The host of "host:port", "[::1]:port", "host", without brackets.  0, or -1. */
static int split(const char *text, char *host, size_t size)
{
    const char *after;
    size_t n;
    if (*text == '[') {
        n = strcspn(++text, "]");
        if (text[n] != ']')
            return -1;
        after = text + n + 1;
    } else {
        n = strcspn(text, ":");
        after = text + n;
    }
    if (n == 0 || n >= size || (*after && *after != ':'))
        return -1;
    if (*after && strspn(after + 1, "0123456789") != strlen(after + 1))
        return -1;
    memcpy(host, text, n);
    host[n] = '\0';
    return 0;
}

/* 127.0.0.0/8, ::1, localhost. */
static int is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
    return !strcasecmp(host, "localhost");
}

static int lists(const char *names, const char *host)
{
    size_t len = strlen(host);
    while (names && *names) {
        names += strspn(names, ", ");
        size_t n = strcspn(names, ", ");
        if (n == len && n && !strncasecmp(names, host, n))
            return 1;
        names += n;
    }
    return 0;
}

int origin_host_is_ours(const char *host, const char *names, const char *local)
{
    char name[256];
    if (split(host, name, sizeof name) < 0)
        return 0;
    return is_loopback(name) || (local && !strcasecmp(name, local)) || lists(names, name);
}

/* "http://HOST" or "https://HOST", of just that Host. */
static int is_same(const char *origin, const char *host)
{
    if (!strncasecmp(origin, "http://", 7))
        return !strcasecmp(origin + 7, host);
    return !strncasecmp(origin, "https://", 8) && !strcasecmp(origin + 8, host);
}

const char *origin_refusal(const struct origin *o, const char *names, const char *local,
                           const char **ret_header)
{
    *ret_header = "Host";
    if (!o->host && !o->is_unix)
        return "a Host is needed";
    if (o->host && !origin_host_is_ours(o->host, names, local))
        return "this server does not answer to that name: ask by its address, or have "
               "the name listed in its setting host";
    if (!o->origin)
        return NULL;
    *ret_header = "Origin";
    if (!o->host || !is_same(o->origin, o->host))
        return "pages of other sites may not ask";
    *ret_header = "Content-Type";
    if (o->writes && !o->is_json)
        return "a page sends application/json";
    return NULL;
}
