/* feed_table.c - samples that stand in a table of numbers: idx files (as of MNIST) and
 * csv; pictures.
 *
 * A row has the features of a sample and its answers: a class for a loss over classes,
 * else targets.  Each row comes once before any comes again, in an order of its own each
 * time. */
#include "feed_file.h"
#include "feed_model.h"
#include "feed_order.h"
#include "feed_table.h"
#include "number.h"
#include "topt_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scaling {
    double mean, deviation;
};

struct table {
    float *features, *answers; /* by row; classes are whole numbers */
    unsigned char *pixels;     /* in place of features */
    int64_t rows, width, nanswers, batch;
    uint64_t seed;
    struct scaling *scaling; /* of each feature; NULL: they stay as they are */
    char *names;             /* of classes */
};

static int64_t row_of(const struct table *t, int64_t step, int64_t sample)
{
    uint64_t at = (uint64_t)(step * t->batch + sample), n = (uint64_t)t->rows;
    return (int64_t)topt_shuffled(topt_mix(t->seed + at / n), n, at % n);
}

static int load_whole(void *ctx, const struct topt_op *op, int operand, int64_t step,
                      const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    const struct table *t = ctx;
    int64_t n = topt_feed_elements(op, operand, box);
    if (topt_feed_check(op, box, t->batch, err))
        return -1;
    for (int64_t i = 0; i < n; i++) {
        struct topt_feed_place p = topt_feed_place(op, operand, box, i);
        ret[i] = (int32_t)t->answers[row_of(t, step, p.sample) * t->nanswers + p.element];
    }
    return 0;
}

/* Numbers [at, at + n) of the features, or of the answers, from 'first' of 'ret' on. */
static void put_run(const struct table *t, int answers, int64_t at, int64_t n,
                    enum topt_dtype dtype, void *ret, int64_t first)
{
    const float *from = answers ? t->answers : t->features;
    if (!from)
        for (int64_t i = 0; i < n; i++)
            topt_number_put(dtype, ret, first + i, t->pixels[at + i] / 127.5 - 1);
    else if (dtype == TOPT_F32)
        memcpy((float *)ret + first, from + at, (size_t)n * sizeof *from);
    else
        for (int64_t i = 0; i < n; i++)
            topt_number_put(dtype, ret, first + i, (double)from[at + i]);
}

/* A row of the table is drawn once for what stands together in the sample. */
static int load_real(void *ctx, const struct topt_op *op, int operand, int64_t step,
                     const struct topt_box *box, enum topt_dtype dtype, void *ret,
                     struct topt_error *err)
{
    const struct table *t = ctx;
    int64_t n = topt_feed_elements(op, operand, box);
    int64_t run = topt_feed_run(op, operand, box);
    int answers = op->spec->loss;
    if (topt_feed_check(op, box, t->batch, err))
        return -1;
    for (int64_t i = 0; i < n; i += run) {
        struct topt_feed_place p = topt_feed_place(op, operand, box, i);
        int64_t row = row_of(t, step, p.sample);
        put_run(t, answers, row * (answers ? t->nanswers : t->width) + p.element, run,
                dtype, ret, i);
    }
    return 0;
}

static void close_table(void *ctx)
{
    struct table *t = ctx;
    free(t->features);
    free(t->answers);
    free(t->pixels);
    free(t->scaling);
    free(t->names);
    free(t);
}

/* An empty table for a model that takes one input of real numbers. */
static struct table *table_create(const struct topt_model *m,
                                  const struct topt_feed_needs *n, uint64_t seed,
                                  struct topt_error *err)
{
    if (n->tokens || n->nfeatures != 1) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "a table feeds one input of real numbers; '%s' takes %s",
                  n->tokens ? n->tokens->name : "the model",
                  n->tokens ? "whole ones (give a text or 'synthetic')" : "several");
        return NULL;
    }
    struct table *t = calloc(1, sizeof *t);
    if (!t) {
        topt_nomem(err, NULL);
        return NULL;
    }
    *t = (struct table){.width = n->sample,
                        .nanswers = n->answers,
                        .batch = m->batch,
                        .seed = topt_mix(seed ^ 0x7461626c65666565u)};
    return t;
}

