/* kernels.c - the CUDA backend's kernels against the host's, on whatever the module opens.
 *
 * usage: cuda_kernels [--whole | --count]
 *   --whole: operators that are not cut, in f32 and bf16 alone; for slow tools
 *   --count: how many devices the module sees, and nothing else
 *
 * Every step of every dense operator, forward and backward, whole and on the local blocks
 * of meshes of up to 5 devices, short and empty ones included: the host computes it in
 * f64 from numbers that the type under test holds exactly, the device in its own type,
 * from the same numbers; then all operands are compared.  Sums over ranks are left out:
 * both sides miss them. */
#include "device.h"
#include "conv_fixtures.h"
#include "dense_fixtures.h"
#include "moe_fixtures.h"
#include "number.h"
#include "scan_fixtures.h"
#include "seq_fixtures.h"
#include "sizes.h"
#include "table_fixtures.h"

#include <pthread.h>

/* clang-format off */
#define LONG_ROWS(count, unit) {3, {{BATCH, 1}, {77, 1}, {(count), (unit)}}}
/* clang-format on */

/* Longer than a block of threads, not a multiple of anything. */
static const struct fixture wide_fixtures[] = {
    {"wide embedding", "embedding", 0, 0, 0, {.vocab = 7, .features = 301}},
    {"long embedding", "embedding", 0, 0, 0, {.vocab = 7, .features = 9}, .seq = 301},
    {"wide linear", "linear", 1, 129, 1, {.features = 65}},
    {"wide bias", "bias", 1, 301, 2, {0}},
    {"wide layer norm", "norm", 1, 601, 1, {0}},
    {"long layer norm", "norm", 1, 7, 1, {0}, .seq = 301},
    {"wide cross entropy", "cross_entropy", 1, 1001, 1, {0}},
    {"long attention",
     "attention",
     1,
     2,
     80,
     {.heads = 6, .kv_heads = 2, .head_dim = 16, .causal = 1, .rope_theta = 10000},
     .seq = 77},
    {"longer attention",
     "attention",
     1,
     1,
     12,
     {.heads = 1, .kv_heads = 1, .head_dim = 4},
     .seq = 301},
    {"attention of wide heads to a window, capped",
     "attention",
     1,
     1,
     480,
     {.heads = 4, .kv_heads = 1, .head_dim = 80, .causal = 1, .window = 70, .cap = 3},
     .seq = 150},
    {"attention by runs of wide heads, rotated",
     "attention",
     1,
     2,
     160,
     {.heads = 4,
      .kv_heads = 2,
      .head_dim = 40,
      .causal = 1,
      .chunk = 50,
      .rope_theta = 10000},
     .seq = 131},
    {"attention to both sides of a window",
     "attention",
     1,
     2,
     72,
     {.heads = 2, .kv_heads = 2, .head_dim = 24, .window = 40},
     .seq = 140},
    {"many lookups",
     "embedding_bag",
     0,
     0,
     0,
     {.tables = {7, 3}, .features = 33, .lookups = 4},
     .seq = 77},
    {"long causal convolution", "causal_conv", 1, 37, 1, {.kernel_w = 4}, .seq = 301},
    {"long state space",
     "ssd",
     3,
     1,
     1,
     {.chunk = 17},
     .seq = 77,
     .shape = {LONG_ROWS(4, 9), LONG_ROWS(4, 1), LONG_ROWS(2, 14)}},
    {"long delta rule",
     "delta_rule",
     4,
     1,
     1,
     {.chunk = 17},
     .seq = 77,
     .shape = {LONG_ROWS(4, 9), LONG_ROWS(2, 14), LONG_ROWS(4, 1), LONG_ROWS(4, 1)}},
    {"long selective scan",
     "selective_scan",
     4,
     1,
     1,
     {.chunk = 17},
     .seq = 77,
     .shape = {LONG_ROWS(19, 1), LONG_ROWS(19, 1), LONG_ROWS(7, 1), LONG_ROWS(7, 1)}},
};

#define LIST(x) x, (int)(sizeof x / sizeof *x)
static const struct {
    const struct fixture *fixture;
    int n, wide;
} lists[] = {{LIST(dense_fixtures), 0}, {LIST(wide_fixtures), 1},
             {LIST(seq_fixtures), 0},   {LIST(conv_fixtures), 0},
             {LIST(moe_fixtures), 0},   {LIST(scan_fixtures), 0},
             {LIST(table_fixtures), 0}};

