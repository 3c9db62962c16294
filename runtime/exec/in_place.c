/* in_place.c - a program whose elementwise kernels write where they read, and are done in the
 * pass of the kernel before them.
 *
 * Lowering gives each operator an output of its own.  Where a row says that a kernel may write
 * onto what it reads (a bias, a sum, the gradient of an activation) and nobody reads that any
 * more, both become one buffer; where the row says that the numbers stay as they are (the
 * gradients of a sum and of a bias are that of their output) they may be one as long as neither
 * is written again.  So a bias adds to the product that is in its place already, and backward
 * copies nothing.
 *
 * What then follows directly upon a kernel that its row names is marked as joined to it: a device
 * may do both in one pass over the numbers that they share (a product's epilogue), and a price
 * counts these once. */
#include "topt_runtime.h"

#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 2 * TOPT_MAX_OPERANDS }; /* as the bits of a step's masks */

static const struct topt_step *find(const struct topt_step *s, enum topt_kernel k)
{
    for (int i = 0; i < TOPT_MAX_STEPS && s[i].kind != TOPT_STEP_END; i++)
        if (s[i].kind == TOPT_STEP_KERNEL && s[i].kernel == k)
            return &s[i];
    return NULL;
}

static const struct topt_step *step_of(const struct topt_program *p,
                                       const struct topt_instr *i)
{
    const struct topt_op_spec *spec = p->model->op[i->op].spec;
    const struct topt_step *s = find(spec->forward, i->kernel);
    return s ? s : find(spec->backward, i->kernel);
}

/* The bits of operands are those of steps' masks: values, and gradients from bit 16 on. */
static int at(const struct topt_instr *i, int bit)
{
    const int *of = bit < TOPT_MAX_OPERANDS ? i->value : i->grad;
    return of[bit % TOPT_MAX_OPERANDS];
}

static uint32_t bits_of(const struct topt_instr *i, int buffer)
{
    uint32_t bits = 0;
    for (int k = 0; k < OPERANDS; k++)
        bits |= (uint32_t)(at(i, k) == buffer) << k;
    return bits;
}

static int touches(const struct topt_instr *i, int buffer)
{
    return bits_of(i, buffer) || i->a == buffer || i->b == buffer || i->c == buffer;
}

static int writes(const struct topt_program *p, const struct topt_instr *i, int buffer)
{
    if (!touches(i, buffer) || i->kind == TOPT_I_FREE || i->kind == TOPT_I_LOSS)
        return 0;
    if (i->kind == TOPT_I_KERNEL)
        return (step_of(p, i)->writes & bits_of(i, buffer)) != 0;
    return i->kind == TOPT_I_ADD || (i->kind == TOPT_I_MOVE && i->a != i->b)
               ? i->b == buffer
               : 1;
}

static int alike(const struct topt_program *p, int x, int y)
{
    const struct topt_buffer *a = &p->buffer[x], *b = &p->buffer[y];
    if (a->elem != b->elem || a->bytes != b->bytes || a->window || b->window || a->rows ||
        b->rows || a->shape.ndim != b->shape.ndim || !a->shape.ndim ||
        !topt_layout_equal(&a->layout, &b->layout))
        return 0;
    for (int d = 0; d < a->shape.ndim; d++)
        if (a->shape.dim[d].count != b->shape.dim[d].count ||
            a->shape.dim[d].unit != b->shape.dim[d].unit)
            return 0;
    return 1;
}

/* Comes and goes within a micro-batch; -1 where it does not. */
static int where(const struct topt_program *p, enum topt_instr_kind kind, int from,
                 int step, int buffer)
{
    for (int i = from; i >= p->micro_begin && i < p->micro_end; i += step)
        if (p->instr[i].kind == kind && p->instr[i].a == buffer)
            return i;
    return -1;
}

static int used_between(const struct topt_program *p, int from, int to, int buffer)
{
    for (int i = from + 1; i < to; i++)
        if (touches(&p->instr[i], buffer))
            return 1;
    return 0;
}

static int written_between(const struct topt_program *p, int from, int to, int buffer)
{
    for (int i = from + 1; i < to; i++)
        if (writes(p, &p->instr[i], buffer))
            return 1;
    return 0;
}

