/* compare.c - all systems asked the same question, in one table.
 *
 * Each answers with its fastest strategy within the limit, or, where it has none, with
 * the one that needs least.  Every strategy is costed again by the checker. */
#include "algorithm.h"
#include "plan_check.h"
#include "count.h"
#include "document.h"
#include "grid.h"
#include "grid_data.h"
#include "micros.h"
#include "names.h"
#include "request.h"
#include "solutions.h"
#include "words.h"
#include "topt_plan.h"
#include "topt_question.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

static const char OURS[] = "ft";

/* ---- asking ------------------------------------------------------------------------ */

struct times {
    int64_t all_ns, network_ns;
    int64_t peak_bytes;
    int64_t compute_ns;
};

/* Of a strategy, and of the system that runs it. */
static int take_times(struct topt_grid_search *s, const struct topt_solution *best,
                      struct times *ret, struct topt_error *err)
{
    struct topt_costing k;
    struct topt_strategy_cost c;
    struct topt_fused_cost fused;
    if (topt_grid_costing(s, &best->variant, &k, err) ||
        topt_plan_check(&k, best->strategy, best->memory_bytes, best->time_ns, &c,
                        &ret->peak_bytes, err))
        return -1;
    ret->all_ns = c.time_ns;
    if (s->algorithm && s->algorithm->fused) {
        if (topt_cost_fused(&k, best->strategy, &topt_horovod, &fused, err))
            return -1;
        ret->all_ns = fused.time_ns;
    }
    ret->compute_ns = c.sum.compute_ns;
    ret->network_ns = ret->all_ns - c.sum.compute_ns;
    return 0;
}

static json_t *row_json(struct topt_micros *m, const char *name, const char *means,
                        const struct topt_best *b, enum topt_fits fits,
                        struct topt_error *err)
{
    struct topt_grid_search s;
    struct times t;
    char space[48];
    int rc =
        topt_grid_open(&s, m, b->mesh.nodes, b->mesh.per_node, TOPT_GOAL_FASTEST, err) ||
        take_times(&s, &b->solution, &t, err);
    topt_grid_close(&s);
    if (rc)
        return NULL;
    char *words = topt_strategy_words(m->request->model, &b->mesh, b->solution.strategy,
                                      b->solution.variant.micro_batches);
    json_t *row =
        json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:s, s:s}",
                  "algorithm", name, "means", means, "feasible", topt_fits_json(fits),
                  "memory_bytes", (json_int_t)b->solution.memory_bytes, "peak_bytes",
                  (json_int_t)t.peak_bytes, "time_ns", (json_int_t)t.all_ns, "compute_ns",
                  (json_int_t)t.compute_ns, "network_ns", (json_int_t)t.network_ns,
                  "nodes", b->mesh.nodes, "gpus_per_node", b->mesh.per_node, "space",
                  topt_space_words(b->space, b->alike, space, sizeof space), "strategy",
                  words ? words : "");
    free(words);
    if (!row)
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the comparison");
    else
        topt_claim_write(row, m->request->model, &b->claim);
    return row;
}

/* The least memory that it can do with tells more than that nothing was found. */
static enum topt_fits fits_of(const struct topt_best *best, const struct topt_best *least,
                              int64_t limit)
{
    int proven = least->found && !least->claim.decided;
    return proven && least->solution.memory_bytes > limit ? TOPT_FITS_NOT
                                                          : topt_best_fits(best);
}

/* The system's row, with the least memory that it can do with, if that is found before
 * the search is stopped. */
