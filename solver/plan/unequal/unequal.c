/* unequal.c - the question about groups of unlike devices, its answer as a document and in words.
 */
#include "unequal_parts.h"

#include "request.h"
#include "topt_json.h"
#include "topt_text.h"

#include <string.h>

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
    return json_pack("{s:b, s:i, s:s, s:o, s:o}", "feasible", 0, "gpus", u->devices,
                     "why",
                     "no pipeline whose stages have equally many devices of one group "
                     "each, one chunk of layers and nothing on the host fits",
                     "job", topt_request_job(u->request), "assumed",
                     topt_request_assumed(u->request));
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
        int faster = staged && (!best.found || topt_json_whole_at(staged, "time_ns") <
                                                   best.time_ns);
        *ret = faster   ? staged_document(r, &best, json_incref(staged))
               : stages ? no_stages(&u)
                        : document(&u, &best, err);
    }
    json_decref(staged);
    topt_unequal_fini(&u);
    return *ret ? 0 : -1;
}

/* ---- for people --------------------------------------------------------------------- */

/* 'shared': what of the state groups share, NULL: nothing. */
static void add_group(struct topt_text *t, const json_t *g, const char *shared)
{
    char a[32], b[32], c[32], state[32] = "state all";
    if (shared)
        snprintf(state, sizeof state, "%s %.1f %%", shared,
                 100 * topt_json_number_at(g, "state_share"));
    topt_text_add(t, "%-12s %4lld x %-18s %6lld rows %5.1f %%  %-13s %10s  %s of %s\n",
                  topt_json_words_at(g, "name"), (long long)topt_json_whole_at(g, "gpus"),
                  topt_json_words_at(g, "device"),
                  (long long)topt_json_whole_at(g, "rows"),
                  100 * topt_json_number_at(g, "row_share"), state,
                  topt_show_ns(topt_json_whole_at(g, "time_ns"), a, sizeof a),
                  topt_show_bytes(topt_json_whole_at(g, "memory_bytes"), b, sizeof b),
                  topt_show_bytes(topt_json_whole_at(g, "memory_limit"), c, sizeof c));
    topt_text_add(t, "%12s %s\n", "", topt_json_words_at(g, "strategy"));
}

/* A line a stage. */
static void add_stages(struct topt_text *t, const json_t *stages)
{
    const json_t *s;
    char a[32], b[32], c[32];
    size_t i;
    json_array_foreach(stages, i, s)
        topt_text_add(t, "stage %-3zu %4lld x %-18s %4lld layers %10s busy  %s of %s\n",
                      i + 1, (long long)topt_json_whole_at(s, "gpus"),
                      topt_json_words_at(s, "device"),
                      (long long)topt_json_whole_at(s, "layers"),
                      topt_show_ns(topt_json_whole_at(s, "busy_ns"), a, sizeof a),
                      topt_show_bytes(topt_json_whole_at(s, "memory_bytes"), b, sizeof b),
                      topt_show_bytes(topt_json_whole_at(s, "memory_limit"), c, sizeof c));
}

/* Where its ranks are: of stages side by side on one group. */
static void add_ranks_of_stages(struct topt_text *t, const json_t *stages)
{
    long long first = 0, next = 0;
    for (size_t i = 0; i < json_array_size(stages); i++) {
        const json_t *s = json_array_get(stages, i), *after = json_array_get(stages, i + 1);
        const char *group = topt_json_words_at(s, "group");
        next += topt_json_whole_at(s, "gpus");
        if (after && !strcmp(topt_json_words_at(after, "group"), group))
            continue;
        topt_text_add(t, "%s%lld to %lld on %s", first ? ", " : "          ranks ", first,
                      next - 1, group);
        first = next;
    }
    topt_text_add(t, "\n");
}

/* One pipeline over all groups. */
static void add_staged(struct topt_text *t, const json_t *answer)
{
    const json_t *stages = json_object_get(answer, "stages"),
                 *shares = json_object_get(answer, "shares");
    char a[32];
    topt_text_add(t, "a step takes %s, by one pipeline of %zu stages, each on GPUs of one group\n\n",
                  topt_show_ns(topt_json_whole_at(answer, "time_ns"), a, sizeof a),
                  json_array_size(stages));
    add_stages(t, stages);
    topt_text_add(t, "\nstrategy  %s\n", topt_json_words_at(answer, "strategy"));
    if (shares)
        topt_text_add(t, "shares    of the batch, each group by its own plan, take %s, %.2f times as long\n",
                      topt_show_ns(topt_json_whole_at(shares, "time_ns"), a, sizeof a),
                      topt_json_number_at(shares, "time_ns") /
                          topt_json_number_at(answer, "time_ns"));
    topt_text_add(t, "plan      %s, which -o writes for topt launch\n",
                  topt_json_words_at(answer, "plan_id"));
    add_ranks_of_stages(t, stages);
}

