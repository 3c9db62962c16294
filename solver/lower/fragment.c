/* fragment.c - the pieces a program is made of: buffers, instructions, and moves
 * between layouts. */
#include "fragment.h"

#include <string.h>

void topt_op_buffers_clear(struct topt_op_buffers *b)
{
    memset(b, -1, sizeof *b);
}

struct topt_op_writer topt_op_writer(const struct topt_fragments *f, int op, int backward,
                                     const struct topt_config *c,
                                     struct topt_op_buffers *b)
{
    return (struct topt_op_writer){f, &f->model->op[op], op, backward, c, b, 0};
}

/* A table that others read lies as it is split, and no axis has replicas of it. */
static int has_batch(const struct topt_op *op)
{
    for (int d = 0; d < op->spec->ndims; d++)
        if (op->spec->dim[d].split == TOPT_SPLIT_BATCH)
            return 1;
    return 0;
}

struct topt_shape topt_operand_shape(const struct topt_op *op, int operand)
{
    struct topt_shape s = {.ndim = topt_operand_rank(op, operand),
                           .of_state =
                               op->operand[operand].role == TOPT_PARAM && has_batch(op)};
    memcpy(s.dim, op->operand[operand].dim, sizeof s.dim);
    if (op->spec->operand[operand].ragged)
        s.rows = op->attrs->tables;
    return s;
}

struct topt_shape topt_tensor_shape(const struct topt_tensor *t)
{
    struct topt_shape s = {.ndim = t->ndim};
    memcpy(s.dim, t->dim, sizeof s.dim);
    return s;
}

int topt_element_bytes(const struct topt_settings *s, enum topt_element e)
{
    switch (e) {
    case TOPT_ELEM_REAL:
        return topt_dtype_bytes(s->dtype);
    case TOPT_ELEM_STATE:
        return s->dtype == TOPT_F64 ? 8 : s->state_bf16 ? topt_dtype_bytes(s->dtype) : 4;
    case TOPT_ELEM_WIDE:
        return s->dtype == TOPT_F64 ? 8 : 4;
    case TOPT_ELEM_INT32:
        return 4;
    default:
        return 1;
    }
}

static int64_t round_up(int64_t bytes, int64_t granule)
{
    return (bytes + granule - 1) / granule * granule;
}

int64_t topt_charged_bytes(const struct topt_settings *s, enum topt_element e,
                           int64_t elements)
{
    return round_up(elements * topt_element_bytes(s, e), s->granule_bytes);
}

int64_t topt_block_bytes(const struct topt_mesh *mesh, const struct topt_settings *s,
                         const struct topt_shape *shape, const struct topt_layout *l,
                         enum topt_element e)
{
    return topt_charged_bytes(s, e, topt_layout_elements(mesh, shape, l));
}

int64_t topt_bytes_on(const struct topt_model *m, const struct topt_mesh *mesh,
                      const struct topt_settings *s, const struct topt_config *c,
                      const struct topt_buffer *b, int device)
{
    if (device < 0 || b->shape.ndim == 0 || b->elem == TOPT_ELEM_BYTE || b->rows)
        return b->bytes;
    struct topt_box box =
        b->window ? topt_operand_box(&m->op[b->op], b->operand, c, mesh, device)
                  : topt_layout_box(mesh, &b->shape, &b->layout, device);
    return topt_charged_bytes(s, b->elem, topt_box_elements(&b->shape, &box));
}

int topt_fragment_block(const struct topt_fragments *f, struct topt_buffer b)
{
    b.bytes = b.bytes
                  ? round_up(b.bytes, f->settings->granule_bytes)
                  : topt_block_bytes(f->mesh, f->settings, &b.shape, &b.layout, b.elem);
    return f->sink->alloc(f->sink, &b, f->err);
}

/* Megatron-LM's activation_func_fp8_input_store: a cast without a scale after forward, and one back before backward
 * (core/fusions/fused_bias_swiglu.py at d98e8a6). */
int topt_low_stored(const struct topt_settings *s, const struct topt_op *o)
{
    return s->low_activation ? topt_op_gated(o) : -1;
}

int topt_fragment_operand(const struct topt_fragments *f, int op, int operand,
                          const struct topt_layout *l, enum topt_class cls)
{
    const struct topt_op *o = &f->model->op[op];
    const struct topt_operand_spec *x = &o->spec->operand[operand];
    int whole = o->operand[operand].role == TOPT_DATA && !x->real;
    int stored = o->operand[operand].role == TOPT_SAVED &&
                 topt_low_stored(f->settings, o) == operand;
    enum topt_element number = x->wide  ? TOPT_ELEM_WIDE
                               : stored ? TOPT_ELEM_BYTE
                                        : TOPT_ELEM_REAL;
    return topt_fragment_block(
        f, (struct topt_buffer){.cls = cls,
                                .elem = whole ? TOPT_ELEM_INT32 : number,
                                .shape = topt_operand_shape(o, operand),
                                .layout = *l,
                                .op = op,
                                .operand = operand});
}

