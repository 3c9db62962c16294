/* batches.c - which batch?  Several side by side, or the one that fills a GPU.
 *
 * A batch is asked like any other question, accumulation included.  A larger batch spreads what is
 * paid once a step (reductions, the optimizer) over more samples, so the speed of a GPU levels off:
 * "auto" tries one sample a GPU, two, four, until two doublings gained next to nothing, and takes
 * the smallest batch that is nearly as fast as the best.  Where no number of GPUs is named, it is
 * found in the same way: the fewest on which a GPU is nearly as fast as on the best number. */
#include "batches.h"
#include "topt_rates.h"

#include <stdlib.h>
#include <string.h>

enum {
    EACH = 4096, /* samples a GPU at most */
    LEVEL = 2    /* doublings that may gain next to nothing */
};
static const double KEPT = 0.97, GAIN = 1.005;

/* What is compared of an answer. */
static json_t *row_of(const struct topt_question *q, const json_t *answer)
{
    static const char *const taken[] = {"feasible", "gpus",         "nodes",   "time_ns",
                                        "strategy", "memory_bytes", "why",     "uniform",
                                        "band",     "nearest",      "stopped", "verdict",
                                        NULL};
    json_t *row = json_object();
    json_object_set_new(row, "batch", json_integer(q->model->batch));
    for (int i = 0; taken[i]; i++)
        json_object_set(row, taken[i], json_object_get(answer, taken[i]));
    topt_rates_put(row, json_object_get(answer, "job"));
    return row;
}

/* The question for this batch; '*ret_answer' may be NULL. */
static int ask_for(struct topt_question *q, int64_t batch, json_t *rows,
                   json_t **ret_answer, struct topt_error *err)
{
    json_t *answer = NULL;
    if (topt_ask_batch(q, batch, err) || topt_plan(&q->r, &answer, err))
        return -1;
    json_array_append_new(rows, row_of(q, answer));
    if (ret_answer)
        *ret_answer = answer;
    else
        json_decref(answer);
    return 0;
}

static void take_question(json_t *doc, const json_t *answer)
{
    json_object_set(doc, "job", json_object_get(answer, "job"));
    json_object_set(doc, "assumed", json_object_get(answer, "assumed"));
}

/* Where the search for one of the rows was stopped, what is said of all of them may be wrong. */
static void take_stopped(json_t *doc, const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (json_object_get(json_array_get(rows, i), "stopped"))
            json_object_set_new(doc, "stopped", json_true());
}

int topt_batches_compare(struct topt_question *q, json_t **ret, struct topt_error *err)
{
    json_t *doc = json_pack("{s:[]}", "batches"), *last = NULL;
    for (int i = 0; i < q->nbatch; i++) {
        json_decref(last);
        last = NULL;
        if (ask_for(q, q->batch[i], json_object_get(doc, "batches"), &last, err)) {
            json_decref(doc);
            return -1;
        }
    }
    take_question(doc, last);
    take_stopped(doc, json_object_get(doc, "batches"));
    json_decref(last);
    *ret = doc;
    return 0;
}

static int fits(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "feasible"));
}

static double speed(const json_t *rows, size_t i)
{
    return json_number_value(
        json_object_get(json_array_get(rows, i), "samples_per_second"));
}

static int64_t batch_at(const json_t *rows, size_t i)
{
    return json_integer_value(json_object_get(json_array_get(rows, i), "batch"));
}

static int64_t most_gpus(const struct topt_question *q)
{
    int64_t all = (int64_t)topt_hw_gpus_per_node(q->hw) * topt_hw_max_nodes(q->hw);
    return q->r.max_gpus && q->r.max_gpus < all ? q->r.max_gpus : all;
}

/* The next number of GPUs: halves of a node, then twice the nodes; 0: no more. */
static int64_t after(const struct topt_question *q, int64_t gpus)
{
    int64_t node = topt_hw_gpus_per_node(q->hw),
            next = gpus < node && 2 * gpus > node ? node : 2 * gpus;
    return next <= most_gpus(q) ? next : 0;
}

/* Has speed a GPU levelled off?  '*best' so far, '*level' steps that gained next to nothing. */
static int is_level(double own, double *best, int *level)
{
    *level = own > GAIN * *best ? 0 : *level + 1;
    *best = own > *best ? own : *best;
    return *level == LEVEL;
}

/* One sample a GPU, two, four... as long as that makes a GPU faster. */
static int try_batches(struct topt_question *q, int64_t gpus, json_t *rows,
                       struct topt_error *err)
{
    double best = 0;
    int level = 0, more = 1;
    q->r.gpus = gpus;
    for (int64_t each = 1; more && each <= EACH; each *= 2) {
        json_t *answer;
        if (ask_for(q, each * gpus, rows, &answer, err))
            return -1;
        more = fits(answer) && !json_object_get(answer, "stopped") &&
               !is_level(speed(rows, json_array_size(rows) - 1), &best, &level);
        json_decref(answer);
    }
    return 0;
}

