/* report.c - what a run measured, beside what was predicted. */
#include "report.h"

#include "topt_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t topt_median_ns(const int64_t *values, int64_t n)
{
    int64_t *sorted = n > 0 ? malloc((size_t)n * sizeof *sorted) : NULL;
    if (!sorted)
        return 0;
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    int64_t median = sorted[n / 2];
    free(sorted);
    return median;
}

/* ---- where the time went ----------------------------------------------------------- */

enum { MAX_PARTS = TOPT_KERNEL_COUNT + TOPT_MOVE_ALL_REDUCE + 5 };

struct part {
    const char *name;
    int64_t ns, calls;
    int network;
};

static int list_parts(const struct topt_session_times *t, struct part ret[MAX_PARTS])
{
    int n = 0;
    for (int k = 0; k < TOPT_KERNEL_COUNT; k++)
        ret[n++] = (struct part){topt_kernel_name((enum topt_kernel)k), t->kernel_ns[k],
                                 t->kernel_calls[k], 0};
    for (int k = 0; k <= TOPT_MOVE_ALL_REDUCE; k++)
        ret[n++] = (struct part){topt_move_name((enum topt_move_kind)k), t->move_ns[k],
                                 t->move_calls[k], 1};
    ret[n++] = (struct part){"statistics", t->reduce_ns, 0, 1};
    ret[n++] = (struct part){"update", t->update_ns, 0, 0};
    ret[n++] = (struct part){"other", t->other_ns, 0, 0};
    return n;
}

static int by_cost(const void *a, const void *b)
{
    int64_t x = ((const struct part *)a)->ns, y = ((const struct part *)b)->ns;
    return (x < y) - (x > y);
}

void topt_report_print_times(const struct topt_run_report *r, FILE *out)
{
    struct part part[MAX_PARTS];
    int n = list_parts(&r->times, part);
    char total[32], each[32];
    qsort(part, (size_t)n, sizeof *part, by_cost);
    for (int i = 0; i < n && part[i].ns > 0; i++) {
        topt_show_ns(part[i].ns / r->steps, total, sizeof total);
        fprintf(out, "  %-16s %10s per step", part[i].name, total);
        if (part[i].calls)
            fprintf(out, ", %lld times %s", (long long)(part[i].calls / r->steps),
                    topt_show_ns(part[i].ns / part[i].calls, each, sizeof each));
        fprintf(out, "\n");
    }
}

/* Mean of a step: what is computed, or the network with waiting for others. */
static int64_t mean_ns(const struct topt_run_report *r, int network)
{
    struct part part[MAX_PARTS];
    int n = list_parts(&r->times, part);
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += part[i].network == network ? part[i].ns : 0;
    return r->steps ? sum / r->steps : 0;
}

/* ---- tables ------------------------------------------------------------------------ */

static double lookups_of(const struct topt_run_report *r, int op)
{
    return topt_table_lookups(&r->program->model->op[op]) *
           (double)r->program->settings.micro_batches;
}

void topt_report_print_tables(const struct topt_run_report *r, FILE *out)
{
    const struct topt_model *m = r->program->model;
    for (int i = 0; i < m->nops && r->named; i++) {
        if (!(r->named[i] > 0))
            continue;
        fprintf(out,
                "table '%.60s': %.0f lookups a step named %.1f of %.0f rows (planned for "
                "%.1f); \"density\": %.9g, \"density_of\": %.0f\n",
                m->op[i].name, lookups_of(r, i), r->named[i],
                topt_table_heights(&m->op[i]),
                topt_table_rows(&m->op[i], lookups_of(r, i)),
                r->named[i] / topt_table_heights(&m->op[i]), lookups_of(r, i));
    }
}

static json_t *tables_json(const struct topt_run_report *r)
{
    const struct topt_model *m = r->program->model;
    json_t *all = json_array();
    for (int i = 0; i < m->nops && r->named; i++)
        if (r->named[i] > 0)
            json_array_append_new(
                all, json_pack("{s:s, s:f, s:I, s:f, s:f}", "name", m->op[i].name,
                               "density", r->named[i] / topt_table_heights(&m->op[i]),
                               "density_of", (json_int_t)lookups_of(r, i), "rows",
                               r->named[i], "predicted_rows",
                               topt_table_rows(&m->op[i], lookups_of(r, i))));
    return all;
}

json_t *topt_report_json(const struct topt_run_report *r)
{
    const struct topt_mesh *mesh = &r->program->mesh;
    const struct topt_settings *s = &r->program->settings;
    json_t *losses = json_array(), *times = json_array();
    for (int64_t i = 0; i < r->steps; i++) {
        json_array_append_new(losses, json_real(r->loss[i]));
        json_array_append_new(times, json_integer(r->step_ns[i]));
    }
    json_t *doc = json_pack(
        "{s:s, s:s*, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:s, s:s, s:f, s:I, s:s, s:I, "
        "s:I, s:o, s:o, "
        "s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I}}",
        "format", "topt-report/1", "ended", r->ended, "plan", r->plan->id, "model",
        r->plan->model->name, "gpus", mesh->devices, "nodes", mesh->nodes,
        "gpus_per_node", mesh->per_node, "batch", (json_int_t)r->plan->model->batch,
        "seq", (json_int_t)r->plan->model->seq, "dtype", topt_dtype_name(s->dtype),
        "optimizer", topt_optimizer_name(s->optimizer), "lr", r->lr, "seed",
        (json_int_t)r->seed, "data", r->data, "first_step", (json_int_t)r->first, "steps",
        (json_int_t)r->steps, "losses", losses, "step_ns", times, "median_step_ns",
        (json_int_t)topt_median_ns(r->step_ns, r->steps), "compute_ns",
        (json_int_t)mean_ns(r, 0), "network_ns", (json_int_t)mean_ns(r, 1), "peak_bytes",
        (json_int_t)r->peak_bytes, "process_growth_bytes",
        (json_int_t)r->process_growth_bytes, "predicted", "time_ns",
        (json_int_t)r->predicted_time_ns, "memory_bytes",
        (json_int_t)r->predicted_memory_bytes, "peak_bytes",
        (json_int_t)r->program->peak_bytes);
    json_object_set_new(doc, "arena_bytes", json_integer(r->arena_bytes));
    if (r->named)
        json_object_set_new(doc, "tables", tables_json(r));
    json_object_set_new(json_object_get(doc, "predicted"), "beside_bytes",
                        json_integer(r->beside_bytes));
    if (r->saves) {
        json_object_set_new(doc, "checkpoints", json_integer(r->saves));
        json_object_set_new(doc, "checkpoint_ns", json_integer(r->save_ns));
    }
    if (r->eval_loss > 0)
        json_object_set_new(doc, "eval_loss", json_real(r->eval_loss));
    if (r->eval_loss > 0 && isfinite(r->eval_right))
        json_object_set_new(doc, "eval_accuracy", json_real(r->eval_right));
    return doc;
}