/* How far the type may be off, beside the largest number of an operand. */
static double bound_of(enum topt_dtype t)
{
    return t == TOPT_F64 ? 1e-12 : t == TOPT_F32 ? 2e-5 : 4e-2;
}

/* One rank's local blocks: as the host has them, in f64, and as the device has them. */
struct sides {
    const struct topt_op *op;
    struct topt_device host, *dev;
    struct topt_kernel_call on_host, on_dev;
    int64_t n[TOPT_MAX_OPERANDS];
    double worst, worst_wide;
};

static enum topt_dtype wide_type(enum topt_dtype t)
{
    return t == TOPT_BF16 ? TOPT_F32 : t;
}

/* Of a value, or of a gradient: statistics and losses, and gradients where that is asked for,
 * are f32 beside bf16. */
static enum topt_dtype type_of(const struct sides *s, int o, int grad)
{
    int wide = grad ? (int)(s->on_dev.wide_grads >> o & 1) : s->op->spec->operand[o].wide;
    return wide ? wide_type(s->dev->dtype) : s->dev->dtype;
}

/* Tokens, labels: numbers that both sides have as they are. */
static int is_whole(const struct sides *s, int o)
{
    return s->op->operand[o].role == TOPT_DATA && !s->op->spec->operand[o].real;
}

static int element_bytes(const struct sides *s, int o, int grad)
{
    return is_whole(s, o) && !grad ? 4 : topt_dtype_bytes(type_of(s, o, grad));
}

static void must(int rc, const struct topt_error *err)
{
    if (!rc)
        return;
    printf("Bail out! %s\n", err->text);
    exit(1);
}

/* Numbers become what the type holds, on both sides. */
static void upload(struct sides *s, int o, int grad, double *host, void *dev)
{
    enum topt_dtype t = type_of(s, o, grad);
    struct topt_error err = {0};
    void *raw = malloc((size_t)s->n[o] * 8 + 8);
    for (int64_t i = 0; i < s->n[o]; i++) {
        topt_number_put(t, raw, i, host[i]);
        host[i] = topt_number_get(t, raw, i);
    }
    int64_t bytes = s->n[o] * element_bytes(s, o, grad);
    must(s->dev->ops->write(s->dev, dev, raw, bytes, &err), &err);
    free(raw);
}

/* What is wide is as near to f64 as f32 is, whatever it was made of. */
static void compare(struct sides *s, int o, int grad, const double *host, const void *dev)
{
    enum topt_dtype t = type_of(s, o, grad);
    struct topt_error err = {0};
    double largest = 1, worst = 0;
    void *raw = malloc((size_t)s->n[o] * 8 + 8);
    int64_t bytes = s->n[o] * element_bytes(s, o, grad);
    must(s->dev->ops->read(s->dev, raw, dev, bytes, &err), &err);
    for (int64_t i = 0; i < s->n[o]; i++) {
        double x = topt_number_get(t, raw, i), d = fabs(x - host[i]);
        if (x == host[i] || (isnan(x) && isnan(host[i])))
            continue;
        largest = fmax(largest, fabs(host[i]));
        worst = isfinite(d) ? fmax(worst, d) : INFINITY;
    }
    double *off = t == s->dev->dtype ? &s->worst : &s->worst_wide;
    *off = fmax(*off, worst / largest);
    free(raw);
}

static void fill_block(struct sides *s, int o)
{
    struct topt_error err = {0};
    double *value = s->on_host.value[o], *grad = s->on_host.grad[o];
    int32_t *whole = s->on_host.value[o];
    int left_out = !strcmp(s->op->spec->name, "cross_entropy"); /* labels of -1 */
    for (int64_t i = 0; i < s->n[o]; i++) {
        uint64_t stream = (uint64_t)o + 1;
        if (is_whole(s, o)) {
            whole[i] = (int32_t)(topt_random(stream, (uint64_t)i) % 7) - left_out;
            continue;
        }
        value[i] = topt_random_normal(stream, (uint64_t)i);
        grad[i] = topt_random_normal(stream + 100, (uint64_t)i);
    }
    if (is_whole(s, o))
        must(s->dev->ops->write(s->dev, s->on_dev.value[o], whole, s->n[o] * 4, &err),
             &err);
}

