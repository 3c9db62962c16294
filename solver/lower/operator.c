/* operator.c - what one operator writes into a program: its buffers, kernels and
 * exchanges.
 *
 * The steps come from the operator's row in the table of kinds; where a step's
 * operands are split decides which exchanges it needs.
 *
 * A plan may want a sample on several devices: where an operator splits features, or does the
 * same on all.  A program that reads shared files loads it on each of them.  Where samples come
 * from whoever trains, each device is given its part of the batch alone, as in data parallelism,
 * and a way to the layout of the configuration is found as between any two operators: its moves
 * are instructions, with prices. */
#include "operator.h"

#include "param.h"
#include "recompute.h"
#include "rows.h"

static int alloc_value(const struct topt_op_writer *w, int x, enum topt_class cls)
{
    struct topt_layout l = topt_value_layout(w->o, x, w->c, w->f->mesh);
    w->b->value[x] = topt_fragment_operand(w->f, w->op, x, &l, cls);
    return w->b->value[x] < 0 ? -1 : 0;
}

int topt_op_init(const struct topt_fragments *f, int op, const struct topt_config *c,
                 struct topt_op_buffers *b)
{
    struct topt_op_writer w = topt_op_writer(f, op, 0, c, b);
    for (int x = 0; x < w.o->spec->noperands; x++) {
        if (!w.o->operand[x].present)
            continue;
        if (w.o->operand[x].role == TOPT_PARAM && topt_param_init(&w, x))
            return -1;
        if (w.o->operand[x].role == TOPT_DATA && alloc_value(&w, x, TOPT_CLASS_DATA))
            return -1;
    }
    return 0;
}

/* ---- loads of a part of the batch --------------------------------------------------- */

/* The batch over as many axes as leave each part something. */
static struct topt_layout data_parallel(const struct topt_mesh *mesh,
                                        const struct topt_shape *shape)
{
    struct topt_layout l = topt_layout_replicated();
    int64_t parts = 1;
    int8_t pos = 0;
    for (int a = 0; a < mesh->naxes; a++) {
        if (parts * mesh->size[a] > shape->dim[0].count)
            continue;
        parts *= mesh->size[a];
        l.at[a] = 0;
        l.pos[a] = pos++;
    }
    return l;
}

/* Load a device's part of the batch, and move it to where the configuration wants it. */
static int load_part(const struct topt_op_writer *w, int operand, int wanted)
{
    struct topt_buffer part = *w->f->sink->get(w->f->sink, wanted);
    struct topt_layout fed = data_parallel(w->f->mesh, &part.shape);
    struct topt_instr i = topt_fragment_instr(TOPT_I_KERNEL, w->op, w->backward);
    int moves = !topt_layout_equal(&fed, &part.layout);
    part.layout = fed;
    part.cls = TOPT_CLASS_TRANSIENT;
    part.bytes = 0;
    i.kernel = TOPT_K_LOAD;
    i.value[operand] = moves ? topt_fragment_block(w->f, part) : wanted;
    if (i.value[operand] < 0 || topt_fragment_emit(w->f, i))
        return -1;
    if (!moves)
        return 0;
    if (topt_fragment_move_into(w->f, w->op, w->backward, i.value[operand], wanted))
        return -1;
    topt_fragment_release(w->f, i.value[operand]);
    return 0;
}

static int load_parts(const struct topt_op_writer *w, const struct topt_instr *load)
{
    for (int x = 0; x < w->o->spec->noperands; x++)
        if (load->value[x] >= 0 && load_part(w, x, load->value[x]))
            return -1;
    return 0;
}

/* ---- steps ------------------------------------------------------------------------- */

static int emit_kernel(const struct topt_op_writer *w, const struct topt_step *s,
                       int64_t at)
{
    const struct topt_op_buffers *b = w->b;
    uint32_t touched = s->reads | s->writes;
    struct topt_instr i = topt_fragment_instr(TOPT_I_KERNEL, w->op, w->backward);
    int writes = 0;
    i.kernel = s->kernel;
    i.at = at;
    for (int x = 0; x < w->o->spec->noperands; x++) {
        if (touched >> x & 1)
            i.value[x] = b->value[x];
        if (touched >> (16 + x) & 1)
            i.grad[x] = b->grad[x];
        writes |= (s->writes >> x & 1 && b->value[x] >= 0) ||
                  (s->writes >> (16 + x) & 1 && b->grad[x] >= 0);
    }
    if (!writes || (s->kernel == TOPT_K_LOAD && w->loaded))
        return 0; /* the result is not needed, or there */
    return w->f->fed && s->kernel == TOPT_K_LOAD ? load_parts(w, &i)
                                                 : topt_fragment_emit(w->f, i);
}

static int emit_reduce(const struct topt_op_writer *w, const struct topt_step *s)
{
    struct topt_instr i = topt_fragment_instr(TOPT_I_REDUCE, w->op, w->backward);
    i.a = w->b->value[s->operand];
    i.is_max = s->kind == TOPT_STEP_MAX;
    i.axes = topt_axes_over(w->f->mesh, w->c, s->dims);
    return i.axes ? topt_fragment_emit(w->f, i) : 0;
}

