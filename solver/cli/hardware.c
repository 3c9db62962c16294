/* hardware.c - which kind of GPU?  The same question for several profiles, side by side.
 *
 * Each profile is asked like any other question, with what it has: a GPU without bf16 trains in f32, and
 * its row says so.  What is cheapest and what is soonest is looked for among all rows, the fewest GPUs
 * of each profile, its knee and its fastest. */
#include "hardware.h"

#include <stdio.h>
#include <string.h>

#include "topt_answer_text.h"
#include "topt_json.h"
#include "topt_rates.h"
#include "topt_show_plan.h"
#include "topt_text.h"
#include "topt_totals.h"

/* ---- asking ------------------------------------------------------------------------- */

/* Say what is the profile's own of a row. */
static void put_own(const struct topt_question *q, json_t *row, const char *precision)
{
    const char *own = topt_precision_of(&q->r.settings)->name,
               *strategy = topt_json_words_at(row, "strategy");
    json_object_set_new(row, "hw", json_string(q->a.hw));
    json_object_set_new(row, "device", json_string(topt_hw_device(q->hw)));
    json_object_set_new(row, "precision", json_string(own));
    if (q->r.totals.price > 0)
        json_object_set_new(row, "price", json_real(q->r.totals.price));
    if (*strategy && strcmp(own, precision))
        json_object_set_new(row, "strategy", json_sprintf("%s, %s", strategy, own));
}

/* The alternatives of an answer, or the one row that it is. */
static void put_rows(const struct topt_question *q, json_t *answer, const char *precision,
                     json_t *rows)
{
    static const char *const left[] = {"plan",    "plan_id", "job",   "assumed",
                                       "pricing", "stats",   "needs", NULL};
    const json_t *others = json_object_get(answer, "alternatives");
    size_t i;
    json_t *row;
    json_array_foreach(others, i, row)
    {
        json_object_set_new(row, "feasible", json_true());
        put_own(q, row, precision);
    }
    if (json_array_size(others)) {
        json_array_extend(rows, (json_t *)others);
        return;
    }
    for (i = 0; left[i]; i++)
        json_object_del(answer, left[i]);
    put_own(q, answer, precision);
    json_array_append(rows, answer);
}

/* One profile's rows.  A model that cannot be split there is a row with its reason. */
static int ask_one(struct topt_question *q, int i, json_t *doc, struct topt_error *err)
{
    json_t *answer = NULL, *rows = json_object_get(doc, "hardware");
    if (topt_ask_hw(q, i, err))
        return -1;
    if (topt_hw_groups(q->hw))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "%s has groups of unlike devices; ask for it by itself",
                         q->a.hw);
    int rc = topt_plan(&q->r, &answer, err);
    if (rc && err->code != TOPT_ERR_INFEASIBLE)
        return -1;
    if (rc)
        answer = json_pack("{s:b, s:s}", "feasible", 0, "why", err->text);
    if (!json_object_get(doc, "job")) {
        json_object_set_new(doc, "job", topt_request_job(&q->r));
        json_object_set_new(doc, "assumed", topt_request_assumed(&q->r));
    }
    if (json_object_get(answer, "stopped"))
        json_object_set_new(doc, "stopped", json_true());
    put_rows(q, answer, topt_json_words_at(json_object_get(doc, "job"), "precision"),
             rows);
    json_decref(answer);
    return 0;
}

/* Put the row of which 'of' is the least; nothing where no row fits. */
static void put_least(json_t *doc, const char *name, double (*of)(const json_t *row))
{
    json_t *best = NULL, *row;
    size_t i;
    json_array_foreach(json_object_get(doc, "hardware"), i, row)
    {
        if (json_is_true(json_object_get(row, "feasible")) &&
            (!best || of(row) < of(best)))
            best = row;
    }
    if (best)
        json_object_set(doc, name, best);
}

