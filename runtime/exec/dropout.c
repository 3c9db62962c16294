/* dropout.c - numbers that are dropped while a model is trained (Srivastava et al., 2014).
 *
 * Where: of what a residual connection adds to what it goes round, of what goes into the first
 * one (as GPT-2 and BERT do), and of what an adapter reads (as PEFT does); of attention's weights its
 * own kernels drop.  A program gets DROP instructions for it: behind the kernel that makes an
 * output, and, in backward, before the first that reads the gradient of it.  An adapter's input has
 * other readers, so it is dropped into a copy.
 *
 * Which: a function of (seed, step, operator, place in the global batch), as of the operator
 * "dropout", whose kernels these are.  So every plan drops the same numbers, backward finds them again,
 * and so does a forward that runs twice.  A mask is linear, so that parts of a sum may be dropped
 * before they are added up. */
#include "dropout.h"
#include "memory.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

enum { RESIDUAL, ADAPTER }; /* what the instruction's 'at' says */

/* ---- where ------------------------------------------------------------------------- */

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && !strcmp(name + n - k, end);
}

/* What is dropped has samples, positions and features, and is read by no kernel of backward.  Gradients of a sparse
 * table are made by row from what may lie elsewhere: its output is not dropped. */
static int can_drop(const struct topt_model *m, int op)
{
    const struct topt_op *o = &m->op[op];
    const struct topt_step *s = o->spec->backward;
    if (o->attrs->sparse)
        return 0;
    for (int i = 0; i < TOPT_MAX_STEPS && s[i].kind != TOPT_STEP_END; i++)
        if (s[i].reads >> o->output & 1 || s[i].loop)
            return 0;
    return o->spec->operand[o->output].ndim == 3 &&
           m->tensor[topt_output_tensor(o)].producer == op;
}

/* By operator: its output is dropped.  The last sums first, since a branch may itself be a sum. */
static void mark(const struct topt_model *m, uint8_t *dropped)
{
    for (int k = m->nops - 1; k >= 0; k--) {
        const struct topt_op *op = &m->op[k];
        if (strcmp(op->spec->name, "add") != 0 || op->layer < 0 || dropped[k] ||
            ends_with(op->name, ".lora"))
            continue;
        int branch = topt_input_producer(m, op, 1),
            before = topt_input_producer(m, op, 0);
        int alone = m->tensor[topt_output_tensor(&m->op[branch])].nconsumers == 1;
        if (alone && can_drop(m, branch))
            dropped[branch] = 1;
        if (m->op[before].layer < 0 && can_drop(m, before))
            dropped[before] = 1;
    }
}

/* ---- into the program -------------------------------------------------------------- */

struct edit {
    struct topt_program *p;
    struct topt_instr *to;
    int n, cap, oom;
};

static void put(struct edit *e, const struct topt_instr *i)
{
    if (e->oom || TOPT_ROOM(e->to, e->n, e->cap, 1024))
        e->oom = 1;
    else
        e->to[e->n++] = *i;
}

static void put_plain(struct edit *e, enum topt_instr_kind kind,
                      const struct topt_instr *by, int from, int to, int rate)
{
    struct topt_instr i = topt_fragment_instr(kind, by->op, by->backward);
    i.a = from;
    i.b = to;
    i.at = rate;
    put(e, &i);
}

/* The last kernel of a row's steps that writes 'bit'. */
static int last_writer(const struct topt_step *s, int bit)
{
    int kernel = -1;
    for (int i = 0; i < TOPT_MAX_STEPS && s[i].kind != TOPT_STEP_END; i++)
        if (s[i].kind == TOPT_STEP_KERNEL && s[i].writes >> bit & 1)
            kernel = (int)s[i].kernel;
    return kernel;
}

/* A kernel of an operator whose output is dropped; 'seen': its gradient was. */
static void put_dropping(struct edit *e, const struct topt_instr *i, uint8_t *seen)
{
    const struct topt_op *op = &e->p->model->op[i->op];
    int out = op->output;
    if (i->grad[out] >= 0 && !*seen) {
        put_plain(e, TOPT_I_DROP, i, i->grad[out], i->grad[out], RESIDUAL);
        *seen = 1;
    }
    put(e, i);
    if (i->value[out] >= 0 && (int)i->kernel == last_writer(op->spec->forward, out))
        put_plain(e, TOPT_I_DROP, i, i->value[out], i->value[out], RESIDUAL);
}

/* A buffer like another, for the while of a kernel. */
static int like(struct edit *e, int buffer)
{
    struct topt_program *p = e->p;
    struct topt_buffer *all = realloc(p->buffer, ((size_t)p->nbuffers + 1) * sizeof *all);
    if (!all) {
        e->oom = 1;
        return buffer;
    }
    p->buffer = all;
    all[p->nbuffers] = all[buffer];
    all[p->nbuffers].cls = TOPT_CLASS_TRANSIENT;
    return p->nbuffers++;
}

