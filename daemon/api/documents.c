/* documents.c - models and hardware profiles: registered, listed, shown. */
#include "asking.h"
#include "server.h"
#include "topt_digest.h"
#include "topt_json.h"
#include "topt_near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_LIMIT = 500, READ_MS = 30000 };

/* ---- models ------------------------------------------------------------------------------ */

static json_t *facts_json(const char *id, const char *name,
                          const struct operation_facts *f)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "id", id, "name", name,
                     "parameters", (json_int_t)f->parameters, "operators",
                     (json_int_t)f->operators, "flops_per_sample",
                     (json_int_t)f->flops_per_sample, "activation_bytes_per_sample",
                     (json_int_t)f->activation_bytes_per_sample, "batch",
                     (json_int_t)f->batch, "seq", (json_int_t)f->seq);
}

/* ---- reading what was sent --------------------------------------------------------------- */

/* Hand the body to a worker, and go on with 'then' when it has read it. */
static struct reply read_body(struct request *q, enum operation_kind kind,
                              const char *name, handler *then)
{
    struct operation *o = operation_create(kind);
    struct job *job;
    struct reply r;
    char id[TOPT_ID], key[400];
    if (!o)
        return reply_owned(503, NULL, NULL);
    o->wants_facts = 1;
    o->name = name ? strdup(name) : NULL;
    topt_id(kind == OPERATION_PROFILE ? 'h' : 'f', q->body, q->body_len, id);
    snprintf(key, sizeof key, "read %lld %s %.300s", (long long)asker(q), id,
             name ? name : "");
    o->body = request_take_body(q, &o->body_len);
    if (!o->body || (name && !o->name)) {
        operation_destroy(o);
        return reply_owned(503, NULL, NULL);
    }
    if (asking_submit(q, o, key, &job, &r) < 0)
        return r;
    q->state = job;
    return reply_wait(job, READ_MS, then);
}

static struct reply after_model(struct request *q)
{
    struct job *job = q->state;
    struct topt_error err = {0};
    struct reply r;
    q->state = NULL;
    if (asking_done(q, job, &r) < 0)
        return r;
    const struct operation *o = job_data(job);
    const struct store_doc m = {o->model_id, o->model_name, o->model};
    int rc = store_put_model(q->server->store, &m, asker(q), STORE_REFUSE, &err);
    r = rc < 0 ? reply_fail(q, NULL, &err)
               : reply_json(rc ? 201 : 200,
                            facts_json(o->model_id, o->model_name, &o->facts));
    if (rc >= 0)
        snprintf(r.location, sizeof r.location, "/v1/models/%s", o->model_id);
    if (rc > 0)
        atomic_fetch_add(&q->server->epoch, 1);
    job_release(job);
    return r;
}

struct reply api_model_add(struct request *q)
{
    struct reply r;
    const char *name = q->npairs ? q->pair[0].value : NULL;
    int named = q->npairs == 1 && !strcmp(q->pair[0].key, "name") && name;
    if ((!named && no_parameters(q, &r) < 0) || check_body(q, &r) < 0)
        return r;
    return read_body(q, OPERATION_READ, name, after_model);
}

struct reply api_models(struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    struct store_page page;
    struct reader reader;
    if (page_of(q, LIST_LIMIT, &page, &r) < 0)
        return r;
    json_t *list =
        store_list_models(q->server->store, reader_of(q, &reader), &page, &err);
    return reply_page(q, "models", list, &page, &err);
}

/* The names in a list of documents that 'near' may be a slip of; how many are that name itself. */
static int try_names(json_t *list, struct topt_near *near, char *buf)
{
    size_t i;
    json_t *row;
    int same = 0;
    json_array_foreach(list, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (name)
            topt_near_try(near, name);
        same += name && !strcmp(name, near->name);
    }
    topt_near_words(near, buf);
    json_decref(list);
    return same;
}

int find_model(const struct request *q, const char *key, char **ret_id, char **ret_name,
               char **ret_doc, struct topt_error *err)
{
    char meant[TOPT_NEAR_WORDS];
    struct topt_near near = {.name = key};
    struct store_page page = {.limit = LIST_LIMIT};
    struct store *s = q->server->store;
    struct reader reader;
    const struct store_who *who = reader_of(q, &reader);
    int rc = store_get_model(s, key, who, ret_id, ret_name, ret_doc, err);
    if (rc == 0 || err->code != TOPT_ERR_NOTFOUND)
        return rc;
    if (try_names(store_list_models(s, who, &page, err), &near, meant) > 1)
        return topt_fail(
            err, TOPT_ERR_NOTFOUND,
            "several models have the name '%.60s'; give the id of one (`topt "
            "client models` lists them)",
            key);
    return topt_fail(err, TOPT_ERR_NOTFOUND,
                     "no single model has the id or the name '%.60s'%s (`topt client "
                     "models` lists them)",
                     key, meant);
}

