/* lower.c - a whole strategy written as the program of every rank.
 *
 * In each micro-batch forward in order and backward in reverse, updates at the end.  A tensor waits for its
 * consumers in one place: the producer's output, or, where it has several consumers, its hub.
 * Every place counts its uses, those of backward too, and is freed after the last.
 *
 *     producer --move--> [hub] --move--> consumer      values, forward
 *     producer <--move-- [hub] <--move-- consumer      gradients, backward (hub adds up)
 *
 * Of an operator's inputs the one from the operator just before comes first in forward and
 * last in backward: so only tensors that cross other operators wait beside it. */
#include "fragment.h"

#include <stdlib.h>
#include <string.h>

struct recorder {
    struct topt_sink sink;
    struct topt_program *p;
    int buffer_cap, instr_cap;
    int failed; /* a release found no memory: reported at the end */
};

/* Where a tensor waits for its consumers. */
struct place {
    int value, grad; /* buffers, -1: none now */
    int uses;        /* forward and backward uses to come */
    struct topt_layout value_layout, grad_layout;
};

struct lowering {
    struct topt_fragments f;
    const struct topt_model *m;
    const struct topt_strategy *s;
    struct place *place;         /* by tensor */
    struct topt_op_buffers *op;  /* by operator */
    int (*own)[TOPT_MAX_INPUTS]; /* by operator and input: moved copy, or -1 */
};

/* ---- recording sink ---------------------------------------------------------------------- */

static int record_emit(struct topt_sink *sink, const struct topt_instr *i,
                       struct topt_error *err)
{
    struct recorder *r = (struct recorder *)sink;
    struct topt_program *p = r->p;
    if (p->ninstr == r->instr_cap) {
        int cap = r->instr_cap ? 2 * r->instr_cap : 256;
        struct topt_instr *grown = realloc(p->instr, (size_t)cap * sizeof *grown);
        if (!grown)
            return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the program");
        p->instr = grown;
        r->instr_cap = cap;
    }
    p->instr[p->ninstr++] = *i;
    return 0;
}

static struct topt_instr on_buffer(enum topt_instr_kind kind,
                                   const struct topt_program *p, int buffer)
{
    struct topt_instr i = {.kind = kind,
                           .op = p->buffer[buffer].op,
                           .a = buffer,
                           .b = -1,
                           .c = -1,
                           .d = -1,
                           .e = -1};
    memset(i.value, -1, sizeof i.value);
    memset(i.grad, -1, sizeof i.grad);
    return i;
}

static int record_alloc(struct topt_sink *sink, const struct topt_buffer *b,
                        struct topt_error *err)
{
    struct recorder *r = (struct recorder *)sink;
    struct topt_program *p = r->p;
    if (p->nbuffers == r->buffer_cap) {
        int cap = r->buffer_cap ? 2 * r->buffer_cap : 256;
        struct topt_buffer *grown = realloc(p->buffer, (size_t)cap * sizeof *grown);
        if (!grown)
            return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the program");
        p->buffer = grown;
        r->buffer_cap = cap;
    }
    p->buffer[p->nbuffers] = *b;
    struct topt_instr i = on_buffer(TOPT_I_ALLOC, p, p->nbuffers);
    return record_emit(sink, &i, err) ? -1 : p->nbuffers++;
}

static void record_release(struct topt_sink *sink, int buffer)
{
    struct recorder *r = (struct recorder *)sink;
    struct topt_instr i = on_buffer(TOPT_I_FREE, r->p, buffer);
    if (record_emit(sink, &i, NULL))
        r->failed = 1;
}

static void record_keep(struct topt_sink *sink, int buffer)
{
    ((struct recorder *)sink)->p->buffer[buffer].cls = TOPT_CLASS_KEPT;
}

static const struct topt_buffer *record_get(struct topt_sink *sink, int buffer)
{
    return &((struct recorder *)sink)->p->buffer[buffer];
}

/* ---- places -------------------------------------------------------------------------------- */

static int multi(const struct lowering *l, int tensor)
{
    return l->m->tensor[tensor].nconsumers > 1;
}

static int tensor_of(const struct topt_op *o, int k)
{
    return o->operand[o->input[k]].tensor;
}

static enum topt_keep keep_of(const struct lowering *l, int op, int k)
{
    return (enum topt_keep)l->s->keep[op * TOPT_MAX_INPUTS + k];
}

/* Does the consumer read the tensor where it waits, without a move? */
static int reads_in_place(const struct lowering *l, int op, int k)
{
    const struct topt_op *o = &l->m->op[op];
    struct topt_layout to =
        topt_value_layout(o, o->input[k], &l->s->config[op], l->f.mesh);
    return topt_layout_equal(&to, &l->place[tensor_of(o, k)].value_layout);
}

