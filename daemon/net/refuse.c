/* refuse.c - see refuse.h.  Who can reach us by TCP without a credential is on this machine; a web
 * page in somebody's browser is not: such requests must name a loopback host, and a foreign Origin
 * is refused. */
#include "refuse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *refuse_header(struct MHD_Connection *mc, const char *name)
{
    return MHD_lookup_connection_value(mc, MHD_HEADER_KIND, name);
}

int refuse_is_type(const char *value, const char *type)
{
    size_t n = strlen(type);
    return value && !strncasecmp(value, type, n) &&
           (!value[n] || value[n] == ';' || isspace((unsigned char)value[n]));
}

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
    const char *host = refuse_header(mc, "Host"), *origin = refuse_header(mc, "Origin");
    if (!port)
        return origin != NULL; /* no browser speaks to a Unix socket */
    if (!host || !host_is_ours(host, port))
        return 1;
    return origin && (strncmp(origin, "http://", 7) || strcasecmp(origin + 7, host));
}

static int bad_type(struct MHD_Connection *mc)
{
    const char *encoding = refuse_header(mc, "Content-Encoding");
    const char *type = refuse_header(mc, "Content-Type");
    const char *charset = type ? strcasestr(type, "charset=") : NULL;
    if (encoding && strcasecmp(encoding, "identity"))
        return 1;
    if (refuse_is_type(type, "multipart/form-data"))
        return 1;
    return charset && strncasecmp(charset + 8, "utf-8", 5) &&
           strncasecmp(charset + 8, "\"utf-8", 6) &&
           strncasecmp(charset + 8, "us-ascii", 8);
}

int refuse_request(const struct request *q, struct MHD_Connection *mc, int port,
                   struct reply *ret)
{
    if (is_foreign(mc, port))
        *ret = reply_error(q, 403, "forbidden", "Host", NULL,
                           "requests must come from this machine, not from a web page");
    else if (bad_type(mc))
        *ret = reply_error(q, 415, "unsupported_media_type", "Content-Type", NULL,
                           "send the document itself in UTF-8: no form, no compression");
    else if (q->npairs < 0)
        *ret = reply_error(q, 400, "invalid", "query", NULL,
                           "too many parameters, or zero bytes in one");
    else
        return 0;
    return 1;
}

struct reply refuse_too_long(const struct request *q)
{
    char text[80];
    snprintf(text, sizeof text, "the body is longer than %lld bytes",
             (long long)q->server->config->body_limit);
    return reply_error(q, 413, "limit", "body", NULL, text);
}

int refuse_length(const struct request *q, struct MHD_Connection *mc, struct reply *ret)
{
    const char *length = refuse_header(mc, "Content-Length");
    if (!length ||
        strtoull(length, NULL, 10) <= (unsigned long long)q->server->config->body_limit)
        return 0;
    *ret = refuse_too_long(q);
    return 1;
}