/* A model by its id never changes; what is said of it may with the program's version. */
static const char *tag_of(const char *id, char ret[TOPT_ID + 24])
{
    snprintf(ret, TOPT_ID + 24, "%s.%s", id, TOPT_VERSION);
    return ret;
}

static struct reply after_facts(struct request *q)
{
    struct job *job = q->state;
    struct reply r;
    q->state = NULL;
    if (asking_done(q, job, &r) < 0)
        return r;
    const struct operation *o = job_data(job);
    json_t *out = facts_json(o->model_id, o->model_name, &o->facts);
    json_t *model = topt_json_parse(o->model, strlen(o->model), "the model", NULL);
    if (!model || json_object_set_new(out, "model", model)) {
        json_decref(out);
        out = NULL;
    }
    r = reply_json(200, out);
    char tag[TOPT_ID + 24];
    if (!strcmp(q->arg, o->model_id))
        reply_named(&r, tag_of(o->model_id, tag));
    job_release(job);
    r.keep = 1;
    return r;
}

struct reply api_model_get(struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    struct operation *o;
    struct job *job;
    char key[80];
    if (no_parameters(q, &r) < 0)
        return r;
    if (!(o = operation_create(OPERATION_FACTS)))
        return reply_owned(503, NULL, NULL);
    if (find_model(q, q->arg, &o->model_id, &o->model_name, &o->model, &err) < 0) {
        operation_destroy(o);
        return reply_fail(q, NULL, &err);
    }
    char tag[TOPT_ID + 24];
    if (!strcmp(q->arg, o->model_id) && reply_is_known(q, tag_of(o->model_id, tag), &r)) {
        operation_destroy(o);
        return r;
    }
    snprintf(key, sizeof key, "facts of %.60s", o->model_id);
    if (asking_submit(q, o, key, &job, &r) < 0)
        return r;
    q->state = job;
    return reply_wait(job, READ_MS, after_facts);
}

/* ---- hardware ---------------------------------------------------------------------------- */

/* A shipped profile as if it were stored. */
static int shipped(const struct shipped_hw *h, char **ret_id, char **ret_doc,
                   struct topt_error *err)
{
    *ret_id = strdup(h->id);
    *ret_doc = strdup(h->document);
    if (*ret_id && *ret_doc)
        return 0;
    free(*ret_id);
    free(*ret_doc);
    *ret_id = *ret_doc = NULL;
    return topt_nomem(err, NULL);
}

static void refuse_hw(struct server *s, const char *key, struct topt_error *err)
{
    enum { MOST = 256 };
    char meant[TOPT_NEAR_WORDS], matches[TOPT_NEAR_MATCHES];
    const char *names[MOST] = {NULL};
    struct topt_near near = {.name = key};
    for (int i = 0; i < s->shipped.n; i++) {
        topt_near_try(&near, s->shipped.hw[i].name);
        names[i < MOST - 1 ? i : MOST - 2] = s->shipped.hw[i].name;
    }
    topt_near_containing(key, names, matches);
    struct store_page page = {.limit = LIST_LIMIT};
    try_names(store_list_hw(s->store, 0, &page, err), &near, meant);
    topt_fail(err, TOPT_ERR_NOTFOUND,
              "unknown hardware '%.80s'%s (`topt client hardware` lists all)", key,
              *matches ? matches : meant);
}

int find_hw(struct server *s, const char *key, char **ret_id, char **ret_doc,
            struct topt_error *err)
{
    const struct config *c = s->config;
    if (!*key && c->hw)
        key = c->hw;
    const struct shipped_hw *h = shipped_find(&s->shipped, key);
    if (h)
        return shipped(h, ret_id, ret_doc, err);
    int rc = store_get_hw(s->store, key, ret_id, NULL, ret_doc, err);
    if (rc < 0 && err->code == TOPT_ERR_NOTFOUND && !*key)
        topt_fail(err, TOPT_ERR_NOTFOUND,
                  "no hardware profile was named (hw), and this server has no default: "
                  "`topt client hardware` lists those that there are");
    else if (rc < 0 && err->code == TOPT_ERR_NOTFOUND)
        refuse_hw(s, key, err);
    return rc;
}