static void drop(struct topt_program *p, int i)
{
    p->instr[i].kind = TOPT_I_FREE;
    p->instr[i].a = -1; /* swept away at the end */
}

static void rename_one(int *named, int old, int buffer)
{
    *named = *named == old ? buffer : *named;
}

static void rename_buffer(struct topt_program *p, int from, int to, int old, int buffer)
{
    for (int i = from; i <= to; i++) {
        struct topt_instr *in = &p->instr[i];
        rename_one(&in->a, old, buffer);
        rename_one(&in->b, old, buffer);
        rename_one(&in->c, old, buffer);
        for (int k = 0; k < TOPT_MAX_OPERANDS; k++) {
            rename_one(&in->value[k], old, buffer);
            rename_one(&in->grad[k], old, buffer);
        }
    }
}

/* Put the result that kernel 'i' makes of 'src' onto 'src', where both fit. */
static void put_onto(struct topt_program *p, int i, int src, int dst, int same)
{
    int born = where(p, TOPT_I_ALLOC, i, -1, dst);
    int end = where(p, TOPT_I_FREE, i, 1, dst), gone = where(p, TOPT_I_FREE, i, 1, src);
    if (src == dst || born < 0 || end < 0 || gone < 0 || !alike(p, src, dst) ||
        where(p, TOPT_I_ALLOC, i, -1, src) < 0 || used_between(p, born, i, dst))
        return;
    int first = end < gone ? end : gone;
    if (used_between(p, i, gone, src) &&
        (!same || written_between(p, i, first, src) || written_between(p, i, first, dst)))
        return;
    if (p->buffer[dst].cls <
        p->buffer[src].cls) /* what stays longer has the lower number */
        p->buffer[src].cls = p->buffer[dst].cls;
    drop(p, born);
    drop(p, first);
    rename_buffer(p, i, p->micro_end - 1, dst, src);
}

static void put_kernel(struct topt_program *p, int i)
{
    const struct topt_step *s = step_of(p, &p->instr[i]);
    for (int w = 0; w < OPERANDS && s->onto; w++)
        for (int r = 0; r < OPERANDS && s->writes >> w & 1; r++) {
            const struct topt_instr *in = &p->instr[i];
            if (s->onto >> r & 1 && at(in, w) >= 0 && at(in, r) >= 0)
                put_onto(p, i, at(in, r), at(in, w), s->same);
        }
}

/* Take a kernel's output buffer a kernel sooner, so that both stand together. */
static void raise_alloc(struct topt_program *p, int i)
{
    for (; i > p->micro_begin && p->instr[i].kind == TOPT_I_ALLOC; i--) {
        struct topt_instr before = p->instr[i - 1];
        if (before.kind != TOPT_I_KERNEL || before.kernel == TOPT_K_LOAD)
            break;
        p->instr[i - 1] = p->instr[i];
        p->instr[i] = before;
    }
}

static void sweep(struct topt_program *p)
{
    int n = p->micro_begin, end = p->micro_end;
    for (int i = p->micro_begin; i < p->ninstr; i++)
        if (i >= end || p->instr[i].kind != TOPT_I_FREE || p->instr[i].a >= 0)
            p->instr[n++] = p->instr[i];
        else
            p->micro_end--;
    p->ninstr = n;
    for (int i = p->micro_begin; i < p->micro_end; i++)
        raise_alloc(p, i);
}

/* ---- kernels that are done together ------------------------------------------------- */

/* A kernel that may write onto its input has to, where both kernels meet. */
static int lies_onto(const struct topt_step *s, const struct topt_instr *i,
                     const struct topt_instr *other)
{
    for (int w = 0; w < OPERANDS && s->onto; w++)
        for (int r = 0; r < OPERANDS && s->writes >> w & 1; r++)
            if (s->onto >> r & 1 && at(i, w) >= 0 && at(i, w) == at(i, r) &&
                bits_of(other, at(i, w)))
                return 1;
    return !s->onto;
}

