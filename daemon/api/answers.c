/* answers.c - a stored answer as a reply: the whole document, or lines for the plugin. */
#include "answers.h"
#include "csv.h"
#include "topt_hint.h"
#include "topt_answer_lines.h"
#include "topt_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_json.h"
#include "topt_unequal_text.h"
#include "topt_text.h"

/* What is said of an answer beside what was found. */
struct shown {
    int is_pinned;
    const struct correction *correction;
};

/* A curve of a job in Slurm, drawn. */
static struct reply curve_text(const struct request *q, const json_t *curve)
{
    struct topt_text t = {0};
    topt_lines_shown(&t, curve, q->shows);
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "text/plain; charset=utf-8", t.s);
}

/* Of the partitions that the job names those where the plan can run. */
static void add_places(const struct request *q, const json_t *answer, struct topt_text *t)
{
    int64_t nodes = json_integer_value(json_object_get(answer, "nodes"));
    int64_t each = json_integer_value(json_object_get(answer, "gpus_per_node"));
    int said = 0;
    for (int i = 0; i < q->nplaces; i++) {
        const struct site_place *p = &q->place[i];
        int fits = !p->gpus_per_node || (each <= p->gpus_per_node && nodes <= p->nodes);
        if (fits && (!p->gpus || nodes * each <= p->gpus))
            topt_text_add(t, "%s%s", said++ ? "," : "TOPT_PARTITION=", p->name);
    }
    if (said)
        topt_text_add(t, "\n");
}

/* Slurm gives a job all nodes that it names. */
static struct reply too_many_named(const struct request *q, int64_t nodes,
                                   const json_t *answer)
{
    struct topt_error err = {0};
    long long gpus = json_integer_value(json_object_get(answer, "gpus"));
    topt_fail(&err, TOPT_ERR_INFEASIBLE,
              "-w names %lld nodes, and the plan is of %lld GPU%s on %lld: name %lld, or "
              "say with --gpus-per-node how many GPUs it takes of a node",
              (long long)q->named, gpus, gpus == 1 ? "" : "s", (long long)nodes,
              (long long)nodes);
    return reply_fail(q, NULL, &err);
}

/* How nodes are given out; and where one of the profile's groups is planned for, and no type of GPUs keeps the job on
 * its nodes, that. */
static void add_note(const struct request *q, const json_t *answer, struct topt_text *t)
{
    const char *group = topt_json_words_at(answer, "group");
    int may_stray = *group && !*q->gpu_type;
    if (!*q->note && !may_stray)
        return;
    topt_text_add(t, "TOPT_NOTE=%s%s", q->note, *q->note && may_stray ? "; " : "");
    if (may_stray)
        topt_text_add(
            t,
            "planned for the GPUs of group '%.40s': name their nodes by --partition or "
            "--constraint, or their type",
            group);
    topt_text_add(t, "\n");
}

static struct reply plan_text(const struct request *q, const json_t *answer,
                              const char *plan, const struct shown *s)
{
    struct topt_text t = {0};
    char words[200];
    int64_t nodes = json_integer_value(json_object_get(answer, "nodes"));
    if (nodes < q->named)
        return too_many_named(q, nodes, answer);
    char *beyond = q->most ? hint_beyond(answer, q->most, q->within) : NULL;
    topt_lines_of_plan(&t, answer, beyond);
    free(beyond);
    if (!s->is_pinned)
        topt_text_add(&t, "TOPT_PINNED=0\n");
    if (correction_is_there(s->correction)) {
        correction_words(s->correction, words, sizeof words);
        topt_text_add(&t, "TOPT_CORRECTION=%s\n", words);
    }
    if (*q->gpu_type)
        topt_text_add(&t, "TOPT_GPU_TYPE=%s\n", q->gpu_type);
    add_note(q, answer, &t);
    if (*q->limit)
        topt_text_add(&t, "TOPT_LIMIT=%s\n", *q->within ? q->within : q->limit);
    add_places(q, answer, &t);
    topt_lines_shown(&t, answer, q->shows);
    topt_lines_of_document(&t, plan);
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "text/plain; charset=utf-8", t.s);
}

/* The refusal as the envelope of errors, with what the answer says of why and of what to
 * ask instead. */
