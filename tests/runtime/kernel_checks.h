/* kernel_checks.h - what every operator's kernels are held to: slopes by finite differences in
 * f64, every split of small meshes against the unsplit operator, f32 against f64. */
#ifndef TOPT_KERNEL_CHECKS_H
#define TOPT_KERNEL_CHECKS_H

#include "fake_ranks.h"
#include "tap.h"

/* Tables of fixtures leave out what they don't need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { BATCH = 3, SEQ = 5 };

struct fixture {
    const char *title, *kind;
    int ninputs;
    int64_t count, unit; /* features of the inputs */
    struct topt_attrs attrs;
    uint32_t
        sparse; /* operands (bit o) where most numbers are 0: no slopes are taken there */
    /* Extents of inputs that are not [batch, sequence, features]. */
    struct fixture_shape {
        int ndim;
        struct topt_dim dim[TOPT_MAX_RANK];
    } shape[TOPT_MAX_INPUTS];
    int64_t seq;       /* 0: SEQ */
    uint32_t positive; /* operands (bit o) whose numbers are above 0.5 */
};

/* The operator under test sees the tensor alone, whatever its producer would make. */
static void reshape(struct topt_tensor *t, const struct fixture_shape *s)
{
    if (!s->ndim)
        return;
    t->ndim = s->ndim;
    memcpy(t->dim, s->dim, sizeof t->dim);
}

/* A model whose last operator is the one under test. */
static struct topt_model *build(const struct fixture *x)
{
    struct topt_error err = {0};
    struct topt_model *m = topt_model_create("test", BATCH, x->seq ? x->seq : SEQ, &err);
    struct topt_attrs table = {.vocab = 5, .features = 3};
    struct topt_attrs widen = {.features = x->count, .features_unit = x->unit};
    int input[TOPT_MAX_INPUTS] = {-1, -1, -1, -1};
    char name[16];
    for (int i = 0; i < x->ninputs; i++) {
        snprintf(name, sizeof name, "e%d", i);
        int e = topt_model_add(m, "embedding", name, 0, NULL, &table, &err);
        snprintf(name, sizeof name, "l%d", i);
        input[i] = topt_model_add(m, "linear", name, 1, &e, &widen, &err);
        reshape(&m->tensor[input[i]], &x->shape[i]);
    }
    if (topt_model_add(m, x->kind, "op", x->ninputs, input, &x->attrs, &err) < 0) {
        printf("# %s: %s\n", x->title, err.text);
        abort();
    }
    return m;
}

static void fill(const struct fixture *x, const struct topt_op *op, struct whole *w)
{
    int left_out = !strcmp(op->spec->name, "cross_entropy"); /* labels of -1 */
    memset(w, 0, sizeof *w);
    for (int o = 0; o < op->spec->noperands; o++) {
        int64_t n = fake_volume(op, o);
        enum topt_role role = op->operand[o].role;
        if (!op->operand[o].present)
            continue;
        if (role == TOPT_DATA && !op->spec->operand[o].real)
            w->data[o] = calloc((size_t)n, sizeof(int32_t));
        if (role == TOPT_INPUT || role == TOPT_PARAM ||
            (role == TOPT_DATA && !w->data[o]))
            w->value[o] = calloc((size_t)n, sizeof(double));
        if (role == TOPT_OUTPUT || role == TOPT_PARAM)
            w->grad[o] = calloc((size_t)n, sizeof(double));
        for (int64_t i = 0; i < n; i++) {
            uint64_t stream = (uint64_t)o + 1;
            if (w->data[o])
                w->data[o][i] =
                    (int32_t)(topt_random(stream, (uint64_t)i) % 7) - left_out;
            if (w->value[o])
                w->value[o][i] = topt_random_normal(stream, (uint64_t)i);
            if (x->sparse >> o & 1 && topt_random(stream + 50, (uint64_t)i) % 2)
                w->value[o][i] = 0;
            if (x->positive >> o & 1)
                w->value[o][i] = 0.5 + fabs(w->value[o][i]);
            if (role == TOPT_OUTPUT)
                w->grad[o][i] = topt_random_normal(stream + 100, (uint64_t)i);
        }
    }
    /* a loss has no gradient above it: its kernels divide by the number of losses */
    int64_t losses = fake_volume(op, op->output);
    for (int64_t i = 0; op->spec->loss && i < losses; i++)
        w->grad[op->output][i] = 1.0 / (double)losses;
}

