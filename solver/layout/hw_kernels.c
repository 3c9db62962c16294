/* hw_kernels.c - times of single kernels as they were measured.
 *
 * One rate for a class of kernels says little of any of them: norms and additions differ, and so do
 * attentions with heads of 16 and of 128 numbers.  So a row of device.kernels has samples of one kernel
 * (and variant: which activation, causal or not): operations, bytes that it touches, numbers that it
 * writes, the numbers of a unit of its output (a head), nanoseconds.  A run between samples takes the
 * mean of the nearest ones' time for an operation, weighted by inverse square distance (Shepard, A
 * two-dimensional interpolation function for irregularly-spaced data, 1968).  Distances are between
 * logarithms, so that a factor of two is as far at small sizes as at large ones. */
#include "hw_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "topt_json.h"

enum {
    KINDS = TOPT_KERNEL_COUNT + TOPT_SWEEP_COUNT,
    FEATURES = 4,
    NUMBERS = FEATURES + 1,
    NEAREST = 4,
    MOST_ROWS = 1024,
    MOST_SAMPLES = 512
};
/* Samples closer than this, in doublings, count alike. */
static const double CLOSE = 0.1;

struct sample {
    double at[FEATURES]; /* base-2 logarithms */
    double ns; /* natural logarithm of nanoseconds for an operation, or a byte */
};

struct row {
    int kernel; /* enum topt_kernel; from TOPT_KERNEL_COUNT on, enum topt_sweep */
    enum topt_dtype type;
    const char *variant; /* of the document, which the table holds */
    int n;
    struct sample *sample;
};

struct topt_kernel_times {
    json_t *doc;
    int n;
    int first[KINDS + 1]; /* rows of a kernel lie side by side */
    struct row row[];
};

const char *topt_kernel_variant(const struct topt_op *op, enum topt_kernel kernel)
{
    int acts = op->spec->attrs >> TOPT_A_ACT & 1;
    if (kernel == TOPT_K_LOAD)
        return "";
    if (acts && topt_kernel_work(kernel) == TOPT_WORK_ELEMENTWISE)
        return topt_activation_name((enum topt_activation)op->attrs->activation);
    if (topt_kernel_work(kernel) == TOPT_WORK_ATTENTION)
        return topt_op_has(op, "rp")
                   ? (op->attrs->causal ? "causal relative" : "relative")
                   : (op->attrs->causal ? "causal" : "");
    return op->attrs->rms ? "rms" : "";
}

const char *topt_sweep_name(enum topt_sweep p)
{
    static const char *const name[] = {"zero", "sum", "update"};
    return name[p];
}

/* ---- reading ------------------------------------------------------------------------------- */

static int refuse(size_t i, const char *what, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_INVAL, "device.kernels[%zu].%s", i, what);
}

static double work_of(double flops, double bytes)
{
    return flops > 0 ? flops : fmax(bytes, 1);
}

static void features_of(const double x[FEATURES], double ret[FEATURES])
{
    for (int f = 0; f < FEATURES; f++)
        ret[f] = log2(fmax(x[f], 1));
}

static int read_sample(const json_t *doc, size_t i, struct sample *ret,
                       struct topt_error *err)
{
    double x[NUMBERS];
    for (size_t k = 0; k < NUMBERS; k++) {
        x[k] = json_number_value(json_array_get(doc, k));
        if (json_array_size(doc) != NUMBERS || !(x[k] >= 0 && x[k] <= 1e18))
            return refuse(i,
                          "samples must be [operations, bytes, numbers written, numbers "
                          "of a unit, nanoseconds]",
                          err);
    }
    features_of(x, ret->at);
    ret->ns = log(fmax(x[FEATURES], 1) / work_of(x[0], x[1]));
    return 0;
}

static int read_samples(const json_t *list, size_t i, struct row *ret,
                        struct topt_error *err)
{
    size_t n = json_array_size(list);
    if (n < 1 || n > MOST_SAMPLES)
        return refuse(i, "samples must be 1 to 512", err);
    ret->sample = calloc(n, sizeof *ret->sample);
    if (!ret->sample)
        return topt_nomem(err, "the profile");
    for (size_t k = 0; k < n; k++)
        if (read_sample(json_array_get(list, k), i, &ret->sample[k], err))
            return -1;
    ret->n = (int)n;
    return 0;
}

/* A kernel or a sweep; KINDS: neither. */
static int kind_named(const char *name)
{
    int k = (int)topt_kernel_named(name);
    while (name && k >= TOPT_KERNEL_COUNT && k < KINDS &&
           strcmp(name, topt_sweep_name((enum topt_sweep)(k - TOPT_KERNEL_COUNT))) != 0)
        k++;
    return name ? k : KINDS;
}

static int read_row(const json_t *doc, size_t i, const char *const types[],
                    struct row *ret, struct topt_error *err)
{
    static const char *const fields[] = {"kernel", "of", "type", "samples", NULL};
    const char *type = json_string_value(json_object_get(doc, "type"));
    int t = 0;
    char path[40];
    snprintf(path, sizeof path, "device.kernels[%zu]", i);
    if (topt_json_only(doc, path, fields, err))
        return -1;
    ret->kernel = kind_named(json_string_value(json_object_get(doc, "kernel")));
    while (type && types[t] && strcmp(types[t], type) != 0)
        t++;
    if (ret->kernel == KINDS)
        return refuse(i, "kernel must be the name of a kernel", err);
    if (!type || !types[t])
        return refuse(i, "type must be the name of a type", err);
    ret->type = (enum topt_dtype)t;
    ret->variant = json_string_value(json_object_get(doc, "of"));
    ret->variant = ret->variant ? ret->variant : "";
    return read_samples(json_object_get(doc, "samples"), i, ret, err);
}