/* A name of a profile that can't be put. */
static struct reply conflict(const struct request *q, const char *text)
{
    return reply_error(q, 409, "conflict", "name", NULL, text);
}

static struct reply put_hw(const struct request *q, const struct store_doc *d,
                           enum store_hw_put how)
{
    struct topt_error err = {0};
    int version = 0, rc = -1;
    if (shipped_find(&q->server->shipped, d->name))
        topt_fail(&err, TOPT_ERR_USAGE, "'%.80s' is the name of a shipped profile",
                  d->name);
    else
        rc = store_put_hw(q->server->store, d, asker(q), how, &version, &err);
    if (rc < 0 && err.code == TOPT_ERR_USAGE)
        return conflict(q, err.text);
    if (rc < 0)
        return reply_fail(q, err.code == TOPT_ERR_INVAL ? "name" : NULL, &err);
    if (rc > 0)
        atomic_fetch_add(&q->server->epoch, 1);
    struct reply r = reply_json(
        rc && version == 1 ? 201 : 200,
        json_pack("{s:s, s:s, s:i}", "id", d->id, "name", d->name, "version", version));
    snprintf(r.location, sizeof r.location, "/v1/hardware/%s", d->id);
    return r;
}

/* A profile was checked: it is added, or becomes the next version of the path's name. */
static struct reply after_profile(struct request *q)
{
    struct job *job = q->state;
    struct reply r;
    q->state = NULL;
    if (asking_done(q, job, &r) < 0)
        return r;
    const struct operation *o = job_data(job);
    const struct store_doc d = {o->hw_id, o->name, o->hw};
    if (!*q->arg)
        r = put_hw(q, &d, STORE_HW_ADD);
    else if (strcmp(q->arg, o->name))
        r = reply_error(q, 400, "invalid", "name", NULL,
                        "the profile's name is not that of the path");
    else
        r = put_hw(q, &d, STORE_HW_REPLACE);
    job_release(job);
    return r;
}

struct reply api_hw_add(struct request *q)
{
    struct reply r;
    if (no_parameters(q, &r) < 0 || check_body(q, &r) < 0)
        return r;
    if (!q->body_len)
        return reply_error(q, 400, "invalid", "body", NULL, "the profile is empty");
    return read_body(q, OPERATION_PROFILE, NULL, after_profile);
}

struct reply api_hw_replace(struct request *q)
{
    return api_hw_add(q);
}

struct reply api_hw_retire(struct request *q)
{
    struct topt_error err = {0};
    struct reply r;
    if (no_parameters(q, &r) < 0)
        return r;
    if (shipped_find(&q->server->shipped, q->arg))
        return conflict(q, "this profile is shipped with toptd and stays");
    if (store_drop_hw(q->server->store, q->arg, &err) < 0) {
        if (err.code == TOPT_ERR_NOTFOUND)
            refuse_hw(q->server, q->arg, &err);
        return reply_fail(q, NULL, &err);
    }
    atomic_fetch_add(&q->server->epoch, 1);
    return reply_fixed(204, NULL, "");
}

struct reply api_hw_list(struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    if (no_parameters(q, &r) < 0)
        return r;
    struct store_page page = {.limit = LIST_LIMIT};
    json_t *list = store_list_hw(q->server->store, 0, &page, &err);
    const struct shipped *come = &q->server->shipped;
    for (int i = 0; list && i < come->n; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:b}", "name", come->hw[i].name, "shipped", 1));
    const struct config *c = q->server->config;
    if (list && c->hw)
        return reply_json(200, json_pack("{s:o, s:b, s:s}", "hardware", list, "more",
                                         page.more, "default", c->hw));
    return reply_page(q, "hardware", list, &page, &err);
}

struct reply api_hw_get(struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    char *id = NULL, *doc = NULL;
    if (no_parameters(q, &r) < 0)
        return r;
    if (find_hw(q->server, q->arg, &id, &doc, &err) < 0) {
        r = reply_fail(q, NULL, &err);
    } else if (strcmp(q->arg, id) || !reply_is_known(q, id, &r)) {
        r = reply_owned(200, "application/json", strdup(doc));
        if (!strcmp(q->arg, id))
            reply_named(&r, id);
    }
    free(id);
    free(doc);
    return r;
}
