/* documents.c - models and hardware profiles: registered, listed, shown. */
#include "planner.h"
#include "server.h"
#include "topt_json.h"
#include "topt_label.h"
#include "topt_near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_LIMIT = 500 };

/* ---- models ------------------------------------------------------------------------------ */

static json_t *facts_json(const char *id, const struct planner_facts *f)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "id", id, "name",
                     f->name, "parameters", (json_int_t)f->parameters, "operators",
                     (json_int_t)f->operators, "flops_per_sample",
                     (json_int_t)f->flops_per_sample, "activation_bytes_per_sample",
                     (json_int_t)f->activation_bytes_per_sample, "batch",
                     (json_int_t)f->batch, "seq", (json_int_t)f->seq);
}

static const char *text_of(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));
    return s && *s ? s : NULL;
}

void model_name(const json_t *doc, const char *given, char ret[MODEL_NAME])
{
    const char *own = text_of(doc, "name"), *name = given && *given ? given : own;
    if (own && text_of(doc, "format")) { /* a native document: it says so itself */
        one_line(own, ret, MODEL_NAME);
        return;
    }
    char label[TOPT_LABEL];
    name = name ? name : text_of(doc, "_name_or_path");
    name = name ? name : text_of(doc, "model_type");
    topt_label(name ? name : "model", label);
    one_line(label, ret, MODEL_NAME);
}

/* Of the first byte that is no blank: no JSON of a model starts with it. */
static int is_foreign(const struct request *q)
{
    size_t at = strspn(q->body, " \t\r\n");
    return q->body_len > at && !strchr("{[\"", q->body[at]);
}

json_t *parse_model(const struct request *q, const char *what, int64_t batch, int64_t seq,
                    struct reply *ret)
{
    struct topt_error err = {0};
    if (!is_foreign(q))
        return parse_body(q, what, ret);
    json_t *doc = planner_model_document(q->body, q->body_len, what, batch, seq, &err);
    if (!doc)
        *ret = reply_fail(q, "model", &err);
    return doc;
}

static struct reply add_model(const struct request *q, const json_t *doc,
                              const char *name)
{
    char id[40];
    struct topt_error err = {0};
    struct planner_facts facts;
    char *text = canonical(doc, "m", id), line[MODEL_NAME];
    struct reply r;
    if (!text)
        return reply_owned(503, NULL, NULL);
    model_name(doc, name, line);
    int rc = planner_model_facts(text, line, &facts, &err);
    if (rc < 0) {
        r = reply_fail(q, "model", &err);
    } else {
        strcpy(facts.name, line);
        const struct store_doc m = {id, facts.name, text};
        rc = store_put_model(q->server->store, &m, (int64_t)geteuid(), &err);
        r = rc < 0 ? reply_fail(q, NULL, &err)
                   : reply_json(rc ? 201 : 200, facts_json(id, &facts));
        if (rc >= 0)
            snprintf(r.location, sizeof r.location, "/v1/models/%s", id);
    }
    free(text);
    return r;
}

struct reply api_model_add(const struct request *q)
{
    struct reply r;
    const char *name = q->npairs ? q->pair[0].value : NULL;
    int named = q->npairs == 1 && !strcmp(q->pair[0].key, "name") && name;
    if (!named && no_parameters(q, &r) < 0)
        return r;
    json_t *doc = parse_model(q, name && *name ? name : "the model", 0, 0, &r);
    if (doc)
        r = add_model(q, doc, name);
    json_decref(doc);
    return r;
}

static struct reply listing(const struct request *q, const char *key, json_t *list,
                            const struct topt_error *err)
{
    return list ? reply_json(200, json_pack("{s:o}", key, list))
                : reply_fail(q, NULL, err);
}

struct reply api_models(const struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    if (no_parameters(q, &r) < 0)
        return r;
    struct store_page page = {.limit = LIST_LIMIT};
    return listing(q, "models", store_list_models(q->server->store, NULL, &page, &err),
                   &err);
}

/* The names in a list of documents that 'near' may be a slip of. */
static void try_names(json_t *list, struct topt_near *near, char *buf)
{
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (name)
            topt_near_try(near, name);
    }
    topt_near_words(near, buf);
    json_decref(list);
}

int find_model(struct server *s, const char *key, char **ret_id, char **ret_name,
               char **ret_doc, struct topt_error *err)
{
    char meant[TOPT_NEAR_WORDS];
    struct topt_near near = {.name = key};
    struct store_page page = {.limit = LIST_LIMIT};
    int rc = store_get_model(s->store, key, NULL, ret_id, ret_name, ret_doc, err);
    if (rc == 0 || err->code != TOPT_ERR_NOTFOUND)
        return rc;
    try_names(store_list_models(s->store, NULL, &page, err), &near, meant);
    return topt_fail(err, TOPT_ERR_NOTFOUND,
                     "no model has the id '%.60s', and not just one the name%s (GET "
                     "/v1/models lists them)",
                     key, meant);
}

struct reply api_model_get(const struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    struct planner_facts facts;
    char *id = NULL, *name = NULL, *doc = NULL;
    if (no_parameters(q, &r) < 0)
        return r;
    if (find_model(q->server, q->arg, &id, &name, &doc, &err) < 0 ||
        planner_model_facts(doc, name, &facts, &err) < 0) {
        r = reply_fail(q, NULL, &err);
    } else {
        json_t *out = facts_json(id, &facts);
        if (out)
            json_object_set_new(out, "model", json_loads(doc, 0, NULL));
        r = reply_json(200, out);
    }
    free(id);
    free(name);
    free(doc);
    return r;
}

