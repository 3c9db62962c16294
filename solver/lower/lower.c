/* lower.c - a whole strategy written as the program of every rank.
 *
 * In each micro-batch forward in order and backward in reverse, updates at the end.  A tensor
 * waits for its consumers in one place: the producer's output, or, where it has several
 * consumers, its hub.  Every place counts its uses, those of backward too, and is freed after
 * the last.  The value of an operator that recomputes is freed after its last use in forward,
 * and made again when backward first comes to the place.
 *
 *     producer --move--> [hub] --move--> consumer      values, forward
 *     producer <--move-- [hub] <--move-- consumer      gradients, backward (hub adds up)
 *
 * Of an operator's inputs the one from the operator just before comes first in forward and
 * last in backward: so only tensors that cross other operators wait beside it. */
#include "fragment.h"
#include "record.h"

#include <stdlib.h>
#include <string.h>

/* Where a tensor waits for its consumers. */
struct place {
    int value, grad; /* buffers, -1: none now */
    int uses;  /* of this value to come, those of backward too if it stays till then */
    int again; /* uses in backward of a value that is made again */
    int remade;
    struct topt_layout value_layout, grad_layout;
};

/* One input of one operator. */
struct use {
    int own;  /* moved copy, or -1 */
    int left; /* uses in backward to come: making the output again, and backward itself */
};

struct lowering {
    struct topt_fragments f;
    const struct topt_model *m;
    const struct topt_strategy *s;
    struct place *place;                /* by tensor */
    struct topt_op_buffers *op;         /* by operator */
    struct use (*use)[TOPT_MAX_INPUTS]; /* by operator and input */
    uint8_t *demanded;                  /* by operator: to be run again in backward */
};

/* ---- places -------------------------------------------------------------------------------- */

static int multi(const struct lowering *l, int tensor)
{
    return l->m->tensor[tensor].nconsumers > 1;
}

static int tensor_of(const struct topt_op *o, int k)
{
    return o->operand[o->input[k]].tensor;
}

static struct place *place_of(const struct lowering *l, int op, int k)
{
    return &l->place[tensor_of(&l->m->op[op], k)];
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
    return topt_layout_equal(&to, &place_of(l, op, k)->value_layout);
}

static int hub_kept(const struct lowering *l, int tensor)
{
    return multi(l, tensor) && l->s->hub[tensor].keep == TOPT_HUB_KEEP;
}

static void drop_use(struct lowering *l, int tensor)
{
    struct place *p = &l->place[tensor];
    if (--p->uses == 0) {
        l->f.sink->release(l->f.sink, p->value);
        p->value = -1;
    }
}

static void init_place(struct lowering *l, int t)
{
    struct place *p = &l->place[t];
    int op = l->m->tensor[t].producer, y = l->m->op[op].output;
    const struct topt_config *c = &l->s->config[op];
    *p = (struct place){.value = -1, .grad = -1, .remade = topt_is_remade(l->m, l->s, t)};
    if (multi(l, t)) {
        p->value_layout = p->grad_layout = topt_hub_layout(&l->s->hub[t], l->f.mesh);
    } else {
        p->value_layout = topt_value_layout(&l->m->op[op], y, c, l->f.mesh);
        p->grad_layout = topt_grad_layout(&l->m->op[op], y, c, l->f.mesh);
    }
}

/* Forward uses the place once; backward as often as it reads there, or once to move again. */
static int init_use(struct lowering *l, int op, int k, struct topt_error *err)
{
    const struct topt_op *o = &l->m->op[op];
    struct place *p = place_of(l, op, k);
    struct use *u = &l->use[op][k];
    int t = tensor_of(o, k), in_place = reads_in_place(l, op, k);
    u->own = -1;
    u->left = topt_reads_back(l->m, op, k) + l->demanded[op];
    p->uses++;
    if (p->remade) {
        p->again += in_place ? u->left : u->left > 0;
    } else if (in_place) {
        p->uses += u->left;
    } else if (keep_of(l, op, k) == TOPT_KEEP_BEFORE && u->left) {
        if ((multi(l, t) && !hub_kept(l, t)) ||
            topt_layout_partial_mask(&p->value_layout))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "'%s' can't fetch '%s' again: that copy is not kept",
                             o->name, l->m->tensor[t].name);
        p->uses++;
    }
    return 0;
}

