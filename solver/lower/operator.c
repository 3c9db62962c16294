/* operator.c - what one operator writes into a program: its buffers, kernels and
 * exchanges.
 *
 * The steps come from the operator's row in the table of kinds; where a step's
 * operands are split decides which exchanges it needs. */
#include "operator.h"

#include "fed.h"
#include "param.h"
#include "recompute.h"
#include "rows.h"

static int alloc_value(const struct topt_fragments *f, int op, int x,
                       const struct topt_config *c, enum topt_class cls,
                       struct topt_op_buffers *b)
{
    struct topt_layout l = topt_value_layout(&f->model->op[op], x, c, f->mesh);
    b->value[x] = topt_fragment_operand(f, op, x, &l, cls);
    return b->value[x] < 0 ? -1 : 0;
}

static int alloc_grad(const struct topt_fragments *f, int op, int x,
                      const struct topt_config *c, struct topt_op_buffers *b)
{
    struct topt_layout l = topt_grad_layout(&f->model->op[op], x, c, f->mesh);
    b->grad[x] = topt_fragment_operand(f, op, x, &l, TOPT_CLASS_TRANSIENT);
    return b->grad[x] < 0 ? -1 : 0;
}

int topt_op_init(const struct topt_fragments *f, int op, const struct topt_config *c,
                 struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++) {
        if (!o->operand[x].present)
            continue;
        if (o->operand[x].role == TOPT_PARAM && topt_param_init(f, op, x, c, b))
            return -1;
        if (o->operand[x].role == TOPT_DATA &&
            alloc_value(f, op, x, c, TOPT_CLASS_DATA, b))
            return -1;
    }
    return 0;
}

int topt_op_alloc_input(const struct topt_fragments *f, int op, int input,
                        const struct topt_config *c, int backward,
                        struct topt_op_buffers *b)
{
    int x = f->model->op[op].input[input];
    b->value[x] = -1;
    return backward && !topt_reads_back(f->model, op, input)
               ? 0
               : alloc_value(f, op, x, c, TOPT_CLASS_TRANSIENT, b);
}

int topt_op_alloc_grad(const struct topt_fragments *f, int op,
                       const struct topt_config *c, struct topt_op_buffers *b)
{
    return op == f->model->loss ? 0 : alloc_grad(f, op, f->model->op[op].output, c, b);
}

static int emit_kernel(const struct topt_fragments *f, int op, int backward,
                       const struct topt_step *s, int64_t at,
                       const struct topt_op_buffers *b)
{
    if (s->kernel == TOPT_K_LOAD && b->loaded)
        return 0;
    const struct topt_op *o = &f->model->op[op];
    struct topt_instr i = topt_fragment_instr(TOPT_I_KERNEL, op, backward);
    i.kernel = s->kernel;
    i.at = at;
    int writes = 0;
    for (int x = 0; x < o->spec->noperands; x++) {
        uint32_t touched = s->reads | s->writes;
        if (touched >> x & 1)
            i.value[x] = b->value[x];
        if (touched >> (16 + x) & 1)
            i.grad[x] = b->grad[x];
        writes |= (s->writes >> x & 1 && b->value[x] >= 0) ||
                  (s->writes >> (16 + x) & 1 && b->grad[x] >= 0);
    }
    if (writes && f->fed && s->kernel == TOPT_K_LOAD)
        return topt_fed_load(f, &i);
    return writes ? topt_fragment_emit(f, i) : 0; /* the result is not needed */
}

/* ---- exchanges inside an operator -------------------------------------------------- */

static int emit_reduce(const struct topt_fragments *f, int op, int backward,
                       const struct topt_config *c, const struct topt_step *s,
                       const struct topt_op_buffers *b)
{
    struct topt_instr i = topt_fragment_instr(TOPT_I_REDUCE, op, backward);
    i.a = b->value[s->operand];
    i.is_max = s->kind == TOPT_STEP_MAX;
    i.axes = topt_axes_over(f->mesh, c, s->dims);
    return i.axes ? topt_fragment_emit(f, i) : 0;
}