static void sides_init(struct sides *s, const struct topt_op *op,
                       const struct topt_mesh *mesh, const struct topt_config *c,
                       int rank, int wide, struct topt_device *dev)
{
    struct topt_error err = {0};
    *s = (struct sides){.op = op, .dev = dev};
    must(topt_device_open_host(TOPT_F64, &s->host, &err), &err);
    s->on_host =
        (struct topt_kernel_call){.op = op, .micro_batches = 2, .step = 3, .seed = 7};
    topt_op_box(op, c, mesh, rank, s->on_host.off, s->on_host.len);
    for (int o = 0; o < op->spec->noperands; o++)
        s->on_host.box[o] = topt_operand_box(op, o, c, mesh, rank);
    s->on_dev = s->on_host;
    for (int o = 0; o < TOPT_MAX_OPERANDS && wide; o++)
        if (o < op->spec->noperands && op->operand[o].role == TOPT_PARAM)
            s->on_dev.wide_grads |= 1u << o;
    for (int o = 0; o < op->spec->noperands; o++) {
        if (!op->operand[o].present)
            continue;
        struct topt_shape shape = fake_shape(op, o);
        s->n[o] = topt_box_elements(&shape, &s->on_host.box[o]);
        s->on_host.value[o] = calloc((size_t)s->n[o] + 1, sizeof(double));
        s->on_host.grad[o] = calloc((size_t)s->n[o] + 1, sizeof(double));
        must(dev->ops->alloc(dev, s->n[o] * element_bytes(s, o, 0), &s->on_dev.value[o],
                             &err) ||
                 dev->ops->alloc(dev, s->n[o] * element_bytes(s, o, 1),
                                 &s->on_dev.grad[o], &err),
             &err);
        fill_block(s, o);
    }
}

static void sides_fini(struct sides *s)
{
    for (int o = 0; o < s->op->spec->noperands; o++) {
        free(s->on_host.value[o]);
        free(s->on_host.grad[o]);
        if (s->op->operand[o].present) {
            s->dev->ops->release(s->dev, s->on_dev.value[o]);
            s->dev->ops->release(s->dev, s->on_dev.grad[o]);
        }
    }
}

/* Both sides start from the same numbers at each step. */
static void run_step(struct sides *s, const struct topt_step *step)
{
    /* what a kernel only works in is its own affair */
    uint32_t work = step->reads & ~step->writes;
    struct topt_error err = {0};
    for (int o = 0; o < s->op->spec->noperands; o++)
        if (s->op->operand[o].present && !is_whole(s, o)) {
            upload(s, o, 0, s->on_host.value[o], s->on_dev.value[o]);
            upload(s, o, 1, s->on_host.grad[o], s->on_dev.grad[o]);
        }
    s->on_host.kernel = s->on_dev.kernel = step->kernel;
    must(s->host.ops->kernel(&s->host, &s->on_host, &err), &err);
    if (s->dev->ops->kernel(s->dev, &s->on_dev, &err)) {
        printf("# %s\n", err.text);
        s->worst = INFINITY;
        return;
    }
    for (int o = 0; o < s->op->spec->noperands; o++)
        if (s->op->operand[o].present && !is_whole(s, o)) {
            enum topt_role role = s->op->operand[o].role;
            int scratch = role == TOPT_WORK_FWD || role == TOPT_WORK_BWD;
            if (!(scratch && work >> o & 1))
                compare(s, o, 0, s->on_host.value[o], s->on_dev.value[o]);
            compare(s, o, 1, s->on_host.grad[o], s->on_dev.grad[o]);
        }
}

/* How far off were numbers of the type, and those that are f32 beside bf16. */
struct off {
    double worst, worst_wide;
    int blocks, launches;
};

static void run_all(const struct topt_op *op, const struct topt_mesh *mesh,
                    const struct topt_config *c, int rank, int wide,
                    struct topt_device *dev, struct off *off)
{
    struct sides s;
    sides_init(&s, op, mesh, c, rank, wide, dev);
    off->launches -= emulated_count("fake_cuda_launches");
    for (int k = 0; k < 2 * TOPT_MAX_STEPS; k++) {
        const struct topt_step *step = k < TOPT_MAX_STEPS
                                           ? &op->spec->forward[k]
                                           : &op->spec->backward[k - TOPT_MAX_STEPS];
        if (step->kind == TOPT_STEP_KERNEL && step->kernel != TOPT_K_LOAD &&
            (!step->dims || topt_axes_over(mesh, c, step->dims)))
            run_step(&s, step);
    }
    off->launches += emulated_count("fake_cuda_launches");
    off->worst = fmax(off->worst, s.worst);
    off->worst_wide = fmax(off->worst_wide, s.worst_wide);
    off->blocks++;
    sides_fini(&s);
}

