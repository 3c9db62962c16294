/* trace.c - jobs of published traces, and jobs that are drawn from them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cells.h"
#include "draw.h"
#include "topt_array.h"
#include "topt_cluster.h"
#include "topt_minmax.h"
#include "topt_text.h"

enum { MOST_BYTES = 1 << 28, FIRST_JOBS = 1024 };

/* The columns of a format: when a job comes, its GPUs, its length or its end, its curve (and
 * a batch behind an @ of the curve's name), and its kind. */
static const struct format {
    const char *submit, *gpus, *run, *end, *curve, *batch, *kind;
} formats[] = {
    {"submit_s", "gpus", "run_s", NULL, "curve", NULL, "kind"},
    {"timestamp", "num_gpus", "duration", NULL, NULL, NULL, NULL},
    {"creation_time", "num_gpu", NULL, "deletion_time", NULL, NULL, NULL},
    {"time", "num_replicas", NULL, NULL, "application", "batch_size", NULL},
};

struct table {
    const struct format *format;
    int submit, gpus, run, end, curve, batch, kind; /* columns; -1: none */
    const struct topt_cluster_curve *curves;
    size_t ncurves;
    const struct topt_cluster_kind *kinds;
    int nkinds;
    int64_t seed;
    struct topt_cluster_trace *ret;
    size_t room;
};

void topt_cluster_trace_fini(struct topt_cluster_trace *t)
{
    free(t->job);
    *t = (struct topt_cluster_trace){0};
}

static int column(char *const *cell, int n, const char *name)
{
    for (int i = 0; name && i < n; i++)
        if (!strcmp(cell[i], name))
            return i;
    return -1;
}

static int read_head(struct table *t, char *line)
{
    char *cell[CELLS];
    int n = cells_of(line, cell);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const struct format *f = &formats[i];
        t->format = f;
        t->submit = column(cell, n, f->submit);
        t->gpus = column(cell, n, f->gpus);
        t->run = column(cell, n, f->run);
        t->end = column(cell, n, f->end);
        t->curve = column(cell, n, f->curve);
        t->batch = column(cell, n, f->batch);
        t->kind = column(cell, n, f->kind);
        if (t->submit >= 0 && t->gpus >= 0 &&
            (t->run >= 0 || t->end >= 0 || (!f->run && !f->end && t->curve >= 0)))
            return 0;
    }
    return -1;
}

/* Seconds: a number, or "2017-10-09 07:01:55". */
static int read_time(const char *s, double *ret)
{
    struct tm tm = {0};
    if (!cells_number(s, ret))
        return 0;
    char *end = strptime(s, "%Y-%m-%d %H:%M:%S", &tm);
    if (!end || *end)
        return -1;
    *ret = (double)timegm(&tm);
    return 0;
}

static int has_name(const struct table *t, const char *name, size_t *ret)
{
    for (*ret = 0; *ret < t->ncurves; ++*ret)
        if (!strcmp(t->curves[*ret].name, name))
            return 1;
    return 0;
}

static int find_curve(const struct table *t, const char *name, const char *batch,
                      size_t *ret)
{
    char both[2 * TOPT_CLUSTER_NAME];
    *ret = draw_hash(t->seed, t->ret->n) % t->ncurves;
    if (!name || !*name)
        return 0;
    snprintf(both, sizeof both, "%.40s@%.40s", name, batch ? batch : "");
    return has_name(t, both, ret) || has_name(t, name, ret) ? 0 : -1;
}

/* By its name, else by the seed: one of those that the curve has points of. */
static int find_kind(const struct table *t, const struct topt_cluster_curve *c,
                     const char *name, int *ret)
{
    int64_t gpus[TOPT_CLUSTER_KINDS], all = 0;
    for (int k = 0; k < t->nkinds; k++) {
        gpus[k] = c->first[k] < c->first[k + 1]
                      ? t->kinds[k].nodes * t->kinds[k].gpus_per_node
                      : 0;
        all += gpus[k];
        if (name && *name && !strcmp(name, t->kinds[k].name)) {
            *ret = k;
            return gpus[k] ? 0 : -1;
        }
    }
    int64_t at = (int64_t)(draw_hash(~t->seed, t->ret->n) % (uint64_t)all);
    for (*ret = 0; at >= gpus[*ret]; ++*ret)
        at -= gpus[*ret];
    return name && *name ? -1 : 0;
}

/* How long the curve says that it takes. */
static double run_of_curve(const struct topt_cluster_curve *c, int kind, double gpus)
{
    int i = c->first[kind];
    while (i < c->first[kind + 1] - 1 && (double)c->point[i].gpus < gpus)
        i++;
    return (double)c->point[i].time_ns / 1e9;
}

static const char *cell_at(char *const *cell, int n, int at)
{
    return at >= 0 && at < n ? cell[at] : NULL;
}