static struct reply refusal_json(const json_t *answer, const char *name, const char *why,
                                 const struct shown *s)
{
    static const char *const fields[] = {"feasible", "verdict", "nearest", "with",
                                         "batches",  "assumed", "job",     NULL};
    json_t *e = json_pack("{s:s, s:s, s:O*}", "error", name, "description", why,
                          "nearest", json_object_get(answer, "nearest"));
    json_t *doc = json_pack("{s:[o], s:s}", "errors", e, "why", why);
    for (int i = 0; doc && fields[i]; i++)
        if (json_object_get(answer, fields[i]))
            json_object_set(doc, fields[i], json_object_get(answer, fields[i]));
    if (doc && !s->is_pinned)
        json_object_set_new(doc, "pinned", json_false());
    if (doc && correction_is_there(s->correction))
        json_object_set_new(doc, "correction", correction_json(s->correction, NULL));
    struct reply r = reply_json(422, doc);
    r.error = name;
    return r;
}

/* Nothing fits, or nothing was found that does. */
static struct reply without_plan(const struct request *q, const json_t *answer,
                                 const struct shown *s)
{
    const char *why = json_string_value(json_object_get(answer, "why"));
    const json_t *feasible = json_object_get(answer, "feasible");
    const char *name = json_is_null(feasible) ? "undecided" : "infeasible";
    why = why ? why : "nothing fits";
    if (!q->wants_text)
        return refusal_json(answer, name, why, s);
    char *line = topt_nearest_line(answer);
    struct topt_text within = {0};
    if (*q->limit)
        topt_text_add(&within, "within %s: %s", q->limit, why);
    struct reply r =
        reply_error(q, 422, name, NULL, line, within.s && !within.oom ? within.s : why);
    topt_text_fini(&within);
    free(line);
    return r;
}

/* What jobs say of it; the answer is parsed where they do say something. */
static void add_correction(struct topt_text *t, const char *answer,
                           const struct correction *c)
{
    if (!correction_is_there(c))
        return;
    json_t *doc = topt_json_parse(answer, strlen(answer), "the answer", NULL);
    json_t *said = doc ? correction_json(c, doc) : NULL;
    char *text = said ? topt_json_text(said, 0) : NULL;
    if (text)
        topt_text_add(t, ",\"correction\":%s", text);
    else
        t->oom = 1;
    free(text);
    json_decref(said);
    json_decref(doc);
}

/* The plan needs more nodes than the job's -N allows. */
static struct reply beyond(const struct request *q, const json_t *answer)
{
    struct topt_error err = {0};
    long long nodes = json_integer_value(json_object_get(answer, "nodes"));
    topt_fail(&err, TOPT_ERR_INFEASIBLE,
              "within %s: nothing fits; it fits on %lld GPUs on %lld node%s", q->within,
              (long long)json_integer_value(json_object_get(answer, "gpus")), nodes,
              nodes == 1 ? "" : "s");
    return reply_fail(q, NULL, &err);
}

/* A member of the list, and what is behind it. */
static const char *next_field(const char **list, size_t *ret_len)
{
    const char *s = *list;
    *ret_len = strcspn(s, ",");
    *list = s + *ret_len + (s[*ret_len] == ',');
    return s;
}

static int has_field(const char *list, const char *name)
{
    size_t n;
    while (*list) {
        const char *s = next_field(&list, &n);
        if (n == strlen(name) && !memcmp(s, name, n))
            return 1;
    }
    return 0;
}

/* Those members of 'from' that are asked for. */
static void take_members(json_t *doc, const json_t *from, const char *list)
{
    char name[64];
    size_t n;
    while (*list) {
        const char *s = next_field(&list, &n);
        snprintf(name, sizeof name, "%.*s", (int)n, s);
        if (json_object_get(from, name))
            json_object_set(doc, name, json_object_get(from, name));
    }
}

/* What of the answer is asked for. */
static struct reply parts(const struct request *q, const struct store_answer *a,
                          const json_t *answer, const struct shown *s)
{
    json_t *doc = json_pack("{s:s}", "fields", q->fields), *beside = json_object();
    int rc = !doc || !beside;
    if (!s->is_pinned)
        json_object_set_new(beside, "pinned", json_false());
    if (correction_is_there(s->correction))
        json_object_set_new(beside, "correction", correction_json(s->correction, answer));
    if (a->plan && has_field(q->fields, "plan"))
        rc |= json_object_set_new(
            beside, "plan", topt_json_parse(a->plan, strlen(a->plan), "the plan", NULL));
    take_members(doc, answer, q->fields);
    take_members(doc, beside, q->fields);
    json_decref(beside);
    if (!rc)
        return reply_json(200, doc);
    json_decref(doc);
    return reply_owned(503, NULL, NULL);
}

