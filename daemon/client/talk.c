/* talk.c - asking the server, waiting for what it searches, and saying what went wrong.
 *
 * A search that takes longer is a task: it is polled by requests that wait at the server, at most
 * until --timeout.  At a terminal they are short, so that a line can say what the server is at. */
#include "client.h"
#include "topt_clock.h"
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "topt_hub.h"
#include "topt_json.h"

enum {
    MAX_FILE = 64 << 20,
    WAIT_MS = 20000,   /* of one request, where nobody watches */
    WATCHED_MS = 1000, /* at a terminal */
    MARGIN_MS = 15000, /* for a request to be answered after it has waited */
    LATE_MS = 900,     /* the same at the end of --timeout */
};

/* ---- failing ----------------------------------------------------------------------------- */

int client_complain(struct client *c, const struct topt_error *err)
{
    fprintf(stderr, "topt client %s: %s\n", c->sub, err->text);
    c->status = topt_err_exit(err->code);
    return -1;
}

/* An option's value that can't be, or a name in it that the server does not know. */
static int was_asked_wrongly(const char *error, const char *source)
{
    static const char *const fields[] = {
#define X(ID, name, ...) #name,
        TOPT_FIELDS(X)
#undef X
            NULL};
    if (error && !strcmp(error, topt_err_name(TOPT_ERR_USAGE)))
        return 1;
    for (int i = 0; source && fields[i]; i++)
        if (!strcmp(source, fields[i]))
            return 1;
    return 0;
}

