/* fake_ranks.h - one operator on several ranks inside one process.
 *
 * Whole operands are cut into every rank's local blocks by their layouts, the operator's
 * steps run on all ranks with the reductions done by hand, and results are put together
 * again: partial ones added up, copies taken from the rank at 0 along each replicated axis.
 * With one rank it is the reference that finite differences are taken of. */
#ifndef TOPT_FAKE_RANKS_H
#define TOPT_FAKE_RANKS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "host.h"
#include "random.h"
#include "topt_lower.h"

enum { FAKE_MAX = 8 };

struct whole {
    double *value[TOPT_MAX_OPERANDS], *grad[TOPT_MAX_OPERANDS];
    int32_t *data[TOPT_MAX_OPERANDS];
};

struct fake {
    const struct topt_op *op;
    struct topt_mesh mesh;
    struct topt_config config;
    struct topt_device dev;
    void *value[FAKE_MAX][TOPT_MAX_OPERANDS], *grad[FAKE_MAX][TOPT_MAX_OPERANDS];
};

static struct topt_shape fake_shape(const struct topt_op *op, int o)
{
    struct topt_shape s = {.ndim = op->spec->operand[o].ndim};
    memcpy(s.dim, op->operand[o].dim, sizeof s.dim);
    s.rows = op->spec->operand[o].ragged ? op->attrs->tables : NULL;
    return s;
}

static int64_t fake_volume(const struct topt_op *op, int o)
{
    int64_t n = 1;
    for (int i = 0; i < op->spec->operand[o].ndim; i++)
        n *= op->operand[o].dim[i].count * op->operand[o].dim[i].unit;
    return n;
}

static struct topt_box fake_all(const struct topt_shape *s)
{
    struct topt_box b = {{0}, {0}};
    for (int i = 0; i < s->ndim; i++)
        b.len[i] = s->dim[i].count;
    return b;
}

static struct topt_layout fake_layout(const struct fake *f, int o, int gradient)
{
    return gradient ? topt_grad_layout(f->op, o, &f->config, &f->mesh)
                    : topt_value_layout(f->op, o, &f->config, &f->mesh);
}

static struct topt_box fake_box(const struct fake *f, int rank, int o)
{
    return topt_operand_box(f->op, o, &f->config, &f->mesh, rank);
}

/* A rank's block, cut from 'whole' or, where that is NULL, full of garbage. */
static void *fake_cut(const struct fake *f, int rank, int o, int gradient,
                      const void *whole, int bytes)
{
    struct topt_shape s = fake_shape(f->op, o);
    struct topt_box box = fake_box(f, rank, o);
    (void)gradient; /* where it is partial, its block is still the whole part */
    size_t n = (size_t)topt_box_elements(&s, &box);
    char *block = malloc(n * (size_t)bytes + 1);
    memset(block, 0x7b, n * (size_t)bytes + 1);
    struct topt_box_copy c = {.shape = &s,
                              .element_bytes = bytes,
                              .src = whole,
                              .dst = block,
                              .src_box = fake_all(&s),
                              .dst_box = box,
                              .region = box};
    if (whole)
        topt_host_copy_box(&c);
    return block;
}

/* Sum of all ranks' parts (or the one copy that counts) as a whole tensor. */
static double *fake_join(const struct fake *f, int o, int gradient)
{
    struct topt_shape s = fake_shape(f->op, o);
    struct topt_layout l = fake_layout(f, o, gradient);
    size_t total = (size_t)fake_volume(f->op, o);
    double *sum = calloc(total, sizeof *sum), *part = calloc(total, sizeof *part);
    for (int r = 0; r < f->mesh.devices; r++) {
        int counts = 1;
        for (int a = 0; a < f->mesh.naxes; a++)
            counts &= l.at[a] != TOPT_REPLICATE || !topt_mesh_coord(&f->mesh, r, a);
        if (!counts)
            continue;
        struct topt_box box = topt_layout_box(&f->mesh, &s, &l, r);
        memset(part, 0, total * sizeof *part);
        struct topt_box_copy c = {.shape = &s,
                                  .element_bytes = sizeof *part,
                                  .src = gradient ? f->grad[r][o] : f->value[r][o],
                                  .dst = part,
                                  .src_box = box,
                                  .dst_box = fake_all(&s),
                                  .region = box};
        topt_host_copy_box(&c);
        for (size_t i = 0; i < total; i++)
            sum[i] += part[i];
    }
    free(part);
    return sum;
}

