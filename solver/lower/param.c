/* param.c - a parameter's life: how it is sharded, who gathers it, how it is updated.
 *
 * Devices along the axes that split what a parameter lacks (the batch) are its
 * replicas: all hold the same value, each has a part of the gradient.  What a step
 * needs of them is the sum of the parts, and that nothing is kept more often than a
 * configuration's 'zero' says (Rajbhandari et al., ZeRO, 2020).  What is sharded lies
 * in topt_sharded_layout:
 *
 *      zero        value     gradient   state     moves of a step
 *      none        whole     whole      whole     all-reduce of the gradient, once
 *      state       whole     whole      sharded   reduce-scatter, all-gather of what is new, once
 *      gradient    whole     sharded    sharded   reduce-scatter in each micro-batch, all-gather
 *      param       sharded   sharded    sharded   all-gather before each use, reduce-scatter
 *      sparse      whole     rows       whole     rows gathered from all in each micro-batch
 *      owner       sharded   rows       sharded   rows from and to owners in each micro-batch
 *
 * (the last two in rows.c).
 *
 * Moves are the router's, so that they cost and run like any other.
 *
 * A frozen parameter is a value alone: whole or, under 'param', sharded.  It
 * may be stored in few bits (plans only), as QLoRA does (Dettmers et al. 2023): what a
 * kernel reads is then unpacked for it each time, after it was gathered in few bits. */
#include "param.h"

#include "rows.h"
#include "tally.h"

/* The level of sharding of this operand: an operator may have parameters with and without
 * replicas. */
static enum topt_zero level(const struct topt_fragments *f, const struct topt_op *o,
                            int operand, const struct topt_config *c)
{
    if (c->zero >= TOPT_ZERO_SPARSE)
        return topt_table_sparse(o) == operand ? (enum topt_zero)c->zero : TOPT_ZERO_NONE;
    return c->zero && topt_replica_axes(o, operand, c, f->mesh) ? (enum topt_zero)c->zero
                                                                : TOPT_ZERO_NONE;
}

static int is_sparse(enum topt_zero at)
{
    return at >= TOPT_ZERO_SPARSE;
}

/* Layout of value, gradient and state where 'from' and more is sharded. */
static struct topt_layout layout_at(const struct topt_fragments *f,
                                    const struct topt_op *o, int operand,
                                    const struct topt_config *c, enum topt_zero from)
{
    enum topt_zero at = level(f, o, operand, c);
    int is_sharded = is_sparse(at) ? at == TOPT_ZERO_OWNER : at >= from;
    return is_sharded ? topt_sharded_layout(o, operand, c, f->mesh)
                      : topt_value_layout(o, operand, c, f->mesh);
}

/* ---- what an optimizer keeps ------------------------------------------------------- */

enum keeps {
    NOTHING,
    NUMBERS, /* a number each, in f32 or f64 */
    ROWS,    /* a mean over the last dimension each; of vectors NUMBERS */
    COLUMNS, /* ... over the last but one; of vectors NOTHING */
    EIGHTHS, /* a byte each, and an f32 scale for a block of them */
};
enum { EIGHTHS_BLOCK = 2048 };

static const struct optimizer {
    const char *name;
    int runs;
    enum keeps state[2];
    int eager; /* f32 numbers that PyTorch's steps move for one; 0: they are one kernel */
} optimizers[TOPT_OPTIMIZER_COUNT] = {
    [TOPT_SGD] = {"sgd", 1, {NOTHING, NOTHING}, 3},
    [TOPT_MOMENTUM] = {"momentum", 1, {NUMBERS, NOTHING}, 8},
    [TOPT_ADAM] = {"adam", 1, {NUMBERS, NUMBERS}, 20},
    [TOPT_ADAMW] = {"adamw", 1, {NUMBERS, NUMBERS}, 22},
    [TOPT_ADAFACTOR] = {"adafactor", 0, {ROWS, COLUMNS}, 22},
    [TOPT_ADAM8] = {"adam8", 0, {EIGHTHS, EIGHTHS}, 0},
    [TOPT_ROW_WISE_ADAGRAD] = {"row_wise_adagrad", 1, {ROWS, NOTHING}, 0},
};

const char *topt_optimizer_name(enum topt_optimizer o)
{
    return (unsigned)o < TOPT_OPTIMIZER_COUNT ? optimizers[o].name : "unknown";
}