static int by_kernel(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

static void index_rows(struct topt_kernel_times *all)
{
    qsort(all->row, (size_t)all->n, sizeof *all->row, by_kernel);
    for (int k = 0, i = 0; k <= KINDS; k++) {
        while (i < all->n && all->row[i].kernel < k)
            i++;
        all->first[k] = i;
    }
}

int topt_kernel_times_read(const json_t *device, const char *const types[],
                           struct topt_kernel_times **ret, struct topt_error *err)
{
    json_t *doc = topt_hw_rows(device, "kernels", MOST_ROWS, err);
    *ret = NULL;
    if (!doc)
        return -1;
    size_t n = json_array_size(doc);
    struct topt_kernel_times *all = calloc(1, sizeof *all + n * sizeof *all->row);
    if (!all) {
        json_decref(doc);
        return topt_nomem(err, "the profile");
    }
    all->doc = doc;
    all->n = (int)n;
    for (size_t i = 0; i < n; i++)
        if (read_row(json_array_get(doc, i), i, types, &all->row[i], err)) {
            topt_kernel_times_free(all);
            return -1;
        }
    index_rows(all);
    *ret = all;
    return 0;
}

void topt_kernel_times_free(struct topt_kernel_times *times)
{
    if (!times)
        return;
    for (int i = 0; i < times->n; i++)
        free(times->row[i].sample);
    json_decref(times->doc);
    free(times);
}

/* ---- times --------------------------------------------------------------------------------- */

struct near {
    int n;
    double far[NEAREST], ns[NEAREST]; /* squares of distances, rising */
};

static void put_near(struct near *s, double far, double ns)
{
    if (s->n == NEAREST && far >= s->far[NEAREST - 1])
        return;
    int i = s->n < NEAREST ? s->n++ : NEAREST - 1;
    for (; i > 0 && s->far[i - 1] > far; i--) {
        s->far[i] = s->far[i - 1];
        s->ns[i] = s->ns[i - 1];
    }
    s->far[i] = far;
    s->ns[i] = ns;
}

static void look_at(const struct row *r, const double at[FEATURES], struct near *s)
{
    for (int i = 0; i < r->n; i++) {
        double far = 0;
        for (int f = 0; f < FEATURES; f++) {
            double d = r->sample[i].at[f] - at[f];
            far += d * d;
        }
        put_near(s, far, r->sample[i].ns);
    }
}

/* Rows of the variant; where there are none, of all. */
static void look_among(const struct topt_kernel_times *times, enum topt_dtype t, int kind,
                       const char *variant, const double at[FEATURES], struct near *s)
{
    for (int alike = 1; alike >= 0 && !s->n; alike--)
        for (int i = times->first[kind]; i < times->first[kind + 1]; i++)
            if (times->row[i].type == t &&
                (!alike || !strcmp(times->row[i].variant, variant)))
                look_at(&times->row[i], at, s);
}

void topt_kernel_features(const struct topt_kernel_run *run, double ret[4])
{
    const struct topt_op *o = run->op;
    int last = o->spec->operand[o->output].ndim - 1;
    int heads = topt_kernel_work(run->kernel) == TOPT_WORK_ATTENTION;
    ret[0] = (double)run->flops;
    ret[1] = (double)run->bytes;
    ret[2] = (double)run->outputs;
    ret[3] = heads ? (double)o->operand[o->output].dim[last].unit
                   : fmax(1, (double)(o->attrs->kernel_h * o->attrs->kernel_w));
}

static double times_ns(const struct topt_kernel_times *times, enum topt_dtype t, int kind,
                       const char *variant, const double x[FEATURES])
{
    struct near s = {.n = 0};
    double at[FEATURES], sum = 0, weights = 0;
    if (!times->n)
        return 0;
    features_of(x, at);
    look_among(times, t, kind, variant, at, &s);
    if (!s.n)
        return 0;
    for (int i = 0; i < s.n; i++) {
        double weight = 1 / (s.far[i] + CLOSE * CLOSE);
        sum += weight * s.ns[i];
        weights += weight;
    }
    return work_of(x[0], x[1]) * exp(sum / weights);
}

int topt_kernel_times_any(const struct topt_kernel_times *times)
{
    return times->n > 0;
}

double topt_kernel_times_ns(const struct topt_kernel_times *times, enum topt_dtype t,
                            const struct topt_kernel_run *run)
{
    double x[FEATURES];
    topt_kernel_features(run, x);
    return times_ns(times, t, (int)run->kernel, topt_kernel_variant(run->op, run->kernel),
                    x);
}

double topt_sweep_times_ns(const struct topt_kernel_times *times, enum topt_dtype t,
                           enum topt_sweep p, const char *of, int64_t bytes)
{
    const double x[FEATURES] = {0, (double)bytes, 0, 1};
    return times_ns(times, t, TOPT_KERNEL_COUNT + (int)p, of, x);
}
