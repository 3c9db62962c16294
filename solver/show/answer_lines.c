/* answer_lines.c - see topt_answer_lines.h. */
#include "topt_answer_lines.h"

#include <stdlib.h>
#include <string.h>

#include "topt_answer_text.h"
#include "topt_carry.h"
#include "topt_drawing.h"
#include "topt_hint.h"
#include "topt_json.h"
#include "topt_totals.h"

enum { COLUMNS = 100 };

/* Text of others as one line. */
static void add_said(struct topt_text *t, const char *key, const char *words)
{
    topt_text_add(t, "%s=", key);
    for (const char *p = words; *p; p++)
        topt_text_put(t, (unsigned char)*p < ' ' ? " " : p, 1);
    topt_text_add(t, "\n");
}

static void add_line(struct topt_text *t, const char *key, const json_t *value)
{
    if (json_is_integer(value)) {
        topt_text_add(t, "%s=%lld\n", key, (long long)json_integer_value(value));
    } else if (json_is_string(value)) {
        add_said(t, key, json_string_value(value));
    }
}

/* The variables that describe a uniform plan to the script of another framework. */
static void add_uniform(struct topt_text *t, const json_t *uniform)
{
    static const struct {
        const char *key, *field;
    } lines[] = {{"TOPT_DP", "dp"},
                 {"TOPT_TP", "tp"},
                 {"TOPT_PP", "pp"},
                 {"TOPT_VP", "vp"},
                 {"TOPT_CP", "cp"},
                 {"TOPT_EP", "ep"},
                 {"TOPT_ETP", "etp"},
                 {"TOPT_FSDP", "zero"},
                 {"TOPT_MICRO_BATCH", "micro_batch"},
                 {"TOPT_SHARD", "shard"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_line(t, lines[i].key, json_object_get(uniform, lines[i].field));
    if (uniform)
        topt_text_add(t, "TOPT_RECOMPUTE=%d\n",
                      json_is_true(json_object_get(uniform, "recompute")));
}

/* Add a line and free 'words'; add none where 'words' is NULL. */
static void add_words(struct topt_text *t, const char *key, char *words)
{
    if (words)
        add_said(t, key, words);
    free(words);
}

void topt_lines_of_document(struct topt_text *t, const char *plan)
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

/* Add each line of 'shown' as a line TOPT_SHOWN=. */
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

/* Write the question and the alternatives, or the whole answer, as `topt plan` does. A curve is drawn. */
static void show(const json_t *answer, enum topt_lines_shown what, struct topt_text *out)
{
    const json_t *rows = json_object_get(answer, "alternatives");
    if (json_object_get(answer, "points")) {
        char *plot = topt_plot_curve(answer, COLUMNS);
        topt_text_add(out, "%s", plot ? plot : "");
        out->oom |= !plot;
        free(plot);
    } else if (what == TOPT_LINES_ALL) {
        topt_text_of_plan(out, answer, NULL);
    } else {
        topt_text_of_question(out, answer);
        if (json_array_size(rows))
            topt_text_of_rows(out, rows, json_object_get(answer, "job"), 0);
        topt_text_of_lacks(out, answer);
    }
}

void topt_lines_shown(struct topt_text *t, const json_t *answer,
                      enum topt_lines_shown what)
{
    struct topt_text shown = {0};
    if (what == TOPT_LINES_ALONE)
        return;
    show(answer, what, &shown);
    t->oom |= shown.oom;
    add_shown(t, shown.s ? shown.s : "");
    topt_text_fini(&shown);
}

/* Why it is the answer, whether its memory is tight, and how a run that exists compares. */
static char *why_words(const json_t *answer)
{
    struct topt_text t = {0};
    char most[32];
    const json_t *band = json_object_get(json_object_get(answer, "band"), "memory");
    topt_text_add(&t, "%s", topt_json_words_at(answer, "why"));
    if (!strcmp(topt_json_words_at(answer, "verdict"), "tight"))
        topt_text_add(
            &t, "; memory is tight, up to %s with context and libraries",
            topt_show_bytes(topt_json_whole_at(band, "high_bytes"), most, sizeof most));
    const json_t *run = json_object_get(answer, "as_is");
    if (run && topt_json_whole_at(answer, "time_ns"))
        topt_text_add(&t, "; the run as it is takes %.3g times as long%s",
                      (double)topt_json_whole_at(run, "time_ns") /
                          (double)topt_json_whole_at(answer, "time_ns"),
                      strcmp(topt_json_words_at(run, "verdict"), "does not fit")
                          ? ""
                          : " and does not fit");
    return t.s;
}

void topt_lines_of_plan(struct topt_text *t, const json_t *answer, const char *hint)
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
                 {"TOPT_NEEDS", "needs"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_line(t, lines[i].key, json_object_get(answer, lines[i].field));
    add_words(t, "TOPT_WHY", why_words(answer));
    add_line(t, "TOPT_NOT_SEARCHED",
             json_object_get(json_object_get(answer, "job"), "not_searched"));
    struct topt_text training = {0};
    topt_totals_text(&training, answer, json_object_get(answer, "job"));
    t->oom |= training.oom;
    add_words(t, "TOPT_TRAINING", training.s);
    add_uniform(t, json_object_get(answer, "uniform"));
    if (json_object_get(answer, "uniform"))
        add_line(t, "TOPT_ACCUMULATION", json_object_get(answer, "micro_batches"));
    char *usual = hint ? strdup(hint) : hint_line(answer, "--topt-min-efficiency=");
    add_words(t, "TOPT_HINT", usual ? usual : hint_with(answer, "--topt-"));
}

char *topt_nearest_line(const json_t *answer)
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