static int alloc_window(const struct topt_fragments *f, int op, int operand,
                        const struct topt_config *c)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_buffer b = {.cls = TOPT_CLASS_TRANSIENT,
                            .elem = TOPT_ELEM_REAL,
                            .shape = topt_operand_shape(o, operand),
                            .layout = topt_value_layout(o, operand, c, f->mesh),
                            .window = 1,
                            .op = op,
                            .operand = operand};
    b.bytes = topt_charged_bytes(f->settings, b.elem,
                                 topt_operand_largest(o, operand, c, f->mesh));
    return f->sink->alloc(f->sink, &b, f->err);
}

/* Blocks sent and received: at most a window and, of each neighbour's, what overlaps. */
static int emit_halo(const struct topt_fragments *f, int op, int backward, int window,
                     int from, int to, const struct topt_config *c)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_instr i =
        topt_fragment_instr(backward ? TOPT_I_HALO_ADD : TOPT_I_HALO, op, backward);
    struct topt_buffer b = {.cls = TOPT_CLASS_STAGING,
                            .elem = TOPT_ELEM_BYTE,
                            .layout = topt_layout_replicated(),
                            .op = op,
                            .operand = -1};
    i.a = from;
    i.b = to;
    i.axes = topt_window_axes(o, window, c, f->mesh);
    b.bytes = topt_charged_bytes(f->settings, TOPT_ELEM_REAL,
                                 topt_window_staging(o, window, c, f->mesh));
    i.c = f->sink->alloc(f->sink, &b, f->err);
    int rc = i.c < 0 ? -1 : topt_fragment_emit(f, i);
    if (i.c >= 0)
        f->sink->release(f->sink, i.c);
    return rc;
}

/* A window is the operand itself where nothing it reaches is elsewhere. */
static int fill_window(const struct topt_fragments *f, int op, int backward,
                       const struct topt_config *c, const struct topt_step *s,
                       struct topt_op_buffers *b)
{
    int x = s->operand, w = s->into;
    (void)backward;
    b->value[w] = b->value[x];
    if (!topt_window_axes(&f->model->op[op], w, c, f->mesh))
        return 0;
    b->value[w] = alloc_window(f, op, w, c);
    return b->value[w] < 0 ? -1 : emit_halo(f, op, 0, w, b->value[x], b->value[w], c);
}

static int add_window(const struct topt_fragments *f, int op, const struct topt_config *c,
                      const struct topt_step *s, const struct topt_op_buffers *b)
{
    int w = s->operand, x = s->into;
    if (b->grad[x] < 0 || b->value[w] == b->grad[x])
        return 0;
    return emit_halo(f, op, 1, w, b->value[w], b->grad[x], c);
}

/* Operands may share a buffer: a window that is the operand itself, a move to where the
 * operand is already.  It is the first one's. */
static int owned(const struct topt_op_buffers *b, int operand)
{
    for (int x = 0; x < TOPT_MAX_OPERANDS; x++)
        if ((x < operand && b->value[x] == b->value[operand]) ||
            b->grad[x] == b->value[operand])
            return 0;
    return b->value[operand] >= 0;
}

static void release_value(const struct topt_fragments *f, struct topt_op_buffers *b,
                          int operand)
{
    if (owned(b, operand))
        f->sink->release(f->sink, b->value[operand]);
    b->value[operand] = -1;
}

static int move_operand(const struct topt_fragments *f, int op, int backward,
                        const struct topt_config *c, const struct topt_step *s,
                        struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    struct topt_layout from = topt_value_layout(o, s->operand, c, f->mesh);
    struct topt_layout to = topt_value_layout(o, s->into, c, f->mesh);
    struct topt_shape shape = topt_operand_shape(o, s->operand);
    release_value(f, b, s->into);
    return topt_fragment_move(f, op, backward, b->value[s->operand], &shape, &from, &to,
                              &b->value[s->into]);
}