/* Checks every rank of each configuration; under a sanitizer the first and the last one, whose blocks are whole, short
 * and empty and so reach the same lines and branches. */
static void check_mesh(const struct topt_op *op, int nodes, int per_node,
                       struct topt_device *dev, struct off *off)
{
    struct topt_mesh mesh;
    int next = TOPT_TEST_PART > 4 && nodes * per_node > 1 ? nodes * per_node - 1 : 1;
    int base = op->spec->ndims + 1, all = 1;
    if (topt_mesh_init(&mesh, nodes, per_node, NULL))
        abort();
    for (int a = 0; a < mesh.naxes; a++)
        all *= base;
    for (int k = 0; k < all; k++) {
        struct topt_config c = topt_config_none();
        for (int a = 0, rest = k; a < mesh.naxes; a++, rest /= base)
            c.dim[a] = (int8_t)(rest % base - 1);
        if (!topt_config_valid(op, &c, &mesh))
            continue;
        for (int r = 0; r < mesh.devices; r += next)
            run_all(op, &mesh, &c, r, dev->dtype == TOPT_BF16 && k % 2 == 0, dev, off);
    }
}

/* Attention of all samples and heads is one kernel forward and two backward where tensor cores
 * take bf16; rotated, one more forward and three more backward. */
static void check_launches(const char *title, const struct topt_device *dev, int launches)
{
    static const struct {
        const char *title;
        int launches;
    } of[] = {{"attention of wide heads to a window, capped", 1 + 2},
              {"attention by runs of wide heads, rotated", 2 + 5}};
    for (int i = 0; i < 2; i++)
        if (dev->dtype == TOPT_BF16 && launches && !strcmp(title, of[i].title))
            ok(getenv("TOPT_FAKE_CAPABILITY") ? launches > of[i].launches
                                              : launches == of[i].launches,
               "... forward and backward of both samples in %d launches", launches);
}

static void check_fixture(const struct fixture *x, int whole, struct topt_device *dev)
{
    struct topt_model *m = build(x);
    const struct topt_op *op = &m->op[m->nops - 1];
    struct off off = {0, 0, 0, 0};
    check_mesh(op, 1, 1, dev, &off);
    check_launches(x->title, dev, off.launches);
    if (!whole) {
        check_mesh(op, 2, 2, dev, &off);
        check_mesh(op, 1, 5, dev, &off);
    }
    /* what is turned or decays is rounded to the type before it is multiplied */
    int rounds = op->attrs->rope_theta > 0 || !strcmp(x->kind, "ssd") ||
                 !strcmp(x->kind, "delta_rule");
    double wide_bound =
        bound_of(rounds && dev->dtype == TOPT_BF16 ? TOPT_BF16 : TOPT_F32);
    ok(off.worst <= bound_of(dev->dtype) && off.worst_wide <= wide_bound,
       "%s in %s: %d blocks (off by %.1e; of what is f32 by %.1e)", x->title,
       topt_dtype_name(dev->dtype), off.blocks, off.worst, off.worst_wide);
    topt_model_destroy(m);
}

/* ---- what is not a kernel ------------------------------------------------------------------- */

/* A number vector on the device, from doubles; what the type holds goes back into 'x'. */
static void *vector(struct topt_device *d, enum topt_dtype t, double *x, int64_t n)
{
    struct topt_error err = {0};
    void *p, *raw = malloc((size_t)n * 8);
    int64_t bytes = n * topt_dtype_bytes(t);
    for (int64_t i = 0; i < n; i++) {
        topt_number_put(t, raw, i, x[i]);
        x[i] = topt_number_get(t, raw, i);
    }
    must(d->ops->alloc(d, bytes, &p, &err) || d->ops->write(d, p, raw, bytes, &err),
         &err);
    free(raw);
    return p;
}