/* Devices of a group by itself with the whole batch, and the sum of their rates. */
static void add_alone(struct topt_text *t, const json_t *answer)
{
    const json_t *groups = json_object_get(answer, "groups"), *g;
    double rates = 0, time = topt_json_number_at(answer, "time_ns");
    char buf[32];
    size_t i;
    json_array_foreach(groups, i, g)
    {
        if (!json_is_integer(json_object_get(g, "alone_ns"))) {
            topt_text_add(t, "alone     %s: does not fit\n",
                          topt_json_words_at(g, "name"));
            rates = -1;
            continue;
        }
        topt_text_add(t, "alone     %s would take %s%s\n", topt_json_words_at(g, "name"),
                      topt_show_ns(topt_json_whole_at(g, "alone_ns"), buf, sizeof buf),
                      topt_json_number_at(g, "alone_ns") < time
                          ? ": faster without the others, for which it would wait"
                          : "");
        if (rates >= 0)
            rates += 1 / topt_json_number_at(g, "alone_ns");
    }
    if (rates > 0)
        topt_text_add(t,
                      "together  %.2f times the ideal time by the sum of their speeds\n",
                      time * rates);
}

/* Where its ranks are. */
static void add_ranks(struct topt_text *t, const json_t *groups)
{
    long long first = 0;
    const json_t *g;
    size_t i;
    json_array_foreach(groups, i, g)
    {
        long long n = topt_json_whole_at(g, "gpus");
        topt_text_add(t, "%s%lld", i ? ", " : "          ranks ", first);
        if (n > 1)
            topt_text_add(t, " to %lld", first + n - 1);
        topt_text_add(t, " on %s", topt_json_words_at(g, "name"));
        first += n;
    }
    topt_text_add(t, "\n");
}

char *topt_unequal_text(const json_t *answer)
{
    struct topt_text t = {0};
    char a[32], b[32], c[32];
    const json_t *groups = json_object_get(answer, "groups"),
                 *equal = json_object_get(answer, "equal"),
                 *job = json_object_get(answer, "job");
    topt_text_add(
        &t, "%s, %lld samples per step, on %lld GPUs of %s\n",
        topt_json_words_at(job, "model"), (long long)topt_json_whole_at(job, "batch"),
        (long long)topt_json_whole_at(answer, "gpus"), topt_json_words_at(job, "hw"));
    if (!json_is_true(json_object_get(answer, "feasible"))) {
        topt_text_add(&t, "nothing fits: %s\n", topt_json_words_at(answer, "why"));
        return t.s;
    }
    if (json_object_get(answer, "stages")) {
        add_staged(&t, answer);
        return t.s;
    }
    const char *how = topt_json_words_at(answer, "state"), *shared = *how == 's' ? "state"
                                                                     : *how == 'o'
                                                                         ? "optimizer"
                                                                         : NULL;
    int one = json_is_true(json_object_get(answer, "one_strategy"));
    topt_text_add(&t, "a step takes %s",
                  topt_show_ns(topt_json_whole_at(answer, "time_ns"), a, sizeof a));
    if (one)
        topt_text_add(&t, ", by one strategy for all groups, which share what its first "
                          "axis splits\n\n");
    else
        topt_text_add(
            &t, ", of which %s between groups (%s more is hidden)\n\n",
            topt_show_ns(topt_json_whole_at(answer, "exchange_ns"), b, sizeof b),
            topt_show_ns(topt_json_whole_at(answer, "hidden_ns"), c, sizeof c));
    for (size_t i = 0; i < json_array_size(groups); i++)
        add_group(&t, json_array_get(groups, i), shared);
    topt_text_add(&t, "\n");
    if (json_is_true(json_object_get(equal, "feasible")))
        topt_text_add(&t, "equal     shares of everything take %s, %.2f times as long\n",
                      topt_show_ns(topt_json_whole_at(equal, "time_ns"), a, sizeof a),
                      topt_json_number_at(equal, "time_ns") /
                          topt_json_number_at(answer, "time_ns"));
    else
        topt_text_add(&t, "equal     shares of everything do not fit\n");
    add_alone(&t, answer);
    const json_t *plan = json_object_get(answer, "plan");
    if (plan)
        topt_text_add(&t,
                      "plan      %s: one strategy for all groups, %s per step, which -o "
                      "writes for topt run\n",
                      topt_json_words_at(plan, "id"),
                      topt_show_ns(topt_json_whole_at(answer, "plan_ns"), a, sizeof a));
    if (plan)
        add_ranks(&t, groups);
    else
        topt_text_add(&t, "plan      none that all groups run together: %s\n",
                      topt_json_words_at(answer, "no_plan"));
    return t.s;
}
