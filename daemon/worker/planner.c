/* planner.c - questions of the daemon put to the solver. */
#include "planner.h"
#include "kept.h"
#include "topt_json.h"
#include "topt_launch.h"
#include "topt_plan.h"
#include "topt_run.h"
#include "topt_staged.h"
#include "topt_text.h"
#include "topt_unequal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of memos in all; one of DeepSeek-V3 on up to 1,024 GPUs takes about 20 MiB. */
#define MOST_MEMO_BYTES ((size_t)256 << 20)

struct planner {
    struct kept models, profiles, memos;
};

static void destroy_model(void *model)
{
    topt_model_destroy(model);
}

static void destroy_memo(void *memo)
{
    topt_memo_destroy(memo);
}

static size_t memo_bytes(const void *memo)
{
    return topt_memo_bytes(memo);
}

static void destroy_hw(void *hw)
{
    topt_hw_destroy(hw);
}

struct planner *planner_create(void)
{
    struct planner *p = calloc(1, sizeof *p);
    if (p) {
        p->models.destroy = destroy_model;
        p->profiles.destroy = destroy_hw;
        p->memos = (struct kept){
            .destroy = destroy_memo, .bytes = memo_bytes, .most = MOST_MEMO_BYTES};
    }
    return p;
}

void planner_destroy(struct planner *p)
{
    if (!p)
        return;
    kept_fini(&p->models);
    kept_fini(&p->profiles);
    kept_fini(&p->memos);
    free(p);
}

int planner_model_facts(const char *text, const char *what, struct planner_facts *ret,
                        struct topt_error *err)
{
    struct topt_model *m = topt_model_import(text, strlen(text), what, NULL, err);
    if (!m)
        return -1;
    struct topt_model_stats stats;
    topt_model_stats(m, &stats);
    *ret = (struct planner_facts){.parameters = stats.parameters,
                                  .operators = stats.operators,
                                  .flops_per_sample = stats.flops_per_sample,
                                  .activation_bytes_per_sample =
                                      stats.activation_bytes_per_sample,
                                  .batch = m->batch,
                                  .seq = m->seq};
    topt_model_destroy(m);
    return 0;
}

json_t *planner_model_document(const char *bytes, size_t len, const char *what,
                               int64_t batch, int64_t seq, struct topt_error *err)
{
    struct topt_import_options options = {.batch = batch, .seq = seq};
    struct topt_model *m = topt_model_import(bytes, len, what, &options, err);
    json_t *doc = m ? topt_model_to_json(m) : NULL;
    if (m && !doc)
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the model's document");
    topt_model_destroy(m);
    return doc;
}

int planner_check_query(const struct topt_query *q, const char **ret_source,
                        struct topt_error *err)
{
    struct topt_request r;
    topt_request_init(&r);
    return topt_request_read(q, &r, ret_source, err);
}

int planner_take_run(const char *bytes, size_t len, const char *what,
                     struct topt_query *q, json_t **ret_notes, const char **ret_source,
                     struct topt_error *err)
{
    *ret_source = "model";
    json_t *run = topt_run_read(bytes, len, what, q->ngpus == 1 ? q->gpus[0] : 0, err);
    int rc = run ? topt_run_ask(run, q, ret_source, err) : -1;
    if (!rc)
        *ret_notes = json_incref(json_object_get(run, "notes"));
    json_decref(run);
    return rc;
}

int planner_check_hw(const json_t *doc, json_t **ret_doc, struct topt_error *err)
{
    struct topt_hw *hw = topt_hw_from_json(doc, err);
    if (!hw)
        return -1;
    *ret_doc = topt_hw_to_json(hw);
    topt_hw_destroy(hw);
    return *ret_doc ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
}

int planner_launch(const char *plan, char **ret_script, struct topt_error *err)
{
    json_t *launch = NULL, *doc = topt_json_parse(plan, strlen(plan), "the plan", err);
    int rc = doc ? topt_launch(doc, NULL, 1, &launch, err) : -1;
    if (rc == 0 && !(*ret_script = topt_launch_text(launch)))
        rc = topt_nomem(err, NULL);
    json_decref(launch);
    json_decref(doc);
    return rc;
}

static int draw(const json_t *doc, char **ret_svg, struct topt_error *err)
{
    struct topt_plan_doc *p = NULL;
    struct topt_staged s;
    if (topt_plan_read(doc, &p, err))
        return -1;
    struct topt_costing k = {p->micro, p->hw, &p->mesh, &p->settings, p->router, NULL};
    int rc = p->settings.stages < 2
                 ? topt_fail(err, TOPT_ERR_INFEASIBLE,
                             "this plan has no pipeline stages whose schedule could be "
                             "drawn")
                 : topt_staged_step(&k, p->strategy, &s, err);
    if (!rc) {
        json_t *step = topt_staged_json(&s);
        *ret_svg = topt_svg_stages(step, topt_json_words_at(doc, "strategy"));
        rc = *ret_svg ? 0 : topt_nomem(err, NULL);
        json_decref(step);
        topt_staged_fini(&s);
    }
    topt_plan_doc_destroy(p);
    return rc;
}