static double distance(struct topt_device *d, enum topt_dtype t, const void *p,
                       const double *x, int64_t n)
{
    struct topt_error err = {0};
    double worst = 0;
    void *raw = malloc((size_t)n * 8);
    must(d->ops->read(d, raw, p, n * topt_dtype_bytes(t), &err), &err);
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(topt_number_get(t, raw, i) - x[i]));
    free(raw);
    return worst;
}

enum { N = 700 };

static void check_update(struct topt_device *d, enum topt_optimizer o)
{
    struct topt_error err = {0};
    struct topt_device host;
    enum topt_dtype state = d->dtype == TOPT_F64 ? TOPT_F64 : TOPT_F32;
    double w[N], g[N], m[N] = {0}, v[N] = {0}, zero[N] = {0};
    for (int i = 0; i < N; i++) {
        w[i] = topt_random_normal(1, (uint64_t)i);
        g[i] = topt_random_normal(2, (uint64_t)i);
    }
    must(topt_device_open_host(TOPT_F64, &host, &err), &err);
    struct topt_update_call dev = {
        .optimizer = o,
        .n = N,
        .lr = 0.01,
        .weight_decay = 0.1,
        .param = vector(d, d->dtype, w, N),
        .grad = vector(d, d->dtype, g, N),
        .state = {vector(d, state, zero, N), vector(d, state, zero, N)}};
    if (d->dtype == TOPT_BF16)
        dev.state[2] = vector(d, state, zero, N);
    struct topt_update_call ref = dev;
    ref.param = w;
    ref.grad = g;
    ref.state[0] = m;
    ref.state[1] = v;
    for (ref.step = dev.step = 1; dev.step <= 20; dev.step++, ref.step++)
        must(d->ops->update(d, &dev, &err) || host.ops->update(&host, &ref, &err), &err);
    double exact = d->dtype == TOPT_F64 ? 1e-13 : 1e-5;
    double off = distance(d, d->dtype, dev.param, w, N);
    ok(off <= (d->dtype == TOPT_BF16 ? 2e-2 : exact), "%s steps in %s (off by %.1e)",
       topt_optimizer_name(o), topt_dtype_name(d->dtype), off);
    if (dev.state[2]) {
        off = distance(d, state, dev.state[2], w, N);
        ok(off <= exact, "... and its master copy is exact (off by %.1e)", off);
        d->ops->release(d, dev.state[2]);
    }
    d->ops->release(d, dev.param);
    d->ops->release(d, (void *)(uintptr_t)dev.grad);
    d->ops->release(d, dev.state[0]);
    d->ops->release(d, dev.state[1]);
}

enum { ROW = 7, NAMED = 30 };

/* Where a gradient is zero nothing changes, and a gradient of some rows does what one with
 * zeros elsewhere does; beside the host's. */
static void check_rows(struct topt_device *d, enum topt_optimizer o)
{
    struct topt_error err = {0};
    struct topt_device host;
    double w[N], g[N] = {0}, m[N] = {0}, v[N] = {0}, zero[N] = {0}, some[NAMED * ROW];
    int32_t row[NAMED];
    void *on_device;
    for (int i = 0; i < N; i++)
        w[i] = topt_random_normal(1, (uint64_t)i);
    for (int k = 0; k < NAMED; k++)
        for (int j = 0; j < ROW; j++) {
            row[k] = (7 * k + 3) % (N / ROW);
            some[k * ROW + j] = topt_random_normal(2, (uint64_t)(k * ROW + j));
        }
    must(topt_device_open_host(TOPT_F64, &host, &err) ||
             d->ops->alloc(d, sizeof row, &on_device, &err) ||
             d->ops->write(d, on_device, row, sizeof row, &err),
         &err);
    void *grad = vector(d, d->dtype, some, NAMED * ROW);
    for (int k = 0; k < NAMED * ROW; k++)
        g[row[k / ROW] * ROW + k % ROW] = some[k];
    struct topt_update_call whole = {
        .optimizer = o,
        .n = N,
        .lr = 0.01,
        .weight_decay = 0.1,
        .lazy = 1,
        .cols = ROW,
        .whole_cols = ROW,
        .param = vector(d, d->dtype, w, N),
        .grad = vector(d, d->dtype, g, N),
        .state = {vector(d, d->dtype, zero, N), vector(d, d->dtype, zero, N)}};
    struct topt_update_call rows = whole, ref = whole;
    rows.param = vector(d, d->dtype, w, N);
    rows.state[0] = vector(d, d->dtype, zero, N);
    rows.state[1] = vector(d, d->dtype, zero, N);
    rows.grad = grad;
    rows.row = on_device;
    rows.rows = NAMED;
    ref.param = w;
    ref.grad = g;
    ref.state[0] = m;
    ref.state[1] = v;
    for (int step = 1; step <= 5; step++) {
        ref.step = whole.step = rows.step = step;
        must(d->ops->update(d, &whole, &err) || d->ops->update(d, &rows, &err) ||
                 host.ops->update(&host, &ref, &err),
             &err);
    }
    double exact = d->dtype == TOPT_F64 ? 1e-13 : 1e-5;
    double off = fmax(distance(d, d->dtype, whole.param, w, N),
                      distance(d, d->dtype, rows.param, w, N));
    ok(off <= exact, "%s of %d rows in %s (off by %.1e)", topt_optimizer_name(o),
       (int)NAMED, topt_dtype_name(d->dtype), off);
    void *all[] = {whole.param,    (void *)(uintptr_t)whole.grad,
                   whole.state[0], whole.state[1],
                   rows.param,     rows.state[0],
                   rows.state[1],  grad,
                   on_device};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        d->ops->release(d, all[i]);
}

