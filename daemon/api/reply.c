/* reply.c - replies, the error envelope, and what every handler checks first. */
#include "server.h"
#include "topt_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char type_json[] = "application/json";
static const char type_text[] = "text/plain; charset=utf-8";

struct reply reply_fixed(int status, const char *type, const char *text)
{
    return (struct reply){
        .status = status, .type = type, .fixed = text, .len = strlen(text)};
}

struct reply reply_owned(int status, const char *type, char *takes)
{
    if (!takes)
        return reply_fixed(503, type_json,
                           "{\"errors\":[{\"error\":\"out_of_memory\","
                           "\"description\":\"out of memory\"}]}\n");
    return (struct reply){
        .status = status, .type = type, .body = takes, .len = strlen(takes)};
}

struct reply reply_json(int status, json_t *takes)
{
    char *text = takes ? topt_json_text(takes, 0) : NULL;
    json_decref(takes);
    return reply_owned(status, type_json, text);
}

void reply_fini(struct reply *r)
{
    free(r->body);
    *r = (struct reply){0};
}

static struct reply error_text(int status, const char *name, const char *nearest,
                               const char *description)
{
    struct topt_text t = {0};
    topt_text_add(&t, "ERROR=%s\nDESCRIPTION=%s\n", name, description);
    if (nearest)
        topt_text_add(&t, "NEAREST=%s\n", nearest);
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(status, type_text, t.s);
}

struct reply reply_error(const struct request *q, int status, const char *name,
                         const char *source, const char *nearest, const char *description)
{
    char line[512], from[96];
    one_line(description, line, sizeof line);
    struct reply r;
    if (q->wants_text) {
        r = error_text(status, name, nearest, line);
    } else {
        json_t *e = json_pack("{s:s, s:s}", "error", name, "description", line);
        one_line(source ? source : "", from, sizeof from);
        if (e && source)
            json_object_set_new(e, "source", json_string(from));
        if (e && nearest)
            json_object_set_new(e, "nearest", json_string(nearest));
        r = reply_json(status, json_pack("{s:[o]}", "errors", e));
    }
    if (status == 503)
        r.retry_after = 5;
    return r;
}

struct reply reply_fail(const struct request *q, const char *source,
                        const struct topt_error *err)
{
    return reply_error(q, topt_err_http(err->code), topt_err_name(err->code), source,
                       NULL, err->text);
}

int no_parameters(const struct request *q, struct reply *ret)
{
    if (!q->npairs)
        return 0;
    struct topt_error err;
    topt_fail(&err, TOPT_ERR_INVAL, "%.60s: unknown parameter", q->pair[0].key);
    *ret = reply_fail(q, q->pair[0].key, &err);
    return -1;
}
