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
 * (the last two in rows.c).  Where a framework accumulates gradients unsharded (settings.unsharded_sums), those of level gradient
 * stay whole until the end of a step, where they are reduce-scattered.  Values are sharded then and gathered in each pass; of
 * these gathers stage_passes.c counts the ones that a schedule has.
 *
 * Along a configuration's 'whole_axes' nothing is sharded: parts are the same there, and a
 * reduce-scatter is followed by an all-reduce of the part (HSDP: Zhao et al., PyTorch FSDP, 2023).
 *
 * Moves are the router's, so that they cost and run like any other.
 *
 * A frozen parameter is a value alone: whole or, under 'param', sharded.  It
 * may be stored in few bits, as QLoRA does (Dettmers et al. 2023): what a
 * kernel reads is then unpacked for it each time, after it was gathered in few bits. */
#include "param.h"

#include "low.h"
#include "muon.h"
#include "rows.h"
#include "topt_named.h"

/* A parameter of an operator under a configuration. */
struct param {
    const struct topt_fragments *f;
    const struct topt_op *o;
    int op, x; /* the operand */
    struct topt_op_buffers *b;
    enum topt_zero at; /* its level: an operator may have others without replicas */
    struct topt_shape shape;
    /* Layouts of its value for kernels, of its gradient as they make it, and of a replica's part. */
    struct topt_layout whole, partial, sharded;
};

static struct param param_of(const struct topt_op_writer *w, int x)
{
    struct param p = {.f = w->f,
                      .o = w->o,
                      .op = w->op,
                      .x = x,
                      .b = w->b,
                      .shape = topt_operand_shape(w->o, x),
                      .whole = topt_value_layout(w->o, x, w->c, w->f->mesh),
                      .partial = topt_grad_layout(w->o, x, w->c, w->f->mesh)};
    int shards = w->c->zero >= TOPT_ZERO_SPARSE
                     ? topt_table_sparse(w->o) == x
                     : topt_layout_partial_mask(&p.partial) >> w->c->whole_axes != 0;
    p.at = shards ? (enum topt_zero)w->c->zero : TOPT_ZERO_NONE;
    if (p.at == TOPT_ZERO_GRADIENT && w->f->settings->unsharded_sums &&
        topt_is_trained(w->o, x))
        p.at = TOPT_ZERO_PARAM;
    p.sharded = p.at ? topt_sharded_layout(w->o, x, w->c, w->f->mesh) : p.whole;
    return p;
}

static int is_param(const struct topt_op *o, int operand)
{
    return o->operand[operand].role == TOPT_PARAM && o->operand[operand].present;
}

static int is_sparse(enum topt_zero at)
{
    return at >= TOPT_ZERO_SPARSE;
}

/* Are micro-batches' gradients added up whole, though they are sharded when the step is over? */
static int accumulates_unsharded(const struct param *p)
{
    return p->at == TOPT_ZERO_STATE ||
           (p->at == TOPT_ZERO_PARAM && p->f->settings->unsharded_sums);
}

/* Layout of value, gradient and state where 'from' and more is sharded. */
static struct topt_layout layout_at(const struct param *p, enum topt_zero from)
{
    int is_sharded = is_sparse(p->at) ? p->at == TOPT_ZERO_OWNER : p->at >= from;
    return is_sharded ? p->sharded : p->whole;
}

/* ---- what an optimizer keeps ------------------------------------------------------- */

enum keeps {
    NOTHING,
    NUMBERS, /* a number each, in f32 or f64 */
    ROWS,    /* a mean over the last dimension each; of vectors NUMBERS */
    COLUMNS, /* ... over the last but one; of vectors NOTHING */
    EIGHTHS, /* a byte each, and an f32 scale for a block of them */
    HALVES,  /* two bytes each */
    OTHERS,  /* a number each of parameters that Muon leaves to AdamW */
};
enum { EIGHTHS_BLOCK = 2048 };