int topt_optimizer_runs(enum topt_optimizer o)
{
    return (unsigned)o < TOPT_OPTIMIZER_COUNT && optimizers[o].runs;
}

/* Does the optimizer keep a number a row, and run? */
static int keeps_by_rows(enum topt_optimizer o)
{
    return optimizers[o].runs && optimizers[o].state[0] == ROWS;
}

int topt_optimizer_eager(enum topt_optimizer o)
{
    return optimizers[o].eager;
}

/* ---- few bits ---------------------------------------------------------------------- */

/* Blocks of 4-bit numbers share a scale of 8 bits, and 256 such scales one of f32:
 * 0.127 bits a number beside the 4 (Dettmers et al., QLoRA, 2023, "double
 * quantization").  8-bit ones have an f32 scale a row (Dettmers et al., LLM.int8(),
 * 2022). */
enum { BLOCK_4 = 64, SCALES_4 = 256 };

static int64_t parts(int64_t n, int64_t of)
{
    return (n + of - 1) / of;
}

/* Bytes of 'n' numbers in rows of 'cols'. */
static int64_t packed_bytes(int64_t bits, int64_t n, int64_t cols)
{
    if (bits == 8)
        return n + 4 * parts(n, cols > 0 ? cols : 1);
    int64_t scales = parts(n, BLOCK_4);
    return parts(n, 2) + scales + 4 * parts(scales, SCALES_4);
}

/* The shape of as many bytes as the numbers take: what is moved. */
static struct topt_shape packed_shape(struct topt_shape s, int64_t bits)
{
    int widest = 0;
    if (bits == 8)
        return s;
    for (int i = 0; i < s.ndim; i++) {
        if (s.dim[i].unit % 2 == 0) {
            s.dim[i].unit /= 2;
            return s;
        }
        widest = s.dim[i].count > s.dim[widest].count ? i : widest;
    }
    s.dim[widest].count = parts(s.dim[widest].count, 2);
    return s;
}

/* A frozen parameter's buffer, packed. */
static void pack(const struct topt_fragments *f, int64_t bits, struct topt_buffer *b)
{
    struct topt_box box =
        topt_layout_box(f->mesh, &b->shape, &b->layout, topt_mesh_costed_device(f->mesh));
    int last = b->shape.ndim - 1;
    int64_t n = topt_layout_elements(f->mesh, &b->shape, &b->layout);
    b->bytes = packed_bytes(bits, n, box.len[last] * b->shape.dim[last].unit);
    b->shape = packed_shape(b->shape, bits);
    b->elem = TOPT_ELEM_BYTE;
}

/* Is there a master copy of parameters in f32 beside them? */
static int has_master(const struct topt_settings *s)
{
    return s->dtype == TOPT_BF16 && !s->state_bf16;
}

static enum topt_element grad_element(const struct topt_settings *s)
{
    return s->gradient_f32 && s->dtype == TOPT_BF16 ? TOPT_ELEM_WIDE : TOPT_ELEM_REAL;
}

int topt_parameter_bytes(const struct topt_settings *s)
{
    int number = topt_element_bytes(s, TOPT_ELEM_STATE);
    int bytes = topt_element_bytes(s, TOPT_ELEM_REAL);
    if (topt_accounting_is_papers(s->accounting))
        return bytes;
    bytes += topt_element_bytes(s, grad_element(s));
    bytes += has_master(s) ? number : 0;
    if (s->shard_f32 && has_master(s)) /* as far as it is sharded */
        bytes -= topt_element_bytes(s, TOPT_ELEM_REAL);
    for (int k = 0; k < 2; k++) {
        enum keeps keeps = optimizers[s->optimizer].state[k];
        bytes += keeps == NUMBERS ? number : keeps == EIGHTHS;
    }
    return bytes;
}

struct topt_least_parameters topt_least_parameters(const struct topt_model *m,
                                                   const struct topt_settings *s)
{
    struct topt_least_parameters sum = {0};
    double each = topt_parameter_bytes(s), value = topt_element_bytes(s, TOPT_ELEM_REAL);
    double gradient = each > value ? topt_element_bytes(s, grad_element(s)) : 0;
    for (int i = 0; i < m->nops; i++)
        for (int x = 0; x < m->op[i].spec->noperands; x++) {
            const struct topt_op *o = &m->op[i];
            if (o->operand[x].role != TOPT_PARAM || !o->operand[x].present)
                continue;
            double n = (double)topt_operand_numbers(o, x), bits = (double)o->attrs.bits;
            sum.value += n * (bits > 0 ? bits / 8 : value);
            if (!topt_is_trained(o, x))
                continue;
            sum.gradient += topt_table_sparse(o) == x ? 0 : n * gradient;
            sum.state += n * (each - value - gradient);
        }
    return sum;
}