static struct topt_feed table_feed(struct table *t, const char *kind, uint64_t digest)
{
    return (struct topt_feed){.load = load_whole,
                              .load_real = load_real,
                              .close = close_table,
                              .ctx = t,
                              .kind = kind,
                              .digest = digest};
}

/* ---- idx --------------------------------------------------------------------------- */

/* Two zero bytes, the type (8: bytes), the number of dimensions, their big-endian
 * extents. */
int topt_feed_is_idx(const char *bytes, size_t len)
{
    return len >= 4 && !bytes[0] && !bytes[1] && bytes[2] >= 8 && bytes[2] <= 14 &&
           bytes[3] >= 1 && bytes[3] <= 4;
}

struct idx {
    int64_t rows, width;
    const unsigned char *byte;
};

static int parse_idx(const char *bytes, size_t len, struct idx *ret,
                     struct topt_error *err)
{
    if (!topt_feed_is_idx(bytes, len))
        return topt_fail(err, TOPT_ERR_INVAL, "is no idx file");
    if (bytes[2] != 8)
        return topt_fail(err, TOPT_ERR_INVAL, "holds numbers of type %d, not bytes",
                         bytes[2]);
    size_t ndims = (size_t)bytes[3], header = 4 + 4 * ndims;
    const unsigned char *u = (const unsigned char *)bytes;
    int64_t total = 1;
    ret->rows = ret->width = 1;
    for (size_t i = 0; i < ndims && len >= header; i++, u += 4) {
        int64_t n = (int64_t)u[4] << 24 | (int64_t)u[5] << 16 | u[6] << 8 | u[7];
        if (n < 1 || n > TOPT_FEED_MAX_BYTES / total)
            return topt_fail(err, TOPT_ERR_INVAL, "its dimension %zu is %lld", i,
                             (long long)n);
        total *= n;
        *(i ? &ret->width : &ret->rows) *= n;
    }
    if (len < header || len - header != (size_t)total)
        return topt_fail(err, TOPT_ERR_INVAL, "has %zu bytes, %zu + %lld are announced",
                         len, header, (long long)total);
    ret->byte = u + 4;
    return 0;
}

/* "train-images-idx3-ubyte.gz" has its labels in "train-labels-idx1-ubyte.gz". */
static char *labels_path(const char *images, struct topt_error *err)
{
    const char *name = strrchr(images, '/');
    name = strstr(name ? name : images, "images");
    struct topt_text path = {0};
    if (name) {
        topt_text_put(&path, images, (size_t)(name - images));
        topt_text_add(&path, "labels%s", name + 6);
        char *three = path.s ? strstr(path.s + (name - images), "idx3") : NULL;
        if (three)
            three[3] = '1';
    }
    if (!path.s)
        topt_fail(err, name ? TOPT_ERR_NOMEM : TOPT_ERR_INVAL,
                  "the file of the labels is sought by the name of the images, which has "
                  "to have \"images\" in it");
    return path.s;
}

static int take_images(struct table *t, const struct idx *x, struct topt_error *err)
{
    if (x->width != t->width)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a sample has %lld numbers, the model takes %lld",
                         (long long)x->width, (long long)t->width);
    t->rows = x->rows;
    t->pixels = malloc((size_t)(x->rows * x->width));
    if (!t->pixels)
        return topt_nomem(err, NULL);
    memcpy(t->pixels, x->byte, (size_t)(x->rows * x->width));
    return 0;
}