struct topt_instr topt_fragment_instr(enum topt_instr_kind kind, int op, int backward)
{
    struct topt_instr i = {.kind = kind,
                           .op = op,
                           .backward = (uint8_t)backward,
                           .a = -1,
                           .b = -1,
                           .c = -1,
                           .d = -1,
                           .e = -1};
    memset(i.value, -1, sizeof i.value);
    memset(i.grad, -1, sizeof i.grad);
    return i;
}

int topt_fragment_emit(const struct topt_fragments *f, struct topt_instr i)
{
    return f->sink->emit(f->sink, &i, f->err);
}

int topt_fragment_emit_on(const struct topt_fragments *f, enum topt_instr_kind kind,
                          int op, int backward, int a, int b)
{
    struct topt_instr i = topt_fragment_instr(kind, op, backward);
    i.a = a;
    i.b = b;
    return topt_fragment_emit(f, i);
}

int topt_fragment_emit_staged(const struct topt_fragments *f, struct topt_instr i,
                              int64_t bytes)
{
    if (bytes > 0) {
        i.c = topt_fragment_block(f,
                                  (struct topt_buffer){.cls = TOPT_CLASS_STAGING,
                                                       .elem = TOPT_ELEM_BYTE,
                                                       .layout = topt_layout_replicated(),
                                                       .bytes = bytes,
                                                       .op = i.op,
                                                       .operand = -1});
        if (i.c < 0)
            return -1;
    }
    int rc = topt_fragment_emit(f, i);
    if (i.c >= 0)
        topt_fragment_release(f, i.c);
    return rc;
}

void topt_fragment_release(const struct topt_fragments *f, int buffer)
{
    f->sink->release(f->sink, buffer);
}

void topt_fragment_async(const struct topt_fragments *f, enum topt_async what)
{
    if (f->sink->async)
        f->sink->async(f->sink, what);
}

/* ---- moves ------------------------------------------------------------------------- */

static int emit_move(const struct topt_fragments *f, int op, int backward,
                     const struct topt_move *m, int src, int dst)
{
    const struct topt_buffer *b = f->sink->get(f->sink, src);
    struct topt_instr i = topt_fragment_instr(TOPT_I_MOVE, op, backward);
    i.a = src;
    i.b = dst;
    i.move = *m;
    i.axes = m->axes;
    return topt_fragment_emit_staged(
        f, i,
        topt_move_staging_bytes(f->mesh, &b->shape, m,
                                topt_element_bytes(f->settings, b->elem)));
}

static int result_of_move(const struct topt_fragments *f, int src,
                          const struct topt_layout *to)
{
    const struct topt_buffer *like = f->sink->get(f->sink, src);
    return topt_fragment_block(f, (struct topt_buffer){.cls = TOPT_CLASS_TRANSIENT,
                                                       .elem = like->elem,
                                                       .shape = like->shape,
                                                       .layout = *to,
                                                       .op = like->op,
                                                       .operand = like->operand});
}

/* Along the cheapest path; the last move goes to 'dst' unless that is -1. */
static int move_along(const struct topt_fragments *f, int op, int backward, int src,
                      const struct topt_layout *to, int dst, int *ret)
{
    const struct topt_buffer *b = f->sink->get(f->sink, src);
    const struct topt_path *path;
    *ret = src;
    if (topt_layout_equal(&b->layout, to))
        return 0;
    int bytes = topt_element_bytes(f->settings, b->elem), known = 1;
    if (f->open)
        known = topt_router_seek(f->router, &b->shape, bytes, &b->layout, to, f->err);
    if (known == 0) { /* it is found later, beside others */
        *f->open = 1;
        *ret = dst >= 0 ? dst : result_of_move(f, src, to);
        return *ret < 0 ? -1 : 0;
    }
    if (known < 0 ||
        topt_router_path(f->router, &b->shape, bytes, &b->layout, to, &path, f->err))
        return -1;
    int at = src;
    for (int k = 0; k < path->nmoves; k++) {
        int next = dst;
        if (dst < 0 || k + 1 < path->nmoves)
            next = result_of_move(f, src, &path->move[k].to);
        if (next < 0 || emit_move(f, op, backward, &path->move[k], at, next))
            return -1;
        if (at != src)
            topt_fragment_release(f, at);
        at = next;
    }
    *ret = at;
    return 0;
}

int topt_fragment_move(const struct topt_fragments *f, int op, int backward, int src,
                       const struct topt_layout *to, int *ret)
{
    return move_along(f, op, backward, src, to, -1, ret);
}

int topt_fragment_move_into(const struct topt_fragments *f, int op, int backward, int src,
                            int dst)
{
    struct topt_layout to = f->sink->get(f->sink, dst)->layout;
    int last;
    return move_along(f, op, backward, src, &to, dst, &last);
}

int topt_fragment_all_reduce(const struct topt_fragments *f, int op, int buffer,
                             const struct topt_layout *partial,
                             const struct topt_layout *whole)
{
    struct topt_move m = {.kind = TOPT_MOVE_ALL_REDUCE,
                          .axes = topt_layout_partial_mask(partial),
                          .from = *partial,
                          .to = *whole};
    return m.axes ? emit_move(f, op, 1, &m, buffer, buffer) : 0;
}
