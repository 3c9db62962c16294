/* encode.c - see encode.h. */
#include "encode.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topt_pack.h"

enum { LEAST_BYTES = 1024 /* less is not worth it */ };

/* Is its weight, as ";q=0.5", more than nothing? */
static int is_wanted(const char *after)
{
    const char *end = after + strcspn(after, ",");
    const char *q = strstr(after, "q=");
    return !q || q > end || strtod(q + 2, NULL) > 0;
}

int encode_takes_gzip(const char *accept)
{
    for (const char *s = accept; s && *s; s += strcspn(s, ","), s += *s == ',') {
        s += strspn(s, " \t");
        size_t n = strcspn(s, ";, \t");
        if ((n == 4 && !strncasecmp(s, "gzip", 4)) || (n == 1 && *s == '*'))
            return is_wanted(s + n);
    }
    return 0;
}

void encode_reply(const struct request *q, struct reply *r)
{
    const char *body = r->body ? r->body : r->fixed;
    void *packed;
    size_t len;
    if (r->status == 204 || r->status == 304 || r->len < LEAST_BYTES)
        return;
    r->vary = "Accept, Accept-Encoding";
    if (!q->takes_gzip || topt_gzip(body, r->len, &packed, &len, NULL) < 0)
        return;
    free(r->body);
    r->body = packed;
    r->len = len;
    r->fixed = NULL;
    r->is_gzip = 1;
}