static void fake_init(struct fake *f, const struct topt_op *op,
                      const struct topt_mesh *mesh, const struct topt_config *config,
                      const struct whole *w)
{
    memset(f, 0, sizeof *f);
    f->op = op;
    f->mesh = *mesh;
    f->config = *config;
    if (topt_device_open_host(TOPT_F64, &f->dev, NULL))
        abort();
    for (int r = 0; r < mesh->devices; r++)
        for (int o = 0; o < op->spec->noperands; o++) {
            if (!op->operand[o].present)
                continue;
            int data = op->operand[o].role == TOPT_DATA && !op->spec->operand[o].real;
            f->value[r][o] = data ? fake_cut(f, r, o, 0, w->data[o], 4)
                                  : fake_cut(f, r, o, 0, w->value[o], 8);
            if (!data)
                f->grad[r][o] = fake_cut(f, r, o, 1, w->grad[o], 8);
        }
}

static void fake_fini(struct fake *f)
{
    for (int r = 0; r < f->mesh.devices; r++)
        for (int o = 0; o < f->op->spec->noperands; o++) {
            free(f->value[r][o]);
            free(f->grad[r][o]);
        }
}

/* All-reduce of a statistic over the ranks that differ along the axes of 'dim'. */
static void fake_reduce(struct fake *f, int o, uint32_t dims, int is_max)
{
    struct topt_shape s = fake_shape(f->op, o);
    struct topt_layout l = fake_layout(f, o, 0);
    int done[FAKE_MAX] = {0};
    for (int r = 0; r < f->mesh.devices; r++) {
        struct topt_box box = topt_layout_box(&f->mesh, &s, &l, r);
        int64_t n = topt_box_elements(&s, &box);
        int member[FAKE_MAX], count = 0;
        for (int q = 0; q < f->mesh.devices && !done[r]; q++) {
            int same = 1;
            for (int a = 0; a < f->mesh.naxes; a++)
                same &=
                    (f->config.dim[a] >= 0 && dims >> f->config.dim[a] & 1) ||
                    topt_mesh_coord(&f->mesh, q, a) == topt_mesh_coord(&f->mesh, r, a);
            if (same)
                member[count++] = q;
        }
        for (int64_t i = 0; i < n && count; i++) {
            double x = is_max ? -INFINITY : 0;
            for (int k = 0; k < count; k++) {
                double v = ((double *)f->value[member[k]][o])[i];
                x = is_max ? fmax(x, v) : x + v;
            }
            for (int k = 0; k < count; k++)
                ((double *)f->value[member[k]][o])[i] = x;
        }
        for (int k = 0; k < count; k++)
            done[member[k]] = 1;
    }
}

/* What kernels are told beside their operands: of what is dropped, of padding, of the balance of
 * experts and where that is added up. */
static struct fake_beside {
    double dropout, balance, balanced;
    int32_t filled[8]; /* of 4 samples; where the last is 0: all is */
} fake_beside;

static void fake_tell(struct topt_kernel_call *c)
{
    c->dropout = fake_beside.dropout;
    c->balance = fake_beside.balance;
    c->balanced = fake_beside.balance > 0 ? &fake_beside.balanced : NULL;
    c->filled = fake_beside.filled[7] ? fake_beside.filled + 2 * c->off[0] : NULL;
}