static void drop(struct whole *w)
{
    for (int o = 0; o < TOPT_MAX_OPERANDS; o++) {
        free(w->value[o]);
        free(w->grad[o]);
        free(w->data[o]);
    }
}

/* Output dotted with its gradient. */
static double dotted(const struct topt_op *op, const struct whole *w)
{
    struct topt_mesh one;
    struct topt_config none;
    struct fake f;
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    none = topt_config_none();
    fake_init(&f, op, &one, &none, w);
    fake_beside.balanced = 0;
    fake_run(&f, 0);
    const double *y = f.value[0][op->output];
    double sum = fake_beside.balance * fake_beside.balanced / (double)op->count[0];
    for (int64_t i = 0; i < fake_volume(op, op->output); i++)
        sum += y[i] * w->grad[op->output][i];
    fake_fini(&f);
    return sum;
}

/* Forward and backward on a mesh; results joined into 'ret' (value: output only). */
static void whole_run(const struct topt_op *op, const struct topt_mesh *mesh,
                      const struct topt_config *c, const struct whole *w,
                      struct whole *ret)
{
    struct fake f;
    memset(ret, 0, sizeof *ret);
    fake_init(&f, op, mesh, c, w);
    fake_run(&f, 0);
    fake_run(&f, 1);
    ret->value[op->output] = fake_join(&f, op->output, 0);
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->operand[o].present &&
            (op->operand[o].role == TOPT_INPUT || op->operand[o].role == TOPT_PARAM))
            ret->grad[o] = fake_join(&f, o, 1);
    fake_fini(&f);
}

static void check_gradient(const struct fixture *x, const struct topt_op *op,
                           struct whole *w, const struct whole *ref)
{
    double worst = 0, step = 1e-5;
    for (int o = 0; o < op->spec->noperands; o++) {
        if (!ref->grad[o])
            continue;
        for (int64_t i = 0; i < fake_volume(op, o); i++) {
            double keep = w->value[o][i];
            if (x->sparse >> o & 1 && keep == 0)
                continue;
            w->value[o][i] = keep + step;
            double up = dotted(op, w);
            w->value[o][i] = keep - step;
            double down = dotted(op, w);
            w->value[o][i] = keep;
            double slope = (up - down) / (2 * step);
            worst = fmax(worst, fabs(slope - ref->grad[o][i]) / (1 + fabs(slope)));
        }
    }
    ok(worst < 1e-7, "%s: gradients are the slopes (off by %.1e)", x->title, worst);
}

static double difference(const struct topt_op *op, const struct whole *a,
                         const struct whole *b)
{
    double worst = 0;
    for (int o = 0; o < op->spec->noperands; o++) {
        const double *pairs[2][2] = {{a->value[o], b->value[o]},
                                     {a->grad[o], b->grad[o]}};
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0; pairs[k][0] && i < fake_volume(op, o); i++) {
                double d = fabs(pairs[k][0][i] - pairs[k][1][i]);
                worst = isfinite(d) ? fmax(worst, d) : INFINITY;
            }
    }
    return worst;
}

/* All ways to give the mesh's axes to dimensions that may be split, short and empty blocks
 * included. */
static void check_splits(const struct fixture *x, const struct topt_op *op,
                         const struct whole *w, const struct whole *ref, int nodes,
                         int per_node)
{
    struct topt_mesh mesh;
    if (topt_mesh_init(&mesh, nodes, per_node, NULL))
        abort();
    int tried = 0, base = op->spec->ndims + 1, all = 1;
    double worst = 0;
    for (int a = 0; a < mesh.naxes; a++)
        all *= base;
    for (int k = 0; k < all; k++) {
        struct topt_config c;
        struct whole got;
        int allowed = 1;
        c = topt_config_none();
        for (int a = 0, rest = k; a < mesh.naxes; a++, rest /= base) {
            c.dim[a] = (int8_t)(rest % base - 1);
            allowed &= c.dim[a] < 0 || topt_op_split(op, c.dim[a]) != TOPT_SPLIT_NEVER;
            if (c.dim[a] >= 0 && op->spec->even >> c.dim[a] & 1)
                allowed &= topt_config_valid(op, &c, &mesh);
        }
        if (!allowed)
            continue;
        whole_run(op, &mesh, &c, w, &got);
        worst = fmax(worst, difference(op, ref, &got));
        drop(&got);
        tried++;
    }
    ok(worst < 1e-12, "%s on %dx%d: %d splits agree (off by %.1e)", x->title, nodes,
       per_node, tried, worst);
}