/* ---- hardware ---------------------------------------------------------------------------- */

static int is_shipped(const char *name)
{
    const char *const *n = planner_hw_shipped();
    while (*n && strcmp(*n, name))
        n++;
    return *n != NULL;
}

/* A shipped profile as if it were stored. */
static int shipped(const char *name, char **ret_id, char **ret_doc,
                   struct topt_error *err)
{
    json_t *doc;
    char id[40];
    if (planner_hw_get(name, &doc, err) < 0)
        return -1;
    char *text = canonical(doc, "h", id);
    json_decref(doc);
    char *copy = text ? strdup(id) : NULL;
    if (!copy) {
        free(text);
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    }
    *ret_id = copy;
    *ret_doc = text;
    return 0;
}

static void refuse_hw(struct server *s, const char *key, struct topt_error *err)
{
    char meant[TOPT_NEAR_WORDS];
    struct topt_near near = {.name = key};
    for (const char *const *n = planner_hw_shipped(); *n; n++)
        topt_near_try(&near, *n);
    struct store_page page = {.limit = LIST_LIMIT};
    try_names(store_list_hw(s->store, 0, &page, err), &near, meant);
    topt_fail(err, TOPT_ERR_NOTFOUND,
              "unknown hardware '%.80s'%s (GET /v1/hardware lists all)", key, meant);
}

int find_hw(struct server *s, const char *key, char **ret_id, char **ret_doc,
            struct topt_error *err)
{
    if (!*key && s->config->hw)
        key = s->config->hw;
    if (*key && is_shipped(key))
        return shipped(key, ret_id, ret_doc, err);
    int rc = store_get_hw(s->store, key, ret_id, NULL, ret_doc, err);
    if (rc < 0 && err->code == TOPT_ERR_NOTFOUND && !*key)
        topt_fail(
            err, TOPT_ERR_INVAL,
            "hw is missing and this server has no default; GET /v1/hardware lists them");
    else if (rc < 0 && err->code == TOPT_ERR_NOTFOUND)
        refuse_hw(s, key, err);
    return rc;
}

static struct reply put_hw(const struct request *q, const struct store_doc *d)
{
    struct topt_error err = {0};
    int rc = -1;
    if (is_shipped(d->name))
        topt_fail(&err, TOPT_ERR_USAGE, "'%.80s' is the name of a shipped profile",
                  d->name);
    else
        rc = store_put_hw(q->server->store, d, (int64_t)geteuid(), STORE_HW_ADD, NULL,
                          &err);
    if (rc < 0 && err.code == TOPT_ERR_USAGE)
        return reply_error(q, 409, "conflict", "name", NULL, err.text);
    if (rc < 0)
        return reply_fail(q, NULL, &err);
    struct reply r =
        reply_json(rc ? 201 : 200, json_pack("{s:s, s:s}", "id", d->id, "name", d->name));
    snprintf(r.location, sizeof r.location, "/v1/hardware/%s", d->id);
    return r;
}

static struct reply add_hw(const struct request *q, const json_t *given)
{
    struct topt_error err = {0};
    json_t *doc;
    if (planner_check_hw(given, &doc, &err) < 0)
        return reply_fail(q, "hardware", &err);
    char id[40];
    char *text = canonical(doc, "h", id);
    const char *name = json_string_value(json_object_get(doc, "name"));
    struct reply r;
    if (!text)
        r = reply_owned(503, NULL, NULL);
    else if (!name || !query_is_name(name, 79))
        r = reply_error(q, 400, "invalid", "name", NULL,
                        "name must be 1..79 letters, digits and \"._-\"");
    else
        r = put_hw(q, &(struct store_doc){id, name, text});
    free(text);
    json_decref(doc);
    return r;
}

struct reply api_hw_add(const struct request *q)
{
    struct reply r;
    if (no_parameters(q, &r) < 0)
        return r;
    json_t *doc = parse_body(q, "the profile", &r);
    if (doc)
        r = add_hw(q, doc);
    json_decref(doc);
    return r;
}

struct reply api_hw_list(const struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    if (no_parameters(q, &r) < 0)
        return r;
    struct store_page page = {.limit = LIST_LIMIT};
    json_t *list = store_list_hw(q->server->store, 0, &page, &err);
    const char *const *n = list ? planner_hw_shipped() : NULL;
    for (; n && *n; n++)
        json_array_append_new(list, json_pack("{s:s, s:b}", "name", *n, "shipped", 1));
    if (list && q->server->config->hw)
        return reply_json(200, json_pack("{s:o, s:s}", "hardware", list, "default",
                                         q->server->config->hw));
    return listing(q, "hardware", list, &err);
}

struct reply api_hw_get(const struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    char *id = NULL, *doc = NULL;
    if (no_parameters(q, &r) < 0)
        return r;
    if (find_hw(q->server, q->arg, &id, &doc, &err) < 0)
        r = reply_fail(q, NULL, &err);
    else
        r = reply_owned(200, "application/json", strdup(doc));
    free(id);
    free(doc);
    return r;
}
