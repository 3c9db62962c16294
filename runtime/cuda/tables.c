/* tables.c - what recommenders are made of (k_tables.h). */
#include "cuda.h"

#include <string.h>

_Static_assert((int)CU_TABLES == TOPT_MAX_TABLES, "cu.h repeats limits");

#define RUN(name, args)                                                                  \
    topt_cuda_launched(dev_of(d)->math->name(dev_of(d)->stream, args), c, err)

static struct cu_bag bag_of(const struct topt_kernel_call *c, const struct cu_call *f)
{
    struct topt_shape w = {.ndim = 3, .rows = c->op->attrs->tables};
    const struct topt_box *box = &c->box[BAG_W];
    struct cu_bag s = {.ids = c->value[BAG_IDS],
                       .rows = f->rows[BAG_Y],
                       .d = f->cols[BAG_Y],
                       .lookups = f->cols[BAG_IDS],
                       .tables = c->len[BAG_TABLES]};
    memcpy(w.dim, c->op->operand[BAG_W].dim, sizeof w.dim);
    for (int64_t k = 0; k < s.tables; k++) {
        struct topt_piece p = topt_box_piece(&w, box, box->off[0] + k);
        s.first[k] = p.first;
        s.held[k] = p.rows;
        s.before[k] = p.before;
    }
    return s;
}

int topt_cuda_embedding_bag_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                                const struct cu_call *f, struct topt_error *err)
{
    struct cu_bag s = bag_of(c, f);
    s.w = c->value[BAG_W];
    s.y = c->value[BAG_Y];
    return RUN(bag_get, &s);
}

int topt_cuda_embedding_bag_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                                const struct cu_call *f, struct topt_error *err)
{
    struct cu_bag s = bag_of(c, f);
    void *room;
    s.w = c->grad[BAG_W];
    s.y = c->grad[BAG_Y];
    s.wide_w = (int)(f->wide_grads >> BAG_W & 1);
    int64_t n = s.rows * s.lookups;
    if (!s.w || n <= 0 || s.d <= 0)
        return 0;
    if (n > UINT32_MAX)
        return topt_fail(err, TOPT_ERR_LIMIT, "%s: more than 2^32 lookups at once",
                         c->op->name);
    for (s.padded = 2; s.padded < n;)
        s.padded *= 2;
    if (topt_cuda_scratch(d, s.padded * 8, &room, err))
        return -1;
    s.key = room;
    return RUN(bag_put, &s);
}

/* Of all vectors of a position, x and then those of x0 to x2. */
static struct cu_interact interact_of(const struct topt_kernel_call *c,
                                      const struct cu_call *f, int backward)
{
    static const int order[CU_VECTORS_OF] = {INTERACT_X, 0, 1, 2};
    struct cu_interact s = {.y = backward ? c->grad[INTERACT_Y] : c->value[INTERACT_Y],
                            .rows = f->rows[INTERACT_Y],
                            .d = f->cols[0]};
    for (int k = 0; k < CU_VECTORS_OF; k++) {
        int o = order[k];
        if (!c->op->operand[o].present)
            continue;
        s.x[k] = c->value[o];
        s.dx[k] = backward ? c->grad[o] : NULL;
        s.count[k] = o == INTERACT_X ? 1 : c->op->operand[o].dim[2].count;
        s.n += s.count[k];
    }
    return s;
}

int topt_cuda_interact_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    struct cu_interact s = interact_of(c, f, 0);
    return RUN(interact_get, &s);
}

int topt_cuda_interact_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    struct cu_interact s = interact_of(c, f, 1);
    return RUN(interact_put, &s);
}
