/* batches.c - which batch?  Several side by side, or the one that fills a GPU.
 *
 * A batch is asked like any other question; for "auto" there is no accumulation, so that
 * what decides is how many samples a GPU holds at once. */
#include "batches.h"

#include <stdlib.h>
#include <string.h>

/* What is compared of an answer. */
static json_t *row_of(const struct topt_question *q, const json_t *answer)
{
    static const char *const taken[] = {"feasible", "gpus",         "nodes",   "time_ns",
                                        "strategy", "memory_bytes", "why",     "uniform",
                                        "band",     "nearest",      "stopped", NULL};
    json_t *row = json_object();
    double batch = (double)q->model->batch;
    double seconds = json_number_value(json_object_get(answer, "time_ns")) / 1e9;
    double gpus = json_number_value(json_object_get(answer, "gpus"));
    json_object_set_new(row, "batch", json_integer(q->model->batch));
    for (int i = 0; taken[i]; i++)
        json_object_set(row, taken[i], json_object_get(answer, taken[i]));
    if (seconds <= 0)
        return row;
    json_object_set_new(row, "samples_per_second", json_real(batch / seconds));
    if (q->model->seq > 1)
        json_object_set_new(row, "tokens_per_second",
                            json_real(batch * (double)q->model->seq / seconds));
    json_object_set_new(row, "gpu_hours_per_million_samples",
                        json_real(1e6 / batch * seconds * gpus / 3600));
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

/* The fewest GPUs that hold one sample each, where nobody says how many. */
static int choose_gpus(struct topt_question *q, struct topt_error *err)
{
    int most = topt_hw_gpus_per_node(q->hw), nodes = topt_hw_max_nodes(q->hw);
    q->r.mode = TOPT_MINI_TIME;
    if (q->r.ngpu_list)
        return 0;
    for (int n = 1; n <= nodes * most; n = n < most ? 2 * n : n + most) {
        json_t *answer, *rows = json_array();
        if (n > most && n % most)
            n = most;
        q->r.gpus = n;
        if (ask_for(q, n, rows, &answer, err)) {
            json_decref(rows);
            return -1;
        }
        int found = fits(answer);
        json_decref(answer);
        json_decref(rows);
        if (found)
            return 0;
    }
    if (q->r.stop && atomic_load(q->r.stop))
        return topt_fail(
            err, TOPT_ERR_LIMIT,
            "stopped before a number of GPUs was found that holds one sample "
            "each; give more --seconds, or --gpus");
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "no number of GPUs holds one sample each of this model");
}

int topt_batches_fill(struct topt_question *q, json_t **ret, struct topt_error *err)
{
    json_t *rows = json_array(), *answer = NULL;
    int rc = 0, more = 1;
    size_t best = 0;
    q->r.micro_batches = 1;
    rc = choose_gpus(q, err);
    for (int64_t each = 1; !rc && more && each <= 4096; each *= 2) {
        rc = ask_for(q, each * q->r.gpus, rows, &answer, err);
        more = !rc && fits(answer);
        json_decref(answer);
        answer = NULL;
    }
    for (size_t i = 1; i < json_array_size(rows); i++)
        if (speed(rows, i) > speed(rows, best))
            best = i;
    if (!rc)
        rc = topt_ask_batch(
                 q,
                 json_integer_value(json_object_get(json_array_get(rows, best), "batch")),
                 err) ||
             topt_plan(&q->r, &answer, err);
    if (!rc) {
        json_object_set(answer, "tried", rows);
        take_stopped(answer, rows);
        *ret = answer;
    }
    json_decref(rows);
    return rc ? -1 : 0;
}
