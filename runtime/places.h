/* places.h - what a backend works out of a kernel's call before it computes: extents of this
 * rank's blocks, and where windows lie in them.  For all backends. */
#ifndef RUNTIME_PLACES_H
#define RUNTIME_PLACES_H

#include "operands.h"
#include "topt_device.h"

/* Elements of one dimension of an operand's local block. */
static inline int64_t extent(const struct topt_kernel_call *c, int operand, int i)
{
    return c->box[operand].len[i] * c->op->operand[operand].dim[i].unit;
}

/* A block's part of one of several tables, as a block of that table alone; 'ret_before':
 * elements of the block that stand before it. */
static inline struct topt_box box_of_table(const struct topt_shape *s,
                                           const struct topt_box *b, int64_t table,
                                           int64_t *ret_before)
{
    struct topt_piece p = topt_box_piece(s, b, table);
    struct topt_box t = {.off = {p.first}, .len = {p.rows}};
    *ret_before = p.before;
    for (int i = 2; i < s->ndim; i++) {
        t.off[i - 1] = b->off[i];
        t.len[i - 1] = b->len[i];
        *ret_before *= b->len[i] * s->dim[i].unit;
    }
    return t;
}

/* A copy of a region of several tables as that of table 'table' alone, whose shape goes to
 * 'ret_shape'. */
static inline struct topt_box_copy
copy_of_table(const struct topt_box_copy *c, int64_t table, struct topt_shape *ret_shape)
{
    const struct topt_shape *s = c->shape;
    int64_t src, dst, none;
    struct topt_box_copy t = *c;
    *ret_shape = (struct topt_shape){.ndim = s->ndim - 1, .dim = {{s->rows[table], 1}}};
    for (int i = 2; i < s->ndim; i++)
        ret_shape->dim[i - 1] = s->dim[i];
    t.shape = ret_shape;
    t.src_box = box_of_table(s, &c->src_box, table, &src);
    t.dst_box = box_of_table(s, &c->dst_box, table, &dst);
    t.region = box_of_table(s, &c->region, table, &none);
    t.src = (const char *)c->src + src * c->element_bytes;
    t.dst = (char *)c->dst + dst * c->element_bytes;
    return t;
}

/* Pixels of an image in this rank's block. */
static inline int64_t plane_of(const struct topt_kernel_call *c, int operand)
{
    return extent(c, operand, 2) * extent(c, operand, 3);
}

/* Numbers of an operand that stay together: of one count, or, where counts are joined,
 * of all of them and what is inside. */
static inline int64_t joined_run(const struct topt_kernel_call *c, int operand)
{
    int rank = c->op->spec->operand[operand].ndim, own = c->op->spec->operand[0].own;
    if (!own)
        return c->op->operand[operand].dim[rank - 1].unit;
    int64_t run = 1;
    for (int i = rank - 1; i >= 0; i--) {
        run *= extent(c, operand, i);
        if (own >> i & 1)
            break;
    }
    return run;
}

/* 'input': the operand that holds the part of the image. */
static inline struct windows windows_of(const struct topt_kernel_call *c, int input)
{
    const struct topt_attrs *a = c->op->attrs;
    const struct topt_box *x = &c->box[input];
    const int8_t *d = c->op->spec->operand[input].dim;
    return (struct windows){
        .height = x->len[2],
        .width = x->len[3],
        .rows = c->len[d[2]],
        .cols = c->len[d[3]],
        .kernel_h = a->kernel_h,
        .kernel_w = a->kernel_w,
        .stride_h = a->stride_h,
        .stride_w = a->stride_w,
        .dilation_h = a->dilation_h,
        .dilation_w = a->dilation_w,
        .first_row = c->off[d[2]] * a->stride_h - a->pad_top - x->off[2],
        .first_col = c->off[d[3]] * a->stride_w - a->pad_left - x->off[3]};
}

/* Of a transposed convolution: windows over this rank's block of the output, one for each
 * pixel of the part of the input. */
static inline struct windows windows_over_output(const struct topt_kernel_call *c,
                                                 int input)
{
    const struct topt_attrs *a = c->op->attrs;
    const struct topt_box *x = &c->box[input], *y = &c->box[CT_Y];
    return (struct windows){.height = y->len[2],
                            .width = y->len[3],
                            .rows = x->len[2],
                            .cols = x->len[3],
                            .kernel_h = a->kernel_h,
                            .kernel_w = a->kernel_w,
                            .stride_h = a->stride_h,
                            .stride_w = a->stride_w,
                            .dilation_h = a->dilation_h,
                            .dilation_w = a->dilation_w,
                            .first_row = x->off[2] * a->stride_h - a->pad_top - y->off[2],
                            .first_col =
                                x->off[3] * a->stride_w - a->pad_left - y->off[3]};
}

/* Of a recurrence by chunks, by the operands with heads' and with groups' numbers. */
static inline struct scan scan_of(const struct topt_kernel_call *c, int of_heads,
                                  int of_groups)
{
    enum { B, S, H, G };
    const struct topt_op *op = c->op;
    return (struct scan){.batch = c->len[B],
                         .seq = c->len[S],
                         .heads = c->len[H],
                         .first_head = c->off[H],
                         .per_group = op->count[H] / op->count[G],
                         .p = op->operand[of_heads].dim[2].unit,
                         .n = op->operand[of_groups].dim[2].unit / 2,
                         .chunk = op->attrs->chunk,
                         .chunks = (c->len[S] + op->attrs->chunk - 1) / op->attrs->chunk,
                         .ld = extent(c, of_heads, 2),
                         .ldg = extent(c, of_groups, 2),
                         .carries = c->carries};
}

/* Of one whose heads are single numbers with a state of all numbers of a key. */
static inline struct scan selective_scan(const struct topt_kernel_call *c)
{
    struct scan s = scan_of(c, SELECTIVE_X, SELECTIVE_B);
    s.n = extent(c, SELECTIVE_B, 2);
    return s;
}

static inline struct causal causal_of(const struct topt_kernel_call *c)
{
    return (struct causal){.batch = extent(c, CAUSAL_X, 0),
                           .seq = extent(c, CAUSAL_X, 1),
                           .d = extent(c, CAUSAL_X, 2),
                           .kernel = extent(c, CAUSAL_W, 1)};
}

#endif
