/* unequal.c - the question about groups of unlike devices, and its answer as a document.
 */
#include "unequal_parts.h"

#include "request.h"
#include "topt_json.h"

/* ---- the document ------------------------------------------------------------------- */

/* A group's shares and what they take: with the plan of all groups, or, where 'j' is NULL, with a
 * plan of its own. */
static json_t *group_json(struct topt_unequal *u, const struct topt_shares *s,
                          const struct topt_joint *j, int i, struct topt_error *err)
{
    const struct topt_unequal_group *g = &u->group[i];
    const struct topt_group_plan *own, *alone;
    int64_t batch = u->request->model->batch, rows = s->rows[i];
    int each = s->where == TOPT_STATE_REPLICATED;
    if (topt_group_plan(u, i, rows, s->where, s->share[i], &own, err) ||
        topt_group_plan(u, i, batch, TOPT_STATE_REPLICATED, 1, &alone, err))
        return NULL;
    double row_share = j ? j->share[i] : (double)rows / (double)batch;
    if (j)
        rows = (int64_t)(row_share * (double)batch + 0.5);
    json_t *doc = json_pack(
        "{s:s, s:s, s:i, s:I, s:f, s:f, s:I, s:I, s:I}", "name", topt_hw_name(g->hw),
        "device", topt_hw_device(g->hw), "gpus", g->devices, "rows", (json_int_t)rows,
        "row_share", row_share, "state_share", each ? 1. : s->share[i], "time_ns",
        (json_int_t)(j ? j->costs.of[i].time_ns : own->time_ns), "memory_bytes",
        (json_int_t)(j ? j->costs.of[i].memory_bytes : own->memory_bytes), "memory_limit",
        (json_int_t)g->limit);
    if (!doc) {
        topt_nomem(err, "a group");
        return NULL;
    }
    json_object_set_new(doc, "alone_ns",
                        alone->fits ? json_integer(alone->time_ns) : json_null());
    json_object_set(doc, "strategy",
                    json_object_get(j ? j->plan : own->answer, "strategy"));
    if (!j && each) /* what is sharded over all is no plan of the group alone */
        json_object_set(doc, "plan", json_object_get(own->answer, "plan"));
    return doc;
}

/* Groups by plans of their own, or by one strategy where that is faster. */
static int put_found(struct topt_unequal *u, const struct topt_shares *s, json_t *doc,
                     struct topt_error *err)
{
    static const char *const state[] = {[TOPT_STATE_REPLICATED] = "each",
                                        [TOPT_STATE_ZERO_1] = "optimizer",
                                        [TOPT_STATE_SHARDED] = "sharded"};
    struct topt_joint j;
    if (topt_joint_find(u, s, &j, err))
        return -1;
    int one = j.time_ns < s->time_ns;
    json_t *groups = json_array();
    json_object_set_new(doc, "state", json_string(state[s->where]));
    json_object_set_new(doc, "one_strategy", json_boolean(one));
    json_object_set_new(doc, "time_ns", json_integer(one ? j.time_ns : s->time_ns));
    json_object_set_new(doc, "exchange_ns", json_integer(one ? 0 : s->exchange_ns));
    json_object_set_new(doc, "hidden_ns", json_integer(one ? 0 : s->hidden_ns));
    json_object_set_new(doc, "groups", groups);
    if (j.plan) {
        json_object_set(doc, "plan", j.plan);
        json_object_set_new(doc, "plan_ns", json_integer(j.time_ns));
    } else {
        json_object_set_new(doc, "no_plan", json_string(j.why));
    }
    int rc = 0;
    for (int i = 0; i < u->n && !rc; i++)
        rc = json_array_append_new(groups, group_json(u, s, one ? &j : NULL, i, err));
    json_decref(j.plan);
    return rc;
}

/* A pipeline's answer beside what shares take where they were looked at; takes 'answer'. */
static json_t *staged_document(const struct topt_request *r, const struct topt_shares *s,
                               json_t *answer)
{
    json_object_set_new(answer, "job", topt_request_job(r));
    json_object_set_new(answer, "assumed", topt_request_assumed(r));
    if (s && s->found)
        json_object_set_new(answer, "shares",
                            json_pack("{s:I}", "time_ns", (json_int_t)s->time_ns));
    return answer;
}

/* Where stages are asked for and can't be had. */
static json_t *no_stages(const struct topt_unequal *u)
{
    return json_pack(
        "{s:b, s:i, s:s, s:o, s:o}", "feasible", 0, "gpus", u->devices, "why",
        "no pipeline whose stages have equally many devices of one group "
        "each, one chunk of layers and nothing on the host fits",
        "job", topt_request_job(u->request), "assumed", topt_request_assumed(u->request));
}

static json_t *document(struct topt_unequal *u, const struct topt_shares *s,
                        struct topt_error *err)
{
    const struct topt_request *r = u->request;
    struct topt_shares equal;
    if (topt_shares_equal(u, &equal, err))
        return NULL;
    json_t *doc = json_pack("{s:b, s:i, s:{s:b}, s:o, s:o}", "feasible", s->found, "gpus",
                            u->devices, "equal", "feasible", equal.found, "job",
                            topt_request_job(r), "assumed", topt_request_assumed(r));
    if (!doc)
        return NULL;
    if (equal.found)
        json_object_set_new(json_object_get(doc, "equal"), "time_ns",
                            json_integer(equal.time_ns));
    if (s->found && put_found(u, s, doc, err)) {
        json_decref(doc);
        return NULL;
    }
    if (!s->found)
        json_object_set_new(doc, "why",
                            json_string(r->model->batch < u->n
                                            ? "there are more groups than rows"
                                            : "no shares of rows and of the model's "
                                              "state fit the groups' memory"));
    return doc;
}

/* ---- the question ------------------------------------------------------------------- */

int topt_plan_unequal(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    struct topt_unequal u;
    struct topt_shares best = {.found = 0};
    json_t *staged = NULL;
    int stages = topt_request_only_stages(r);
    *ret = NULL;
    topt_unequal_init(&u, r);
    if (r->gpus && r->gpus != u.devices)
        topt_fail(err, TOPT_ERR_USAGE,
                  "%s has groups of %d devices together, and is planned for all of them: "
                  "no --gpus, or --gpus %d",
                  topt_hw_name(r->hw), u.devices, u.devices);
    else if ((stages || !topt_shares_best(&u, &best, err)) &&
             !topt_unequal_staged(&u, &staged, err)) {
        int faster = staged && (!best.found ||
                                topt_json_whole_at(staged, "time_ns") < best.time_ns);
        *ret = faster   ? staged_document(r, &best, json_incref(staged))
               : stages ? no_stages(&u)
                        : document(&u, &best, err);
    }
    json_decref(staged);
    topt_unequal_fini(&u);
    return *ret ? 0 : -1;
}