/* The server's refusal as one line. */
static int refused(struct client *c, const struct client_reply *r)
{
    json_t *doc = json_loads(r->body.s ? r->body.s : "", 0, NULL);
    const json_t *e = json_array_get(json_object_get(doc, "errors"), 0);
    const char *text = json_string_value(json_object_get(e, "description"));
    const char *source = json_string_value(json_object_get(e, "source"));
    json_t *nearest = json_object_get(e, "nearest");
    char *near = nearest ? json_dumps(nearest, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    fprintf(stderr, "topt client %s: %s%s%s%s%s%s%s\n", c->sub,
            c->no_file && source && !strcmp(source, "model_id") ? "no such file, and "
                                                                : "",
            text ? text : "the server refused without saying why", source ? " (" : "",
            source ? source : "", source ? ")" : "", near ? "; nearest: " : "",
            near ? near : "");
    if (!text)
        fprintf(stderr, "topt client %s: HTTP status %ld\n", c->sub, r->status);
    const char *name = json_string_value(json_object_get(e, "error"));
    int wrongly =
        (r->status == 400 || r->status == 404) && was_asked_wrongly(name, source);
    c->status = topt_err_exit(name && !strcmp(name, "infeasible") ? TOPT_ERR_INFEASIBLE
                              : wrongly                           ? TOPT_ERR_USAGE
                                                                  : TOPT_ERR_INVAL);
    free(near);
    json_decref(doc);
    return -1;
}

/* ---- asking ------------------------------------------------------------------------------ */

static int64_t left_ms(const struct client *c)
{
    int64_t left = c->args.timeout * 1000 - (topt_clock_ms() - c->began_ms);
    return left > 0 ? left : 0;
}

int client_wait_ms(const struct client *c)
{
    int64_t left = left_ms(c), most = isatty(STDERR_FILENO) ? WATCHED_MS : WAIT_MS;
    return (int)(left < most ? left : most);
}

static int too_late(struct client *c)
{
    struct topt_error err;
    topt_fail(&err, TOPT_ERR_CANCELED,
              "the search took longer than %lld s (%s); raise --timeout",
              (long long)c->args.timeout, *c->doing ? c->doing : "no answer came");
    return client_complain(c, &err);
}

static int ask(struct client *c, const char *method, const char *path, const char *body,
               size_t len, const char *type, struct client_reply *ret)
{
    struct topt_error err = {0};
    int64_t left = left_ms(c) + LATE_MS, most = WAIT_MS + MARGIN_MS;
    const struct client_request q = {.url = c->args.url,
                                     .method = method,
                                     .path = path,
                                     .body = body,
                                     .body_len = len,
                                     .type = type,
                                     .trust = &c->trust,
                                     .timeout_ms = (long)(left < most ? left : most),
                                     .doing = c->doing,
                                     .began_ms = c->began_ms};
    if (client_ask(&q, ret, &err) == 0)
        return 0;
    int is_search = *c->doing || strcmp(method, "GET") != 0;
    return left_ms(c) || !is_search ? client_complain(c, &err) : too_late(c);
}

static void give_up(struct client *c, const char *task)
{
    struct client_reply r;
    struct topt_error err = {0};
    const struct client_request q = {.url = c->args.url,
                                     .method = "DELETE",
                                     .path = task,
                                     .trust = &c->trust,
                                     .timeout_ms = LATE_MS};
    if (client_ask(&q, &r, &err) == 0)
        client_reply_fini(&r);
    too_late(c);
}

/* What a task's document says of how far it is, in c->doing. */
static void note_progress(struct client *c, const json_t *task)
{
    const json_t *progress = json_object_get(task, "progress");
    const char *state = json_string_value(json_object_get(task, "state"));
    const char *phase = json_string_value(json_object_get(progress, "phase"));
    double done = json_number_value(json_object_get(progress, "done"));
    double of = json_number_value(json_object_get(progress, "of"));
    long long ahead = json_integer_value(json_object_get(task, "ahead"));
    if (!state)
        return;
    if (!strcmp(state, "queued") && ahead > 0)
        snprintf(c->doing, sizeof c->doing, "queued behind %lld", ahead);
    else if (!strcmp(state, "queued"))
        snprintf(c->doing, sizeof c->doing, "queued, next to start");
    else if (phase && of > 0)
        snprintf(c->doing, sizeof c->doing, "%.60s, %.0f of %.0f", phase, done, of);
    else
        snprintf(c->doing, sizeof c->doing, "%.60s", phase ? phase : "searching");
}

/* The document of a task that has ended becomes the reply that it holds: 1, or 0 where it has not.
 */
static int unwrap(struct client *c, struct client_reply *r)
{
    json_t *doc = json_loads(r->body.s ? r->body.s : "", 0, NULL);
    const json_t *result = json_object_get(doc, "result");
    int has_ended = result != NULL;
    if (has_ended) {
        topt_text_fini(&r->body);
        char *text = json_dumps(result, JSON_COMPACT);
        topt_text_add(&r->body, "%s", text ? text : "");
        r->status = (long)json_integer_value(json_object_get(doc, "status"));
        free(text);
    } else {
        note_progress(c, doc);
    }
    json_decref(doc);
    return has_ended;
}

/* Follow a task until it ends.  'r' goes from the 202 to what the question is answered. */
static int follow(struct client *c, struct client_reply *r)
{
    char task[128], path[192];
    snprintf(task, sizeof task, "%s", r->location);
    unwrap(c, r);
    do {
        int wait = client_wait_ms(c);
        snprintf(path, sizeof path, "%s?wait_ms=%d", task, wait);
        client_reply_fini(r);
        if (!wait) {
            give_up(c, task);
            return -1;
        }
        if (ask(c, "GET", path, NULL, 0, NULL, r) < 0)
            return -1;
    } while (r->status == 200 && !unwrap(c, r));
    return 0;
}

/* Told to come again, and there is time for it: wait as long as was said. */
static int comes_again(struct client *c, struct client_reply *r)
{
    int64_t wait_ms = r->retry_after_s * INT64_C(1000);
    if ((r->status != 429 && r->status != 503) || !wait_ms || wait_ms >= left_ms(c))
        return 0;
    snprintf(c->doing, sizeof c->doing, "the server is busy; asking again");
    client_reply_fini(r);
    nanosleep(&(struct timespec){.tv_sec = wait_ms / 1000}, NULL);
    return 1;
}

/* Ask and want 2xx; the body is in '*ret'. */
static int ask_ok(struct client *c, const char *method, const char *path,
                  const char *body, size_t len, const char *type,
                  struct client_reply *ret)
{
    do {
        if (ask(c, method, path, body, len, type, ret) < 0)
            return -1;
    } while (comes_again(c, ret));
    if (ret->status == 202 && follow(c, ret) < 0)
        return -1;
    if (ret->status / 100 == 2)
        return 0;
    refused(c, ret);
    client_reply_fini(ret);
    return -1;
}

json_t *client_ask_json(struct client *c, const char *method, const char *path,
                        const char *body, size_t len, const char *type)
{
    struct client_reply r;
    struct topt_error err = {0};
    if (ask_ok(c, method, path, body, len, type, &r) < 0)
        return NULL;
    json_t *doc =
        topt_json_parse(r.body.s ? r.body.s : "", r.body.len, "the answer", &err);
    if (!doc)
        client_complain(c, &err);
    client_reply_fini(&r);
    return doc;
}

/* The body of a reply, taken out of it; "" where it is empty. */
static char *take_bytes(struct client_reply *r, size_t *ret_len)
{
    char *bytes = r->body.s ? r->body.s : strdup("");
    *ret_len = r->body.len;
    r->body = (struct topt_text){0};
    client_reply_fini(r);
    return bytes;
}

char *client_ask_bytes(struct client *c, const char *path, size_t *ret_len)
{
    struct client_reply r;
    return ask_ok(c, "GET", path, NULL, 0, NULL, &r) < 0 ? NULL : take_bytes(&r, ret_len);
}

char *client_ask_if(struct client *c, const char *path, int *ret_rc)
{
    struct client_reply r;
    size_t len;
    *ret_rc = ask(c, "GET", path, NULL, 0, NULL, &r);
    if (*ret_rc < 0)
        return NULL;
    if (r.status / 100 == 2)
        return take_bytes(&r, &len);
    client_reply_fini(&r);
    return NULL;
}

int client_do(struct client *c, const char *method, const char *path)
{
    struct client_reply r;
    if (ask_ok(c, method, path, NULL, 0, NULL, &r) < 0)
        return -1;
    client_reply_fini(&r);
    return 0;
}

/* ---- files and words ----------------------------------------------------------------------- */

char *client_read_input(struct client *c, size_t *ret_len)
{
    struct topt_error err = {0};
    const char *arg = c->arg + (*c->arg == '@'); /* as in arguments of Megatron-LM */
    char *text = topt_hub_config(arg, c->path, &err)
                     ? NULL
                     : topt_read_file(c->path, MAX_FILE, ret_len, &err);
    if (!text)
        client_complain(c, &err);
    return text;
}

const char *client_words(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "?";
}

int client_print_json(const json_t *doc)
{
    char *text = topt_json_text(doc, 2);
    puts(text ? text : "null");
    free(text);
    return 0;
}