static int64_t shared_bytes(const struct topt_program *p, const struct topt_instr *i,
                            const struct topt_instr *before)
{
    int64_t bytes = 0;
    for (int k = 0; k < OPERANDS; k++)
        if (at(i, k) >= 0 && bits_of(before, at(i, k)))
            bytes += p->buffer[at(i, k)].bytes;
    return bytes;
}

static void join(struct topt_program *p, int i)
{
    struct topt_instr *in = &p->instr[i];
    const struct topt_instr *before = in - 1;
    if (i <= p->micro_begin || in->kind != TOPT_I_KERNEL ||
        before->kind != TOPT_I_KERNEL || in->backward != before->backward)
        return;
    const struct topt_step *s = step_of(p, in);
    for (int k = 0; k < TOPT_MAX_JOINS && s->joins[k]; k++)
        if (s->joins[k] == (int)before->kernel + 1 && lies_onto(s, in, before) &&
            lies_onto(step_of(p, before), before, in) && shared_bytes(p, in, before))
            in->joined = 1;
}

int topt_program_in_place(struct topt_program *p, int joins, struct topt_error *err)
{
    if (p->bucket)
        return topt_fail(err, TOPT_ERR_INTERNAL,
                         "buffers are shared before gradients have buckets");
    for (int i = p->micro_begin; i < p->micro_end; i++)
        if (p->instr[i].kind == TOPT_I_KERNEL && p->instr[i].kernel != TOPT_K_LOAD)
            put_kernel(p, i);
    sweep(p);
    for (int i = p->micro_begin; i < p->micro_end && joins; i++)
        join(p, i);
    topt_program_find_peak(p);
    return 0;
}

/* ---- what that saves ------------------------------------------------------------------ */

/* Where numbers stay where they are nothing is read or written. */
static int64_t kept_bytes(const struct topt_program *p, const struct topt_instr *i)
{
    const struct topt_step *s = step_of(p, i);
    int64_t bytes = 0;
    int read = 0, stays = 1;
    for (int w = 0; w < OPERANDS && s->same; w++) {
        if (at(i, w) < 0 || !(s->writes >> w & 1))
            continue;
        int on = (bits_of(i, at(i, w)) & s->onto) != 0;
        bytes += on ? p->buffer[at(i, w)].bytes : 0;
        read = on ? at(i, w) : read;
        stays &= on; /* something else is made of what is read */
    }
    return bytes + (bytes && stays ? p->buffer[read].bytes : 0);
}

static int64_t price(const struct topt_program *p, const struct topt_hw *hw,
                     int64_t bytes)
{
    return topt_hw_compute_ns(hw, p->settings.dtype, TOPT_WORK_ELEMENTWISE, 0, bytes,
                              p->mesh.devices);
}

/* The elementwise one of two joined kernels is done on the way; its other operands stay. */
static int64_t joined_bytes(const struct topt_program *p, int i)
{
    const struct topt_instr *in = &p->instr[i], *next = in + 1;
    int next_joins = i + 1 < p->micro_end && next->joined &&
                     topt_kernel_work(next->kernel) != TOPT_WORK_ELEMENTWISE;
    return in->joined   ? shared_bytes(p, in, in - 1)
           : next_joins ? shared_bytes(p, in, next)
                        : 0;
}

int64_t topt_in_place_saves_ns(const struct topt_program *p, const struct topt_hw *hw)
{
    int64_t saved = 0;
    for (int i = p->micro_begin; i < p->micro_end; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind != TOPT_I_KERNEL || in->kernel == TOPT_K_LOAD ||
            topt_kernel_work(in->kernel) != TOPT_WORK_ELEMENTWISE)
            continue;
        int64_t bytes = 0, kept = kept_bytes(p, in), joined = joined_bytes(p, i);
        for (int k = 0; k < OPERANDS; k++)
            bytes += at(in, k) >= 0 ? p->buffer[at(in, k)].bytes : 0;
        int64_t less = kept > joined ? kept : joined;
        if (less > 0)
            saved +=
                price(p, hw, bytes) - (less < bytes ? price(p, hw, bytes - less) : 0);
    }
    return saved * p->settings.micro_batches;
}