/* A mean over dimension 'dim' is the same along the axes that split it. */
static void drop_dimension(struct topt_buffer *b, int dim)
{
    if (dim < 2) /* of each table one */
        b->shape.rows = NULL;
    for (int i = dim; i + 1 < b->shape.ndim; i++)
        b->shape.dim[i] = b->shape.dim[i + 1];
    b->shape.ndim--;
    for (int a = 0; a < TOPT_MAX_AXES; a++) {
        if (b->layout.at[a] == dim) {
            b->layout.at[a] = TOPT_REPLICATE;
            b->layout.pos[a] = 0;
        } else if (b->layout.at[a] > dim) {
            b->layout.at[a]--;
        }
    }
}

/* Make 'b', as large as the parameter's block, what the optimizer keeps; 0: nothing. */
static int shape_state(const struct topt_fragments *f, enum keeps keeps,
                       struct topt_buffer *b)
{
    int matrix = b->shape.ndim > 1;
    int64_t n = topt_layout_elements(f->mesh, &b->shape, &b->layout);
    b->elem = TOPT_ELEM_STATE;
    switch (keeps) {
    case NUMBERS:
        return 1;
    case ROWS:
        if (matrix)
            drop_dimension(b, b->shape.ndim - 1);
        return 1;
    case COLUMNS:
        if (matrix)
            drop_dimension(b, b->shape.ndim - 2);
        return matrix;
    case EIGHTHS:
        b->elem = TOPT_ELEM_BYTE;
        b->bytes = n + 4 * ((n + EIGHTHS_BLOCK - 1) / EIGHTHS_BLOCK);
        return 1;
    default:
        return 0;
    }
}

static int is_param(const struct topt_op *o, int operand)
{
    return o->operand[operand].role == TOPT_PARAM && o->operand[operand].present;
}

static struct topt_buffer buffer_of(const struct topt_fragments *f, int op, int operand,
                                    struct topt_layout l, enum topt_class cls)
{
    return (struct topt_buffer){.cls = cls,
                                .elem = TOPT_ELEM_REAL,
                                .shape = topt_operand_shape(&f->model->op[op], operand),
                                .layout = l,
                                .op = op,
                                .operand = operand};
}

static struct topt_buffer grad_of(const struct topt_fragments *f, int op, int operand,
                                  struct topt_layout l, enum topt_class cls)
{
    struct topt_buffer b = buffer_of(f, op, operand, l, cls);
    b.elem = grad_element(f->settings);
    return b;
}

static int zero_buffer(const struct topt_fragments *f, int op, int backward, int buffer)
{
    struct topt_instr i = topt_fragment_instr(TOPT_I_ZERO, op, backward);
    i.a = buffer;
    return topt_fragment_emit(f, i);
}

/* ---- once -------------------------------------------------------------------------- */

static int init_state(const struct topt_fragments *f, int op, int operand, int index,
                      enum keeps keeps, struct topt_layout l, struct topt_op_buffers *b)
{
    struct topt_buffer s = buffer_of(f, op, operand, l, TOPT_CLASS_STATE);
    s.index = index;
    if (!shape_state(f, keeps, &s))
        return 0;
    int buffer = b->state[operand][index] = topt_fragment_block(f, s);
    return buffer < 0 ? -1 : zero_buffer(f, op, 0, buffer);
}

/* The value's own buffer. */
static int init_value(const struct topt_fragments *f, int op, int operand,
                      const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_layout l = layout_at(f, o, operand, c, TOPT_ZERO_PARAM);
    struct topt_buffer v = buffer_of(f, op, operand, l, TOPT_CLASS_PARAM);
    if (o->attrs.bits)
        pack(f, o->attrs.bits, &v);
    struct topt_instr i = topt_fragment_instr(TOPT_I_INIT, op, 0);
    i.a = b->param[operand] = topt_fragment_block(f, v);
    return i.a < 0 || topt_fragment_emit(f, i) ? -1 : 0;
}