static const struct optimizer {
    const char *name;
    int runs;
    enum keeps state[2];
    int eager; /* f32 numbers that PyTorch's steps move for one; 0: they are one kernel */
    int kernels; /* ... and how many kernels they are: optimization.py of transformers 4.17 */
} optimizers[TOPT_OPTIMIZER_COUNT] = {
    [TOPT_SGD] = {"sgd", 1, {NOTHING, NOTHING}, 3, 1},
    [TOPT_MOMENTUM] = {"momentum", 1, {NUMBERS, NOTHING}, 8, 3},
    [TOPT_ADAM] = {"adam", 1, {NUMBERS, NUMBERS}, 20, 7},
    [TOPT_ADAMW] = {"adamw", 1, {NUMBERS, NUMBERS}, 22, 8},
    [TOPT_ADAFACTOR] = {"adafactor", 0, {ROWS, COLUMNS}, 22, 23},
    [TOPT_ADAMW_BF16] = {"adamw_bf16", 0, {HALVES, HALVES}, 0, 1},
    [TOPT_ADAM8] = {"adam8", 0, {EIGHTHS, EIGHTHS}, 0, 1},
    [TOPT_PAGED_ADAMW] = {"paged_adamw", 0, {NOTHING, NOTHING}, 0, 1},
    [TOPT_PAGED_ADAMW8] = {"paged_adamw8", 0, {NOTHING, NOTHING}, 0, 1},
    [TOPT_ROW_WISE_ADAGRAD] = {"row_wise_adagrad", 1, {ROWS, NOTHING}, 0, 1},
    [TOPT_MUON] = {"muon", 0, {NUMBERS, OTHERS}, 0, 1},
};

TOPT_NAMED(topt_optimizer_name, enum topt_optimizer, TOPT_OPTIMIZER_COUNT,
           optimizers[i].name)

int topt_optimizer_runs(enum topt_optimizer o)
{
    return (unsigned)o < TOPT_OPTIMIZER_COUNT && optimizers[o].runs;
}