static int needed(const struct topt_op *o, int k)
{
    return o->spec->operand[o->input[k]].needed;
}

/* Does backward come to the waiting copy (in place, or to move it again)? */
static int uses_in_backward(const struct lowering *l, int op, int k)
{
    return needed(&l->m->op[op], k) &&
           (reads_in_place(l, op, k) || keep_of(l, op, k) == TOPT_KEEP_BEFORE);
}

static void drop_use(struct lowering *l, int tensor)
{
    struct place *p = &l->place[tensor];
    if (--p->uses == 0) {
        l->f.sink->release(l->f.sink, p->value);
        p->value = -1;
    }
}

static int init_places(struct lowering *l, struct topt_error *err)
{
    for (int t = 0; t < l->m->ntensors; t++) {
        struct place *p = &l->place[t];
        int op = l->m->tensor[t].producer, y = l->m->op[op].output;
        const struct topt_config *c = &l->s->config[op];
        *p = (struct place){.value = -1, .grad = -1};
        if (multi(l, t)) {
            p->value_layout = p->grad_layout = topt_hub_layout(&l->s->hub[t], l->f.mesh);
        } else {
            p->value_layout = topt_value_layout(&l->m->op[op], y, c, l->f.mesh);
            p->grad_layout = topt_grad_layout(&l->m->op[op], y, c, l->f.mesh);
        }
    }
    for (int i = 0; i < l->m->nops; i++)
        for (int k = 0; k < l->m->op[i].ninputs; k++) {
            int t = tensor_of(&l->m->op[i], k);
            struct place *p = &l->place[t];
            int before = keep_of(l, i, k) == TOPT_KEEP_BEFORE &&
                         needed(&l->m->op[i], k) && !reads_in_place(l, i, k);
            if (before && ((multi(l, t) && !l->s->hub[t].keep) ||
                           topt_layout_partial_mask(&p->value_layout)))
                return topt_fail(err, TOPT_ERR_INVAL,
                                 "'%s' can't fetch '%s' again: that copy is not kept",
                                 l->m->op[i].name, l->m->tensor[t].name);
            p->uses += 1 + uses_in_backward(l, i, k);
        }
    return 0;
}

/* ---- forward --------------------------------------------------------------------------------- */

static int fetch_input(struct lowering *l, int op, int k, int backward)
{
    const struct topt_op *o = &l->m->op[op];
    int x = o->input[k], t = tensor_of(o, k);
    struct place *p = &l->place[t];
    struct topt_layout to = topt_value_layout(o, x, &l->s->config[op], l->f.mesh);
    struct topt_shape shape = topt_tensor_shape(&l->m->tensor[t]);
    int buffer;
    if (topt_fragment_move(&l->f, op, backward, p->value, &shape, &p->value_layout, &to,
                           &buffer))
        return -1;
    l->op[op].value[x] = buffer;
    l->own[op][k] = buffer == p->value ? -1 : buffer;
    if (l->own[op][k] >= 0)
        drop_use(l, t);
    return 0;
}

/* What this use keeps for backward, and the end of its forward use. */
static void settle_input(struct lowering *l, int op, int k)
{
    const struct topt_op *o = &l->m->op[op];
    int t = tensor_of(o, k), own = l->own[op][k];
    int hub_kept = multi(l, t) && l->s->hub[t].keep;
    if (own < 0) {
        if (needed(o, k) && !hub_kept)
            l->f.sink->keep(l->f.sink, l->place[t].value);
        drop_use(l, t);
    } else if (needed(o, k) && keep_of(l, op, k) == TOPT_KEEP_AFTER) {
        l->f.sink->keep(l->f.sink, own);
        return;
    } else {
        if (needed(o, k) && !hub_kept)
            l->f.sink->keep(l->f.sink, l->place[t].value);
        l->f.sink->release(l->f.sink, own);
        l->own[op][k] = -1;
    }
    if (!needed(o, k) || own >= 0)
        l->op[op].value[o->input[k]] = -1;
}