static int init_trained(const struct topt_fragments *f, int op, int operand,
                        const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_layout grad = layout_at(f, o, operand, c, TOPT_ZERO_GRADIENT);
    if (level(f, o, operand, c) == TOPT_ZERO_STATE) /* else it is reduced in place */
        grad = topt_grad_layout(o, operand, c, f->mesh);
    struct topt_layout state = layout_at(f, o, operand, c, TOPT_ZERO_STATE);
    struct topt_buffer g = grad_of(f, op, operand, grad, TOPT_CLASS_GRAD);
    if (is_sparse(level(f, o, operand, c)))
        topt_rows_shape(f, op, c, &g);
    b->param_grad[operand] = topt_fragment_block(f, g);
    if (b->param_grad[operand] < 0)
        return -1;
    for (int k = 0; k < 2; k++)
        if (init_state(f, op, operand, k, optimizers[f->settings->optimizer].state[k],
                       state, b))
            return -1;
    /* The master copy in f32 has the last place, whatever the optimizer keeps. */
    return has_master(f->settings) ? init_state(f, op, operand, 2, NUMBERS, state, b) : 0;
}

int topt_param_init(const struct topt_fragments *f, int op, int operand,
                    const struct topt_config *c, struct topt_op_buffers *b)
{
    if (init_value(f, op, operand, c, b))
        return -1;
    return topt_is_trained(&f->model->op[op], operand)
               ? init_trained(f, op, operand, c, b)
               : 0;
}

int topt_params_zero(const struct topt_fragments *f, int op,
                     const struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++)
        if (topt_is_trained(o, x) && zero_buffer(f, op, 0, b->param_grad[x]))
            return -1;
    return 0;
}

/* ---- in each micro-batch ----------------------------------------------------------- */

/* Does a kernel of the direction read the operand's value? */
static int is_read(const struct topt_op *o, int backward, int operand)
{
    const struct topt_step *s = o->spec->forward;
    if (backward)
        return (int)(o->reads_back >> operand & 1);
    for (int i = 0; i < TOPT_MAX_STEPS && s[i].kind != TOPT_STEP_END; i++)
        if (s[i].reads >> operand & 1)
            return 1;
    return 0;
}

/* All-gather a sharded parameter. */
static int gather(const struct topt_fragments *f, int op, int operand,
                  const struct topt_config *c, int backward, int from, int *ret)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_layout sharded = topt_sharded_layout(o, operand, c, f->mesh);
    struct topt_layout whole = topt_value_layout(o, operand, c, f->mesh);
    struct topt_shape shape = topt_operand_shape(o, operand);
    if (o->attrs.bits)
        shape = packed_shape(shape, o->attrs.bits);
    topt_fragment_async(f, TOPT_ASYNC_PARAM);
    int rc = topt_fragment_move(f, op, backward, from, &shape, &sharded, &whole, ret);
    topt_fragment_async(f, TOPT_ASYNC_NOTHING);
    return rc;
}

/* Bring the parameter as kernels read it; 'packed' is no more needed unless it stays. */
static int unpack(const struct topt_fragments *f, int op, int operand,
                  const struct topt_config *c, int backward, int packed,
                  struct topt_op_buffers *b)
{
    struct topt_layout l = topt_value_layout(&f->model->op[op], operand, c, f->mesh);
    struct topt_instr i = topt_fragment_instr(TOPT_I_UNPACK, op, backward);
    i.a = packed;
    i.b = b->value[operand] =
        topt_fragment_block(f, buffer_of(f, op, operand, l, TOPT_CLASS_TRANSIENT));
    if (i.b < 0 || topt_fragment_emit(f, i))
        return -1;
    if (packed != b->param[operand])
        f->sink->release(f->sink, packed);
    return 0;
}

static int open_param(const struct topt_fragments *f, int op, int operand,
                      const struct topt_config *c, int backward,
                      struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    int value = b->value[operand] = b->param[operand];
    if (!is_read(o, backward, operand))
        return 0;
    if (level(f, o, operand, c) == TOPT_ZERO_PARAM &&
        gather(f, op, operand, c, backward, value, &value))
        return -1;
    b->value[operand] = value;
    return o->attrs.bits ? unpack(f, op, operand, c, backward, value, b) : 0;
}

