/* refuse.c - see refuse.h. */
#include "refuse.h"
#include "origin.h"

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

/* Why a host or a page may not ask, or NULL. */
static const char *is_foreign(const struct request *q, struct MHD_Connection *mc,
                              const char *local, const char **ret_header)
{
    const struct origin o = {.host = refuse_header(mc, "Host"),
                             .origin = refuse_header(mc, "Origin"),
                             .writes =
                                 strcmp(q->method, "GET") && strcmp(q->method, "HEAD"),
                             .is_json = q->is_json,
                             .is_unix = !local};
    return origin_refusal(&o, q->server->config->host, local, ret_header);
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

int refuse_request(const struct request *q, struct MHD_Connection *mc, const char *local,
                   struct reply *ret)
{
    const char *header, *why = is_foreign(q, mc, local, &header);
    if (why)
        *ret = reply_error(q, 403, "forbidden", header, NULL, why);
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
