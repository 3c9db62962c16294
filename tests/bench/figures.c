/* figures.c - how far predictions lie from what was measured: errors, bands, regret.
 *
 * A time is newer where the software is of 2024 or later and the numbers have 16 bits.  Peaks that
 * PyTorch's allocator counts (max_memory_allocated) are compared with tensors and workspaces alone, what it
 * reserves with memory_bytes, what a process holds with that and the context; where a whole device is
 * shown nothing is. */
#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((double)((int64_t)1 << 30))

const char *kind_name(enum kind k)
{
    static const char *const names[KINDS] = {
        [KIND_OLDER] = "time, software before 2024 or in f32",
        [KIND_NEWER] = "time, newer software in bf16 or fewer bits",
        [KIND_MEMORY] = "memory"};
    return names[k];
}

int comparisons_of(const struct row *r, const struct ran *x, struct comparison *ret)
{
    int n = 0;
    double seconds = row_seconds(r);
    if (seconds > 0)
        ret[n++] = (struct comparison){
            r->year >= 2024 && strcmp(r->precision, "f32") ? KIND_NEWER : KIND_OLDER,
            seconds, (double)x->cost.time_ns / 1e9, (double)x->low_ns / 1e9,
            (double)x->high_ns / 1e9};
    double beside = (double)x->beside / GIB;
    if (r->memory_gib > 0 && !strcmp(r->outcome, "ran") && !x->full &&
        strcmp(r->memory_kind, "at-failure"))
        ret[n++] =
            (struct comparison){KIND_MEMORY, r->memory_gib - r->beside_gib,
                                (double)x->held.memory_bytes / GIB + beside,
                                (double)x->low_bytes / GIB, (double)x->high_bytes / GIB};
    return n;
}

void figures_count(struct figures *f, const struct comparison *c)
{
    double error = c->predicted / c->measured - 1;
    double *width = realloc(f->width, ((size_t)f->n + 1) * sizeof *width);
    if (!width) {
        fprintf(stderr, "figures: no memory\n");
        exit(1);
    }
    width[f->n] = (c->high - c->low) / c->predicted;
    f->width = width;
    f->n++;
    f->inside += c->low <= c->measured && c->measured <= c->high;
    f->size += fabs(error);
    f->sign += error;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double figures_median_width(struct figures *f)
{
    if (!f->n)
        return 0;
    qsort(f->width, (size_t)f->n, sizeof *f->width, by_size);
    return (f->width[(f->n - 1) / 2] + f->width[f->n / 2]) / 2;
}

void figures_fini(struct figures *f)
{
    free(f->width);
    *f = (struct figures){0};
}

static double predicted_a_sample(const struct group *g, int i)
{
    return (double)g->ran[i].cost.time_ns / 1e9 / (double)g->row[i].batch;
}

static double measured_a_sample(const struct group *g, int i)
{
    return row_seconds(&g->row[i]) / (double)g->row[i].batch;
}

int regret_of(const struct group *g, int i, double *ret)
{
    const char *job = g->row[i].job;
    int plans = 0, picked = i, best = i;
    *ret = 0;
    if (!*job)
        return 0;
    for (int k = 0; k < i; k++)
        if (!strcmp(g->row[k].job, job))
            return 0;
    for (int k = i; k < g->n; k++) {
        if (strcmp(g->row[k].job, job))
            continue;
        plans++;
        if (predicted_a_sample(g, k) < predicted_a_sample(g, picked))
            picked = k;
        if (measured_a_sample(g, k) < measured_a_sample(g, best))
            best = k;
    }
    *ret = measured_a_sample(g, picked) / measured_a_sample(g, best) - 1;
    return plans;
}