int topt_params_open(const struct topt_fragments *f, int op, const struct topt_config *c,
                     int backward, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++)
        if (is_param(o, x) && open_param(f, op, x, c, backward, b))
            return -1;
    return 0;
}

void topt_params_close(const struct topt_fragments *f, int op, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++) {
        if (!is_param(o, x))
            continue;
        if (b->value[x] != b->param[x])
            f->sink->release(f->sink, b->value[x]);
        b->value[x] = -1;
    }
}

int topt_param_grads_open(const struct topt_fragments *f, int op,
                          const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++) {
        if (!topt_is_trained(o, x))
            continue;
        enum topt_zero at = level(f, o, x, c);
        b->grad[x] = is_sparse(at) ? -1 : b->param_grad[x];
        if (at < TOPT_ZERO_GRADIENT || is_sparse(at))
            continue;
        struct topt_layout l = topt_grad_layout(o, x, c, f->mesh);
        topt_fragment_async(f, TOPT_ASYNC_GRADIENT);
        b->grad[x] = topt_fragment_block(f, grad_of(f, op, x, l, TOPT_CLASS_TRANSIENT));
        topt_fragment_async(f, TOPT_ASYNC_NOTHING);
        if (b->grad[x] < 0 || zero_buffer(f, op, 1, b->grad[x]))
            return -1;
    }
    return 0;
}

/* This device's part of the sum over the replicas, in a buffer of its own. */
static int reduce_scatter(const struct topt_fragments *f, int op, int operand,
                          const struct topt_config *c, int grad, int *ret)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_layout from = topt_grad_layout(o, operand, c, f->mesh);
    struct topt_layout to = topt_sharded_layout(o, operand, c, f->mesh);
    struct topt_shape shape = topt_operand_shape(o, operand);
    topt_fragment_async(f, TOPT_ASYNC_GRADIENT);
    int rc = topt_fragment_move(f, op, 1, grad, &shape, &from, &to, ret);
    topt_fragment_async(f, TOPT_ASYNC_NOTHING);
    return rc;
}

static int all_reduce(const struct topt_fragments *f, int op, int operand,
                      const struct topt_config *c, int grad)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_layout partial = topt_grad_layout(o, operand, c, f->mesh);
    struct topt_layout whole = topt_value_layout(o, operand, c, f->mesh);
    struct topt_shape shape = topt_operand_shape(o, operand);
    topt_fragment_async(f, TOPT_ASYNC_GRADIENT);
    int rc = topt_fragment_all_reduce(f, op, grad, &shape, &partial, &whole);
    topt_fragment_async(f, TOPT_ASYNC_NOTHING);
    return rc;
}

int topt_param_grads_close(const struct topt_fragments *f, int op,
                           const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++) {
        int part;
        if (!topt_is_trained(o, x))
            continue;
        if (is_sparse(level(f, o, x, c))) {
            if (topt_rows_add(f, op, c, b))
                return -1;
        } else if (b->grad[x] != b->param_grad[x]) {
            if (reduce_scatter(f, op, x, c, b->grad[x], &part) ||
                topt_fragment_add(f, op, part, b->param_grad[x]))
                return -1;
            f->sink->release(f->sink, part);
            f->sink->release(f->sink, b->grad[x]);
        }
        b->grad[x] = -1;
    }
    return 0;
}

/* ---- what another system holds beside it ------------------------------------------- */

/* Bytes of an operator's parameters, and of the gradients of these, that are whole on
 * a device though they are sharded. */
struct gathered {
    int64_t value, grad;
    int64_t whole; /* a value that is sharded between backward and forward alone */
    int64_t made, reduced; /* the gradient as backward makes it, and as it is reduced */
};