static int place_output(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    int t = o->operand[o->output].tensor, out = l->op[op].value[o->output];
    l->op[op].value[o->output] = -1;
    struct place *p = &l->place[t];
    p->value = out;
    if (l->m->tensor[t].nconsumers == 0) {
        l->f.sink->release(l->f.sink, out);
        return 0;
    }
    if (!multi(l, t))
        return 0;
    struct topt_layout from =
        topt_value_layout(o, o->output, &l->s->config[op], l->f.mesh);
    struct topt_shape shape = topt_tensor_shape(&l->m->tensor[t]);
    if (topt_fragment_move(&l->f, op, 0, out, &shape, &from, &p->value_layout, &p->value))
        return -1;
    if (p->value != out)
        l->f.sink->release(l->f.sink, out);
    if (l->s->hub[t].keep)
        l->f.sink->keep(l->f.sink, p->value);
    return 0;
}

static int is_next(const struct lowering *l, int op, int k)
{
    return l->m->tensor[tensor_of(&l->m->op[op], k)].producer == op - 1;
}

static int forward(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    for (int pass = 1; pass >= 0; pass--)
        for (int k = 0; k < o->ninputs; k++)
            if (is_next(l, op, k) == pass && fetch_input(l, op, k, 0))
                return -1;
    if (topt_fragment_forward(&l->f, op, &l->s->config[op], &l->op[op]))
        return -1;
    for (int k = 0; k < o->ninputs; k++)
        settle_input(l, op, k);
    return place_output(l, op);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The gradient of the operator's output, in the layout its backward wants. */
static int take_output_grad(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    int t = o->operand[o->output].tensor;
    struct place *p = &l->place[t];
    struct topt_layout to = topt_grad_layout(o, o->output, &l->s->config[op], l->f.mesh);
    struct topt_shape shape = topt_tensor_shape(&l->m->tensor[t]);
    int grad;
    if (topt_fragment_move(&l->f, op, 1, p->grad, &shape, &p->grad_layout, &to, &grad))
        return -1;
    if (grad != p->grad)
        l->f.sink->release(l->f.sink, p->grad);
    p->grad = -1;
    l->op[op].grad[o->output] = grad;
    return 0;
}

static int give_input_grad(struct lowering *l, int op, int k)
{
    const struct topt_op *o = &l->m->op[op];
    int x = o->input[k], t = tensor_of(o, k), grad = l->op[op].grad[x], moved;
    if (grad < 0)
        return 0;
    struct place *p = &l->place[t];
    struct topt_layout from = topt_grad_layout(o, x, &l->s->config[op], l->f.mesh);
    struct topt_shape shape = topt_tensor_shape(&l->m->tensor[t]);
    if (topt_fragment_move(&l->f, op, 1, grad, &shape, &from, &p->grad_layout, &moved))
        return -1;
    if (moved != grad)
        l->f.sink->release(l->f.sink, grad);
    l->op[op].grad[x] = -1;
    if (p->grad < 0) {
        p->grad = moved;
        return 0;
    }
    if (topt_fragment_add(&l->f, op, moved, p->grad))
        return -1;
    l->f.sink->release(l->f.sink, moved);
    return 0;
}

static int restore_inputs(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    for (int k = 0; k < o->ninputs; k++)
        if (needed(o, k) && !reads_in_place(l, op, k) &&
            keep_of(l, op, k) == TOPT_KEEP_BEFORE && fetch_input(l, op, k, 1))
            return -1;
    return 0;
}

static void release_inputs(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    for (int k = 0; k < o->ninputs; k++) {
        if (!needed(o, k))
            continue;
        if (l->own[op][k] >= 0)
            l->f.sink->release(l->f.sink, l->own[op][k]);
        else
            drop_use(l, tensor_of(o, k));
        l->own[op][k] = -1;
        l->op[op].value[o->input[k]] = -1;
    }
}

static int backward(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    if (op != l->m->loss && take_output_grad(l, op))
        return -1;
    if (restore_inputs(l, op) ||
        topt_fragment_backward(&l->f, op, &l->s->config[op], &l->op[op]))
        return -1;
    if (l->op[op].grad[o->output] >= 0)
        l->f.sink->release(l->f.sink, l->op[op].grad[o->output]);
    l->op[op].grad[o->output] = -1;
    release_inputs(l, op);
    for (int pass = 0; pass <= 1; pass++)
        for (int k = 0; k < o->ninputs; k++)
            if (is_next(l, op, k) == pass && give_input_grad(l, op, k))
                return -1;
    return 0;
}

/* ---- the whole --------------------------------------------------------------------------------- */

static int lower_all(struct lowering *l, struct topt_program *p, struct topt_error *err)
{
    for (int i = 0; i < l->m->nops; i++)
        if (topt_fragment_init(&l->f, i, &l->s->config[i], &l->op[i]))
            return -1;
    p->init_end = p->ninstr;
    for (int i = 0; i < l->m->nops; i++)
        if (topt_fragment_begin(&l->f, i, &l->op[i]))
            return -1;
    p->micro_begin = p->ninstr;
    for (int i = 0; i < l->m->nops; i++)
        if (forward(l, i))
            return topt_wrap(err, "operator '%.60s', forward", l->m->op[i].name);
    for (int i = l->m->nops - 1; i >= 0; i--) {
        const struct topt_op *o = &l->m->op[i];
        if (l->m->tensor[o->operand[o->output].tensor].needs_gradient && backward(l, i))
            return topt_wrap(err, "operator '%.60s', backward", o->name);
    }
    p->micro_end = p->ninstr;
    for (int i = 0; i < l->m->nops; i++)
        if (topt_fragment_end(&l->f, i, &l->s->config[i], &l->op[i]))
            return -1;
    return ((struct recorder *)l->f.sink)->failed
               ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for the program")
               : 0;
}

static void find_peak(struct topt_program *p)
{
    int64_t live[TOPT_CLASS_COUNT] = {0}, total = 0;
    for (int i = 0; i < p->ninstr; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind != TOPT_I_ALLOC && in->kind != TOPT_I_FREE)
            continue;
        const struct topt_buffer *b = &p->buffer[in->a];
        int64_t bytes = in->kind == TOPT_I_ALLOC ? b->bytes : -b->bytes;
        live[b->cls] += bytes;
        total += bytes;
        if (total > p->peak_bytes) {
            p->peak_bytes = total;
            memcpy(p->class_bytes, live, sizeof live);
        }
    }
}