static int alloc_window(const struct topt_op_writer *w, int x)
{
    struct topt_buffer b = {.cls = TOPT_CLASS_TRANSIENT,
                            .elem = TOPT_ELEM_REAL,
                            .shape = topt_operand_shape(w->o, x),
                            .layout = topt_value_layout(w->o, x, w->c, w->f->mesh),
                            .window = 1,
                            .op = w->op,
                            .operand = x};
    b.bytes = topt_charged_bytes(w->f->settings, b.elem,
                                 topt_operand_largest(w->o, x, w->c, w->f->mesh));
    return w->f->sink->alloc(w->f->sink, &b, w->f->err);
}

/* Blocks sent and received: at most a window and, of each neighbour's, what overlaps. */
static int emit_halo(const struct topt_op_writer *w, enum topt_instr_kind kind,
                     int window, int from, int to)
{
    const struct topt_mesh *mesh = w->f->mesh;
    struct topt_instr i = topt_fragment_instr(kind, w->op, kind == TOPT_I_HALO_ADD);
    i.a = from;
    i.b = to;
    i.axes = topt_window_axes(w->o, window, w->c, mesh);
    return topt_fragment_emit_staged(
        w->f, i,
        topt_charged_bytes(w->f->settings, TOPT_ELEM_REAL,
                           topt_window_staging(w->o, window, w->c, mesh)));
}

/* A window is the operand itself where nothing it reaches is elsewhere. */
static int fill_window(const struct topt_op_writer *w, const struct topt_step *s)
{
    int from = w->b->value[s->operand], *to = &w->b->value[s->into];
    *to = from;
    if (!topt_window_axes(w->o, s->into, w->c, w->f->mesh))
        return 0;
    *to = alloc_window(w, s->into);
    return *to < 0 ? -1 : emit_halo(w, TOPT_I_HALO, s->into, from, *to);
}

