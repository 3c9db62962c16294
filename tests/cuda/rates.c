/* rates.c - how fast the CUDA device's kernels are, at the sizes of a GPT.
 *
 * usage: cuda_rates [--batch B] [--seq S] [--width D] [--heads H] [--vocab V] [-o FILE]
 *
 * For each operator, forward and backward, in f32 and bf16: the median time of a kernel,
 * its operations a second and the bytes a second that its operands are (each read or written
 * once).  Prints a table, and writes JSON. */
#include "device.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 3, RUNS = 9 };

struct sizes {
    int64_t batch, seq, width, heads, vocab;
};

static void must(int rc, const struct topt_error *err)
{
    if (!rc)
        return;
    fprintf(stderr, "cuda_rates: %s\n", err->text);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One block of a GPT as operators to measure: the residual stream, four times as wide inside,
 * and the vocabulary. */
static struct topt_model *build(const struct sizes *z)
{
    struct topt_error err = {0};
    struct topt_model *m = topt_model_create("rates", z->batch, z->seq, &err);
    struct topt_attrs table = {.vocab = z->vocab, .features = z->width}, none = {0};
    struct topt_attrs qkv = {.features = z->heads,
                             .features_unit = 3 * (z->width / z->heads)};
    struct topt_attrs heads = {.heads = z->heads,
                               .kv_heads = z->heads,
                               .head_dim = z->width / z->heads,
                               .causal = 1};
    struct topt_attrs back = {.features = z->width}, wide = {.features = 4 * z->width};
    struct topt_attrs gelu = {.activation = TOPT_ACT_GELU}, out = {.features = z->vocab};
    int x = topt_model_add(m, "embedding", "embedding", 0, NULL, &table, &err), y;
    x = topt_model_add(m, "position", "position", 1, &x, &none, &err);
    y = topt_model_add(m, "norm", "norm", 1, &x, &none, &err);
    y = topt_model_add(m, "linear", "qkv", 1, &y, &qkv, &err);
    y = topt_model_add(m, "attention", "attention", 1, &y, &heads, &err);
    y = topt_model_add(m, "linear", "projection", 1, &y, &back, &err);
    y = topt_model_add(m, "bias", "bias", 1, &y, &none, &err);
    int both[2] = {x, y};
    x = topt_model_add(m, "add", "residual", 2, both, &none, &err);
    y = topt_model_add(m, "linear", "up", 1, &x, &wide, &err);
    y = topt_model_add(m, "unary", "gelu", 1, &y, &gelu, &err);
    y = topt_model_add(m, "linear", "down", 1, &y, &back, &err);
    y = topt_model_add(m, "linear", "logits", 1, &y, &out, &err);
    must(topt_model_add(m, "cross_entropy", "loss", 1, &y, &none, &err) < 0, &err);
    return m;
}

static int64_t volume(const struct topt_op *op, int o)
{
    int64_t n = 1;
    for (int i = 0; i < op->spec->operand[o].ndim; i++)
        n *= op->operand[o].dim[i].count * op->operand[o].dim[i].unit;
    return n;
}

/* Whole operands, zero: what kernels do does not depend on the numbers. */
static struct topt_kernel_call prepare(struct topt_device *d, const struct topt_op *op)
{
    struct topt_error err = {0};
    struct topt_kernel_call c = {.op = op, .micro_batches = 1};
    memcpy(c.len, op->count, sizeof c.len);
    for (int o = 0; o < op->spec->noperands; o++) {
        int64_t bytes = volume(op, o) * (d->real_bytes > 4 ? d->real_bytes : 4);
        if (!op->operand[o].present)
            continue;
        for (int i = 0; i < op->spec->operand[o].ndim; i++)
            c.box[o].len[i] = op->operand[o].dim[i].count;
        must(d->ops->alloc(d, bytes, &c.value[o], &err) ||
                 d->ops->alloc(d, bytes, &c.grad[o], &err) ||
                 d->ops->zero(d, c.value[o], bytes, &err) ||
                 d->ops->zero(d, c.grad[o], bytes, &err),
             &err);
    }
    return c;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median_ns(struct topt_device *d, const struct topt_kernel_call *c)
{
    struct topt_error err = {0};
    int64_t ns[RUNS];
    for (int i = -WARM; i < RUNS; i++) {
        int64_t before = now_ns();
        must(d->ops->kernel(d, c, &err) || d->ops->sync(d, &err), &err);
        if (i >= 0)
            ns[i] = now_ns() - before;
    }
    qsort(ns, RUNS, sizeof *ns, by_value);
    return ns[RUNS / 2];
}

/* Operands that a step touches, each once. */
static int64_t bytes_of(const struct topt_device *d, const struct topt_op *op,
                        const struct topt_step *s)
{
    int64_t bytes = 0;
    uint32_t touched = s->reads | s->writes;
    for (int o = 0; o < op->spec->noperands; o++)
        for (int gradient = 0; gradient < 2; gradient++)
            if (op->operand[o].present && touched >> (o + 16 * gradient) & 1)
                bytes += volume(op, o) *
                         (op->operand[o].role == TOPT_DATA ? 4 : d->real_bytes);
    return bytes;
}

static void measure(struct topt_device *d, struct topt_kernel_call *c,
                    const struct topt_step *s, json_t *list)
{
    if (s->kind != TOPT_STEP_KERNEL || s->kernel == TOPT_K_LOAD || s->dims)
        return;
    c->kernel = s->kernel;
    double ns = (double)median_ns(d, c);
    double flops = (double)c->op->spec->flops(c->op, s->kernel, c->op->count);
    double bytes = (double)bytes_of(d, c->op, s);
    printf("%-12s %-16s %-5s %12.1f us %10.2f TFLOP/s %10.1f GB/s\n", c->op->name,
           topt_kernel_name(s->kernel), topt_dtype_name(d->dtype), ns / 1e3,
           flops / ns / 1e3, bytes / ns);
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s, s:f, s:f, s:f}", "operator", c->op->name,
                        "kernel", topt_kernel_name(s->kernel), "dtype",
                        topt_dtype_name(d->dtype), "ns", ns, "flops_per_second",
                        flops / ns * 1e9, "bytes_per_second", bytes / ns * 1e9));
}