static size_t best_of(const json_t *rows)
{
    size_t best = 0;
    for (size_t i = 1; i < json_array_size(rows); i++)
        if (speed(rows, i) > speed(rows, best))
            best = i;
    return best;
}

/* The batches of each number of GPUs, from the fewest that hold one sample each on, as long as more
 * GPUs make a GPU faster; of a space in which a search may take long the fewest alone. */
static int try_counts(struct topt_question *q, json_t *counts, struct topt_error *err)
{
    double best = 0;
    int level = 0, quick = q->r.framework && q->r.framework->uniform_only;
    for (int64_t n = 1; n; n = after(q, n)) {
        json_t *rows = json_array();
        if (try_batches(q, n, rows, err)) {
            json_decref(rows);
            return -1;
        }
        double own = speed(rows, best_of(rows)) / (double)n;
        if (own > 0)
            json_array_append(counts, rows);
        json_decref(rows);
        if (own > 0 && (!quick || is_level(own, &best, &level)))
            break;
    }
    if (json_array_size(counts))
        return 0;
    if (q->r.stop && atomic_load(q->r.stop))
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "stopped before a GPU count was found that fits one sample per "
                         "GPU; raise --seconds, or give --gpus");
    return topt_fail(
        err, TOPT_ERR_INFEASIBLE,
        "this model does not fit on any number of GPUs with one sample per GPU");
}

static double speed_a_gpu(const json_t *counts, size_t i)
{
    const json_t *rows = json_array_get(counts, i);
    size_t best = best_of(rows);
    return speed(rows, best) /
           json_number_value(json_object_get(json_array_get(rows, best), "gpus"));
}

/* The fewest GPUs that keep nearly the best speed a GPU. */
static size_t choose_count(const json_t *counts)
{
    double best = 0;
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(counts); i++)
        best = speed_a_gpu(counts, i) > best ? speed_a_gpu(counts, i) : best;
    while (json_array_size(counts) > 1 && speed_a_gpu(counts, at) < KEPT * best)
        at++;
    return at;
}

/* The smallest of the batches that keeps nearly the best speed. */
static size_t choose_batch(const json_t *rows)
{
    size_t best = best_of(rows), at = 0;
    while (speed(rows, at) < KEPT * speed(rows, best))
        at++;
    return at;
}

/* All batches of the count that was chosen, and the fastest of the others. */
static json_t *rows_shown(const json_t *counts, size_t chosen)
{
    json_t *shown = json_array();
    for (size_t i = 0; i < json_array_size(counts); i++) {
        json_t *rows = json_array_get(counts, i);
        if (i == chosen)
            json_array_extend(shown, rows);
        else
            json_array_append(shown, json_array_get(rows, best_of(rows)));
    }
    return shown;
}

/* Before the reason for the GPUs, that for the batch. */
static void put_why(json_t *answer, const json_t *rows, size_t at, const char *gpus)
{
    const char *why = json_string_value(json_object_get(answer, "why"));
    if (!fits(answer) || !why)
        return;
    json_object_set_new(answer, "why",
                        json_sprintf("%sbatch %lld is the smallest one tried that keeps "
                                     "%.0f %% of the best speed (that of batch %lld); %s",
                                     gpus, (long long)batch_at(rows, at), 100 * KEPT,
                                     (long long)batch_at(rows, best_of(rows)), why));
}

int topt_batches_fill(struct topt_question *q, json_t **ret, struct topt_error *err)
{
    if (q->r.min_efficiency > 0)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--batch auto chooses the number of GPUs itself, or takes "
                         "--gpus N; give --min-efficiency with a fixed --batch");
    json_t *counts = json_array(), *shown = NULL, *answer = NULL, *rows = NULL;
    size_t at = 0;
    int named = q->r.ngpu_list > 0;
    q->r.mode = TOPT_MINI_TIME;
    if (named)
        json_array_append_new(counts, json_array());
    int rc = named ? try_batches(q, q->r.gpus, json_array_get(counts, 0), err)
                   : try_counts(q, counts, err);
    if (!rc) {
        size_t count = choose_count(counts);
        rows = json_array_get(counts, count);
        at = choose_batch(rows);
        shown = rows_shown(counts, count);
        if (!named)
            q->r.gpus =
                json_integer_value(json_object_get(json_array_get(rows, at), "gpus"));
        rc = topt_ask_batch(q, batch_at(rows, at), err) || topt_plan(&q->r, &answer, err);
    }
    if (!rc) {
        put_why(answer, rows, at,
                named ? ""
                : json_array_size(counts) > 1
                    ? "fewest GPUs that keep 97 % of the best speed per GPU; "
                    : "fewest GPUs that fit one sample each; ");
        json_object_set(answer, "tried", shown);
        take_stopped(answer, shown);
        *ret = answer;
    }
    json_decref(shown);
    json_decref(counts);
    return rc ? -1 : 0;
}
