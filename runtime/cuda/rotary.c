/* rotary.c - rotary embeddings (Su et al., 2021): the angles that an operator asks for, and the
 * operator of its own.  A rotation is orthogonal, so gradients are turned by the opposite
 * angle. */
#include "cuda.h"

struct cu_rotate topt_cuda_rotation(const struct topt_attrs *a, int64_t pairs,
                                    double sign)
{
    return (struct cu_rotate){.pairs = pairs,
                              .heads = 1,
                              .theta = a->rope_theta,
                              .factor = a->rope_factor,
                              .context = (double)a->rope_context,
                              .slow = a->rope_slow,
                              .fast = a->rope_fast,
                              .by_pair = a->rope_by_pair,
                              .scale = 1,
                              .sign = sign};
}
static int rotary(struct topt_device *d, const struct topt_kernel_call *c, void *dst,
                  const void *src, double sign, struct topt_error *err)
{
    enum { X };
    const struct topt_attrs *x = c->op->attrs;
    struct cuda_device *dev = d->impl;
    struct cu_rotate r = topt_cuda_rotation(x, x->rope_dim / 2, sign);
    int64_t row = c->box[X].len[2] * c->op->operand[X].dim[2].unit;
    r.dst = dst;
    r.src = src;
    r.ldd = r.lds = row;
    r.period = c->box[X].len[1] > 0 ? c->box[X].len[1] : 1;
    r.rows = c->box[X].len[0] * c->box[X].len[1];
    r.first = c->off[1];
    r.heads = row / x->head_dim;
    r.width = x->head_dim;
    r.scale = x->scale > 0 ? x->scale : 1;
    return dst && r.rows > 0
               ? topt_cuda_launched(dev->math->rotate(dev->stream, &r), c, err)
               : 0;
}

int topt_cuda_rotary_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return rotary(d, c, c->value[1], c->value[0], 1, err);
}

int topt_cuda_rotary_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return rotary(d, c, c->grad[0], c->grad[1], -1, err);
}