static void measure_all(const struct topt_module *module, const struct topt_model *m,
                        enum topt_dtype dtype, json_t *list)
{
    struct topt_device d;
    open_device(module, dtype, 0, &d);
    for (int i = 0; i < m->nops; i++) {
        const struct topt_op *op = &m->op[i];
        struct topt_kernel_call c = prepare(&d, op);
        for (int k = 0; k < TOPT_MAX_STEPS; k++)
            measure(&d, &c, &op->spec->forward[k], list);
        for (int k = 0; k < TOPT_MAX_STEPS; k++)
            measure(&d, &c, &op->spec->backward[k], list);
        for (int o = 0; o < op->spec->noperands; o++)
            if (op->operand[o].present) {
                d.ops->release(&d, c.value[o]);
                d.ops->release(&d, c.grad[o]);
            }
    }
    topt_device_close(&d);
}

static int parse(int argc, char **argv, struct sizes *z, const char **file)
{
    struct {
        const char *name;
        int64_t *value;
    } known[] = {{"--batch", &z->batch}, {"--seq", &z->seq},     {"--width", &z->width},
                 {"--heads", &z->heads}, {"--vocab", &z->vocab}, {NULL, NULL}};
    for (int i = 1; i < argc; i += 2) {
        int k = 0;
        while (known[k].name && strcmp(known[k].name, argv[i]))
            k++;
        if (i + 1 == argc || (!known[k].name && strcmp(argv[i], "-o")))
            return -1;
        if (known[k].name)
            *known[k].value = atoll(argv[i + 1]);
        else
            *file = argv[i + 1];
    }
    return z->heads > 0 && z->width % z->heads == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct sizes z = {
        .batch = 8, .seq = 1024, .width = 1024, .heads = 16, .vocab = 32768};
    const char *file = NULL;
    if (parse(argc, argv, &z, &file)) {
        fprintf(stderr, "usage: cuda_rates [--batch B] [--seq S] [--width D] [--heads H] "
                        "[--vocab V] [-o FILE]\n");
        return 2;
    }
    const struct topt_module *module = the_module();
    struct topt_model *m = build(&z);
    json_t *list = json_array();
    measure_all(module, m, TOPT_F32, list);
    measure_all(module, m, TOPT_BF16, list);
    json_t *doc =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "batch", (json_int_t)z.batch, "seq",
                  (json_int_t)z.seq, "width", (json_int_t)z.width, "heads",
                  (json_int_t)z.heads, "vocab", (json_int_t)z.vocab, "kernels", list);
    int rc = file && json_dump_file(doc, file, JSON_INDENT(1));
    json_decref(doc);
    topt_model_destroy(m);
    if (rc)
        fprintf(stderr, "cuda_rates: can't write '%s'\n", file);
    return rc ? 1 : 0;
}
