/* gradient_fusion.c - the time of a strategy whose gradients are all-reduced in buckets, behind
 * backward.
 *
 * Backward goes from the last operator to the first.  What each has computed when it
 * ends are gradients; they are packed into a bucket until no more fit (a larger
 * gradient is a bucket by itself), and a bucket is all-reduced as soon as it is packed
 * and the network is free.  Where gradients are looked at in cycles, those of one
 * cycle share buckets, which go at its end.
 *
 *     computing  | bwd n | bwd n-1 |  ...  | bwd 1 |
 *     network            |  bucket 1  |  bucket 2  |  bucket 3  |
 *                                                   <-exposed-->
 *
 * What the network does after the last backward is exposed (Sergeev and Del Balso,
 * Horovod, 2018; Li et al., PyTorch Distributed, 2020).  Everything else takes the
 * time that it takes without: communication of backward itself hides nothing here, nor
 * do micro-batches but the last. */
#include "cost.h"
#include "recompute.h"

struct fuser {
    const struct topt_costing *k;
    struct topt_fusion with;
    int64_t clock, free;  /* of backward, and when the network is free */
    int64_t bytes, ready; /* of the bucket */
    uint32_t axes;        /* it is reduced along */
    struct topt_fusion_cost *ret;
};

static void send(struct fuser *f)
{
    if (f->bytes == 0)
        return;
    int64_t start = f->ready > f->free ? f->ready : f->free;
    int64_t ns = topt_router_time(f->k->router, TOPT_ALL_REDUCE, f->axes, f->bytes).ns;
    f->free = start + ns;
    f->ret->reduce_ns += ns;
    f->ret->buckets++;
    f->bytes = 0;
}

/* When a gradient that is there now is looked at. */
static int64_t seen(const struct fuser *f)
{
    int64_t cycle = f->with.cycle_ns;
    return cycle > 0 ? (f->clock / cycle + 1) * cycle : f->clock;
}

static void pack(struct fuser *f, uint32_t axes, int64_t bytes)
{
    int later = f->with.cycle_ns > 0 && seen(f) != f->ready;
    if (f->bytes && (axes != f->axes || later || f->bytes + bytes > f->with.bucket_bytes))
        send(f);
    f->axes = axes;
    f->bytes += bytes;
    f->ready = seen(f);
}

/* Gradients that wait for nothing but their sum over the replicas. */
static void pack_op(struct fuser *f, const struct topt_op *o, const struct topt_config *c)
{
    for (int x = 0; x < o->spec->noperands; x++) {
        uint32_t axes =
            topt_is_trained(o, x) ? topt_replica_axes(o, x, c, f->k->mesh) : 0;
        if (!axes)
            continue;
        struct topt_layout l = topt_value_layout(o, x, c, f->k->mesh);
        struct topt_shape s = topt_operand_shape(o, x);
        const struct topt_settings *with = f->k->settings;
        enum topt_element e = with->gradient_f32 ? TOPT_ELEM_WIDE : TOPT_ELEM_REAL;
        pack(f, axes,
             topt_layout_elements(f->k->mesh, &s, &l) * topt_element_bytes(with, e));
    }
}

/* One operator's backward; its own all-reduces come off the time. */
static int pass(struct fuser *f, int op, const struct topt_config *c,
                struct topt_error *err)
{
    struct topt_tally t;
    if (topt_tally_op(&t, f->k, op, c, err))
        return -1;
    f->clock += t.spent[TOPT_PHASE_BACKWARD].compute_ns / f->k->settings->micro_batches;
    if (c->zero)
        return 0;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++)
        f->ret->apart_ns += t.spent[TOPT_PHASE_END].async_ns[b];
    if (topt_has_backward(f->k->model, op))
        pack_op(f, &f->k->model->op[op], c);
    return 0;
}

int topt_cost_fused(const struct topt_costing *k, const struct topt_strategy *s,
                    const struct topt_fusion *with, struct topt_fusion_cost *ret,
                    struct topt_error *err)
{
    struct topt_settings none = *k->settings, ddp = none;
    struct topt_costing plain = *k, async = *k;
    struct topt_strategy_cost cost;
    none.overlap = TOPT_OVERLAP_NONE;
    ddp.overlap = TOPT_OVERLAP_DDP; /* so that gradients are told from the rest */
    plain.settings = &none;
    async.settings = &ddp;
    struct fuser f = {.k = &async, .with = *with, .ret = ret};
    *ret = (struct topt_fusion_cost){0};
    if (topt_cost_strategy(&plain, s, &cost, err))
        return -1;
    for (int i = k->model->nops - 1; i >= 0; i--)
        if (pass(&f, i, &s->config[i], err))
            return -1;
    send(&f);
    ret->exposed_ns = f.free > f.clock ? f.free - f.clock : 0;
    ret->time_ns = cost.time_ns - ret->apart_ns + ret->exposed_ns;
    return 0;
}