static json_t *ask(const struct topt_request *r, const char *name, const char *means,
                   struct topt_error *err)
{
    struct topt_request own = *r;
    struct topt_micros m;
    struct topt_best best = {0}, least = {0};
    json_t *row = NULL;
    int64_t limit = topt_request_limit(r);
    own.algorithm = name;
    if (topt_micros_init(&m, &own, err))
        return NULL;
    if (topt_count_solve(&m, r->gpus, limit, TOPT_GOAL_FASTEST, &best, err) ||
        (topt_count_solve(&m, r->gpus, 0, TOPT_GOAL_LEAST, &least, err) &&
         !topt_request_stopped(r)))
        goto out;
    enum topt_fits fits = fits_of(&best, &least, limit);
    if (best.found || least.found)
        row = row_json(&m, name, means, best.found ? &best : &least, fits, err);
    else
        row = json_pack("{s:s, s:s, s:o}", "algorithm", name, "means", means, "feasible",
                        topt_fits_json(fits));
    if (row && least.found)
        json_object_set_new(row, "least_bytes",
                            json_integer(least.solution.memory_bytes));
out:
    topt_best_fini(&best);
    topt_best_fini(&least);
    topt_micros_fini(&m);
    return row;
}

/* ---- the whole --------------------------------------------------------------------- */

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static const char *words(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static int has_plan(const json_t *row)
{
    return json_object_get(row, "time_ns") != NULL;
}

static int fits(const json_t *row)
{
    return json_is_true(json_object_get(row, "feasible"));
}

static double ratio(const json_t *row, const json_t *ours)
{
    return (double)whole(row, "time_ns") / (double)whole(ours, "time_ns");
}

/* Fastest first, those without any plan last; equal ones in the order of the table. */
static void sort_rows(json_t *rows)
{
    size_t n = json_array_size(rows);
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0; k--) {
            json_t *a = json_array_get(rows, k - 1), *b = json_array_get(rows, k);
            if (!has_plan(b) ||
                (has_plan(a) && whole(a, "time_ns") <= whole(b, "time_ns")))
                break;
            json_incref(a);
            json_array_set(rows, k - 1, b);
            json_array_set_new(rows, k, a);
        }
}

static const json_t *row_of(const json_t *rows, const char *name)
{
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (!strcmp(words(json_array_get(rows, i), "algorithm"), name))
            return json_array_get(rows, i);
    return NULL;
}

static int undecided(const json_t *row)
{
    return json_is_null(json_object_get(row, "feasible"));
}

static int does_not_fit(const json_t *row)
{
    return json_is_false(json_object_get(row, "feasible")) && has_plan(row);
}

static int has_none(const json_t *row)
{
    return json_is_false(json_object_get(row, "feasible")) && !has_plan(row);
}

static void add_names(struct topt_text *t, const json_t *rows, const char *what,
                      int (*of)(const json_t *row))
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!of(row))
            continue;
        if (n++ == 0)
            topt_text_add(t, "; %s: %s", what, words(row, "algorithm"));
        else
            topt_text_add(t, ", %s", words(row, "algorithm"));
    }
}

/* "ft takes 1.2 s a step; horovod takes 1.10 times as long, tofu 1.31; do not fit:
 * optcnn". */
static char *read_rows(const json_t *rows, int64_t limit)
{
    struct topt_text t = {0};
    const json_t *ours = row_of(rows, OURS);
    char buf[32];
    int n = 0;
    if (!fits(ours)) {
        topt_text_add(&t, "nothing %s in %s a GPU",
                      undecided(ours) ? "was found that fits" : "fits",
                      topt_show_bytes(limit, buf, sizeof buf));
        return t.s;
    }
    topt_text_add(&t, "%s takes %s a step", OURS,
                  topt_show_ns(whole(ours, "time_ns"), buf, sizeof buf));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (row == ours || !fits(row))
            continue;
        topt_text_add(&t, n ? ", %s %.2f" : "; %s takes %.2f times as long",
                      words(row, "algorithm"), ratio(row, ours));
        n++;
    }
    add_names(&t, rows, "do not fit", does_not_fit);
    add_names(&t, rows, "have no plan", has_none);
    add_names(&t, rows, "were not found to fit", undecided);
    return t.s;
}

static void put_ratios(json_t *rows)
{
    const json_t *ours = row_of(rows, OURS);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        if (has_plan(row) && has_plan(ours))
            json_object_set_new(row, "ratio", json_real(ratio(row, ours)));
    }
}

static int ask_all(const struct topt_request *r, json_t *rows, struct topt_error *err)
{
    json_t *row = ask(r, OURS, "the whole space", err);
    for (int i = 0; row; i++) {
        json_array_append_new(rows, row);
        const struct topt_algorithm *a = topt_algorithm_at(i);
        if (!a)
            return 0;
        row = ask(r, a->name, a->means, err);
    }
    return -1;
}