int topt_optimizer_eager(enum topt_optimizer o, int *ret_kernels)
{
    *ret_kernels = optimizers[o].kernels;
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

/* Is it a weight of products in few bits?  Biases beside it are not. */
static int is_low(const struct param *p)
{
    return topt_low_runs(p->f->settings, p->f->model, p->op) && p->shape.ndim > 1;
}

/* Is there a master copy of parameters in f32 beside them? */
static int has_master(const struct topt_settings *s)
{
    return topt_dtype_is_half(s->dtype) && !s->state_bf16;
}

static enum topt_element grad_element(const struct topt_settings *s)
{
    return s->gradient_f32 && topt_dtype_is_half(s->dtype) ? TOPT_ELEM_WIDE
                                                           : TOPT_ELEM_REAL;
}

/* The share of the optimizer's states that stays on the device, in thousandths. */
static int64_t kept_permille(const struct topt_settings *s)
{
    return s->offload & TOPT_OFFLOAD_STATE ? 1000 - s->offload_permille : 1000;
}

int topt_parameter_bytes(const struct topt_settings *s)
{
    int number = topt_element_bytes(s, TOPT_ELEM_STATE);
    int bytes = topt_element_bytes(s, TOPT_ELEM_REAL);
    if (topt_accounting_is_papers(s->accounting))
        return bytes;
    if (s->offload & TOPT_OFFLOAD_PARAM)
        return 0;
    int state = has_master(s) ? number : 0;
    for (int k = 0; k < 2; k++) {
        enum keeps keeps = optimizers[s->optimizer].state[k];
        state += keeps == NUMBERS ? number : keeps == HALVES ? 2 : keeps == EIGHTHS;
    }
    bytes += (int)(state * kept_permille(s) / 1000);
    if (!(s->offload & TOPT_OFFLOAD_GRADIENT))
        bytes += topt_element_bytes(s, grad_element(s));
    if (s->shard_f32 && has_master(s)) /* as far as it is sharded */
        bytes -= topt_element_bytes(s, TOPT_ELEM_REAL);
    return bytes;
}

struct topt_least_parameters topt_least_parameters(const struct topt_model *m,
                                                   const struct topt_settings *s,
                                                   int experts)
{
    return topt_least_parameters_of(m, s, experts, NULL, 0, m->nops);
}

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

/* Is a parameter whole on each of the tensor ranks, which split such a dimension of its operator?  Experts are apart. */
static int is_whole(const struct topt_op *o, int x, int split)
{
    const struct topt_operand_spec *spec = &o->spec->operand[x];
    for (int i = 0; i < spec->ndim; i++)
        if (spec->dim[i] == split)
            return 0;
    return topt_op_experts(o) < 0;
}

struct topt_least_parameters topt_least_parameters_of(const struct topt_model *m,
                                                      const struct topt_settings *s,
                                                      int experts, const int8_t *split,
                                                      int from, int until)
{
    struct topt_least_parameters sum = {0};
    double each = topt_parameter_bytes(s), value = topt_element_bytes(s, TOPT_ELEM_REAL);
    double gradient = each > value && !(s->offload & TOPT_OFFLOAD_GRADIENT)
                          ? topt_element_bytes(s, grad_element(s))
                          : 0;
    if (s->offload & TOPT_OFFLOAD_PARAM)
        return sum;
    for (int i = from; i < until; i++)
        for (int x = 0; x < m->op[i].spec->noperands; x++) {
            const struct topt_op *o = &m->op[i];
            if (o->operand[x].role != TOPT_PARAM || !o->operand[x].present ||
                (experts && topt_op_experts(o) < 0) ||
                (split && !is_whole(o, x, split[i])))
                continue;
            double n = (double)topt_operand_numbers(o, x), bits = (double)o->attrs->bits;
            double bytes = n * (bits > 0 ? bits / 8 : value);
            sum.value += bytes;
            sum.reread += is_read(o, 1, x) ? bytes : 0;
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
    case OTHERS:
        return !topt_muon_updates(f->settings, f->model, b->op, b->operand);
    case EIGHTHS:
    case HALVES:
        b->elem = TOPT_ELEM_BYTE;
        b->bytes = keeps == HALVES ? 2 * n : n + 4 * parts(n, EIGHTHS_BLOCK);
        return 1;
    default:
        return 0;
    }
}

static struct topt_buffer buffer_of(const struct param *p, struct topt_layout l,
                                    enum topt_class cls)
{
    return (struct topt_buffer){.cls = cls,
                                .elem = TOPT_ELEM_REAL,
                                .shape = p->shape,
                                .layout = l,
                                .op = p->op,
                                .operand = p->x};
}

static struct topt_buffer grad_of(const struct param *p, struct topt_layout l,
                                  enum topt_class cls)
{
    struct topt_buffer b = buffer_of(p, l, cls);
    b.elem = grad_element(p->f->settings);
    return b;
}

static int emit_zero(const struct param *p, int backward, int buffer)
{
    return topt_fragment_emit_on(p->f, TOPT_I_ZERO, p->op, backward, buffer, -1);
}

/* ---- once -------------------------------------------------------------------------- */

static int init_state(const struct param *p, int index, enum keeps keeps)
{
    struct topt_buffer s = buffer_of(p, layout_at(p, TOPT_ZERO_STATE), TOPT_CLASS_STATE);
    s.index = index;
    if (!shape_state(p->f, keeps, &s))
        return 0;
    int buffer = p->b->state[p->x][index] = topt_fragment_block(p->f, s);
    return buffer < 0 ? -1 : emit_zero(p, 0, buffer);
}

static int init_value(const struct param *p)
{
    struct topt_buffer v = buffer_of(p, layout_at(p, TOPT_ZERO_PARAM), TOPT_CLASS_PARAM);
    if (p->o->attrs->bits)
        pack(p->f, p->o->attrs->bits, &v);
    else if (p->f->settings->low_params && is_low(p)) {
        v.elem = TOPT_ELEM_BYTE; /* of which one copy is moved */
        v.bytes = topt_low_parameter_bytes(
            p->f->settings, topt_layout_elements(p->f->mesh, &v.shape, &v.layout));
    } else if (p->f->settings->rest_f32 && p->o->attrs->frozen)
        v.elem = TOPT_ELEM_WIDE;
    int buffer = p->b->param[p->x] = topt_fragment_block(p->f, v);
    return buffer < 0 ? -1
                      : topt_fragment_emit_on(p->f, TOPT_I_INIT, p->op, 0, buffer, -1);
}

static int init_trained(const struct topt_op_writer *w, const struct param *p)
{
    const struct topt_settings *s = p->f->settings;
    /* One that is sharded at the end of a step alone is not reduced in place. */
    struct topt_buffer g = grad_of(
        p, accumulates_unsharded(p) ? p->partial : layout_at(p, TOPT_ZERO_GRADIENT),
        TOPT_CLASS_GRAD);
    if (is_sparse(p->at))
        topt_rows_shape(w, &g);
    p->b->param_grad[p->x] = topt_fragment_block(p->f, g);
    if (p->b->param_grad[p->x] < 0)
        return -1;
    for (int k = 0; k < 2; k++)
        if (init_state(p, k, optimizers[s->optimizer].state[k]))
            return -1;
    /* The master copy in f32 has the last place, whatever the optimizer keeps. */
    return has_master(s) ? init_state(p, 2, NUMBERS) : 0;
}

int topt_param_init(const struct topt_op_writer *w, int operand)
{
    struct param p = param_of(w, operand);
    if (init_value(&p))
        return -1;
    return topt_is_trained(w->o, operand) ? init_trained(w, &p) : 0;
}

int topt_params_zero(const struct topt_fragments *f, int op,
                     const struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++)
        if (topt_is_trained(o, x) &&
            topt_fragment_emit_on(f, TOPT_I_ZERO, op, 0, b->param_grad[x], -1))
            return -1;
    return 0;
}