static void fake_kernel(struct fake *f, enum topt_kernel k, int64_t at)
{
    for (int r = 0; r < f->mesh.devices; r++) {
        struct topt_kernel_call c = {
            .op = f->op, .kernel = k, .at = at, .micro_batches = 1, .seed = 7};
        for (int o = 0; o < f->op->spec->noperands; o++)
            c.box[o] = fake_box(f, r, o);
        memcpy(c.value, f->value[r], sizeof c.value);
        memcpy(c.grad, f->grad[r], sizeof c.grad);
        topt_op_box(f->op, &f->config, &f->mesh, r, c.off, c.len);
        fake_tell(&c);
        struct topt_error err = {0};
        if (f->dev.ops->kernel(&f->dev, &c, &err)) {
            printf("# %s\n", err.text);
            abort();
        }
    }
}

/* Whole tensors in between make exchanges plain: 'into' is cut from the whole of 'o'. */
static void fake_refill(struct fake *f, int o, int into)
{
    double *whole = fake_join(f, o, 0);
    for (int r = 0; r < f->mesh.devices; r++) {
        free(f->value[r][into]);
        f->value[r][into] = fake_cut(f, r, into, 0, whole, 8);
    }
    free(whole);
}

/* The window belongs to the gradient's block along every axis that does not split it. */
static void fake_halo_add(struct fake *f, int window, int o)
{
    struct topt_shape s = fake_shape(f->op, o);
    uint32_t axes = topt_window_axes(f->op, window, &f->config, &f->mesh);
    for (int r = 0; r < f->mesh.devices; r++) {
        struct topt_box mine = fake_box(f, r, o);
        memset(f->grad[r][o], 0, (size_t)topt_box_elements(&s, &mine) * 8);
        for (int q = 0; q < f->mesh.devices; q++) {
            int same = 1;
            for (int a = 0; a < f->mesh.naxes; a++)
                same &= (axes >> a & 1) || topt_mesh_coord(&f->mesh, q, a) ==
                                               topt_mesh_coord(&f->mesh, r, a);
            struct topt_box theirs = fake_box(f, q, window);
            struct topt_box part = topt_box_meet(s.ndim, &mine, &theirs);
            struct topt_box_copy c = {.shape = &s,
                                      .element_bytes = 8,
                                      .src = f->value[q][window],
                                      .dst = f->grad[r][o],
                                      .src_box = theirs,
                                      .dst_box = mine,
                                      .region = part};
            if (same && f->dev.ops->add_box(&f->dev, &c, NULL))
                abort();
        }
    }
}

static void fake_step(void *ctx, const struct topt_step *s, int64_t at)
{
    struct fake *f = ctx;
    switch (s->kind) {
    case TOPT_STEP_KERNEL:
        if (s->kernel != TOPT_K_LOAD &&
            (!s->dims || topt_axes_over(&f->mesh, &f->config, s->dims)))
            fake_kernel(f, s->kernel, at);
        break;
    case TOPT_STEP_HALO:
    case TOPT_STEP_MOVE:
        fake_refill(f, s->operand, s->into);
        break;
    case TOPT_STEP_HALO_ADD:
        fake_halo_add(f, s->operand, s->into);
        break;
    default:
        fake_reduce(f, s->operand, s->dims, s->kind == TOPT_STEP_MAX);
    }
}

/* The steps of one direction in order, loops unrolled. */
static void fake_walk(const struct topt_op *op, int backward,
                      void (*step)(void *ctx, const struct topt_step *s, int64_t at),
                      void *ctx)
{
    const struct topt_step *s = backward ? op->spec->backward : op->spec->forward;
    for (int i = 0, end; i < TOPT_MAX_STEPS && s[i].kind != TOPT_STEP_END; i = end) {
        end = i + 1;
        while (s[i].loop && end < TOPT_MAX_STEPS && s[end].kind &&
               s[end].loop == s[i].loop)
            end++;
        int64_t n = s[i].loop ? op->count[s[i].loop - 1] : 1;
        for (int64_t k = 0; k < n; k++)
            for (int j = i; j < end; j++)
                step(ctx, &s[j], backward ? n - 1 - k : k);
    }
}

static void fake_run(struct fake *f, int backward)
{
    fake_walk(f->op, backward, fake_step, f);
}

#endif