/* 1 where a line isn't what it should be; -1 without memory. */
static int read_line(struct table *t, char *line)
{
    char *cell[CELLS];
    double submit, gpus, run = 0;
    size_t curve;
    int kind, n = cells_of(line, cell), last = t->run >= 0 ? t->run : t->end;
    if (n <= t->submit || n <= t->gpus || n <= last ||
        read_time(cell[t->submit], &submit) || read_time(cell[t->gpus], &gpus) ||
        (last >= 0 && read_time(cell[last], &run)) ||
        find_curve(t, cell_at(cell, n, t->curve), cell_at(cell, n, t->batch), &curve) ||
        find_kind(t, &t->curves[curve], cell_at(cell, n, t->kind), &kind))
        return 1;
    if (last < 0)
        run = run_of_curve(&t->curves[curve], kind, gpus);
    else
        run -= t->run >= 0 ? 0 : submit;
    if (gpus < 1 || run < 1)
        return 0;
    if (gpus > 1e9 || run > 1e12 || fabs(submit) > 1e12)
        return 1;
    if (TOPT_ROOM(t->ret->job, t->ret->n, t->room, FIRST_JOBS))
        return -1;
    t->ret->job[t->ret->n++] = (struct topt_cluster_job){
        .submit_s = (int64_t)submit,
        .gpus = (int64_t)gpus,
        .run_s = (int64_t)run,
        .curve = curve,
        .kind = kind,
    };
    return 0;
}

static int by_submission(const void *a, const void *b)
{
    const struct topt_cluster_job *x = a, *y = b;
    if (x->submit_s != y->submit_s)
        return (x->submit_s > y->submit_s) - (x->submit_s < y->submit_s);
    if (x->gpus != y->gpus)
        return (x->gpus > y->gpus) - (x->gpus < y->gpus);
    return x->run_s != y->run_s ? (x->run_s > y->run_s) - (x->run_s < y->run_s)
                                : (x->curve > y->curve) - (x->curve < y->curve);
}

static void from_zero(struct topt_cluster_trace *t)
{
    qsort(t->job, t->n, sizeof *t->job, by_submission);
    for (size_t i = t->n; i-- > 0;)
        t->job[i].submit_s -= t->job[0].submit_s;
}

static int read_table(struct table *t, const char *path, char *text,
                      struct topt_error *err)
{
    char *save = NULL, *line = strtok_r(text, "\r\n", &save);
    if (!line || read_head(t, line))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s: its head is of no known trace; ours is submit_s,gpus,run_s",
                         path);
    for (int n = 2; (line = strtok_r(NULL, "\r\n", &save)); n++) {
        int rc = read_line(t, line);
        if (rc)
            return rc < 0 ? topt_nomem(err, path)
                          : topt_fail(err, TOPT_ERR_INVAL,
                                      "%s: line %d is not as its head says", path, n);
    }
    if (!t->ret->n)
        return topt_fail(err, TOPT_ERR_INVAL, "%s has no job with GPUs", path);
    return 0;
}

int topt_cluster_trace_read(const char *path, const struct topt_cluster_curve *curve,
                            size_t ncurves, const struct topt_cluster_kind *kind,
                            int nkinds, int64_t seed, struct topt_cluster_trace *ret,
                            struct topt_error *err)
{
    struct table t = {.curves = curve,
                      .ncurves = ncurves,
                      .kinds = kind,
                      .nkinds = nkinds,
                      .seed = seed,
                      .ret = ret};
    size_t len;
    *ret = (struct topt_cluster_trace){0};
    char *text = topt_read_file(path, MOST_BYTES, &len, err);
    if (!text)
        return -1;
    int rc = read_table(&t, path, text, err);
    free(text);
    if (rc)
        topt_cluster_trace_fini(ret);
    else
        from_zero(ret);
    return rc;
}

int topt_cluster_trace_draw(const struct topt_cluster_trace *from, size_t n, double load,
                            int64_t gpus, int64_t seed, struct topt_cluster_trace *ret,
                            struct topt_error *err)
{
    double gpu_s = 0, at = 0;
    *ret = (struct topt_cluster_trace){calloc(n + 1, sizeof *ret->job), n};
    if (!ret->job)
        return topt_nomem(err, "the trace");
    for (size_t i = 0; i < n; i++) {
        ret->job[i] = from->job[draw_hash(seed, 2 * i) % from->n];
        gpu_s += (double)topt_min(ret->job[i].gpus, gpus) * (double)ret->job[i].run_s;
    }
    double between = gpu_s / (load * (double)gpus * (double)n);
    for (size_t i = 0; i < n; i++) {
        ret->job[i].submit_s = (int64_t)at;
        at -= between * log(draw_share(seed, 2 * i + 1));
    }
    from_zero(ret);
    return 0;
}