/* ---- in each micro-batch ----------------------------------------------------------- */

/* A move of the parameter or its gradient, which other operators' computation may hide. */
static int move_async(const struct param *p, enum topt_async what, int backward, int src,
                      const struct topt_layout *to, int *ret)
{
    topt_fragment_async(p->f, what);
    int rc = topt_fragment_move(p->f, p->op, backward, src, to, ret);
    topt_fragment_async(p->f, TOPT_ASYNC_NOTHING);
    return rc;
}

/* Bring the parameter as kernels read it; 'packed' is no more needed unless it stays. */
static int unpack(const struct param *p, int backward, int packed)
{
    int made = p->b->value[p->x] =
        topt_fragment_block(p->f, buffer_of(p, p->whole, TOPT_CLASS_TRANSIENT));
    if (made < 0 ||
        topt_fragment_emit_on(p->f, TOPT_I_UNPACK, p->op, backward, packed, made))
        return -1;
    if (packed != p->b->param[p->x])
        topt_fragment_release(p->f, packed);
    return 0;
}

static int open_param(const struct topt_op_writer *w, int x)
{
    int value = w->b->value[x] = w->b->param[x];
    if (!is_read(w->o, w->backward, x))
        return 0;
    struct param p = param_of(w, x);
    /* A unit that runs again does so once backward has gathered it: FSDP2's _pre_forward gathers
     * nothing then, and what DeepSpeed releases it fetches again only beyond max_reuse_distance. */
    int shared = w->loaded && w->f->settings->gather != TOPT_GATHER_OPERATOR;
    if (p.at == TOPT_ZERO_PARAM &&
        move_async(&p, shared ? TOPT_ASYNC_SHARED : TOPT_ASYNC_PARAM, w->backward, value,
                   &p.whole, &value))
        return -1;
    w->b->value[x] = value;
    return w->o->attrs->bits ? unpack(&p, w->backward, value) : 0;
}

int topt_params_open(const struct topt_op_writer *w)
{
    for (int x = 0; x < w->o->spec->noperands; x++)
        if (is_param(w->o, x) && open_param(w, x))
            return -1;
    return 0;
}

void topt_params_close(const struct topt_op_writer *w)
{
    for (int x = 0; x < w->o->spec->noperands; x++) {
        if (!is_param(w->o, x))
            continue;
        if (w->b->value[x] != w->b->param[x])
            topt_fragment_release(w->f, w->b->value[x]);
        w->b->value[x] = -1;
    }
}

int topt_param_grads_open(const struct topt_op_writer *w)
{
    for (int x = 0; x < w->o->spec->noperands; x++) {
        if (!topt_is_trained(w->o, x))
            continue;
        struct param p = param_of(w, x);
        int *grad = &w->b->grad[x];
        *grad = is_sparse(p.at) ? -1 : w->b->param_grad[x];
        if (p.at < TOPT_ZERO_GRADIENT || is_sparse(p.at) || accumulates_unsharded(&p))
            continue;
        topt_fragment_async(w->f, TOPT_ASYNC_GRADIENT);
        *grad = topt_fragment_block(w->f, grad_of(&p, p.partial, TOPT_CLASS_TRANSIENT));
        topt_fragment_async(w->f, TOPT_ASYNC_NOTHING);
        if (*grad < 0 || emit_zero(&p, 1, *grad))
            return -1;
    }
    return 0;
}

/* This device's part of the sum over the replicas, in a buffer of its own. */
static int reduce_scatter(const struct param *p, int grad, int *ret)
{
    return move_async(p, TOPT_ASYNC_GRADIENT, 1, grad, &p->sharded, ret);
}

