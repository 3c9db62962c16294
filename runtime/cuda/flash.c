/* flash.c - attention of all heads in one kernel (k_flash.h): what is taken, and where operands
 * lie.
 *
 * Taken are heads of at most CU_FLASH_WIDTH numbers in bf16 on GPUs whose tensor cores multiply
 * bf16 (compute capability 8 on), with any mask; not taken are tables of relative positions,
 * slopes by distance, and keys with a part that all heads share: attention.c has those by
 * matrix products.  Rotary embeddings are applied to a copy of queries and keys in the device's
 * scratch, and gradients are turned back where they were written.  A step of one attention is
 * one kernel forward and two backward; a rotation is one more, or three; where samples are padded
 * each has kernels of its own. */
#include "flash.h"

enum {
    BF16_TENSOR_CORES = 8
}; /* major number of the first compute capability with them */

struct cu_mask topt_cuda_mask(const struct attention *a, int64_t b)
{
    struct cu_mask m = {.keys = a->t,
                        .behind = a->behind,
                        .window = a->attrs->window,
                        .chunk = a->attrs->chunk,
                        .first_key = a->first_key,
                        .causal = a->attrs->causal};
    keys_filled(a, b, &m.filled, &m.end);
    return m;
}

int topt_cuda_flash_takes(const struct topt_device *d, const struct attention *a)
{
    return d->dtype == TOPT_BF16 && dev_of(d)->capability >= BF16_TENSOR_CORES &&
           a->own <= CU_FLASH_WIDTH && a->vd <= CU_FLASH_WIDTH && a->shared == 0 &&
           a->table == 0 && !(a->attrs->factor > 0);
}

struct flash {
    struct topt_device *dev;
    const struct topt_kernel_call *call;
    struct attention at;
    struct cu_flash kernel;
    char *turned, *delta; /* in the device's scratch */
};

static struct cu_heads heads_of(const struct topt_device *d, void *p, int64_t at,
                                int64_t sample, int64_t group, int64_t head, int64_t row,
                                int wide)
{
    int64_t bytes = wide ? d->state_bytes : d->real_bytes;
    return (struct cu_heads){p ? (char *)p + at * bytes : NULL, sample, group, head, row};
}

static struct cu_heads queries(const struct flash *x, void *p)
{
    const struct attention *a = &x->at;
    return heads_of(x->dev, p, a->q_first, a->q_sample, a->q_group, a->own, a->ldq, 0);
}

/* Keys, or from number 'own' on their values. */
static struct cu_heads keys(const struct flash *x, void *p, int64_t own)
{
    const struct attention *a = &x->at;
    return heads_of(x->dev, p, a->kv_first + own, a->t * a->ldkv, a->kv_group, 0, a->ldkv,
                    0);
}

static struct cu_heads outputs(const struct flash *x, void *p)
{
    const struct attention *a = &x->at;
    return heads_of(x->dev, p, 0, a->s * a->ldy, a->group * a->vd, a->vd, a->ldy, 0);
}

static struct cu_heads by_row(const struct flash *x, void *p)
{
    const struct attention *a = &x->at;
    return heads_of(x->dev, p, 0, a->s * a->ldl, a->group, 1, a->ldl, 1);
}

/* May rows be read in 16 bytes at once? */
static int in_vectors(const struct cu_heads *x)
{
    int64_t apart = x->sample | x->group | x->head | x->row;
    return (uintptr_t)x->p % 16 == 0 && apart % 8 == 0;
}

/* Queries and keys of a packed tensor, rotated, as [sample, key, group, head]: its heads and
 * then their key. */
static int turn(struct flash *x, struct topt_error *err)
{
    const struct attention *a = &x->at;
    int64_t heads = a->group + 1, row = a->groups * heads * a->own;
    struct cu_rotate r = topt_cuda_rotation(a->attrs, a->own / 2, 1);
    r.dst = x->turned;
    r.src = x->call->value[a->q];
    r.ldd = row;
    r.lds = a->ldq;
    r.rows = a->batch * a->t;
    r.period = a->t > 0 ? a->t : 1;
    r.first = a->first_key;
    r.heads = heads;
    r.width = a->own;
    r.groups = a->groups;
    r.dst_group = heads * a->own;
    r.src_group = a->q_group;
    x->kernel.q = heads_of(x->dev, x->turned, (a->first_query - a->first_key) * row,
                           a->t * row, r.dst_group, a->own, row, 0);
    x->kernel.k = heads_of(x->dev, x->turned, a->group * a->own, a->t * row, r.dst_group,
                           0, row, 0);
    return topt_cuda_launched(dev_of(x->dev)->math->rotate(dev_of(x->dev)->stream, &r),
                              x->call, err);
}

/* Gradients of 'n' rows of 'heads' heads, from position 'first' on, in place. */
static int turn_back(const struct flash *x, const struct cu_heads *of, int64_t heads,
                     int64_t first, int64_t n, struct topt_error *err)
{
    const struct attention *a = &x->at;
    struct cu_rotate r = topt_cuda_rotation(a->attrs, a->own / 2, -1);
    int whole = of->sample == n * of->row; /* samples follow each other */
    if (!of->p)
        return 0;
    r.ldd = r.lds = of->row;
    r.rows = whole ? a->batch * n : n;
    r.period = n > 0 ? n : 1;
    r.first = first;
    r.heads = heads;
    r.width = a->own;
    r.groups = a->groups;
    r.dst_group = r.src_group = of->group;
    for (int64_t b = 0; b < (whole ? 1 : a->batch); b++) {
        r.dst = (char *)of->p + b * of->sample * x->dev->real_bytes;
        r.src = r.dst;
        if (topt_cuda_launched(dev_of(x->dev)->math->rotate(dev_of(x->dev)->stream, &r),
                               x->call, err))
            return -1;
    }
    return 0;
}