/* The stored answer with its plan put back: both are objects' texts, so they are joined
 * without being parsed again. */
static struct reply whole(const struct store_answer *a, const struct shown *s)
{
    size_t len = strlen(a->doc);
    if (len < 3)
        return reply_owned(200, "application/json", strdup(a->doc));
    struct topt_text t = {0};
    topt_text_put(&t, a->doc, len - 1);
    if (!s->is_pinned)
        topt_text_add(&t, ",\"pinned\":false");
    add_correction(&t, a->doc, s->correction);
    if (a->plan) {
        topt_text_put(&t, ",\"plan\":", 8);
        topt_text_put(&t, a->plan, strlen(a->plan));
    }
    topt_text_put(&t, "}", 1);
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "application/json", t.s);
}

/* The plan becomes the asker's; does it, on disk? */
static int own_plan(const struct request *q, const struct store_answer *a)
{
    struct topt_error err = {0};
    if (!a->plan_id || store_own(q->server->store, a->plan_id, asker(q), "", &err) == 0)
        return 1;
    topt_log(TOPT_LOG_WARN, "%s: %s is given, but not kept for its asker: %s", q->id,
             a->plan_id, err.text);
    return 0;
}

/* Lines are of a job that has GPUs of one kind. */
static struct reply no_lines(const struct request *q, const json_t *answer)
{
    struct topt_error err = {0};
    topt_fail(&err, TOPT_ERR_INFEASIBLE,
              "it is planned on %lld GPUs of several groups of '%s', and text/plain is "
              "of a job that "
              "has GPUs of one kind: ask with groups=one, or for application/json",
              (long long)json_integer_value(json_object_get(answer, "gpus")),
              topt_json_words_at(json_object_get(answer, "job"), "hw"));
    return reply_fail(q, "groups", &err);
}

static struct reply show_answer(const struct request *q, const struct store_answer *a,
                                const struct shown *s)
{
    if (a->feasible && !q->wants_text && !q->wants_csv && !q->fields)
        return whole(a, s);
    struct topt_error err = {0};
    json_t *doc = topt_json_parse(a->doc, strlen(a->doc), "the answer", &err);
    struct reply r;
    if (!doc && err.code == TOPT_ERR_NOMEM)
        r = reply_fail(q, NULL, &err);
    else if (!doc)
        r = reply_error(q, 500, "internal", NULL, NULL,
                        "the stored answer can't be read");
    else if (!a->feasible)
        r = without_plan(q, doc, s);
    else if (q->wants_csv)
        r = csv_reply(q, doc);
    else if (!q->wants_text)
        r = parts(q, a, doc, s);
    else if (topt_is_unequal(doc))
        r = no_lines(q, doc);
    else if (q->most && json_integer_value(json_object_get(doc, "gpus")) > q->most)
        r = beyond(q, doc);
    else if (a->plan_id)
        r = plan_text(q, doc, a->plan, s);
    else if (q->shows != TOPT_LINES_ALONE && json_object_get(doc, "points"))
        r = curve_text(q, doc);
    else
        r = reply_error(q, 406, "not_acceptable", "Accept", NULL,
                        "only a plan has a text/plain form; ask for application/json");
    json_decref(doc);
    return r;
}

struct reply answer_reply(const struct request *q, const struct store_answer *a,
                          int is_pinned, const struct correction *c)
{
    const struct shown s = {is_pinned && own_plan(q, a), c};
    struct reply r = show_answer(q, a, &s);
    r.keep = s.is_pinned && !a->is_partial;
    return r;
}

struct store_key answer_key(const struct operation *plan)
{
    return (struct store_key){plan->model_id, plan->hw_id, plan->text};
}

int answer_known(struct server *s, const struct operation *plan, struct store_answer *own,
                 const struct store_answer **ret, struct topt_error *err)
{
    const struct store_key key = answer_key(plan);
    *ret = plan->found.doc ? &plan->found : own;
    return plan->found.doc ? 1 : store_get_answer(s->store, &key, own, err);
}
