/* calls.c - requests to worker processes, and what their answers hold. */
#include "calls.h"
#include "topt_json.h"

#include <stdlib.h>
#include <string.h>

/* ---- readings -------------------------------------------------------------------------------- */

static struct reading *make_reading(struct pool *p, struct topt_error *err)
{
    struct reading *r = calloc(1, sizeof *r);
    if (!r)
        topt_nomem(err, NULL);
    else
        r->pool = p;
    return r;
}

/* What was put into the request is all. */
static struct reading *complete(struct reading *r, struct topt_error *err)
{
    if (frame_end(&r->request, err) == 0)
        return r;
    reading_destroy(r);
    return NULL;
}

struct reading *reading_of_body(struct pool *p, enum frame_form form, const char *name,
                                const char *body, size_t len,
                                const struct query_pair *pairs, int npairs,
                                struct topt_error *err)
{
    struct reading *r = make_reading(p, err);
    if (!r)
        return NULL;
    frame_begin(&r->request, FRAME_READ);
    frame_put_int(&r->request, form);
    frame_put_text(&r->request, name);
    frame_put(&r->request, body, len);
    for (int i = 0; i < npairs; i++) {
        frame_put_text(&r->request, pairs[i].key);
        frame_put_int(&r->request, pairs[i].value != NULL);
        frame_put_text(&r->request, pairs[i].value);
    }
    return complete(r, err);
}

struct reading *reading_of_facts(struct pool *p, const char *name, const char *document,
                                 struct topt_error *err)
{
    struct reading *r = make_reading(p, err);
    if (!r)
        return NULL;
    frame_begin(&r->request, FRAME_FACTS);
    frame_put_text(&r->request, name);
    frame_put_text(&r->request, document);
    return complete(r, err);
}

struct reading *reading_of_hw(struct pool *p, const char *body, size_t len,
                              struct topt_error *err)
{
    struct reading *r = make_reading(p, err);
    if (!r)
        return NULL;
    frame_begin(&r->request, FRAME_HW);
    frame_put(&r->request, body, len);
    return complete(r, err);
}

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

static int take_query(struct frame *f, struct query *ret, struct topt_error *err)
{
    const char *source;
    const char *text = frame_get_text(f);
    json_t *doc = *text ? topt_json_parse(text, strlen(text), "the question", err) : NULL;
    int rc = !*text ? 0 : doc ? query_unpack(doc, ret, &source, err) : -1;
    json_decref(doc);
    return rc;
}

static void take_facts(struct frame *f, struct call_facts *ret)
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

static int take_result(struct reading *r, struct frame *reply, struct topt_error *err)
{
    if (r->request.type == FRAME_FACTS) {
        take_facts(reply, &r->facts);
        return 0;
    }
    if (r->request.type == FRAME_READ && (take_query(reply, &r->query, err) < 0 ||
                                          take_text(reply, &r->question, err) < 0))
        return -1;
    return take_text(reply, &r->id, err) < 0 || take_text(reply, &r->name, err) < 0 ||
                   take_text(reply, &r->document, err) < 0
               ? -1
               : 0;
}

/* The facts of the model that was just read. */
static int add_facts(struct reading *r, const struct job_run *run, struct frame *reply,
                     struct topt_error *err)
{
    struct frame request = {0};
    frame_begin(&request, FRAME_FACTS);
    frame_put_text(&request, r->name);
    frame_put_text(&request, r->document);
    int rc = frame_end(&request, err);
    if (rc == 0)
        rc = pool_ask(r->pool, run, &request, reply, r->source, err);
    if (rc == 0)
        take_facts(reply, &r->facts);
    frame_fini(&request);
    return rc;
}

static void drop_results(struct reading *r)
{
    free(r->question);
    free(r->id);
    free(r->name);
    free(r->document);
    r->question = r->id = r->name = r->document = NULL;
}

static int run_reading(void *ctx, const struct job_run *run, void *data,
                       struct topt_error *err)
{
    (void)ctx;
    struct reading *r = data;
    struct frame reply = {0};
    drop_results(r); /* of a run that was given up */
    int rc = pool_ask(r->pool, run, &r->request, &reply, r->source, err);
    if (rc == 0)
        rc = take_result(r, &reply, err);
    if (rc == 0 && r->with_facts)
        rc = add_facts(r, run, &reply, err);
    frame_fini(&reply);
    return rc;
}

static void trim_reading(void *data)
{
    struct reading *r = data;
    frame_fini(&r->request);
}

void reading_destroy(struct reading *r)
{
    if (!r)
        return;
    drop_results(r);
    frame_fini(&r->request);
    free(r);
}

static void destroy_reading(void *data)
{
    reading_destroy(data);
}

const struct job_kind reading_kind = {run_reading, trim_reading, destroy_reading};

/* ---- searches -------------------------------------------------------------------------------- */

static int put_question(const struct call_question *q, struct frame *f,
                        struct topt_error *err)
{
    const char *source;
    json_t *doc = query_pack(q->query, &source, err);
    if (!doc)
        return -1;
    char *text = topt_json_text(doc, 0);
    json_decref(doc);
    if (!text)
        return topt_nomem(err, NULL);
    frame_begin(f, FRAME_PLAN);
    frame_put_text(f, text);
    free(text);
    frame_put_text(f, q->model_id);
    frame_put_text(f, q->model_name);
    frame_put_text(f, q->model);
    frame_put_text(f, q->hw_id);
    frame_put_text(f, q->hw);
    frame_put_int(f, q->threads);
    frame_put_int(f, q->max_table_bytes);
    return frame_end(f, err);
}

static int take_answer(struct frame *f, struct call_answer *ret, struct topt_error *err)
{
    ret->feasible = frame_get_int(f) != 0;
    if (take_text(f, &ret->answer, err) < 0 || take_text(f, &ret->plan_id, err) < 0 ||
        take_text(f, &ret->plan, err) < 0)
        return -1;
    return ret->answer ? 0 : topt_fail(err, TOPT_ERR_INTERNAL, "the answer is empty");
}

void call_answer_fini(struct call_answer *a)
{
    free(a->answer);
    free(a->plan_id);
    free(a->plan);
    *a = (struct call_answer){0};
}

int call_plan(struct pool *p, const struct job_run *run, const struct call_question *q,
              struct call_answer *ret, char source[POOL_SOURCE], struct topt_error *err)
{
    struct frame request = {0}, reply = {0};
    *ret = (struct call_answer){0};
    int rc = put_question(q, &request, err);
    if (rc == 0)
        rc = pool_ask(p, run, &request, &reply, source, err);
    if (rc == 0)
        rc = take_answer(&reply, ret, err);
    if (rc < 0)
        call_answer_fini(ret);
    frame_fini(&request);
    frame_fini(&reply);
    return rc;
}

/* ---- shipped profiles ------------------------------------------------------------------------- */

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

int call_shipped(struct pool *p, struct shipped *ret, struct topt_error *err)
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