int topt_plan_compare(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    json_t *rows = json_array();
    int64_t limit = topt_request_limit(r);
    *ret = NULL;
    if (topt_request_check(r, err) || ask_all(r, rows, err)) {
        json_decref(rows);
        return -1;
    }
    if (!has_plan(row_of(rows, OURS))) {
        int open = topt_request_stopped(r) || undecided(row_of(rows, OURS));
        json_decref(rows);
        return open
                   ? topt_fail(err, TOPT_ERR_LIMIT, "no plan was found for %lld GPUs%s",
                               (long long)r->gpus,
                               topt_request_stopped(r)
                                   ? " before the search was stopped"
                                   : ", as operators were decided by heuristic; "
                                     "give more --max-entries")
                   : topt_fail(err, TOPT_ERR_INFEASIBLE,
                               "no plan for %lld GPUs in this space", (long long)r->gpus);
    }
    put_ratios(rows);
    sort_rows(rows);
    char *reading = read_rows(rows, limit);
    *ret = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:O, s:s, s:o}", "format",
                     "topt-compare/1", "model", r->model->name, "hw", topt_hw_name(r->hw),
                     "gpus", (json_int_t)r->gpus, "batch", (json_int_t)r->model->batch,
                     "seq", (json_int_t)r->model->seq, "memory_limit", (json_int_t)limit,
                     "feasible", json_object_get(row_of(rows, OURS), "feasible"),
                     "reading", reading ? reading : "", "systems", rows);
    free(reading);
    if (*ret && topt_request_stopped(r))
        json_object_set_new(*ret, "stopped", json_true());
    return *ret ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the comparison");
}

/* ---- for people -------------------------------------------------------------------- */

static void show_row(struct topt_text *t, const json_t *row)
{
    char a[32], b[32], c[32], d[32], e[32], ratio_text[16] = "-";
    const json_t *x = json_object_get(row, "ratio");
    if (!has_plan(row)) {
        topt_text_add(t, "%-22s no plan %s\n", words(row, "algorithm"),
                      undecided(row) ? "was found" : "on so many GPUs");
        return;
    }
    if (x)
        snprintf(ratio_text, sizeof ratio_text, "%.2f", json_real_value(x));
    topt_text_add(t, "%-22s %-4s %10s %10s %10s %10s %7s %11s\n", words(row, "algorithm"),
                  fits(row)        ? "yes"
                  : undecided(row) ? "?"
                                   : "no",
                  topt_show_ns(whole(row, "time_ns"), a, sizeof a),
                  topt_show_ns(whole(row, "compute_ns"), b, sizeof b),
                  topt_show_ns(whole(row, "network_ns"), c, sizeof c),
                  topt_show_bytes(whole(row, "memory_bytes"), d, sizeof d), ratio_text,
                  topt_show_bytes(whole(row, "least_bytes"), e, sizeof e));
}

char *topt_compare_text(const json_t *doc)
{
    const json_t *rows = json_object_get(doc, "systems");
    struct topt_text t = {0};
    char limit[32];
    topt_text_add(&t, "%s on %lld GPU%s of %s, at most %s each\n\n", words(doc, "model"),
                  (long long)whole(doc, "gpus"), whole(doc, "gpus") > 1 ? "s" : "",
                  words(doc, "hw"),
                  topt_show_bytes(whole(doc, "memory_limit"), limit, sizeof limit));
    topt_text_add(&t, "%-22s %-4s %10s %10s %10s %10s %7s %11s\n", "system", "fits",
                  "time", "compute", "network", "memory", "to ft", "least");
    for (size_t i = 0; i < json_array_size(rows); i++)
        show_row(&t, json_array_get(rows, i));
    topt_text_add(&t, "\n%s\n", words(doc, "reading"));
    if (json_is_true(json_object_get(doc, "stopped")))
        topt_text_add(&t, "stopped early: plans are missing, or not the fastest\n");
    return t.s;
}