static double seconds_of_sample(const json_t *row)
{
    return 1 / topt_json_number_at(row, "samples_per_second");
}

static double gpu_hours(const json_t *row)
{
    return topt_json_number_at(row, "gpu_hours_per_million_samples");
}

static double cost(const json_t *row)
{
    return gpu_hours(row) * topt_json_number_at(row, "price");
}

int topt_hardware_compare(struct topt_question *q, json_t **ret, struct topt_error *err)
{
    struct topt_text names = {0};
    json_t *doc = json_pack("{s:[]}", "hardware");
    for (int i = 0; i < q->nhw; i++) {
        if (ask_one(q, i, doc, err)) {
            json_decref(doc);
            topt_text_fini(&names);
            return -1;
        }
        topt_text_add(&names, "%s%s", i ? ", " : "", q->hw_name[i]);
    }
    json_object_set_new(json_object_get(doc, "job"), "hw",
                        json_string(names.s ? names.s : ""));
    topt_text_fini(&names);
    put_least(doc, "soonest", seconds_of_sample);
    put_least(doc, "fewest_gpu_hours", gpu_hours);
    if (q->r.totals.price > 0)
        put_least(doc, "cheapest", cost);
    json_object_set_new(doc, "feasible",
                        json_boolean(json_object_get(doc, "soonest") != NULL));
    *ret = doc;
    return 0;
}

/* ---- showing ------------------------------------------------------------------------ */

/* "cheapest: h100-80-dgx on 64 GPUs (41.2 days, 63,300 GPU-hours)". */
static void add_best(struct topt_text *t, const char *what, const json_t *row,
                     const json_t *training)
{
    int64_t gpus = topt_json_whole_at(row, "gpus");
    double samples = topt_json_number_at(row, "samples_per_second"),
           tokens = topt_json_number_at(row, "tokens_per_second"),
           million = gpu_hours(row);
    char a[32], b[32];
    topt_text_add(t, "%s%s: %s on %lld GPU%s (", t->len ? "; " : "", what,
                  topt_json_words_at(row, "hw"), (long long)gpus, gpus == 1 ? "" : "s");
    if (training)
        topt_totals_words(t, row, training);
    else if (tokens > 0)
        topt_text_add(t, "%s tokens/s, %s GPU-hours per billion tokens",
                      topt_rates_number(tokens, a),
                      topt_rates_number(1e3 * million * samples / tokens, b));
    else
        topt_text_add(t, "%s samples/s, %s GPU-hours per million",
                      topt_rates_number(samples, a), topt_rates_number(million, b));
    topt_text_add(t, ")");
}

/* Which row is the cheapest and which the soonest; it may be one. */
static void add_choices(struct topt_text *t, const json_t *doc, const json_t *training)
{
    const json_t *priced = json_object_get(doc, "cheapest"),
                 *cheap = priced ? priced : json_object_get(doc, "fewest_gpu_hours"),
                 *soon = json_object_get(doc, "soonest");
    if (cheap == soon) {
        add_best(t, priced ? "cheapest and soonest" : "fewest GPU-hours and soonest",
                 soon, training);
        return;
    }
    add_best(t, priced ? "cheapest" : "fewest GPU-hours", cheap, training);
    add_best(t, "soonest", soon, training);
}

void topt_hardware_show(const json_t *doc)
{
    const json_t *job = json_object_get(doc, "job");
    struct topt_text t = {0}, line = {0};
    topt_show_question(doc);
    topt_show_rows(json_object_get(doc, "hardware"), job, TOPT_ROWS_BY_HW);
    if (json_object_get(doc, "soonest")) {
        add_choices(&t, doc, json_object_get(job, "training"));
        topt_text_of_words(&line, "best", t.s ? t.s : "");
        fputs(line.s ? line.s : "", stdout);
    }
    topt_show_lacks(doc);
    topt_text_fini(&t);
    topt_text_fini(&line);
}