static int emit_step(const struct topt_fragments *f, int op, int backward,
                     const struct topt_config *c, const struct topt_step *s, int64_t at,
                     struct topt_op_buffers *b)
{
    switch (s->kind) {
    case TOPT_STEP_KERNEL:
        if (s->dims && !topt_axes_over(f->mesh, c, s->dims))
            return 0;
        if (topt_rows_have_owners(f, op, c, s))
            return topt_rows_fetch(f, op, c, b);
        return emit_kernel(f, op, backward, s, at, b);
    case TOPT_STEP_HALO:
        return fill_window(f, op, backward, c, s, b);
    case TOPT_STEP_HALO_ADD:
        return add_window(f, op, c, s, b);
    case TOPT_STEP_MOVE:
        return move_operand(f, op, backward, c, s, b);
    default:
        return emit_reduce(f, op, backward, c, s, b);
    }
}

/* Forward does all of its row; backward what leads to a gradient that is wanted. */
static int step_runs(const struct topt_op *o, int backward, const struct topt_step *s)
{
    return !backward || o->runs_back >> (s - o->spec->backward) & 1;
}

/* The steps [from, to) of a loop over dimension 'd': all rounds, or one that counts
 * for all where the sink adds up. */
static int emit_loop(const struct topt_fragments *f, int op, int backward,
                     const struct topt_config *c, const struct topt_step *from,
                     const struct topt_step *to, struct topt_op_buffers *b)
{
    int64_t n = f->model->op[op].count[from->loop - 1], rounds = f->sink->repeat ? 1 : n;
    if (f->sink->repeat)
        f->sink->repeat(f->sink, from->loop - 1, n);
    for (int64_t k = 0; k < rounds; k++)
        for (const struct topt_step *s = from; s < to; s++)
            if (step_runs(&f->model->op[op], backward, s) &&
                emit_step(f, op, backward, c, s, backward ? n - 1 - k : k, b))
                return -1;
    if (f->sink->repeat)
        f->sink->repeat(f->sink, -1, 1);
    return 0;
}

static int emit_steps(const struct topt_fragments *f, int op, int backward,
                      const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op_spec *spec = f->model->op[op].spec;
    const struct topt_step *s = backward ? spec->backward : spec->forward;
    const struct topt_step *end = s + TOPT_MAX_STEPS;
    while (s < end && s->kind != TOPT_STEP_END) {
        const struct topt_step *next = s + 1;
        while (s->loop && next < end && next->kind && next->loop == s->loop)
            next++;
        if (s->loop ? emit_loop(f, op, backward, c, s, next, b)
                    : step_runs(&f->model->op[op], backward, s) &&
                          emit_step(f, op, backward, c, s, 0, b))
            return -1;
        s = next;
    }
    return 0;
}

/* Kernels write the window of a gradient, or the gradient itself where that is all; nothing
 * where it is not needed. */
static int alloc_grad_window(const struct topt_fragments *f, int op, int operand,
                             const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    int grad = b->grad[o->spec->operand[operand].window_of - 1];
    b->value[operand] = grad < 0 || !topt_window_axes(o, operand, c, f->mesh)
                            ? grad
                            : alloc_window(f, op, operand, c);
    return grad >= 0 && b->value[operand] < 0 ? -1 : 0;
}

/* Buffers of the given role, of which 'cls' is what backward reads or touches; the
 * rest is in flight, and of backward left out.  Allocated or released together. */
static int alloc_role(const struct topt_fragments *f, int op, const struct topt_config *c,
                      enum topt_role role, enum topt_class cls, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = 0; x < o->spec->noperands; x++) {
        if (o->operand[x].role != role || !o->operand[x].present ||
            o->spec->operand[x].made)
            continue;
        uint32_t over = o->spec->operand[x].over;
        if (over && !topt_axes_over(f->mesh, c, over))
            continue;
        if (role == TOPT_WORK_BWD && !(o->touches_back >> x & 1))
            continue;
        int waits = role != TOPT_SAVED || o->reads_back >> x & 1;
        if (o->spec->operand[x].of_grad
                ? alloc_grad_window(f, op, x, c, b)
                : alloc_value(f, op, x, c, waits ? cls : TOPT_CLASS_TRANSIENT, b))
            return -1;
    }
    return 0;
}