static int take_labels(struct table *t, const struct idx *x,
                       const struct topt_feed_needs *n, struct topt_error *err)
{
    if (x->rows != t->rows || x->width != 1)
        return topt_fail(err, TOPT_ERR_INVAL, "has %lld labels for %lld images",
                         (long long)(x->rows * x->width), (long long)t->rows);
    if (!n->classes || n->answers != 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "holds a class for each sample, '%s' takes %lld %s",
                         n->loss->name, (long long)n->answers,
                         n->classes ? "classes" : "real numbers");
    t->answers = malloc((size_t)x->rows * sizeof *t->answers);
    if (!t->answers)
        return topt_nomem(err, NULL);
    for (int64_t i = 0; i < x->rows; i++) {
        if (x->byte[i] >= n->classes)
            return topt_fail(err, TOPT_ERR_INVAL, "label %d, '%s' has %lld classes",
                             x->byte[i], n->loss->name, (long long)n->classes);
        t->answers[i] = x->byte[i];
    }
    return 0;
}

int topt_feed_idx(const char *images, size_t len, const char *path,
                  const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                  struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    struct idx x, y;
    char *name = NULL, *labels = NULL;
    size_t labels_len;
    int rc = -1;
    struct table *t = table_create(m, &n, seed, err);
    if (!t || parse_idx(images, len, &x, err) || take_images(t, &x, err) ||
        !(name = labels_path(path, err)) ||
        !(labels = topt_feed_read(name, &labels_len, err)))
        goto out;
    if (parse_idx(labels, labels_len, &y, err) || take_labels(t, &y, &n, err)) {
        topt_wrap(err, "%s", name);
        goto out;
    }
    *ret = table_feed(
        t, "idx", topt_feed_digest(images, len) ^ topt_feed_digest(labels, labels_len));
    t = NULL;
    rc = 0;
out:
    if (t)
        close_table(t);
    free(name);
    free(labels);
    return rc;
}

/* ---- pictures ---------------------------------------------------------------------- */

int topt_feed_of_pictures(const struct topt_pictures *p, const struct topt_model *m,
                          uint64_t seed, struct topt_feed *ret, struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    struct table *t = table_create(m, &n, seed, err);
    if (!t) {
        free(p->pixel);
        free(p->answer);
        free(p->names);
        return -1;
    }
    t->pixels = p->pixel;
    t->answers = p->answer;
    t->rows = p->rows;
    t->names = p->names;
    *ret = table_feed(t, "images", p->digest);
    ret->preprocessing = t->names;
    return 0;
}

/* ---- csv --------------------------------------------------------------------------- */

/* One line's numbers into 'ret' (at most 'n').  Returns how many fields there are, or
 * -1 with the number of the first that is no number in 'ret_bad'. */
static int64_t parse_line(const char *s, const char *end, double *ret, int64_t n,
                          int64_t *ret_bad)
{
    int64_t fields = 0;
    for (;;) {
        char *stop;
        double x = strtod(s, &stop);
        if (stop == s || stop > end || !isfinite(x)) {
            *ret_bad = fields + 1;
            return -1;
        }
        while (stop < end && (*stop == ' ' || *stop == '\t' || *stop == '\r'))
            stop++;
        if (stop < end && *stop != ',') {
            *ret_bad = fields + 1;
            return -1;
        }
        if (fields < n)
            ret[fields] = x;
        fields++;
        if (stop >= end)
            return fields;
        s = stop + 1;
    }
}

static int check_class(double x, int64_t line, const struct topt_feed_needs *n,
                       struct topt_error *err)
{
    return !n->classes || (x >= 0 && x < (double)n->classes && x == floor(x))
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "line %lld: %g is not one of the classes 0 to %lld of '%s'",
                           (long long)line, x, (long long)n->classes - 1, n->loss->name);
}

