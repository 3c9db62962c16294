/* report.c - what a run measured, beside what was predicted. */
#include "cli.h"
#include "topt_plan.h"

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

json_t *topt_report_json(const struct topt_run_report *r)
{
    const struct topt_mesh *mesh = &r->program->mesh;
    const struct topt_settings *s = &r->program->settings;
    json_t *losses = json_array(), *times = json_array();
    for (int64_t i = 0; i < r->steps; i++) {
        json_array_append_new(losses, json_real(r->loss[i]));
        json_array_append_new(times, json_integer(r->step_ns[i]));
    }
    return json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:s, s:s, s:f, s:I, s:s, s:I, s:o, s:o, "
        "s:I, s:I, s:I, s:{s:I, s:I, s:I}}",
        "format", "topt-report/1", "plan", r->plan->id, "model", r->plan->model->name, "gpus",
        mesh->devices, "nodes", mesh->nodes, "gpus_per_node", mesh->per_node, "batch",
        (json_int_t)r->plan->model->batch, "seq", (json_int_t)r->plan->model->seq, "dtype",
        topt_dtype_name(s->dtype), "optimizer", topt_optimizer_name(s->optimizer), "lr", r->lr,
        "seed", (json_int_t)r->seed, "data", r->data, "steps", (json_int_t)r->steps, "losses",
        losses, "step_ns", times, "median_step_ns",
        (json_int_t)topt_median_ns(r->step_ns, r->steps), "peak_bytes",
        (json_int_t)r->peak_bytes, "process_growth_bytes", (json_int_t)r->process_growth_bytes,
        "predicted", "time_ns", (json_int_t)r->predicted_time_ns, "memory_bytes",
        (json_int_t)r->predicted_memory_bytes, "peak_bytes",
        (json_int_t)r->program->peak_bytes);
}