/* The rotated copy, and sums of rows where backward needs them and the plan, whose keys are all
 * here, has no place for them. */
static int make_room(struct flash *x, int backward, struct topt_error *err)
{
    const struct attention *a = &x->at;
    int64_t heads = a->groups * a->group, all = heads + a->groups;
    int64_t turned = a->attrs->rope_theta > 0
                         ? a->batch * a->t * all * a->own * x->dev->real_bytes
                         : 0;
    int64_t sums = backward && a->whole ? a->batch * a->s * heads : 0;
    void *room = NULL;
    turned = (turned + 255) / 256 * 256;
    if (topt_cuda_scratch(x->dev, turned + sums * x->dev->state_bytes, &room, err))
        return -1;
    x->turned = room;
    x->delta = x->turned ? x->turned + turned : NULL;
    return 0;
}

static int flash_init(struct flash *x, struct topt_device *d,
                      const struct topt_kernel_call *c, int backward,
                      struct topt_error *err)
{
    *x = (struct flash){.dev = d, .call = c, .at = attention_of(c)};
    const struct attention *a = &x->at;
    if (make_room(x, backward, err))
        return -1;
    x->kernel = (struct cu_flash){.q = queries(x, c->value[a->q]),
                                  .k = keys(x, c->value[a->kv], 0),
                                  .v = keys(x, c->value[a->kv], a->own),
                                  .y = outputs(x, c->value[ATTENTION_Y]),
                                  .lse = by_row(x, c->value[ATTENTION_LSE]),
                                  .batch = a->batch,
                                  .groups = a->groups,
                                  .heads = a->group,
                                  .s = a->s,
                                  .d = a->own,
                                  .vd = a->vd,
                                  .scale = a->scale,
                                  .cap = a->attrs->cap};
    if (a->attrs->rope_theta > 0 && turn(x, err))
        return -1;
    x->kernel.vectors =
        in_vectors(&x->kernel.q) && in_vectors(&x->kernel.k) && in_vectors(&x->kernel.v);
    return 0;
}

/* From sample 'b' on. */
static void skip_samples(const struct flash *x, struct cu_heads *of, int64_t b, int wide)
{
    int64_t bytes = wide ? x->dev->state_bytes : x->dev->real_bytes;
    of->p = of->p ? (char *)of->p + b * of->sample * bytes : NULL;
}

/* All samples at once; one by one where each has padding of its own. */
static int run(const struct flash *x, int (*kernel)(void *, const struct cu_flash *),
               struct topt_error *err)
{
    int one_by_one = x->at.filled != NULL;
    for (int64_t b = 0; b < (one_by_one ? x->at.batch : 1); b++) {
        struct cu_flash k = x->kernel;
        struct cu_heads *real[] = {&k.q, &k.k, &k.v, &k.y, &k.dy, &k.dq, &k.dk, &k.dv};
        for (size_t i = 0; i < sizeof real / sizeof *real; i++)
            skip_samples(x, real[i], b, 0);
        skip_samples(x, &k.lse, b, 1);
        skip_samples(x, &k.delta, b, 1);
        k.batch = one_by_one ? 1 : k.batch;
        k.mask = topt_cuda_mask(&x->at, b);
        if (topt_cuda_launched(kernel(dev_of(x->dev)->stream, &k), x->call, err))
            return -1;
    }
    return 0;
}

int topt_cuda_flash_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                        struct topt_error *err)
{
    struct flash x;
    return flash_init(&x, d, c, 0, err) || run(&x, dev_of(d)->math->flash_forward, err)
               ? -1
               : 0;
}

/* What backward reads beside what forward does. */
static int init_back(struct flash *x, struct topt_device *d,
                     const struct topt_kernel_call *c, struct topt_error *err)
{
    if (flash_init(x, d, c, 1, err))
        return -1;
    x->kernel.dy = outputs(x, c->grad[ATTENTION_Y]);
    x->kernel.delta = by_row(x, x->at.whole ? x->delta : c->value[ATTENTION_DELTA]);
    x->kernel.vectors &= in_vectors(&x->kernel.dy);
    return 0;
}

int topt_cuda_flash_delta(struct topt_device *d, const struct topt_kernel_call *c,
                          struct topt_error *err)
{
    struct flash x;
    if (init_back(&x, d, c, err))
        return -1;
    x.kernel.sums = 1;
    return run(&x, dev_of(d)->math->flash_rows, err);
}

int topt_cuda_flash_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                        struct topt_error *err)
{
    struct flash x;
    const struct cu_math *m = dev_of(d)->math;
    if (init_back(&x, d, c, err))
        return -1;
    const struct attention *a = &x.at;
    struct cu_flash *k = &x.kernel;
    k->sums = a->whole;
    k->dq = queries(&x, c->grad[a->q]);
    k->dk = keys(&x, c->grad[a->kv], 0);
    k->dv = keys(&x, c->grad[a->kv], a->own);
    if (run(&x, m->flash_rows, err) || (k->dk.p && run(&x, m->flash_keys, err)))
        return -1;
    return a->attrs->rope_theta > 0 &&
                   (turn_back(&x, &k->dq, a->group, a->first_query, a->s, err) ||
                    turn_back(&x, &k->dk, 1, a->first_key, a->t, err))
               ? -1
               : 0;
}