static int close_grad(const struct topt_op_writer *w, int x)
{
    struct param p = param_of(w, x);
    int grad = w->b->grad[x], part;
    if (is_sparse(p.at))
        return topt_rows_add(w);
    if (grad == w->b->param_grad[x])
        return 0;
    if (reduce_scatter(&p, grad, &part) ||
        topt_fragment_emit_on(w->f, TOPT_I_ADD, w->op, 1, part, w->b->param_grad[x]))
        return -1;
    topt_fragment_release(w->f, part);
    topt_fragment_release(w->f, grad);
    return 0;
}

int topt_param_grads_close(const struct topt_op_writer *w)
{
    for (int x = 0; x < w->o->spec->noperands; x++) {
        if (!topt_is_trained(w->o, x))
            continue;
        if (close_grad(w, x))
            return -1;
        w->b->grad[x] = -1;
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

/* The level of what a device holds: one without replicas moves between device and host as a sharded one does. */
static enum topt_zero held_at(const struct param *p)
{
    int64_t away = p->f->settings->offload;
    if (p->at || topt_layout_partial_mask(&p->partial))
        return p->at;
    return away & TOPT_OFFLOAD_PARAM      ? TOPT_ZERO_PARAM
           : away & TOPT_OFFLOAD_GRADIENT ? TOPT_ZERO_GRADIENT
                                          : p->at;
}

static struct gathered gathered_of(const struct param *p)
{
    enum topt_zero at = held_at(p);
    const struct topt_mesh *mesh = p->f->mesh;
    const struct topt_settings *s = p->f->settings;
    const struct topt_shape *shape = &p->shape;
    int64_t value = topt_block_bytes(mesh, s, shape, &p->whole, TOPT_ELEM_REAL);
    /* A matrix of few bits is gathered as it is stored, and unpacked for one kernel at a time. */
    if (p->o->attrs->bits) {
        struct topt_buffer packed = buffer_of(p, p->whole, TOPT_CLASS_PARAM);
        pack(p->f, p->o->attrs->bits, &packed);
        value = packed.bytes;
    }
    struct gathered g = {0};
    if (at == TOPT_ZERO_PARAM)
        g.value = s->low_params && is_low(p)
                      ? topt_low_parameter_bytes(
                            s, topt_layout_elements(mesh, shape, &p->whole)) /
                            2
                      : value;
    if (at == TOPT_ZERO_GRADIENT)
        g.whole = value;
    if (at == TOPT_ZERO_PARAM && s->unsharded_sums) {
        g.whole = g.value;
        g.value = 0;
    }
    if (!topt_is_trained(p->o, p->x))
        return g;
    g.reduced = topt_block_bytes(mesh, s, shape, &p->whole, grad_element(s));
    g.made = value;
    if (is_sparse(p->at))
        return g;
    if (accumulates_unsharded(p) &&
        at == TOPT_ZERO_PARAM) /* reduced when activations are gone */
        g.reduced = 0;
    else if (at >= TOPT_ZERO_GRADIENT) /* as backward makes it, and as it is reduced */
        g.grad = g.reduced == value ? value : value + g.reduced;
    else if (topt_layout_partial_mask(&p->partial))
        g.grad = g.reduced; /* buckets */
    if (p->at == TOPT_ZERO_STATE && s->shard_f32 && has_master(s))
        /* The weights themselves are in f32 there, whole: only the optimizer's states
         * are shared. */
        g.grad += topt_block_bytes(mesh, s, shape, &p->whole, TOPT_ELEM_STATE) -
                  topt_block_bytes(mesh, s, shape, &p->sharded, TOPT_ELEM_STATE);
    return g;
}

/* The part of a parameter's bytes that a pool of 'pool' numbers for all parameters holds. */
static int64_t pooled(const struct topt_fragments *f, int64_t bytes, int64_t pool)
{
    double all = f->model->parameters;
    return all > (double)pool ? (int64_t)((double)bytes * (double)pool / all) : bytes;
}

/* Bytes of the rows that pad a device's part of a table of the vocabulary. */
static int64_t padding(const struct param *p)
{
    const struct topt_fragments *f = p->f;
    int64_t vocab = f->model->vocab, multiple = f->settings->vocab_multiple;
    int d = 0;
    while (d < p->shape.ndim && p->shape.dim[d].count * p->shape.dim[d].unit != vocab)
        d++;
    if (!multiple || d == p->shape.ndim || f->model->unit[p->op] >= 0)
        return 0;
    int64_t split = topt_layout_parts(f->mesh, &p->whole, d);
    int64_t whole = parts(vocab, multiple * split) * multiple * split;
    double row = (double)topt_layout_elements(f->mesh, &p->shape, &p->whole) *
                 (double)split / (double)vocab;
    return (int64_t)(row * (double)(whole - vocab) / (double)split *
                     topt_parameter_bytes(f->settings));
}

/* Where bytes add up, each operator is charged for its share of the two largest neighbouring units
 * (model/graph/units.c), which are gathered at once, and of the gradients of one; what stands outside of
 * units stays gathered, and its gradients wait until the end of backward. */
static int64_t share_of_units(struct gathered g, const struct topt_share *s)
{
    if (!s->of)
        return g.value + g.made;
    /* (both g.value + one g.grad) / of, rounded up, without overflow */
    int64_t both = s->one + s->other;
    int64_t rest = both * (g.value % s->of) + s->one * (g.grad % s->of);
    return both * (g.value / s->of) + s->one * (g.grad / s->of) +
           (rest + s->of - 1) / s->of;
}

/* Buffers of units come and go in the step's schedule.  Gradients that are not sharded are all held
 * at once, in buckets.  FSDP2 shards parameters at level GRADIENT, too, but gathers them once for both
 * passes. */
static void hold_in_units(const struct param *p, struct topt_fragment_cost *cost)
{
    const struct topt_settings *s = p->f->settings;
    struct gathered g = gathered_of(p);
    enum topt_zero at = held_at(p);
    if (at < TOPT_ZERO_GRADIENT || !s->by_schedule) {
        cost->class_bytes[TOPT_CLASS_BUFFERS] +=
            at < TOPT_ZERO_GRADIENT ? g.grad
                                    : share_of_units(g, &p->f->model->share[p->op]);
        return;
    }
    if (topt_settings_scheduled(s)) {
        if (at == TOPT_ZERO_GRADIENT)
            cost->class_bytes[TOPT_CLASS_PARAM] -= g.whole;
        cost->whole_bytes += topt_with_allocator(s, g.whole);
    }
    cost->gathered_bytes += topt_with_allocator(s, g.value);
    cost->made_bytes += topt_with_allocator(s, g.made);
    cost->reduced_bytes += topt_with_allocator(s, g.reduced);
}

static int64_t held_in_pools(const struct param *p)
{
    struct gathered g = gathered_of(p);
    return pooled(p->f, g.value, p->f->settings->pool_numbers) +
           pooled(p->f, g.grad, p->f->settings->bucket_numbers);
}

/* Replicas of a shared table share what its level says; ZeroRedundancyOptimizer has whole weights in f32. */
static void share_table(const struct topt_settings *s, struct topt_fragment_cost *cost)
{
    int64_t *state = &cost->class_bytes[TOPT_CLASS_STATE],
            *grad = &cost->class_bytes[TOPT_CLASS_GRAD];
    if (s->tables == TOPT_ZERO_GRADIENT ||
        (s->tables == TOPT_ZERO_STATE && !(s->shard_f32 && has_master(s))))
        *state = parts(*state, s->table_shards);
    if (s->tables == TOPT_ZERO_GRADIENT)
        *grad = parts(*grad, s->table_shards);
}

void topt_param_buffers(const struct topt_fragments *f, int op,
                        const struct topt_config *c, struct topt_fragment_cost *cost)
{
    struct topt_op_writer w = topt_op_writer(f, op, 0, c, NULL);
    int64_t *bytes = &cost->class_bytes[TOPT_CLASS_BUFFERS];
    int master_alone = f->settings->shard_f32 && has_master(f->settings);
    if (topt_is_table(f->model, f->settings, op))
        share_table(f->settings, cost);
    if (op == f->model->loss)
        *bytes += f->settings->workspace_bytes;
    if (f->settings->gather == TOPT_GATHER_OPERATOR && !f->settings->vocab_multiple &&
        !master_alone)
        return;
    for (int x = 0; x < w.o->spec->noperands; x++) {
        if (!is_param(w.o, x))
            continue;
        struct param p = param_of(&w, x);
        *bytes += padding(&p);
        if (f->settings->rest_f32 && op == f->model->head && w.o->attrs->frozen)
            cost->class_bytes[TOPT_CLASS_KEPT] += topt_block_bytes(
                f->mesh, f->settings, &p.shape, &p.whole, TOPT_ELEM_REAL);
        if (!f->settings->low_apart && !f->settings->low_params && is_low(&p))
            cost->class_bytes[TOPT_CLASS_PARAM] += topt_low_parameter_bytes(
                f->settings, topt_layout_elements(f->mesh, &p.shape, &p.whole));
        if (f->settings->gather == TOPT_GATHER_UNIT)
            hold_in_units(&p, cost);
        else if (f->settings->gather == TOPT_GATHER_POOL)
            *bytes += held_in_pools(&p);
        if (master_alone && held_at(&p) == TOPT_ZERO_PARAM && topt_is_trained(w.o, x))
            cost->class_bytes[TOPT_CLASS_PARAM] -= topt_block_bytes(
                f->mesh, f->settings, &p.shape, &p.sharded, TOPT_ELEM_REAL);
    }
}

/* What is moved of a parameter's own part, and worked on by the host.  FSDP2 copies its shards in f32, and adds
 * gradients up on the host; DeepSpeed adds them up on the device, from which each micro-batch but the first fetches
 * what is there (async_accumulate_grad_in_cpu_via_gpu and partition_grads, edaa722). */
static void add_traffic(const struct param *p, struct topt_host_traffic *h)
{
    const struct topt_settings *s = p->f->settings;
    int64_t n = topt_layout_elements(p->f->mesh, &p->shape, &p->sharded);
    int64_t value = n * topt_element_bytes(s, TOPT_ELEM_REAL);
    int64_t rounds = s->unsharded_sums ? 1 : s->micro_batches;
    int64_t grad = n * topt_element_bytes(s, grad_element(s));
    int64_t moved = s->shard_f32 && has_master(s)
                        ? n * topt_element_bytes(s, TOPT_ELEM_STATE)
                        : value;
    if (p->o->attrs->bits)
        moved = n * p->o->attrs->bits / 8;
    if (s->offload & TOPT_OFFLOAD_PARAM) {
        h->fetched[0] += is_read(p->o, 0, p->x) ? rounds * moved : 0;
        h->fetched[1] +=
            is_read(p->o, 1, p->x) && p->at != TOPT_ZERO_GRADIENT ? rounds * moved : 0;
    }
    if (!topt_is_trained(p->o, p->x))
        return;
    if (s->offload & TOPT_OFFLOAD_GRADIENT) {
        h->rests += n * topt_element_bytes(s, TOPT_ELEM_WIDE);
        h->put += rounds * grad;
        h->fetched[1] += s->shard_f32 ? 0 : (rounds - 1) * grad;
    } else {
        h->ends += grad * s->offload_permille / 1000;
    }
    if (!(s->offload & TOPT_OFFLOAD_PARAM))
        h->returns += value * s->offload_permille / 1000;
    h->worked +=
        (n * topt_element_bytes(s, TOPT_ELEM_WIDE) + (has_master(s) ? 0 : 2 * value)) *
        s->offload_permille / 1000;
}

void topt_param_offload(const struct topt_fragments *f, int op,
                        const struct topt_config *c, struct topt_fragment_cost *cost,
                        struct topt_host_traffic *ret)
{
    struct topt_op_writer w = topt_op_writer(f, op, 0, c, NULL);
    const struct topt_settings *s = f->settings;
    int64_t *bytes = cost->class_bytes;
    *ret = (struct topt_host_traffic){.rests = 0};
    for (int x = 0; s->offload & ~TOPT_OFFLOAD_KEPT && x < w.o->spec->noperands; x++)
        if (is_param(w.o, x)) {
            struct param p = param_of(&w, x);
            add_traffic(&p, ret);
        }
    int64_t state = bytes[TOPT_CLASS_STATE] * (1000 - kept_permille(s)) / 1000;
    ret->rests += state;
    ret->worked += 2 * state;
    bytes[TOPT_CLASS_STATE] -= state;
    if (s->offload & TOPT_OFFLOAD_GRADIENT && !s->unsharded_sums)
        bytes[TOPT_CLASS_GRAD] = 0;
    if (s->offload & TOPT_OFFLOAD_PARAM) {
        ret->rests += bytes[TOPT_CLASS_PARAM];
        bytes[TOPT_CLASS_PARAM] = 0;
    }
    cost->host_bytes = ret->rests;
}

/* ---- at the end of a step ---------------------------------------------------------- */

/* The axes that cut the rows of a parameter whose optimizer keeps one number a row: along them each
 * device has a part of a row's sum of squares. */
static uint32_t axes_of_rows(const struct topt_fragments *f, int param)
{
    const struct topt_buffer *b = f->sink->get(f->sink, param);
    const struct optimizer *o = &optimizers[f->settings->optimizer];
    uint32_t axes = 0;
    if (!o->runs || o->state[0] != ROWS || b->shape.ndim < 2)
        return 0;
    for (int a = 0; a < f->mesh->naxes; a++)
        axes |= (uint32_t)(b->layout.at[a] == b->shape.ndim - 1) << a;
    return axes;
}

/* Where Muon needs matrices whole that tensor parallelism splits, their parts go to all ranks; activations are gone by
 * then, so that no bytes are counted. */
static int gather_split(const struct param *p, int grad)
{
    struct topt_instr i = topt_fragment_instr(TOPT_I_MOVE, p->op, 1);
    const int8_t *dim = p->o->spec->operand[p->x].dim;
    if (!(p->f->settings->muon & TOPT_MUON_WHOLE) ||
        !topt_muon_updates(p->f->settings, p->f->model, p->op, p->x))
        return 0;
    i.a = i.b = grad;
    i.move.kind = TOPT_MOVE_ALL_GATHER;
    i.move.to = p->f->sink->get(p->f->sink, grad)->layout;
    for (int a = 0; a < p->f->mesh->naxes; a++)
        if (p->whole.at[a] >= 0 && dim[p->whole.at[a]] != topt_op_experts(p->o)) {
            i.axes |= 1u << a;
            i.move.to.at[a] = TOPT_REPLICATE;
        }
    return i.axes ? topt_fragment_emit(p->f, i) : 0;
}

static int update(const struct param *p, int param, int grad)
{
    const int *state = p->b->state[p->x];
    if (gather_split(p, grad))
        return -1;
    struct topt_instr i = topt_fragment_instr(TOPT_I_UPDATE, p->op, 1);
    i.axes = axes_of_rows(p->f, param);
    i.a = param;
    i.b = grad;
    i.c = state[0];
    i.d = state[1];
    i.e = state[2];
    return topt_fragment_emit(p->f, i);
}

/* The gradient's and the parameter's part are updated, then all get the whole again. */
static int update_part(const struct param *p, int grad)
{
    int param = p->b->param[p->x], part;
    if (topt_fragment_move(p->f, p->op, 1, param, &p->sharded, &part) ||
        update(p, part, grad) || topt_fragment_move_into(p->f, p->op, 1, part, param))
        return -1;
    topt_fragment_release(p->f, part);
    return 0;
}

static int all_reduce(const struct param *p, int grad)
{
    topt_fragment_async(p->f, TOPT_ASYNC_GRADIENT);
    int rc = topt_fragment_all_reduce(p->f, p->op, grad, &p->partial, &p->whole);
    topt_fragment_async(p->f, TOPT_ASYNC_NOTHING);
    return rc;
}

static int end_param(const struct param *p)
{
    int param = p->b->param[p->x], grad = p->b->param_grad[p->x];
    if (p->at == TOPT_ZERO_NONE)
        return all_reduce(p, grad) || update(p, param, grad) ? -1 : 0;
    int whole = accumulates_unsharded(p), has_part = p->at >= TOPT_ZERO_PARAM;
    if ((whole && reduce_scatter(p, grad, &grad)) ||
        (has_part ? update(p, param, grad) : update_part(p, grad)))
        return -1;
    if (whole)
        topt_fragment_release(p->f, grad);
    return 0;
}

int topt_params_update(const struct topt_fragments *f, int op,
                       const struct topt_config *c, struct topt_op_buffers *b)
{
    struct topt_op_writer w = topt_op_writer(f, op, 1, c, b);
    for (int x = 0; x < w.o->spec->noperands; x++) {
        if (!topt_is_trained(w.o, x))
            continue;
        struct param p = param_of(&w, x);
        if (end_param(&p))
            return -1;
    }
    return 0;
}