static struct gathered gathered_of(const struct topt_fragments *f, int op, int operand,
                                   const struct topt_config *c)
{
    const struct topt_op *o = &f->model->op[op];
    const struct topt_settings *s = f->settings;
    struct topt_shape shape = topt_operand_shape(o, operand);
    struct topt_layout l = topt_value_layout(o, operand, c, f->mesh);
    int64_t value = topt_block_bytes(f->mesh, s, &shape, &l, TOPT_ELEM_REAL);
    if (o->attrs.bits) { /* gathered as it is stored, unpacked for one kernel at a time */
        struct topt_buffer packed = buffer_of(f, op, operand, l, TOPT_CLASS_PARAM);
        pack(f, o->attrs.bits, &packed);
        value = packed.bytes;
    }
    int64_t reduced = topt_block_bytes(f->mesh, s, &shape, &l, grad_element(s));
    enum topt_zero at = level(f, o, operand, c);
    struct gathered g = {.reduced = reduced};
    if (at == TOPT_ZERO_PARAM)
        g.value = value;
    if (at == TOPT_ZERO_GRADIENT)
        g.whole = value;
    if (!topt_is_trained(o, operand)) {
        g.reduced = 0;
        return g;
    }
    g.made = value;
    if (is_sparse(at))
        return g;
    if (at >= TOPT_ZERO_GRADIENT) /* as backward makes it, and as it is reduced */
        g.grad = reduced == value ? value : value + reduced;
    else if (topt_replica_axes(o, operand, c, f->mesh))
        g.grad = reduced; /* buckets */
    if (at == TOPT_ZERO_STATE && s->shard_f32 && has_master(s)) {
        /* The weights themselves are in f32 there, whole: only the optimizer's states
         * are shared. */
        struct topt_layout sharded = topt_sharded_layout(o, operand, c, f->mesh);
        g.grad += topt_block_bytes(f->mesh, s, &shape, &l, TOPT_ELEM_STATE) -
                  topt_block_bytes(f->mesh, s, &shape, &sharded, TOPT_ELEM_STATE);
    }
    return g;
}

/* The part of a parameter's bytes that a pool of 'pool' numbers for all parameters holds. */
static int64_t pooled(const struct topt_fragments *f, int64_t bytes, int64_t pool)
{
    double all = f->model->parameters;
    return all > (double)pool ? (int64_t)((double)bytes * (double)pool / all) : bytes;
}

static int64_t held_in_pools(const struct topt_fragments *f, struct gathered g)
{
    return pooled(f, g.value, f->settings->pool_numbers) +
           pooled(f, g.grad, f->settings->bucket_numbers);
}

/* Bytes of the rows that pad a device's part of a table of the vocabulary. */
static int64_t padding(const struct topt_fragments *f, int op, int operand,
                       const struct topt_config *c)
{
    const struct topt_op *o = &f->model->op[op];
    int64_t vocab = f->model->vocab, multiple = f->settings->vocab_multiple, parts = 1;
    struct topt_shape shape = topt_operand_shape(o, operand);
    struct topt_layout l = topt_value_layout(o, operand, c, f->mesh);
    int d = 0;
    while (d < shape.ndim && shape.dim[d].count * shape.dim[d].unit != vocab)
        d++;
    if (!multiple || d == shape.ndim || f->model->unit[op] >= 0)
        return 0;
    for (int a = 0; a < f->mesh->naxes; a++)
        parts *= l.at[a] == d ? f->mesh->size[a] : 1;
    int64_t whole =
        (vocab + multiple * parts - 1) / (multiple * parts) * multiple * parts;
    double row =
        (double)topt_layout_elements(f->mesh, &shape, &l) * (double)parts / (double)vocab;
    return (int64_t)(row * (double)(whole - vocab) / (double)parts *
                     topt_parameter_bytes(f->settings));
}

/* Buffers of units come and go in the step's schedule.  Gradients that are not sharded are all held
 * at once, in buckets.  FSDP2 shards parameters at level GRADIENT, too, but gathers them once for both
 * passes. */
static void hold_in_units(const struct topt_fragments *f, struct gathered g,
                          enum topt_zero at, struct topt_fragment_cost *cost)
{
    if (at < TOPT_ZERO_GRADIENT) {
        cost->class_bytes[TOPT_CLASS_BUFFERS] += g.grad;
        return;
    }
    if (topt_settings_scheduled(f->settings)) {
        cost->class_bytes[TOPT_CLASS_PARAM] -= g.whole;
        cost->whole_bytes += topt_with_allocator(f->settings, g.whole);
    }
    cost->gathered_bytes += topt_with_allocator(f->settings, g.value);
    cost->made_bytes += topt_with_allocator(f->settings, g.made);
    cost->reduced_bytes += topt_with_allocator(f->settings, g.reduced);
}