int planner_schedule(const char *plan, char **ret_svg, struct topt_error *err)
{
    json_t *doc = topt_json_parse(plan, strlen(plan), "the plan", err);
    int rc = doc ? draw(doc, ret_svg, err) : -1;
    json_decref(doc);
    return rc;
}

const char *const *planner_hw_shipped(void)
{
    return topt_hw_shipped();
}

int planner_hw_get(const char *name, json_t **ret_doc, struct topt_error *err)
{
    const char *const *n = topt_hw_shipped();
    while (*n && strcmp(*n, name))
        n++;
    if (!*n)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "no hardware profile '%s'", name);
    struct topt_hw *hw = topt_hw_load(name, err);
    if (!hw)
        return -1;
    *ret_doc = topt_hw_to_json(hw);
    topt_hw_destroy(hw);
    return *ret_doc ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
}

/* The limit within which a plan's memory stays below the limit when it counts for more. */
static int64_t scaled_limit(const struct planner_question *q, const struct topt_hw *hw)
{
    int64_t limit = q->query->memory_bytes;
    if (!limit)
        limit = topt_hw_memory_bytes(hw);
    limit = (int64_t)((double)limit * 1000 / (double)q->memory_mill);
    return limit > 0 ? limit : 1;
}

static int fill_request(const struct planner_question *q, const struct topt_model *m,
                        const struct topt_hw *hw, struct topt_request *r,
                        struct topt_error *err)
{
    const struct topt_query *x = q->query;
    const char *source;
    topt_request_init(r);
    r->counts = TOPT_COUNTS_WHOLE;
    if (topt_request_read(x, r, &source, err) < 0)
        return -1;
    r->model = m;
    r->hw = hw;
    if (q->memory_mill > 1000 && x->kind != TOPT_QUERY_FRONTIER)
        r->memory_limit = scaled_limit(q, hw);
    r->threads = q->threads;
    if (!x->max_table_bytes)
        r->max_table_bytes = q->max_table_bytes;
    r->cancel = q->cancel;
    r->stop = q->stop;
    r->brief = q->brief;
    r->progress = q->progress;
    return topt_request_complete(r, err);
}

/* The memo of the question's problem, kept for the next one; NULL without memory. */
static struct topt_memo *find_memo(struct planner *p, const struct planner_question *q,
                                   const struct topt_request *r)
{
    struct topt_text key = {0};
    topt_text_add(&key, "%s %s %lld %s %s", q->model_id, q->hw_id,
                  (long long)r->max_table_bytes, q->problem, q->what);
    struct topt_memo *m = key.oom ? NULL : kept_find(&p->memos, key.s);
    if (!key.oom && !m && (m = topt_memo_create()) && kept_add(&p->memos, key.s, m) < 0)
        m = NULL;
    topt_text_fini(&key);
    return m;
}

/* Curves are of devices like the least of any group, where nobody says of which. */
static int asks_groups(const struct topt_request *r, const char *which)
{
    int says = *which && strcmp(which, "one");
    return topt_hw_groups(r->hw) ? r->mode != TOPT_PROFILING || says
                                 : topt_groups_named(which);
}

static int plan(struct planner *p, const struct planner_question *q,
                const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    if (asks_groups(r, q->query->groups))
        return topt_plan_groups(r, q->query->groups, ret, err);
    struct topt_memo *m = find_memo(p, q, r);
    if (!m)
        return topt_nomem(err, NULL);
    int64_t before = topt_memo_searches(m);
    int rc = topt_plan_from(r, m, ret, err);
    if (q->searched)
        *q->searched = topt_memo_searches(m) > before;
    kept_trim(&p->memos);
    return rc;
}

/* The question is that of a run: a plan beside it is answered from the memo. */
static int plan_beside_run(struct planner *p, const struct planner_question *q,
                           const struct topt_request *run, json_t **ret,
                           struct topt_error *err)
{
    struct topt_query asked = topt_run_left_out(q->query);
    struct planner_question own = *q;
    struct topt_request r;
    own.query = &asked;
    if (fill_request(&own, run->model, run->hw, &r, err))
        return -1;
    r.apart = run->apart;
    struct topt_memo *m = find_memo(p, q, &r);
    if (!m)
        return topt_nomem(err, NULL);
    int rc = topt_plan_beside_run(&r, run, m, ret, err);
    kept_trim(&p->memos);
    if (rc)
        return -1;
    json_t *as_is = json_object_get(*ret, "as_is");
    topt_run_put_question(as_is, q->query);
    if (*q->notes)
        json_object_set_new(as_is, "notes", json_loads(q->notes, 0, NULL));
    return 0;
}