/* A region in the middle of a block goes to the middle of another. */
static void check_boxes(struct topt_device *d, int ndim)
{
    struct topt_error err = {0};
    struct topt_shape s = {.ndim = ndim};
    struct topt_box src = {{0}, {0}}, dst = {{0}, {0}}, region = {{0}, {0}};
    double a[4096], b[4096], want[4096];
    for (int i = 0; i < ndim; i++) {
        s.dim[i] = (struct topt_dim){9, i == ndim - 1 ? 3 : 1};
        src.off[i] = 1 + i % 2, src.len[i] = 6;
        dst.off[i] = 2, dst.len[i] = 6 - i % 2;
        region.off[i] = 3, region.len[i] = 3 + i % 2;
    }
    int64_t na = topt_box_elements(&s, &src), nb = topt_box_elements(&s, &dst);
    for (int i = 0; i < 4096; i++) {
        a[i] = topt_random_normal(5, (uint64_t)i);
        b[i] = topt_random_normal(6, (uint64_t)i);
    }
    struct topt_box_copy c = {.shape = &s,
                              .element_bytes = d->real_bytes,
                              .src = vector(d, d->dtype, a, na),
                              .dst = vector(d, d->dtype, b, nb),
                              .src_box = src,
                              .dst_box = dst,
                              .region = region};
    struct topt_box_copy ref = c;
    ref.src = a;
    ref.dst = want;
    ref.element_bytes = 8;
    memcpy(want, b, sizeof want);
    topt_host_copy_box(&ref);
    must(d->ops->copy_box(d, &c, &err), &err);
    ok(distance(d, d->dtype, c.dst, want, nb) == 0, "a box of %d dimensions in %s", ndim,
       topt_dtype_name(d->dtype));
    struct topt_device host;
    must(topt_device_open_host(TOPT_F64, &host, &err), &err);
    must(host.ops->add_box(&host, &ref, &err) || d->ops->add_box(d, &c, &err), &err);
    double off = distance(d, d->dtype, c.dst, want, nb);
    ok(off <= bound_of(d->dtype), "... added to what is there (off by %.1e)", off);
    c.region.len[0] = 0;
    ok(d->ops->copy_box(d, &c, &err) == 0, "... and an empty one");
    d->ops->release(d, (void *)(uintptr_t)c.src);
    d->ops->release(d, c.dst);
}

