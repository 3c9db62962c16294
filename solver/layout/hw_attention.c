/* hw_attention.c - rates of attention kernels.
 *
 * An attention kernel's rate follows from the kernel, the size of a head, the mask, the direction
 * and the length of the sequence, far more than from its operations: a row of device.attention has
 * one kernel's shares of the peak by length, as its authors or others measured them.  Between two
 * lengths the share is a straight line over the logarithm of the length; outside of them it is
 * that of the nearest length.  A run takes the row of its kernel, type and direction with the nearest
 * head size, then with the same mask; a kernel without rows takes those of the kernel before it. */
#include "hw_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "topt_json.h"

enum { MOST_ROWS = 256, MOST_POINTS = 32 };

struct row {
    enum topt_attention kernel;
    enum topt_dtype type;
    int64_t head;
    int causal, forward, backward;
    int npoints;
    double length[MOST_POINTS]; /* base-2 logarithms, rising */
    double share[MOST_POINTS];
};

struct topt_attention_rates {
    int n;
    struct row row[];
};

/* Kernels as profiles and frameworks name them, and which one stands in for each. */
static const struct {
    const char *name;
    enum topt_attention before;
} kernels[TOPT_ATTENTION_COUNT] = {
    [TOPT_ATTENTION_FLASH1] = {"flash-1", TOPT_ATTENTION_FLASH1},
    [TOPT_ATTENTION_FLASH2] = {"flash-2", TOPT_ATTENTION_FLASH1},
    [TOPT_ATTENTION_FLASH3] = {"flash-3", TOPT_ATTENTION_FLASH2},
    [TOPT_ATTENTION_CUDNN] = {"cudnn", TOPT_ATTENTION_FLASH2},
    [TOPT_ATTENTION_XFORMERS] = {"xformers", TOPT_ATTENTION_FLASH1},
    [TOPT_ATTENTION_OWN] = {"topt", TOPT_ATTENTION_OWN},
};

const char *topt_attention_name(enum topt_attention k)
{
    return (unsigned)k < TOPT_ATTENTION_COUNT ? kernels[k].name : "unknown";
}

/* ---- reading ------------------------------------------------------------------------------- */

static int refuse(size_t i, const char *what, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_INVAL, "device.attention[%zu].%s", i, what);
}

static int read_points(const json_t *list, size_t i, struct row *ret,
                       struct topt_error *err)
{
    size_t n = json_array_size(list);
    if (n < 1 || n > MOST_POINTS)
        return refuse(i, "points must be 1 to 32 pairs [length, share of the peak]", err);
    ret->npoints = (int)n;
    for (size_t k = 0; k < n; k++) {
        const json_t *pair = json_array_get(list, k);
        double length = json_number_value(json_array_get(pair, 0));
        ret->share[k] = json_number_value(json_array_get(pair, 1));
        ret->length[k] = length >= 1 ? log2(length) : -1;
        if (json_array_size(pair) != 2 ||
            !(ret->share[k] >= 1e-4 && ret->share[k] <= 1) || ret->length[k] < 0 ||
            (k && ret->length[k] <= ret->length[k - 1]))
            return refuse(i,
                          "points must be pairs [length, share of the peak], lengths "
                          "rising and shares at most 1",
                          err);
    }
    return 0;
}

/* Which of 'names' a field is; NULL-ended. */
static int read_word(const json_t *row, size_t i, const char *key,
                     const char *const names[], int *ret, struct topt_error *err)
{
    const char *said = json_string_value(json_object_get(row, key));
    char what[160];
    size_t used = (size_t)snprintf(what, sizeof what, "%s must be one of", key);
    for (int k = 0; names[k]; k++) {
        if (said && !strcmp(said, names[k])) {
            *ret = k;
            return 0;
        }
        used += (size_t)snprintf(what + used, sizeof what - used, "%s %s", k ? "," : "",
                                 names[k]);
    }
    return refuse(i, what, err);
}

static int read_row(const json_t *doc, size_t i, const char *const types[],
                    struct row *ret, struct topt_error *err)
{
    static const char *const fields[] = {"kernel",    "head",  "causal",
                                         "direction", "type",  "points",
                                         "source",    "range", NULL};
    static const char *const directions[] = {"forward", "backward", "both", NULL};
    const char *names[TOPT_ATTENTION_COUNT + 1] = {NULL};
    int kernel, type, direction;
    char path[40];
    for (int k = 0; k < TOPT_ATTENTION_COUNT; k++)
        names[k] = kernels[k].name;
    snprintf(path, sizeof path, "device.attention[%zu]", i);
    if (topt_json_only(doc, path, fields, err) ||
        read_word(doc, i, "kernel", names, &kernel, err) ||
        read_word(doc, i, "type", types, &type, err) ||
        read_word(doc, i, "direction", directions, &direction, err) ||
        topt_json_int(doc, path, "head", 1, 1024, &ret->head, err) ||
        read_points(json_object_get(doc, "points"), i, ret, err))
        return -1;
    if (!json_is_boolean(json_object_get(doc, "causal")))
        return refuse(i, "causal must be true or false", err);
    if (!json_is_string(json_object_get(doc, "source")))
        return refuse(i, "source must say where the figures come from", err);
    ret->causal = json_is_true(json_object_get(doc, "causal"));
    ret->kernel = (enum topt_attention)kernel;
    ret->type = (enum topt_dtype)type;
    ret->forward = direction != 1;
    ret->backward = direction != 0;
    return 0;
}