static int check_strategy(const struct topt_model *m, const struct topt_mesh *mesh,
                          const struct topt_strategy *s, struct topt_error *err)
{
    if (s->nops != m->nops || s->ntensors != m->ntensors)
        return topt_fail(err, TOPT_ERR_INVAL, "the strategy is for another model");
    for (int i = 0; i < m->nops; i++)
        if (!topt_config_valid(&m->op[i], &s->config[i], mesh))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "operator '%.60s' can't be split that way", m->op[i].name);
    for (int t = 0; t < m->ntensors; t++)
        for (int a = 0; m->tensor[t].nconsumers > 1 && a < mesh->naxes; a++)
            if (s->hub[t].layout.dim[a] < -1 ||
                s->hub[t].layout.dim[a] >= m->tensor[t].ndim)
                return topt_fail(err, TOPT_ERR_INVAL,
                                 "tensor '%.60s' has no dimension %d", m->tensor[t].name,
                                 s->hub[t].layout.dim[a]);
    return 0;
}

static struct topt_program *program_create(const struct topt_model *m,
                                           const struct topt_mesh *mesh,
                                           const struct topt_settings *settings,
                                           const struct topt_strategy *s)
{
    struct topt_program *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct topt_program){.model = m, .mesh = *mesh, .settings = *settings};
    p->config = malloc((size_t)m->nops * sizeof *p->config);
    if (!p->config) {
        free(p);
        return NULL;
    }
    memcpy(p->config, s->config, (size_t)m->nops * sizeof *p->config);
    return p;
}

int topt_lower(const struct topt_model *m, const struct topt_mesh *mesh,
               const struct topt_settings *settings, const struct topt_strategy *s,
               struct topt_router *router, struct topt_program **ret,
               struct topt_error *err)
{
    if (topt_settings_fit(m, settings, err) || check_strategy(m, mesh, s, err))
        return -1;
    int rc = -1;
    struct topt_program *p = program_create(m, mesh, settings, s);
    struct recorder r = {.sink = {record_alloc, record_release, record_keep, record_emit,
                                  record_get, NULL},
                         .p = p};
    struct lowering l = {.f = {m, mesh, settings, router, &r.sink, err}, .m = m, .s = s};
    l.place = calloc((size_t)m->ntensors, sizeof *l.place);
    l.op = malloc((size_t)m->nops * sizeof *l.op);
    l.own = malloc((size_t)m->nops * sizeof *l.own);
    if (!p || !l.place || !l.op || !l.own) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the program");
        goto out;
    }
    memset(l.op, -1, (size_t)m->nops * sizeof *l.op);
    memset(l.own, -1, (size_t)m->nops * sizeof *l.own);
    if (init_places(&l, err) || lower_all(&l, p, err))
        goto out;
    find_peak(p);
    *ret = p;
    p = NULL;
    rc = 0;
out:
    topt_program_destroy(p);
    free(l.place);
    free(l.op);
    free(l.own);
    return rc;
}

void topt_program_destroy(struct topt_program *p)
{
    if (!p)
        return;
    free(p->config);
    free(p->buffer);
    free(p->instr);
    free(p);
}
