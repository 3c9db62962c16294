/* reply.c - replies, the error envelope, and what every handler checks first. */
#include "server.h"
#include "scan.h"
#include "topt_digest.h"
#include "topt_json.h"
#include "topt_log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IMMUTABLE_S = 365 * 24 * 3600, MOST_FIELDS = 32, FIELD_LENGTH = 40 };
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

struct reply reply_wait(struct job *job, int64_t ms, handler *then)
{
    return (struct reply){.job = job, .wait_ms = ms, .then = then};
}

struct reply reply_json(int status, json_t *takes)
{
    char *text = takes ? topt_json_text(takes, 0) : NULL;
    json_decref(takes);
    return reply_owned(status, type_json, text);
}

unsigned long long epoch_of(const struct server *s, int64_t uid)
{
    return atomic_load(&s->epoch) + atomic_load(&s->own_epoch[(uint64_t)uid % EPOCHS]) +
           store_given_up(s->store);
}

void changed_for(struct server *s, int64_t uid)
{
    atomic_fetch_add(&s->own_epoch[(uint64_t)uid % EPOCHS], 1);
}

int64_t asker(const struct request *q)
{
    return q->caller.uid != (uid_t)-1 ? q->caller.uid : geteuid();
}

const struct store_who *reader_of(const struct request *q, struct reader *r)
{
    gid_t group[ROLES_GROUPS];
    if (q->caller.role == ROLE_ADMIN)
        return NULL;
    int n = roles_groups(q->server->roles, &q->caller, group);
    for (int i = 0; i < n; i++)
        r->gid[i] = group[i];
    r->who = (struct store_who){.uid = q->caller.uid, .gid = r->gid, .ngids = n};
    return &r->who;
}

char *request_take_body(struct request *q, size_t *ret_len)
{
    static char none[] = "";
    char *body = q->body_len ? q->body : strdup("");
    *ret_len = q->body_len;
    q->body = none;
    q->body_len = 0;
    return body;
}

void request_fini(struct request *q)
{
    if (q->state && q->state_free)
        q->state_free(q->state);
    if (q->body_len)
        free(q->body);
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

/* The path with bytes that a terminal would act on shown as '?'. */
static void log_refusal(const struct request *q, int status, const char *why)
{
    char path[128];
    snprintf(path, sizeof path, "%.120s", q->path ? q->path : "");
    for (char *p = path; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    topt_log(TOPT_LOG_WARN, "refused: %s: %.16s %s: %d to uid %d (%s, %s) at %s: %s",
             q->id, q->method ? q->method : "", path, status, (int)q->caller.uid,
             role_name(q->caller.role), how_name(q->caller.how), q->peer ? q->peer : "?",
             why);
}

struct reply reply_error(const struct request *q, int status, const char *name,
                         const char *source, const char *nearest, const char *description)
{
    char line[512], from[96];
    one_line(description, line, sizeof line);
    struct reply r;
    if (status == 401 || status == 403)
        log_refusal(q, status, line);
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
    r.error = name;
    if (status == 503 || status == 429)
        r.retry_after = status == 503 ? 5 : 1;
    return r;
}

struct reply reply_fail(const struct request *q, const char *source,
                        const struct topt_error *err)
{
    return reply_error(q, topt_err_http(err->code), topt_err_name(err->code), source,
                       NULL, err->text);
}

int check_body(const struct request *q, struct reply *ret)
{
    struct scan found = scan_json(q->body, q->body_len);
    char text[120];
    if (found.depth > SCAN_MAX_DEPTH)
        snprintf(text, sizeof text, "the body is nested deeper than %d", SCAN_MAX_DEPTH);
    else if (found.values > SCAN_MAX_VALUES)
        snprintf(text, sizeof text, "the body has more than %d values", SCAN_MAX_VALUES);
    else
        return 0;
    *ret = reply_error(q, 413, "limit", "body", NULL, text);
    return -1;
}

int page_of(const struct request *q, int most, struct store_page *page, struct reply *ret)
{
    *page = (struct store_page){.limit = most};
    for (int i = 0; i < q->npairs; i++) {
        const char *key = q->pair[i].key,
                   *value = q->pair[i].value ? q->pair[i].value : "";
        struct topt_error err = {0};
        int64_t limit = page->limit;
        int rc = 0;
        if (!strcmp(key, "limit"))
            rc = topt_parse_int(value, 1, most, &limit, &err);
        else if (strcmp(key, "before"))
            rc = topt_fail(&err, TOPT_ERR_INVAL, "%.60s: unknown parameter", key);
        else if (topt_is_name(value, 79))
            page->before = value;
        else
            rc = topt_fail(&err, TOPT_ERR_INVAL, "before must be an id of the list");
        if (rc < 0) {
            *ret = reply_fail(q, key, &err);
            return -1;
        }
        page->limit = (int)limit;
    }
    return 0;
}

struct reply reply_page(const struct request *q, const char *key, json_t *list,
                        const struct store_page *page, const struct topt_error *err)
{
    return list ? reply_json(200, json_pack("{s:o, s:b}", key, list, "more", page->more))
                : reply_fail(q, NULL, err);
}

/* Is "ID", or "ID-gzip", in a list of tags? */
static int lists_tag(const char *list, const char *id)
{
    size_t n = strlen(id);
    for (const char *at = list; (at = strchr(at, '"')); at++) {
        const char *rest = at + 1 + n;
        if (!strncmp(at + 1, id, n) && (*rest == '"' || !strncmp(rest, "-gzip\"", 6)))
            return 1;
    }
    return 0;
}

void reply_named(struct reply *r, const char *id)
{
    snprintf(r->etag, sizeof r->etag, "%s", id);
    r->max_age = IMMUTABLE_S;
}

int reply_is_known(const struct request *q, const char *id, struct reply *ret)
{
    const char *tags = q->if_none_match;
    if (!tags || (strcmp(tags, "*") && !lists_tag(tags, id)))
        return 0;
    *ret = reply_fixed(304, NULL, "");
    reply_named(ret, id);
    return 1;
}

static int are_fields(const char *s)
{
    int n = 0, len = 0;
    for (; *s && n < MOST_FIELDS && len < FIELD_LENGTH; s++) {
        if (*s == ',' && !len)
            return 0;
        if (*s != ',' && *s != '_' && !islower((unsigned char)*s))
            return 0;
        n += *s == ',';
        len = *s == ',' ? 0 : len + 1;
    }
    return !*s && len > 0;
}

int take_fields(struct request *q, struct reply *ret)
{
    int kept = 0;
    for (int i = 0; i < q->npairs; i++) {
        if (strcmp(q->pair[i].key, "fields")) {
            q->pair[kept++] = q->pair[i];
            continue;
        }
        if (q->fields || !q->pair[i].value || !are_fields(q->pair[i].value)) {
            *ret = reply_error(q, 400, "invalid", "fields", NULL,
                               "fields must be names of the answer's members with commas "
                               "between, as gpus,strategy, once");
            return -1;
        }
        q->fields = q->pair[i].value;
    }
    q->npairs = kept;
    return 0;
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