int topt_attention_rates_read(const json_t *device, const char *const types[],
                              struct topt_attention_rates **ret, struct topt_error *err)
{
    json_t *doc = topt_hw_rows(device, "attention", MOST_ROWS, err);
    *ret = NULL;
    if (!doc)
        return -1;
    size_t n = json_array_size(doc);
    struct topt_attention_rates *all = calloc(1, sizeof *all + n * sizeof *all->row);
    int rc = all ? 0 : topt_nomem(err, "the profile");
    for (size_t i = 0; i < n && !rc; i++) {
        rc = read_row(json_array_get(doc, i), i, types, &all->row[i], err);
        all->n++;
    }
    json_decref(doc);
    if (rc)
        free(all);
    else
        *ret = all;
    return rc;
}

void topt_attention_rates_free(struct topt_attention_rates *rates)
{
    free(rates);
}

/* ---- rates --------------------------------------------------------------------------------- */

static double share_at(const struct row *r, double length)
{
    int last = r->npoints - 1, k = 0;
    double at = log2(length);
    if (at <= r->length[0])
        return r->share[0];
    if (at >= r->length[last])
        return r->share[last];
    while (r->length[k + 1] < at)
        k++;
    double part = (at - r->length[k]) / (r->length[k + 1] - r->length[k]);
    return r->share[k] + part * (r->share[k + 1] - r->share[k]);
}

/* How far a row is from what runs; less than 0 where it can't stand for it. */
static double distance(const struct row *r, enum topt_dtype t, enum topt_attention kernel,
                       const struct topt_attention_run *run)
{
    int directed = run->backward ? r->backward : r->forward;
    if (r->kernel != kernel || r->type != t || !directed)
        return -1;
    return 4 * fabs(log2((double)r->head / (double)run->head)) +
           2 * (r->causal != run->causal) + (r->forward && r->backward);
}

static const struct row *nearest(const struct topt_attention_rates *rates,
                                 enum topt_dtype t, enum topt_attention kernel,
                                 const struct topt_attention_run *run)
{
    const struct row *best = NULL;
    double least = INFINITY;
    for (int i = 0; i < rates->n; i++) {
        double d = distance(&rates->row[i], t, kernel, run);
        if (d >= 0 && d < least) {
            least = d;
            best = &rates->row[i];
        }
    }
    return best;
}

/* The module's own kernel (runtime/cuda/flash.c) takes bf16 and heads of at most 128 numbers; none whose keys have a shared part or
 * whose scores have a table of relative positions. */
static int own_takes(enum topt_dtype t, const struct topt_attention_run *run)
{
    enum { MOST = 128 };
    const struct topt_op *o = run->op;
    if (t != TOPT_BF16 || run->head > MOST)
        return 0;
    return !o || (!topt_op_has(o, "kr") && !topt_op_has(o, "rp") &&
                  o->attrs->v_head_dim <= MOST && !(o->attrs->factor > 0));
}

/* No device has run it, so that its rates are assumed: forward it is the first FlashAttention's algorithm in one kernel, and
 * reaches that one's share; backward its two kernels make nine products where FlashAttention makes five, whose
 * operations are counted.  Where no rate of the first is known it is half of the second's, which takes half the time
 * (Dao, FlashAttention-2, 2023, abstract). */
double topt_attention_own_share(const struct topt_attention_rates *rates,
                                enum topt_dtype t, const struct topt_attention_run *run,
                                double otherwise)
{
    static const double BACKWARD = 5.0 / 9;
    struct topt_attention_run first = *run;
    if (!own_takes(t, run))
        return 0;
    first.kernel = TOPT_ATTENTION_FLASH1;
    double share = topt_attention_share(rates, t, &first);
    return (share > 0 ? share : otherwise / 2) * (run->backward ? BACKWARD : 1);
}

double topt_attention_share(const struct topt_attention_rates *rates, enum topt_dtype t,
                            const struct topt_attention_run *run)
{
    enum topt_attention k = run->kernel;
    const struct row *r = nearest(rates, t, k, run);
    while (!r && kernels[k].before != k) {
        k = kernels[k].before;
        r = nearest(rates, t, k, run);
    }
    return r ? share_at(r, (double)run->length) : 0;
}