/* A kernel of the product by which an adapter reads. */
static void put_adapter(struct edit *e, const struct topt_instr *i)
{
    enum { X };
    struct topt_instr k = *i;
    int copy = -1;
    if (k.value[X] >= 0) {
        copy = like(e, i->value[X]);
        put_plain(e, TOPT_I_ALLOC, i, copy, -1, 0);
        put_plain(e, TOPT_I_DROP, i, i->value[X], copy, ADAPTER);
        k.value[X] = copy;
    }
    put(e, &k);
    if (copy >= 0)
        put_plain(e, TOPT_I_FREE, i, copy, -1, 0);
    if (k.grad[X] >= 0 &&
        last_writer(e->p->model->op[i->op].spec->backward, 16 + X) == (int)i->kernel)
        put_plain(e, TOPT_I_DROP, i, k.grad[X], k.grad[X], ADAPTER);
}

static void edit_micro(struct edit *e, const struct topt_dropout *d,
                       const uint8_t *dropped, uint8_t *seen)
{
    struct topt_program *p = e->p;
    for (int k = 0; k < p->ninstr; k++) {
        const struct topt_instr *i = &p->instr[k];
        int inside = k >= p->micro_begin && k < p->micro_end &&
                     i->kind == TOPT_I_KERNEL && i->kernel != TOPT_K_LOAD;
        if (inside && d->adapter > 0 && ends_with(p->model->op[i->op].name, ".lora_a"))
            put_adapter(e, i);
        else if (inside && d->residual > 0 && dropped[i->op])
            put_dropping(e, i, &seen[i->op]);
        else
            put(e, i);
    }
}

int topt_program_dropout(struct topt_program *p, const struct topt_dropout *d,
                         struct topt_error *err)
{
    uint8_t *marks = calloc(2 * (size_t)p->model->nops + 1, 1);
    struct edit e = {.p = p, .oom = !marks};
    if (!e.oom && (d->residual > 0 || d->adapter > 0)) {
        mark(p->model, marks);
        edit_micro(&e, d, marks, marks + p->model->nops);
    }
    free(marks);
    if (e.oom || !e.to) {
        free(e.to);
        return e.oom ? topt_nomem(err, "dropout") : 0;
    }
    free(p->instr);
    p->micro_end += e.n - p->ninstr;
    p->instr = e.to;
    p->ninstr = e.n;
    return 0;
}

/* ---- at work ----------------------------------------------------------------------- */

int topt_session_drop(struct topt_session *s, const struct topt_instr *i,
                      struct topt_error *err)
{
    enum { X, Y, N };
    const struct topt_buffer *b = &s->p->buffer[i->a];
    double rate =
        i->at == ADAPTER ? s->options.dropout.adapter : s->options.dropout.residual;
    struct topt_op *op = &s->drop_op[i->op];
    if (s->evaluates && i->a == i->b)
        return 0;
    op->attrs->rate = s->evaluates ? 0 : rate;
    struct topt_kernel_call c = {.op = op,
                                 .kernel = TOPT_K_DROPOUT_FWD,
                                 .step = s->step,
                                 .seed = s->options.seed,
                                 .first_sample = s->micro * s->p->model->batch,
                                 .value = {s->ptr[i->a], s->ptr[i->b]}};
    for (int o = X; o < N; o++) {
        c.box[o] = topt_buffer_box(s, i->a);
        memcpy(op->operand[o].dim, b->shape.dim, sizeof b->shape.dim);
    }
    return s->dev->ops->kernel(s->dev, &c, err);
}

int topt_dropout_open(struct topt_session *s, struct topt_error *err)
{
    size_t n = (size_t)s->p->model->nops;
    s->drop_op = calloc(n + 1, sizeof *s->drop_op);
    s->drop_form = calloc(n + 1, sizeof *s->drop_form);
    s->drop_model = calloc(1, sizeof *s->drop_model);
    if (!s->drop_op || !s->drop_form || !s->drop_model)
        return topt_nomem(err, NULL);
    s->drop_model->op = s->drop_op;
    for (size_t k = 0; k < n; k++) {
        s->drop_op[k].spec = topt_op_spec_find("dropout", 3);
        s->drop_op[k].model = s->drop_model;
        topt_op_take_form(&s->drop_op[k], &s->drop_form[k]);
    }
    return 0;
}

int topt_dropout_check(const struct topt_dropout *d, const struct topt_device *device,
                       struct topt_error *err)
{
    const double rate[] = {d->residual, d->attention, d->adapter};
    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
        if (!(rate[i] >= 0 && rate[i] < 1))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "a dropout of %g; give a fraction from 0 to below 1",
                             rate[i]);
    if (d->attention > 0 && strcmp(device->ops->name, "host") != 0)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "attention's weights are dropped on CPUs only; run with --device "
            "host or without --attention-dropout");
    return 0;
}