void topt_param_buffers(const struct topt_fragments *f, int op,
                        const struct topt_config *c, struct topt_fragment_cost *cost)
{
    const struct topt_op *o = &f->model->op[op];
    int64_t *bytes = &cost->class_bytes[TOPT_CLASS_BUFFERS];
    if (f->settings->gather == TOPT_GATHER_OPERATOR && !f->settings->vocab_multiple)
        return;
    for (int x = 0; x < o->spec->noperands; x++) {
        if (!is_param(o, x))
            continue;
        struct gathered g = gathered_of(f, op, x, c);
        *bytes += padding(f, op, x, c);
        if (f->settings->gather == TOPT_GATHER_UNIT)
            hold_in_units(f, g, level(f, o, x, c), cost);
        else if (f->settings->gather == TOPT_GATHER_POOL)
            *bytes += held_in_pools(f, g);
    }
}

int64_t topt_param_uncounted(const struct topt_fragments *f, int op,
                             const struct topt_config *c)
{
    const struct topt_op *o = &f->model->op[op];
    int64_t bytes = 0;
    for (int x = 0; x < o->spec->noperands; x++) {
        if (!topt_is_trained(o, x) || level(f, o, x, c) < TOPT_ZERO_PARAM ||
            is_sparse(level(f, o, x, c)))
            continue;
        struct topt_shape shape = topt_operand_shape(o, x);
        struct topt_layout sharded = topt_sharded_layout(o, x, c, f->mesh);
        bytes += topt_block_bytes(f->mesh, f->settings, &shape, &sharded, TOPT_ELEM_REAL);
    }
    return f->settings->shard_f32 && has_master(f->settings) ? bytes : 0;
}

/* ---- at the end of a step ---------------------------------------------------------- */

/* Where rows are cut the sums of their squares are parts. */
static uint32_t axes_of_rows(const struct topt_fragments *f, int param)
{
    const struct topt_buffer *b = f->sink->get(f->sink, param);
    uint32_t axes = 0;
    for (int a = 0; a < f->mesh->naxes; a++)
        if (b->shape.ndim > 1 && b->layout.at[a] == b->shape.ndim - 1)
            axes |= 1u << a;
    return keeps_by_rows(f->settings->optimizer) ? axes : 0;
}

static int update(const struct topt_fragments *f, int op, int param, int grad,
                  const int state[3])
{
    struct topt_instr i = topt_fragment_instr(TOPT_I_UPDATE, op, 1);
    i.axes = axes_of_rows(f, param);
    i.a = param;
    i.b = grad;
    i.c = state[0];
    i.d = state[1];
    i.e = state[2];
    return topt_fragment_emit(f, i);
}

/* The gradient's and the parameter's part are updated, then all get the whole again. */
static int update_part(const struct topt_fragments *f, int op, int operand,
                       const struct topt_config *c, int grad,
                       const struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_layout whole = topt_value_layout(o, operand, c, f->mesh);
    struct topt_layout sharded = topt_sharded_layout(o, operand, c, f->mesh);
    struct topt_shape shape = topt_operand_shape(o, operand);
    int part;
    if (topt_fragment_move(f, op, 1, b->param[operand], &shape, &whole, &sharded,
                           &part) ||
        update(f, op, part, grad, b->state[operand]) ||
        topt_fragment_move_into(f, op, 1, part, &shape, &sharded, &whole,
                                b->param[operand]))
        return -1;
    f->sink->release(f->sink, part);
    return 0;
}

static int end_param(const struct topt_fragments *f, int op, int operand,
                     const struct topt_config *c, const struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    int grad = b->param_grad[operand];
    switch (level(f, o, operand, c)) {
    case TOPT_ZERO_NONE:
        return all_reduce(f, op, operand, c, grad) ||
                       update(f, op, b->param[operand], grad, b->state[operand])
                   ? -1
                   : 0;
    case TOPT_ZERO_STATE:
        if (reduce_scatter(f, op, operand, c, grad, &grad) ||
            update_part(f, op, operand, c, grad, b))
            return -1;
        f->sink->release(f->sink, grad);
        return 0;
    case TOPT_ZERO_GRADIENT:
        return update_part(f, op, operand, c, grad, b);
    default:
        return update(f, op, b->param[operand], grad, b->state[operand]);
    }
}

int topt_params_update(const struct topt_fragments *f, int op,
                       const struct topt_config *c, const struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++)
        if (topt_is_trained(o, x) && end_param(f, op, x, c, b))
            return -1;
    return 0;
}
