/* plant.h - bugs planted on purpose, so that a comparison can be seen to notice them.
 *
 * A device that does as the host's does, but for one kernel; and a program from which an
 * instruction is left out. */
#ifndef TOPT_TEST_PLANT_H
#define TOPT_TEST_PLANT_H

#include <stdlib.h>
#include <string.h>

#include "topt_device.h"

enum plant {
    PLANT_REDUCTION,  /* a parameter's gradient is never summed over the ranks */
    PLANT_NORMALISER, /* the loss' gradient is divided by the rank's own tokens */
    PLANT_BIAS, /* every rank adds the bias, before the sum that the input still owes */
    PLANT_MASK, /* backward drops what the first step dropped */
    PLANT_COUNT
};

__attribute__((unused)) static const char *const plant_name[PLANT_COUNT] = {
    "a missing reduction", "a wrong normaliser", "a bias before the reduction",
    "a stale mask"};

struct planted {
    struct topt_device device; /* first: kernels are called with it */
    struct topt_device_ops ops;
    const struct topt_device_ops *host;
    enum plant kind;
    const struct topt_program *program;
    int hits; /* kernels that did something wrong */
};

/* Parts of which the sum is the first input. */
static int parts_of_input(const struct topt_program *p, const struct topt_op *op)
{
    int from = p->model->tensor[topt_input_tensor(op, 0)].producer, parts = 1;
    const struct topt_op *o = &p->model->op[from];
    struct topt_layout l = topt_value_layout(o, o->output, &p->config[from], &p->mesh);
    for (int a = 0; a < p->mesh.naxes; a++)
        parts *= topt_layout_partial_mask(&l) >> a & 1 ? p->mesh.size[a] : 1;
    return parts;
}

static void scale_gradient(const struct topt_kernel_call *c, double by)
{
    const struct topt_dim *dim = c->op->operand[0].dim;
    int64_t n = 1;
    for (int i = 0; i < c->op->spec->operand[0].ndim; i++)
        n *= c->box[0].len[i] * dim[i].unit;
    for (int64_t i = 0; i < n; i++)
        ((double *)c->grad[0])[i] *= by;
}

static int planted_kernel(struct topt_device *d, const struct topt_kernel_call *call,
                          struct topt_error *err)
{
    struct planted *x = (struct planted *)d;
    struct topt_kernel_call c = *call;
    if (x->kind == PLANT_MASK && c.kernel == TOPT_K_DROPOUT_BWD) {
        x->hits += c.step > 0;
        c.step = 0;
    }
    if (x->host->kernel(d, &c, err))
        return -1;
    int64_t all = c.op->count[0] * c.op->count[1], mine = c.len[0] * c.len[1];
    if (x->kind == PLANT_NORMALISER && c.kernel == TOPT_K_XENT_BWD && mine &&
        mine < all) {
        scale_gradient(&c, (double)all / (double)mine);
        x->hits++;
    }
    if (x->kind != PLANT_BIAS || c.kernel != TOPT_K_BIAS_FWD)
        return 0;
    c.value[0] = c.value[2];
    for (int k = parts_of_input(x->program, c.op); k > 1; k--, x->hits++)
        if (x->host->kernel(d, &c, err))
            return -1;
    return 0;
}

/* In f64.  Borrows the program. */
__attribute__((unused)) static void plant(struct planted *x, enum plant kind,
                                          const struct topt_program *p)
{
    struct topt_error err = {0};
    if (topt_device_open_host(TOPT_F64, &x->device, &err))
        abort();
    x->host = x->device.ops;
    x->ops = *x->host;
    x->ops.kernel = planted_kernel;
    x->device.ops = &x->ops;
    x->kind = kind;
    x->program = p;
    x->hits = 0;
}

/* The same program without an instruction. */
__attribute__((unused)) static void leave_out(struct topt_program *p, int i)
{
    memmove(&p->instr[i], &p->instr[i + 1],
            (size_t)(p->ninstr - i - 1) * sizeof *p->instr);
    p->ninstr--;
    p->init_end -= i < p->init_end;
    p->micro_begin -= i < p->micro_begin;
    p->micro_end -= i < p->micro_end;
}

/* Without the all-reduce of a gradient; 0 where there is none. */
__attribute__((unused)) static int leave_out_reduction(struct topt_program *p)
{
    for (int i = p->init_end; i < p->ninstr; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind == TOPT_I_MOVE && in->move.kind == TOPT_MOVE_ALL_REDUCE &&
            in->a == in->b && p->buffer[in->a].cls == TOPT_CLASS_GRAD) {
            leave_out(p, i);
            return 1;
        }
    }
    return 0;
}

#endif