/* Room for one more row; capacities are powers of two. */
static int grow(struct table *t, struct topt_error *err)
{
    if (t->rows & (t->rows - 1))
        return 0;
    size_t cap = t->rows ? 2 * (size_t)t->rows : 1;
    float *x = realloc(t->features, cap * (size_t)t->width * sizeof *x);
    if (x)
        t->features = x;
    float *y = realloc(t->answers, cap * (size_t)t->nanswers * sizeof *y);
    if (y)
        t->answers = y;
    return x && y ? 0 : topt_nomem(err, NULL);
}

static int take_line(struct table *t, const char *s, const char *end, int64_t line,
                     double *field, const struct topt_feed_needs *n,
                     struct topt_error *err)
{
    int64_t want = t->width + t->nanswers, bad;
    int64_t have = parse_line(s, end, field, want, &bad);
    if (have < 0 && line == 1)
        return 0; /* names of the columns */
    if (have < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "line %lld, field %lld is no number",
                         (long long)line, (long long)bad);
    if (have != want)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "line %lld has %lld numbers, the model takes %lld and %lld %s",
                         (long long)line, (long long)have, (long long)t->width,
                         (long long)t->nanswers, n->classes ? "class" : "targets");
    if (grow(t, err))
        return -1;
    for (int64_t i = 0; i < t->width; i++)
        t->features[t->rows * t->width + i] = (float)field[i];
    for (int64_t i = 0; i < t->nanswers; i++) {
        if (check_class(field[t->width + i], line, n, err))
            return -1;
        t->answers[t->rows * t->nanswers + i] = (float)field[t->width + i];
    }
    t->rows++;
    return 0;
}

static struct scaling scaling_of(const struct table *t, int64_t j)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < t->rows; i++)
        sum += (double)t->features[i * t->width + j];
    double mean = sum / (double)t->rows;
    for (int64_t i = 0; i < t->rows; i++) {
        double d = (double)t->features[i * t->width + j] - mean;
        square += d * d;
    }
    double deviation = sqrt(square / (double)t->rows);
    return (struct scaling){mean, deviation > 0 ? deviation : 1};
}

/* Each column of the features to mean 0 and deviation 1, as far as it varies; or as another
 * table's were scaled. */
static int standardise(struct table *t, const struct scaling *as, struct topt_error *err)
{
    t->scaling = calloc((size_t)t->width + 1, sizeof *t->scaling);
    if (!t->scaling)
        return topt_nomem(err, NULL);
    for (int64_t j = 0; j < t->width; j++) {
        struct scaling by = t->scaling[j] = as ? as[j] : scaling_of(t, j);
        for (int64_t i = 0; i < t->rows; i++) {
            float *x = &t->features[i * t->width + j];
            *x = (float)(((double)*x - by.mean) / by.deviation);
        }
    }
    return 0;
}

static int take_lines(struct table *t, const char *text, size_t len,
                      const struct topt_feed_needs *n, struct topt_error *err)
{
    const char *end = text + len;
    double *field = calloc((size_t)(t->width + t->nanswers), sizeof *field);
    int rc = field ? 0 : topt_nomem(err, NULL);
    int64_t line = 1;
    for (const char *s = text; !rc && s < end; line++) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        stop = stop ? stop : end;
        const char *last = stop;
        while (last > s && (last[-1] == '\r' || last[-1] == ' '))
            last--;
        if (last > s)
            rc = take_line(t, s, last, line, field, n, err);
        s = stop + 1;
    }
    free(field);
    if (!rc && !t->rows)
        rc = topt_fail(err, TOPT_ERR_INVAL, "has no line of numbers");
    return rc;
}

/* 'text' ends with a NUL, as topt_feed_read() leaves it. */
int topt_feed_csv(const char *text, size_t len, const void *preprocessing,
                  const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                  struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    struct table *t = table_create(m, &n, seed, err);
    if (!t)
        return -1;
    if (take_lines(t, text, len, &n, err) || standardise(t, preprocessing, err)) {
        close_table(t);
        return -1;
    }
    *ret = table_feed(t, "csv", topt_feed_digest(text, len));
    ret->preprocessing = t->scaling;
    return 0;
}
