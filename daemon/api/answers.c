/* answers.c - a stored answer as a reply: the whole document, or lines for the plugin. */
#include "answers.h"
#include "hint.h"
#include "topt_answer_text.h"
#include "topt_drawing.h"
#include "topt_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_carry.h"
#include "topt_json.h"
#include "topt_text.h"

enum { COLUMNS = 100 };

/* What is said of an answer beside what was found. */
struct shown {
    int is_pinned;
    const struct correction *correction;
};

static void add_line(struct topt_text *t, const char *key, const json_t *value)
{
    if (json_is_integer(value)) {
        topt_text_add(t, "%s=%lld\n", key, (long long)json_integer_value(value));
    } else if (json_is_string(value)) {
        topt_text_add(t, "%s=", key);
        for (const char *p = json_string_value(value); *p; p++)
            topt_text_put(t, (unsigned char)*p < ' ' ? " " : p, 1);
        topt_text_add(t, "\n");
    }
}

/* What a script of another framework is told of a plan that makes one choice for all. */
static void add_uniform(struct topt_text *t, const json_t *uniform)
{
    static const struct {
        const char *key, *field;
    } lines[] = {{"TOPT_DP", "dp"},
                 {"TOPT_TP", "tp"},
                 {"TOPT_FSDP", "zero"},
                 {"TOPT_MICRO_BATCH", "micro_batch"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_line(t, lines[i].key, json_object_get(uniform, lines[i].field));
    if (uniform)
        topt_text_add(t, "TOPT_RECOMPUTE=%d\n",
                      json_is_true(json_object_get(uniform, "recompute")));
}

/* A line of words that is given up; none where there are no words. */
static void add_words(struct topt_text *t, const char *key, char *words)
{
    if (words)
        topt_text_add(t, "%s=%s\n", key, words);
    free(words);
}

/* The plan itself, for the job's environment; none where it is too long for that, then it is fetched by its id. */
static void add_plan(struct topt_text *t, const char *plan)
{
    struct topt_error err = {0};
    char *word = NULL;
    size_t len = 0;
    if (!plan)
        return;
    if (topt_carry_write(plan, strlen(plan), &word, &len, &err) == 0) {
        topt_text_add(t, "TOPT_PLAN_DOC=");
        topt_text_put(t, word, len);
        topt_text_add(t, "\n");
    } else if (err.code != TOPT_ERR_LIMIT) {
        t->oom = 1;
    }
    free(word);
}

/* What people read, a line of it under the key each. */
static void add_shown(struct topt_text *t, const char *shown)
{
    for (const char *s = shown; *s; s += *s == '\n') {
        size_t n = strcspn(s, "\n");
        topt_text_add(t, "TOPT_SHOWN=");
        topt_text_put(t, s, n);
        topt_text_add(t, "\n");
        s += n;
    }
}

/* The alternatives, or the whole answer, as `topt plan` shows them. */
static void add_answer_shown(const struct request *q, const json_t *answer,
                             struct topt_text *t)
{
    struct topt_text shown = {0};
    const json_t *rows = json_object_get(answer, "alternatives");
    if (q->shows == SHOW_LINES)
        return;
    if (q->shows == SHOW_ALL) {
        topt_text_of_plan(&shown, answer, NULL);
    } else {
        topt_text_of_question(&shown, answer);
        if (json_array_size(rows))
            topt_text_of_rows(&shown, rows, 0);
    }
    t->oom |= shown.oom;
    add_shown(t, shown.s ? shown.s : "");
    topt_text_fini(&shown);
}

/* A curve of a job in Slurm, drawn. */
static struct reply curve_text(const json_t *curve)
{
    struct topt_text t = {0};
    char *shown = topt_plot_curve(curve, COLUMNS);
    if (shown)
        add_shown(&t, shown);
    if (!shown || t.oom)
        topt_text_fini(&t);
    free(shown);
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

static struct reply plan_text(const struct request *q, const json_t *answer,
                              const char *plan, const struct shown *s)
{
    static const struct {
        const char *key, *field;
    } lines[] = {{"TOPT_PLAN_ID", "plan_id"},
                 {"TOPT_GPUS", "gpus"},
                 {"TOPT_NODES", "nodes"},
                 {"TOPT_GPUS_PER_NODE", "gpus_per_node"},
                 {"TOPT_MEMORY_BYTES", "memory_bytes"},
                 {"TOPT_PEAK_BYTES", "peak_bytes"},
                 {"TOPT_TIME_NS", "time_ns"},
                 {"TOPT_SPACE", "space"},
                 {"TOPT_STRATEGY", "strategy"},
                 {"TOPT_WHY", "why"},
                 {"TOPT_NEEDS", "needs"}};
    struct topt_text t = {0};
    char words[200];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_line(&t, lines[i].key, json_object_get(answer, lines[i].field));
    add_uniform(&t, json_object_get(answer, "uniform"));
    if (json_object_get(answer, "uniform"))
        add_line(&t, "TOPT_ACCUMULATION", json_object_get(answer, "micro_batches"));
    char *hint = q->most ? hint_beyond(answer, q->most, q->within)
                         : hint_line(answer, "--topt-min-efficiency=");
    add_words(&t, "TOPT_HINT", hint ? hint : hint_with(answer, "--topt-"));
    if (!s->is_pinned)
        topt_text_add(&t, "TOPT_PINNED=0\n");
    if (correction_is_there(s->correction)) {
        correction_words(s->correction, words, sizeof words);
        topt_text_add(&t, "TOPT_CORRECTION=%s\n", words);
    }
    if (*q->gpu_type)
        topt_text_add(&t, "TOPT_GPU_TYPE=%s\n", q->gpu_type);
    if (*q->limit)
        topt_text_add(&t, "TOPT_LIMIT=%s\n", *q->within ? q->within : q->limit);
    add_places(q, answer, &t);
    add_answer_shown(q, answer, &t);
    add_plan(&t, plan);
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "text/plain; charset=utf-8", t.s);
}

/* What is nearest to fitting, and what would fit if it had been asked for, in a line; NULL where there is neither. */
static char *nearest_line(const json_t *answer)
{
    const json_t *nearest = json_object_get(answer, "nearest");
    long long gpus = json_integer_value(json_object_get(nearest, "gpus"));
    long long bytes = json_integer_value(json_object_get(nearest, "memory_bytes"));
    char *with = hint_with(answer, "--topt-"), each[32];
    struct topt_text t = {0};
    if (gpus > 0)
        topt_text_add(&t, "%lld GPU%s with %s%s", gpus, gpus == 1 ? "" : "s",
                      topt_show_bytes(bytes, each, sizeof each),
                      gpus == 1 ? "" : " each");
    if (with)
        topt_text_add(&t, "%s%s", t.len ? "; " : "", with);
    free(with);
    return t.s;
}

/* The refusal as the envelope of errors, with what the answer says of why and of what to ask instead. */
static struct reply refusal_json(const json_t *answer, const char *name, const char *why,
                                 const struct shown *s)
{
    static const char *const fields[] = {"feasible", "nearest", "with", "batches",
                                         "assumed",  "job",     NULL};
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
    char *line = nearest_line(answer);
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
    json_t *doc = json_loads(answer, 0, NULL), *said = correction_json(c, doc);
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
              "within %s: nothing fits; %lld GPUs on %lld node%s would do", q->within,
              (long long)json_integer_value(json_object_get(answer, "gpus")), nodes,
              nodes == 1 ? "" : "s");
    return reply_fail(q, NULL, &err);
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

static struct reply show_answer(const struct request *q, const struct store_answer *a,
                                const struct shown *s)
{
    if (a->feasible && !q->wants_text)
        return whole(a, s);
    json_t *doc = json_loads(a->doc, 0, NULL);
    struct reply r;
    if (!doc)
        r = reply_error(q, 500, "internal", NULL, NULL,
                        "the stored answer can't be read");
    else if (!a->feasible)
        r = without_plan(q, doc, s);
    else if (q->most && json_integer_value(json_object_get(doc, "gpus")) > q->most)
        r = beyond(q, doc);
    else if (a->plan_id)
        r = plan_text(q, doc, a->plan, s);
    else if (q->shows != SHOW_LINES && json_object_get(doc, "points"))
        r = curve_text(doc);
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