static void release_role(const struct topt_fragments *f, int op, enum topt_role role,
                         struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    /* those that share another's buffer first */
    for (int x = o->spec->noperands - 1; x >= 0; x--)
        if (o->operand[x].role == role)
            release_value(f, b, x);
}

/* Saved values that backward does not read, or all of them. */
static void release_saved(const struct topt_fragments *f, int op, int all,
                          struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int x = o->spec->noperands - 1; x >= 0; x--)
        if (o->operand[x].role == TOPT_SAVED && (all || !(o->reads_back >> x & 1)))
            release_value(f, b, x);
}

int topt_op_forward(const struct topt_fragments *f, int op, const struct topt_config *c,
                    enum topt_pass pass, struct topt_op_buffers *b)
{
    static const enum topt_class saved[] = {[TOPT_PASS_KEEP] = TOPT_CLASS_KEPT,
                                            [TOPT_PASS_DROP] = TOPT_CLASS_TRANSIENT,
                                            [TOPT_PASS_RECOMPUTE] =
                                                TOPT_CLASS_RECOMPUTED};
    const struct topt_op *o = &f->model->op[op];
    int keeps = pass != TOPT_PASS_DROP && topt_has_backward(f->model, op);
    b->loaded = pass == TOPT_PASS_RECOMPUTE;
    if (alloc_role(f, op, c, TOPT_OUTPUT, TOPT_CLASS_TRANSIENT, b) ||
        alloc_role(f, op, c, TOPT_SAVED, keeps ? saved[pass] : TOPT_CLASS_TRANSIENT, b) ||
        alloc_role(f, op, c, TOPT_WORK_FWD, TOPT_CLASS_TRANSIENT, b) ||
        topt_params_open(f, op, c, 0, b) || emit_steps(f, op, 0, c, b))
        return -1;
    if (op == f->model->loss) {
        struct topt_instr i = topt_fragment_instr(TOPT_I_LOSS, op, 0);
        i.a = b->value[o->output];
        for (int a = 0; a < f->mesh->naxes; a++)
            i.axes |= 1u << a;
        if (topt_fragment_emit(f, i))
            return -1;
    }
    topt_params_close(f, op, b);
    release_role(f, op, TOPT_WORK_FWD, b);
    release_saved(f, op, !keeps, b);
    return 0;
}

/* A gradient buffer for each input that needs one.  Kernels add into the gradient of what
 * the row calls a parameter, so where that is a tensor it starts from zero. */
static int alloc_input_grads(const struct topt_fragments *f, int op,
                             const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int k = 0; k < o->ninputs; k++) {
        int x = o->input[k];
        if (!f->model->tensor[o->operand[x].tensor].needs_gradient)
            continue;
        if (alloc_grad(f, op, x, c, b))
            return -1;
        struct topt_instr i = topt_fragment_instr(TOPT_I_ZERO, op, 1);
        i.a = b->grad[x];
        if (o->spec->operand[x].role == TOPT_PARAM && topt_fragment_emit(f, i))
            return -1;
    }
    return 0;
}

int topt_op_backward(const struct topt_fragments *f, int op, const struct topt_config *c,
                     struct topt_op_buffers *b)
{
    if (alloc_input_grads(f, op, c, b) ||
        alloc_role(f, op, c, TOPT_WORK_BWD, TOPT_CLASS_TRANSIENT, b) ||
        topt_params_open(f, op, c, 1, b) || topt_param_grads_open(f, op, c, b) ||
        emit_steps(f, op, 1, c, b))
        return -1;
    topt_params_close(f, op, b);
    release_role(f, op, TOPT_WORK_BWD, b);
    release_saved(f, op, 1, b);
    return topt_param_grads_close(f, op, c, b);
}