static int ask(struct planner *p, const struct planner_question *q,
               const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    struct topt_request at = *r;
    struct topt_hw *none;
    switch (q->query->kind) {
    case TOPT_QUERY_PLAN:
        if (q->query->as_is)
            return plan_beside_run(p, q, r, ret, err);
        return plan(p, q, r, ret, err);
    case TOPT_QUERY_CURVE:
        return plan(p, q, r, ret, err);
    case TOPT_QUERY_FRONTIER:
        at.mode = TOPT_MINI_TIME;
        if (topt_groups_profile(&at, 1, &at.hw, &none, err))
            return -1;
        return topt_hw_groups(at.hw) ? topt_unequal_frontier(&at, ret, err)
                                     : topt_plan_frontier(&at, ret, err);
    }
    return topt_fail(err, TOPT_ERR_INTERNAL, "unknown kind of question");
}

/* The profile as it is, or with nodes of fewer GPUs where the question says so. */
static struct topt_hw *read_hw(const struct planner_question *q, struct topt_error *err)
{
    json_t *doc = topt_json_parse(q->hw, strlen(q->hw), "the profile", err);
    struct topt_hw *whole = doc ? topt_hw_from_json(doc, err) : NULL;
    json_decref(doc);
    if (!whole || !q->query->gpus_per_node)
        return whole;
    struct topt_hw *hw = topt_hw_of_nodes(whole, q->query->gpus_per_node, err);
    topt_hw_destroy(whole);
    return hw;
}

/* The profile of the question, kept for the next one. */
static const struct topt_hw *find_hw(struct planner *p, const struct planner_question *q,
                                     struct topt_error *err)
{
    char key[160];
    snprintf(key, sizeof key, "%.120s %lld", q->hw_id,
             (long long)q->query->gpus_per_node);
    struct topt_hw *hw = kept_find(&p->profiles, key);
    if (hw)
        return hw;
    hw = read_hw(q, err);
    if (!hw || kept_add(&p->profiles, key, hw) == 0)
        return hw;
    topt_nomem(err, NULL);
    return NULL;
}

/* The same of the model: what it is compiled from is the document and these words. */
static const struct topt_model *find_model(struct planner *p,
                                           const struct planner_question *q, int apart,
                                           struct topt_error *err)
{
    const struct topt_query *x = q->query;
    struct topt_text key = {0};
    struct topt_model *m = NULL;
    struct topt_import_options o = {.batch = x->batch,
                                    .seq = x->seq,
                                    .document_length = x->document_length,
                                    .mtp = x->mtp,
                                    .train = *x->train ? x->train : NULL,
                                    .apart = apart | topt_query_apart(x)};
    topt_text_add(&key, "%s %lld %lld %lld %lld %d %s %s", q->model_id,
                  (long long)o.batch, (long long)o.seq, (long long)o.document_length,
                  (long long)o.mtp, o.apart, x->train, q->what);
    if (!key.oom && (m = kept_find(&p->models, key.s))) {
        topt_text_fini(&key);
        return m;
    }
    m = topt_model_import(q->model, strlen(q->model), q->what, &o, err);
    if (m && (key.oom || kept_add(&p->models, key.s, m) < 0)) {
        if (key.oom)
            topt_model_destroy(m);
        topt_nomem(err, NULL);
        m = NULL;
    }
    topt_text_fini(&key);
    return m;
}

int planner_answer(struct planner *p, const struct planner_question *q, json_t **ret,
                   struct topt_error *err)
{
    struct topt_request r;
    if (q->searched)
        *q->searched = 1;
    const struct topt_hw *hw = find_hw(p, q, err);
    const struct topt_model *m = hw ? find_model(p, q, 0, err) : NULL;
    if (!m || fill_request(q, m, hw, &r, err))
        return -1;
    if (topt_request_wants_apart(&r) &&
        !(r.apart = find_model(p, q, TOPT_APART_HEADS, err)))
        return -1;
    return ask(p, q, &r, ret, err);
}

int planner_plan_id(const json_t *plan, char ret[TOPT_ID], struct topt_error *err)
{
    struct topt_plan_doc *p;
    if (topt_plan_read(plan, &p, err) < 0)
        return topt_wrap(err, "the plan just made can't be read back");
    snprintf(ret, TOPT_ID, "%s", p->id);
    topt_plan_doc_destroy(p);
    return 0;
}
