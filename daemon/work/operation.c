/* operation.c - requests to worker processes, and what their answers hold. */
#include "operation.h"
#include "topt_hash.h"
#include "topt_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct operation *operation_create(enum operation_kind kind)
{
    struct operation *o = calloc(1, sizeof *o);
    if (o)
        o->kind = kind;
    return o;
}

/* What was found by a run that was given up, or never will be asked for. */
static void drop(char **text)
{
    free(*text);
    *text = NULL;
}

void operation_trim(void *operation)
{
    struct operation *o = operation;
    drop(&o->body);
    if (o->kind == OPERATION_PLAN) {
        drop(&o->model);
        drop(&o->hw);
    }
}

void operation_destroy(void *operation)
{
    struct operation *o = operation;
    if (!o)
        return;
    char *const owned[] = {o->body,  o->name, o->model_id, o->model_name, o->model,
                           o->hw_id, o->hw,   o->text,     o->notes,      o->problem};
    store_answer_fini(&o->found);
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    free(o);
}

uint64_t operation_problem(const struct operation *o)
{
    const char *const names[] = {o->model_id, o->hw_id, o->problem};
    uint64_t h = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        h = topt_hash(names[i], names[i] ? strlen(names[i]) : 0, h);
    return h ? h : 1;
}

/* ---- fields ------------------------------------------------------------------------------- */

/* A field of its own; NULL where it is empty. */
static int take_text(struct frame *f, char **ret, struct topt_error *err)
{
    size_t n;
    const char *s = frame_get(f, &n);
    if (!s || !n)
        return 0;
    *ret = malloc(n + 1);
    if (!*ret)
        return topt_nomem(err, NULL);
    memcpy(*ret, s, n + 1);
    return 0;
}

static int put_query(const struct topt_query *q, struct frame *f,
                     char source[POOL_SOURCE], struct topt_error *err)
{
    const char *field = "";
    struct topt_text text = {0};
    struct topt_query named = *q;
    *named.name = '\0'; /* may be no UTF-8; the name travels on its own */
    int rc = topt_query_write(&named, TOPT_QUERY_WHOLE, &text, &field, err);
    snprintf(source, POOL_SOURCE, "%s", field);
    if (!rc)
        frame_put_text(f, text.s);
    topt_text_fini(&text);
    return rc;
}

static int take_query(struct frame *f, struct topt_query *ret, struct topt_error *err)
{
    const char *source, *text = frame_get_text(f);
    return *text ? topt_query_read(text, ret, &source, err) : 0;
}

static void take_facts(struct frame *f, struct operation_facts *ret)
{
    int64_t *const numbers[] = {&ret->parameters,
                                &ret->operators,
                                &ret->flops_per_sample,
                                &ret->activation_bytes_per_sample,
                                &ret->batch,
                                &ret->seq};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = frame_get_int(f);
}

/* ---- what is asked ------------------------------------------------------------------------- */

static int put_read(struct operation *o, struct frame *f, struct topt_error *err)
{
    frame_begin(f, FRAME_READ);
    frame_put_int(f, o->is_question);
    if (!o->has_query)
        frame_put_text(f, "");
    else if (put_query(&o->query, f, o->source, err) < 0)
        return -1;
    frame_put_text(f, o->name);
    frame_put(f, o->body, o->body_len);
    return 0;
}

static int put_request(struct operation *o, struct frame *f, struct topt_error *err)
{
    switch (o->kind) {
    case OPERATION_READ:
        return put_read(o, f, err);
    case OPERATION_CHECK:
        frame_begin(f, FRAME_CHECK);
        return put_query(&o->query, f, o->source, err);
    case OPERATION_FACTS:
        frame_begin(f, FRAME_FACTS);
        frame_put_text(f, o->model_name);
        frame_put_text(f, o->model);
        return 0;
    case OPERATION_PROFILE:
        frame_begin(f, FRAME_PROFILE);
        frame_put(f, o->body, o->body_len);
        return 0;
    case OPERATION_LAUNCH:
        frame_begin(f, FRAME_LAUNCH);
        frame_put_int(f, o->is_drawn);
        frame_put(f, o->body, o->body_len);
        return 0;
    case OPERATION_PLAN:
        break;
    }
    return topt_fail(err, TOPT_ERR_INTERNAL, "no such operation");
}

/* Asked and answered: 'reply' holds the answer. */
static int exchange(struct pool *p, const struct job_run *run, struct operation *o,
                    struct frame *request, struct frame *reply, struct topt_error *err)
{
    if (frame_end(request, err) < 0)
        return -1;
    return pool_ask(p, run, request, reply, o->source, err);
}

/* The facts of the model that was just read. */
static int add_facts(struct pool *p, const struct job_run *run, struct operation *o,
                     struct frame *reply, struct topt_error *err)
{
    struct frame request = {0};
    frame_begin(&request, FRAME_FACTS);
    frame_put_text(&request, o->model_name);
    frame_put_text(&request, o->model);
    int rc = exchange(p, run, o, &request, reply, err);
    frame_fini(&request);
    if (rc == 0)
        take_facts(reply, &o->facts);
    return rc;
}