struct single {
    struct topt_device *dev;
    struct topt_kernel_call *call;
};

/* On one rank sums are there already, and an exchange is a copy. */
static void single_step(void *ctx, const struct topt_step *s, int64_t at)
{
    struct single *x = ctx;
    struct topt_kernel_call *c = x->call;
    if (s->kind == TOPT_STEP_KERNEL && s->dims)
        return; /* where something is split */
    if (s->kind == TOPT_STEP_KERNEL) {
        c->kernel = s->kernel;
        c->at = at;
        if (s->kernel != TOPT_K_LOAD && x->dev->ops->kernel(x->dev, c, NULL))
            abort();
    } else if (s->kind != TOPT_STEP_SUM && s->kind != TOPT_STEP_MAX) {
        int add = s->kind == TOPT_STEP_HALO_ADD;
        memcpy(add ? c->grad[s->into] : c->value[s->into], c->value[s->operand],
               (size_t)fake_volume(c->op, s->into) * sizeof(float));
    }
}

/* The single-precision kernels compute the same. */
static void check_f32(const struct fixture *x, const struct topt_op *op,
                      const struct whole *w, const struct whole *ref)
{
    struct topt_kernel_call c = {.op = op, .micro_batches = 1, .seed = 7};
    struct topt_mesh one;
    struct topt_config none = topt_config_none();
    struct topt_device dev;
    double worst = 0;
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    for (int o = 0; o < op->spec->noperands; o++)
        c.box[o] = topt_operand_box(op, o, &none, &one, 0);
    if (topt_device_open_host(TOPT_F32, &dev, NULL))
        abort();
    fake_tell(&c);
    for (int d = 0; d < op->spec->ndims; d++)
        c.len[d] = op->count[d];
    for (int o = 0; o < op->spec->noperands; o++) {
        size_t n = (size_t)fake_volume(op, o);
        float *v = calloc(n, sizeof *v), *g = calloc(n, sizeof *g);
        for (size_t i = 0; i < n; i++) {
            v[i] = w->value[o] ? (float)w->value[o][i] : 0;
            g[i] = w->grad[o] ? (float)w->grad[o][i] : 0;
        }
        if (w->data[o])
            memcpy(v, w->data[o], n * sizeof *v);
        if (op->operand[o].present) {
            c.value[o] = v;
            c.grad[o] = g;
        } else {
            free(v);
            free(g);
        }
    }
    for (int backward = 0; backward < 2; backward++)
        fake_walk(op, backward, single_step, &(struct single){&dev, &c});
    for (int o = 0; o < op->spec->noperands; o++) {
        for (int64_t i = 0; i < fake_volume(op, o); i++) {
            if (ref->value[o])
                worst = fmax(worst,
                             fabs(ref->value[o][i] - (double)((float *)c.value[o])[i]));
            if (ref->grad[o])
                worst =
                    fmax(worst, fabs(ref->grad[o][i] - (double)((float *)c.grad[o])[i]));
        }
        free(c.value[o]);
        free(c.grad[o]);
    }
    ok(worst < 2e-5, "%s: f32 computes the same (off by %.1e)", x->title, worst);
}

/* All checks of one operator: slopes, single precision, every split of small meshes. */
__attribute__((unused)) static void check_operator(const struct fixture *x)
{
    struct topt_model *m = build(x);
    const struct topt_op *op = &m->op[m->nops - 1];
    struct topt_config none = topt_config_none();
    struct topt_mesh one;
    struct whole w, ref;
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    fill(x, op, &w);
    whole_run(op, &one, &none, &w, &ref);
    check_gradient(x, op, &w, &ref);
    check_f32(x, op, &w, &ref);
    check_splits(x, op, &w, &ref, 1, 2);
    check_splits(x, op, &w, &ref, 1, 3);
    check_splits(x, op, &w, &ref, 2, 2);
    check_splits(x, op, &w, &ref, 1, 5);
    drop(&w);
    drop(&ref);
    topt_model_destroy(m);
}

#endif