static void check_memory(struct topt_device *d)
{
    struct topt_error err = {0};
    double a[N], b[N], sum[N], zero[N] = {0};
    void *none = NULL;
    for (int i = 0; i < N; i++) {
        a[i] = topt_random_normal(3, (uint64_t)i);
        b[i] = topt_random_normal(4, (uint64_t)i);
    }
    void *p = vector(d, d->dtype, a, N), *q = vector(d, d->dtype, b, N);
    for (int i = 0; i < N; i++)
        sum[i] = a[i] + b[i];
    must(d->ops->add(d, p, q, N, 0, &err) || d->ops->add(d, p, q, 0, 0, &err), &err);
    double off = distance(d, d->dtype, p, sum, N);
    ok(off <= bound_of(d->dtype), "sums in %s (off by %.1e)", topt_dtype_name(d->dtype),
       off);
    must(d->ops->zero(d, p, (int64_t)N * d->real_bytes, &err), &err);
    ok(distance(d, d->dtype, p, zero, N) == 0, "zeroes");
    must(d->ops->alloc(d, 0, &none, &err), &err);
    ok(none && !d->ops->zero(d, none, 0, &err) && !d->ops->sync(d, &err),
       "an empty block");
    void *huge = NULL;
    ok(d->ops->alloc(d, INT64_C(1) << 50, &huge, &err) && err.code == TOPT_ERR_NOMEM,
       "more than there is: %s", err.text);
    d->ops->release(d, none);
    d->ops->release(d, p);
    d->ops->release(d, q);
    if (d->ops->alloc_host) {
        must(d->ops->alloc_host(d, 100, &p, &err), &err);
        memset(p, 1, 100);
        d->ops->release_host(d, p);
    }
}

static void check_missing(struct topt_device *d)
{
    struct topt_error err = {0};
    struct topt_model *m = build(&dense_fixtures[0]);
    struct topt_kernel_call c = {.op = &m->op[m->nops - 1], .kernel = TOPT_K_LOAD};
    ok(d->ops->kernel(d, &c, &err) && strstr(err.text, "--device host"),
       "a kernel that it has not: %s", err.text);
    topt_model_destroy(m);
}

static void *add_there(void *data)
{
    struct topt_device *d = data;
    struct topt_error err = {0};
    double a[N], b[N], sum[N];
    for (int i = 0; i < N; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
        sum[i] = a[i] + b[i];
    }
    void *p = vector(d, d->dtype, a, N), *q = vector(d, d->dtype, b, N);
    must(d->ops->add(d, p, q, N, 0, &err), &err);
    double off = distance(d, d->dtype, p, sum, N);
    d->ops->release(d, p);
    d->ops->release(d, q);
    return off > 0 ? data : NULL;
}

/* Two devices in turns, the second in a thread that has not opened it. */
static void check_two(const struct topt_module *module)
{
    struct topt_device d[2];
    pthread_t thread;
    void *failed[3];
    for (int i = 0; i < 2; i++)
        open_device(module, TOPT_F32, i, &d[i]);
    failed[0] = add_there(&d[0]);
    if (pthread_create(&thread, NULL, add_there, &d[1]) ||
        pthread_join(thread, &failed[1]))
        abort();
    failed[2] = add_there(&d[0]);
    ok(!failed[0] && !failed[1] && !failed[2],
       "two devices in one process, one used by another thread than opened it");
    topt_device_close(&d[0]);
    topt_device_close(&d[1]);
}

static int count_devices(const struct topt_module *module)
{
    struct topt_error err = {0};
    int n = 0;
    must(module->count(&n, &err), &err);
    printf("%d\n", n);
    return 0;
}

int main(int argc, char **argv)
{
    const struct topt_module *module = the_module();
    int whole = argc > 1 && !strcmp(argv[1], "--whole");
    if (argc > 1 && !strcmp(argv[1], "--count"))
        return count_devices(module);
    for (int t = TOPT_F32; t <= TOPT_BF16; t++) {
        struct topt_device d;
        if (whole && t == TOPT_F64)
            continue;
        open_device(module, (enum topt_dtype)t, 0, &d);
        for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
            for (int i = 0; i < lists[l].n; i++)
                check_fixture(&lists[l].fixture[i], whole || lists[l].wide, &d);
        for (int o = TOPT_SGD; o <= TOPT_ADAMW; o++)
            check_update(&d, (enum topt_optimizer)o);
        for (int o = TOPT_SGD; o <= TOPT_ADAMW && t != TOPT_BF16; o++)
            check_rows(&d, (enum topt_optimizer)o);
        if (t != TOPT_BF16)
            check_rows(&d, TOPT_ROW_WISE_ADAGRAD);
        for (int ndim = 1; ndim <= TOPT_MAX_RANK; ndim++)
            check_boxes(&d, ndim);
        check_memory(&d);
        check_missing(&d);
        topt_device_close(&d);
    }
    check_two(module);
    return done_testing();
}