static int take_result(struct operation *o, struct frame *reply, struct topt_error *err)
{
    switch (o->kind) {
    case OPERATION_READ:
        drop(&o->notes), drop(&o->model_id), drop(&o->model_name), drop(&o->model);
        return take_query(reply, &o->query, err) < 0 ||
                       take_text(reply, &o->notes, err) < 0 ||
                       take_text(reply, &o->model_id, err) < 0 ||
                       take_text(reply, &o->model_name, err) < 0 ||
                       take_text(reply, &o->model, err) < 0
                   ? -1
                   : 0;
    case OPERATION_PROFILE:
        drop(&o->hw_id), drop(&o->name), drop(&o->hw);
        return take_text(reply, &o->hw_id, err) < 0 ||
                       take_text(reply, &o->name, err) < 0 ||
                       take_text(reply, &o->hw, err) < 0
                   ? -1
                   : 0;
    case OPERATION_FACTS:
        take_facts(reply, &o->facts);
        return 0;
    case OPERATION_LAUNCH:
        drop(&o->text);
        return take_text(reply, &o->text, err);
    default:
        return 0;
    }
}

int operation_run(struct pool *p, const struct job_run *run, struct operation *o,
                  struct topt_error *err)
{
    struct frame request = {0}, reply = {0};
    int rc = put_request(o, &request, err);
    if (rc == 0)
        rc = exchange(p, run, o, &request, &reply, err);
    frame_fini(&request);
    if (rc == 0)
        rc = take_result(o, &reply, err);
    if (rc == 0 && o->kind == OPERATION_READ && o->wants_facts && o->model)
        rc = add_facts(p, run, o, &reply, err);
    frame_fini(&reply);
    return rc;
}

/* ---- searches -------------------------------------------------------------------------------- */

static int put_question(struct operation *o, const struct operation_limits *l,
                        struct frame *f, struct topt_error *err)
{
    frame_begin(f, FRAME_PLAN);
    if (put_query(&o->query, f, o->source, err) < 0)
        return -1;
    const char *const texts[] = {o->model_id, o->model_name, o->model, o->hw_id, o->hw};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        frame_put_text(f, texts[i]);
    frame_put_int(f, l->threads);
    frame_put_int(f, l->max_table_bytes);
    frame_put_int(f, o->memory_mill);
    frame_put_text(f, o->problem);
    frame_put_text(f, o->notes);
    return 0;
}

static int take_answer(struct frame *f, struct store_answer *ret, int *ret_searched,
                       struct topt_error *err)
{
    ret->feasible = frame_get_int(f) != 0;
    if (take_text(f, &ret->doc, err) < 0 || take_text(f, &ret->plan_id, err) < 0 ||
        take_text(f, &ret->plan, err) < 0)
        return -1;
    *ret_searched = frame_get_int(f) != 0;
    ret->is_partial = frame_get_int(f) != 0;
    return ret->doc ? 0 : topt_fail(err, TOPT_ERR_INTERNAL, "the answer is empty");
}

int operation_search(struct pool *p, const struct job_run *run, struct operation *o,
                     const struct operation_limits *limits, struct store_answer *ret,
                     int *ret_searched, struct topt_error *err)
{
    struct frame request = {0}, reply = {0};
    *ret = (struct store_answer){0};
    int rc = put_question(o, limits, &request, err);
    if (rc == 0)
        rc = exchange(p, run, o, &request, &reply, err);
    frame_fini(&request);
    if (rc == 0)
        rc = take_answer(&reply, ret, ret_searched, err);
    if (rc < 0)
        store_answer_fini(ret);
    frame_fini(&reply);
    return rc;
}

/* ---- shipped profiles -------------------------------------------------------------- */

static int take_shipped(struct frame *f, struct shipped *ret, struct topt_error *err)
{
    char *name = NULL;
    while (take_text(f, &name, err) == 0 && name) {
        struct shipped_hw *more = realloc(ret->hw, (size_t)(ret->n + 1) * sizeof *more);
        if (!more) {
            free(name);
            return topt_nomem(err, NULL);
        }
        ret->hw = more;
        struct shipped_hw *h = &more[ret->n++];
        *h = (struct shipped_hw){.name = name};
        name = NULL;
        if (take_text(f, &h->id, err) < 0 || take_text(f, &h->document, err) < 0)
            return -1;
        if (!h->id || !h->document)
            return topt_fail(err, TOPT_ERR_INTERNAL,
                             "the worker's list of profiles is cut short");
    }
    return 0;
}

int shipped_load(struct pool *p, struct shipped *ret, struct topt_error *err)
{
    struct frame request = {0}, reply = {0};
    *ret = (struct shipped){0};
    frame_begin(&request, FRAME_SHIPPED);
    int rc = frame_end(&request, err);
    if (rc == 0)
        rc = pool_ask_first(p, &request, &reply, err);
    if (rc == 0)
        rc = take_shipped(&reply, ret, err);
    if (rc < 0)
        shipped_fini(ret);
    frame_fini(&request);
    frame_fini(&reply);
    return rc;
}

const struct shipped_hw *shipped_find(const struct shipped *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->hw[i].name, name))
            return &s->hw[i];
    return NULL;
}

void shipped_fini(struct shipped *s)
{
    for (int i = 0; i < s->n; i++) {
        free(s->hw[i].name);
        free(s->hw[i].id);
        free(s->hw[i].document);
    }
    free(s->hw);
    *s = (struct shipped){0};
}