static int add_window(const struct topt_op_writer *w, const struct topt_step *s)
{
    int from = w->b->value[s->operand], to = w->b->grad[s->into];
    return to < 0 || from == to ? 0 : emit_halo(w, TOPT_I_HALO_ADD, s->operand, from, to);
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

static void release_value(const struct topt_op_writer *w, int operand)
{
    if (owned(w->b, operand))
        topt_fragment_release(w->f, w->b->value[operand]);
    w->b->value[operand] = -1;
}

static int move_operand(const struct topt_op_writer *w, const struct topt_step *s)
{
    struct topt_layout to = topt_value_layout(w->o, s->into, w->c, w->f->mesh);
    release_value(w, s->into);
    return topt_fragment_move(w->f, w->op, w->backward, w->b->value[s->operand], &to,
                              &w->b->value[s->into]);
}

static int emit_step(const struct topt_op_writer *w, const struct topt_step *s,
                     int64_t at)
{
    /* Forward does all of its row; backward what leads to a gradient that is wanted. */
    if (w->backward && !(w->o->runs_back >> (s - w->o->spec->backward) & 1))
        return 0;
    switch (s->kind) {
    case TOPT_STEP_KERNEL:
        if (s->dims && !topt_axes_over(w->f->mesh, w->c, s->dims))
            return 0;
        return topt_rows_have_owners(w, s) ? topt_rows_fetch(w) : emit_kernel(w, s, at);
    case TOPT_STEP_HALO:
        return fill_window(w, s);
    case TOPT_STEP_HALO_ADD:
        return add_window(w, s);
    case TOPT_STEP_MOVE:
        return move_operand(w, s);
    default:
        return emit_reduce(w, s);
    }
}

/* The steps [from, to) of a loop: all rounds, or one that counts for all where the sink adds
 * up. */
static int emit_loop(const struct topt_op_writer *w, const struct topt_step *from,
                     const struct topt_step *to)
{
    struct topt_sink *sink = w->f->sink;
    int64_t n = w->o->count[from->loop - 1], rounds = sink->repeat ? 1 : n;
    if (sink->repeat)
        sink->repeat(sink, from->loop - 1, n);
    for (int64_t k = 0; k < rounds; k++)
        for (const struct topt_step *s = from; s < to; s++)
            if (emit_step(w, s, w->backward ? n - 1 - k : k))
                return -1;
    if (sink->repeat)
        sink->repeat(sink, -1, 1);
    return 0;
}

static int emit_steps(const struct topt_op_writer *w)
{
    const struct topt_step *s = w->backward ? w->o->spec->backward : w->o->spec->forward;
    const struct topt_step *end = s + TOPT_MAX_STEPS;
    while (s < end && s->kind != TOPT_STEP_END) {
        const struct topt_step *next = s + 1;
        while (s->loop && next < end && next->kind && next->loop == s->loop)
            next++;
        if (s->loop ? emit_loop(w, s, next) : emit_step(w, s, 0))
            return -1;
        s = next;
    }
    return 0;
}

/* ---- forward and backward ----------------------------------------------------------- */

/* Kernels write the window of a gradient, or the gradient itself where that is all; nothing
 * where it is not needed. */
static int alloc_grad_window(const struct topt_op_writer *w, int x)
{
    int grad = w->b->grad[w->o->spec->operand[x].window_of - 1];
    w->b->value[x] = grad < 0 || !topt_window_axes(w->o, x, w->c, w->f->mesh)
                         ? grad
                         : alloc_window(w, x);
    return grad >= 0 && w->b->value[x] < 0 ? -1 : 0;
}

/* Buffers of the given role, of which 'cls' is what backward reads or touches; the
 * rest is in flight, and of backward left out.  Allocated or released together. */
static int alloc_role(const struct topt_op_writer *w, enum topt_role role,
                      enum topt_class cls)
{
    const struct topt_op *o = w->o;
    for (int x = 0; x < o->spec->noperands; x++) {
        const struct topt_operand_spec *spec = &o->spec->operand[x];
        if (o->operand[x].role != role || !o->operand[x].present || spec->made ||
            (spec->over && !topt_axes_over(w->f->mesh, w->c, spec->over)) ||
            (role == TOPT_WORK_BWD && !(o->touches_back >> x & 1)))
            continue;
        int waits = role != TOPT_SAVED || o->reads_back >> x & 1;
        if (spec->of_grad ? alloc_grad_window(w, x)
                          : alloc_value(w, x, waits ? cls : TOPT_CLASS_TRANSIENT))
            return -1;
    }
    return 0;
}

/* But those of 'kept' (bits of operands).  The last go first: they may share a buffer of one
 * before. */
static void release_role(const struct topt_op_writer *w, enum topt_role role,
                         uint32_t kept)
{
    for (int x = w->o->spec->noperands - 1; x >= 0; x--)
        if (w->o->operand[x].role == role && !(kept >> x & 1))
            release_value(w, x);
}

int topt_op_forward(const struct topt_fragments *f, int op, const struct topt_config *c,
                    enum topt_pass pass, struct topt_op_buffers *b)
{
    struct topt_op_writer w = topt_op_writer(f, op, 0, c, b);
    int keeps = pass != TOPT_PASS_DROP && topt_has_backward(f->model, op);
    enum topt_class saved = !keeps                        ? TOPT_CLASS_TRANSIENT
                            : pass == TOPT_PASS_RECOMPUTE ? TOPT_CLASS_RECOMPUTED
                                                          : TOPT_CLASS_KEPT;
    w.loaded = pass == TOPT_PASS_RECOMPUTE;
    if (alloc_role(&w, TOPT_OUTPUT, TOPT_CLASS_TRANSIENT) ||
        alloc_role(&w, TOPT_SAVED, saved) ||
        alloc_role(&w, TOPT_WORK_FWD, TOPT_CLASS_TRANSIENT) || topt_params_open(&w) ||
        emit_steps(&w))
        return -1;
    if (w.o->spec->loss) {
        struct topt_instr i = topt_fragment_instr(TOPT_I_LOSS, op, 0);
        i.a = b->value[w.o->output];
        i.axes = (1u << f->mesh->naxes) - 1;
        if (topt_fragment_emit(f, i))
            return -1;
    }
    topt_params_close(&w);
    release_role(&w, TOPT_WORK_FWD, 0);
    release_role(&w, TOPT_SAVED, keeps ? (uint32_t)w.o->reads_back : 0);
    return 0;
}

/* A gradient buffer for each input that needs one.  Kernels add into the gradient of what
 * the row calls a parameter, so where that is a tensor it starts from zero. */
static int alloc_input_grads(const struct topt_op_writer *w)
{
    for (int k = 0; k < w->o->ninputs; k++) {
        int x = w->o->input[k];
        if (!w->f->model->tensor[w->o->tensor[x]].needs_gradient)
            continue;
        struct topt_layout l = topt_grad_layout(w->o, x, w->c, w->f->mesh);
        w->b->grad[x] = topt_fragment_operand(w->f, w->op, x, &l, TOPT_CLASS_TRANSIENT);
        if (w->b->grad[x] < 0 ||
            (w->o->spec->operand[x].role == TOPT_PARAM &&
             topt_fragment_emit_on(w->f, TOPT_I_ZERO, w->op, 1, w->b->grad[x], -1)))
            return -1;
    }
    return 0;
}

int topt_op_backward(const struct topt_fragments *f, int op, const struct topt_config *c,
                     struct topt_op_buffers *b)
{
    struct topt_op_writer w = topt_op_writer(f, op, 1, c, b);
    if (alloc_input_grads(&w) || alloc_role(&w, TOPT_WORK_BWD, TOPT_CLASS_TRANSIENT) ||
        topt_params_open(&w) || topt_param_grads_open(&w) || emit_steps(&w))
        return -1;
    topt_params_close(&w);
    release_role(&w, TOPT_WORK_BWD, 0);
    release_role(&w, TOPT_SAVED, 0);
    return topt_param_grads_close(&w);
}