static int init_places(struct lowering *l, struct topt_error *err)
{
    topt_remake_demand(l->m, l->s, l->demanded);
    for (int t = 0; t < l->m->ntensors; t++)
        init_place(l, t);
    for (int i = 0; i < l->m->nops; i++)
        for (int k = 0; k < l->m->op[i].ninputs; k++)
            if (init_use(l, i, k, err))
                return -1;
    return 0;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The operator's own copy where it does not read in place. */
static int fetch_input(struct lowering *l, int op, int k, int backward)
{
    const struct topt_op *o = &l->m->op[op];
    int t = tensor_of(o, k);
    struct place *p = &l->place[t];
    struct topt_layout to =
        topt_value_layout(o, o->input[k], &l->s->config[op], l->f.mesh);
    struct topt_shape shape = topt_tensor_shape(&l->m->tensor[t]);
    int buffer;
    if (topt_fragment_move(&l->f, op, backward, p->value, &shape, &p->value_layout, &to,
                           &buffer))
        return -1;
    if (buffer == p->value)
        return 0;
    l->use[op][k].own = buffer;
    drop_use(l, t);
    return 0;
}

/* Hand an input to the operator's kernels. */
static void show_input(struct lowering *l, int op, int k)
{
    int own = l->use[op][k].own;
    l->op[op].value[l->m->op[op].input[k]] = own >= 0 ? own : place_of(l, op, k)->value;
}

static void hide_inputs(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    for (int k = 0; k < o->ninputs; k++)
        l->op[op].value[o->input[k]] = -1;
}

static void keep_place(struct lowering *l, int tensor)
{
    if (!l->place[tensor].remade && !hub_kept(l, tensor))
        l->f.sink->keep(l->f.sink, l->place[tensor].value, TOPT_CLASS_KEPT);
}

/* What this use keeps for backward, and the end of its forward use. */
static void settle_input(struct lowering *l, int op, int k)
{
    struct use *u = &l->use[op][k];
    int t = tensor_of(&l->m->op[op], k);
    int own_stays = keep_of(l, op, k) == TOPT_KEEP_AFTER && !l->place[t].remade;
    if (u->own < 0) {
        if (u->left)
            keep_place(l, t);
        drop_use(l, t);
    } else if (u->left && own_stays) {
        l->f.sink->keep(l->f.sink, u->own, TOPT_CLASS_KEPT);
    } else {
        if (u->left)
            keep_place(l, t);
        l->f.sink->release(l->f.sink, u->own);
        u->own = -1;
    }
}

/* The output goes where it waits. */
static int place_output(struct lowering *l, int op, enum topt_pass pass)
{
    const struct topt_op *o = &l->m->op[op];
    int t = o->operand[o->output].tensor, out = l->op[op].value[o->output];
    int again = pass == TOPT_PASS_AGAIN;
    struct place *p = &l->place[t];
    l->op[op].value[o->output] = -1;
    if (again)
        p->uses = p->again;
    if (p->uses == 0 || (again && !p->remade)) {
        l->f.sink->release(l->f.sink, out);
        return 0;
    }
    p->value = out;
    if (multi(l, t)) {
        struct topt_layout from =
            topt_value_layout(o, o->output, &l->s->config[op], l->f.mesh);
        struct topt_shape shape = topt_tensor_shape(&l->m->tensor[t]);
        if (topt_fragment_move(&l->f, op, again, out, &shape, &from, &p->value_layout,
                               &p->value))
            return -1;
        if (p->value != out)
            l->f.sink->release(l->f.sink, out);
    }
    if (again || hub_kept(l, t))
        l->f.sink->keep(l->f.sink, p->value, again ? TOPT_CLASS_REMADE : TOPT_CLASS_KEPT);
    return 0;
}

static int is_next(const struct lowering *l, int op, int k)
{
    return l->m->tensor[tensor_of(&l->m->op[op], k)].producer == op - 1;
}

static int forward(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    enum topt_pass pass = l->s->config[op].recompute ? TOPT_PASS_DROP : TOPT_PASS_KEEP;
    for (int first = 1; first >= 0; first--)
        for (int k = 0; k < o->ninputs; k++)
            if (is_next(l, op, k) == first && fetch_input(l, op, k, 0))
                return -1;
    for (int k = 0; k < o->ninputs; k++)
        show_input(l, op, k);
    if (topt_fragment_forward(&l->f, op, &l->s->config[op], pass, &l->op[op]))
        return -1;
    hide_inputs(l, op);
    for (int k = 0; k < o->ninputs; k++)
        settle_input(l, op, k);
    return place_output(l, op, pass);
}

/* ---- what was not kept ------------------------------------------------------------------------ */

static int remake(struct lowering *l, int op);

/* The value is where the operator's backward, or its forward again, reads it; a copy made now
 * stays until both have. */
static int ensure_input(struct lowering *l, int op, int k)
{
    struct use *u = &l->use[op][k];
    int t = tensor_of(&l->m->op[op], k);
    if (u->own >= 0)
        return 0;
    if (l->place[t].value < 0 && remake(l, l->m->tensor[t].producer))
        return -1;
    if (reads_in_place(l, op, k))
        return 0;
    if (fetch_input(l, op, k, 1))
        return -1;
    l->f.sink->keep(l->f.sink, u->own, TOPT_CLASS_REMADE);
    return 0;
}

static void end_use(struct lowering *l, int op, int k)
{
    struct use *u = &l->use[op][k];
    u->left--;
    if (u->own < 0) {
        drop_use(l, tensor_of(&l->m->op[op], k));
    } else if (u->left == 0) {
        l->f.sink->release(l->f.sink, u->own);
        u->own = -1;
    }
}

/* Forward once more, from inputs that are there or are made again themselves.  All that is
 * made again is there before the first input is moved, so that moves have room. */
static int remake(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    l->demanded[op] = 0;
    for (int k = 0; k < o->ninputs; k++) {
        int t = tensor_of(o, k);
        if (l->use[op][k].own < 0 && l->place[t].value < 0 &&
            remake(l, l->m->tensor[t].producer))
            return -1;
    }
    for (int k = 0; k < o->ninputs; k++)
        if (ensure_input(l, op, k))
            return -1;
    for (int k = 0; k < o->ninputs; k++)
        show_input(l, op, k);
    if (topt_fragment_forward(&l->f, op, &l->s->config[op], TOPT_PASS_AGAIN, &l->op[op]))
        return -1;
    hide_inputs(l, op);
    for (int k = 0; k < o->ninputs; k++)
        end_use(l, op, k);
    return place_output(l, op, TOPT_PASS_AGAIN);
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

/* What backward reads and is made again: while the gradient of the output still waits. */
static int remake_inputs(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    if (l->demanded[op] && remake(l, op))
        return -1;
    for (int k = 0; k < o->ninputs; k++)
        if (topt_reads_back(l->m, op, k) && place_of(l, op, k)->remade &&
            ensure_input(l, op, k))
            return -1;
    return 0;
}

/* What it reads and only its producer kept is moved again. */
static int restore_inputs(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    for (int k = 0; k < o->ninputs; k++) {
        if (!topt_reads_back(l->m, op, k))
            continue;
        if (l->use[op][k].own < 0 && !reads_in_place(l, op, k) &&
            fetch_input(l, op, k, 1))
            return -1;
        show_input(l, op, k);
    }
    return 0;
}

static int backward(struct lowering *l, int op)
{
    const struct topt_op *o = &l->m->op[op];
    if (remake_inputs(l, op) || (op != l->m->loss && take_output_grad(l, op)) ||
        restore_inputs(l, op) ||
        topt_fragment_backward(&l->f, op, &l->s->config[op], &l->op[op]))
        return -1;
    if (l->op[op].grad[o->output] >= 0)
        l->f.sink->release(l->f.sink, l->op[op].grad[o->output]);
    l->op[op].grad[o->output] = -1;
    hide_inputs(l, op);
    for (int k = 0; k < o->ninputs; k++)
        if (topt_reads_back(l->m, op, k))
            end_use(l, op, k);
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
        if (topt_has_backward(l->m, i) && backward(l, i))
            return topt_wrap(err, "operator '%.60s', backward", l->m->op[i].name);
    }
    p->micro_end = p->ninstr;
    for (int i = 0; i < l->m->nops; i++)
        if (topt_fragment_end(&l->f, i, &l->s->config[i], &l->op[i]))
            return -1;
    return ((struct topt_recorder *)l->f.sink)->failed
               ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for the program")
               : 0;
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
    struct topt_blocks blocks;
    if (topt_remake_check(m, s, &blocks, err))
        return -1;
    topt_blocks_fini(&blocks);
    return 0;
}

int topt_lower(const struct topt_model *m, const struct topt_mesh *mesh,
               const struct topt_settings *settings, const struct topt_strategy *s,
               struct topt_router *router, struct topt_program **ret,
               struct topt_error *err)
{
    if (topt_settings_fit(m, settings, err) || check_strategy(m, mesh, s, err))
        return -1;
    int rc = -1;
    struct topt_program *p = topt_program_create(m, mesh, settings, s);
    struct topt_recorder r = topt_recorder(p);
    struct lowering l = {.f = {m, mesh, settings, router, &r.sink, err}, .m = m, .s = s};
    l.place = calloc((size_t)m->ntensors, sizeof *l.place);
    l.op = malloc((size_t)m->nops * sizeof *l.op);
    l.use = malloc((size_t)m->nops * sizeof *l.use);
    l.demanded = malloc((size_t)m->nops);
    if (!p || !l.place || !l.op || !l.use || !l.demanded) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the program");
        goto out;
    }
    for (int i = 0; i < m->nops; i++)
        topt_op_buffers_clear(&l.op[i]);
    if (init_places(&l, err) || lower_all(&l, p, err))
        goto out;
    topt_program_find_peak(p);
    *ret = p;
    p = NULL;
    rc = 0;
out:
    topt_program_destroy(p);
    free(l.place);
    free(l.op);
    free(l.use);
    free(l.demanded);
    return rc;
}
