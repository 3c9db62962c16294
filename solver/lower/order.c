/* order.c - in which order a micro-batch runs, and how long everything stays.
 *
 * Forward in order and backward in reverse.  A tensor waits for its consumers in one
 * place: the producer's output, or, where it has several consumers, its hub.  Every
 * place counts its uses, those of backward too, and is freed after the last.  The
 * value of an operator that recomputes is freed after its last use in forward, and
 * recomputed when backward first comes to the place.
 *
 *     producer --move--> [hub] --move--> consumer      values, forward
 *     producer <--move-- [hub] <--move-- consumer      gradients, backward (hub adds up)
 *
 * Of an operator's inputs the one from the operator just before comes first in forward
 * and last in backward: so only tensors that cross other operators wait beside it. */
#include "order.h"

#include "recompute.h"

#include <stdlib.h>

/* What the order asks of an operator, which are many and large. */
struct topt_stop {
    int ninputs, output; /* its tensor */
    uint8_t trained;     /* it has a backward */
};

/* Where a tensor waits for its consumers. */
struct topt_place {
    int value, grad; /* -1: none now */
    int uses;  /* of this value to come, those of backward too if it stays till then */
    int again; /* uses in backward of a value that is recomputed */
    int producer;
    uint8_t multi, recomputed;
};

/* One input of one operator. */
struct topt_use {
    int tensor;
    int own;  /* moved copy, or -1 */
    int left; /* uses in backward to come: making the output again, and backward itself */
    uint8_t reads, next; /* backward reads it; the operator before makes it */
};

static void look_at(struct topt_order *o, const struct topt_model *m, int i)
{
    const struct topt_op *op = &m->op[i];
    o->stop[i] = (struct topt_stop){op->ninputs, op->operand[op->output].tensor,
                                    (uint8_t)topt_has_backward(m, i)};
    for (int k = 0; k < op->ninputs; k++) {
        int t = op->operand[op->input[k]].tensor;
        o->use[i * TOPT_MAX_INPUTS + k] =
            (struct topt_use){.tensor = t,
                              .reads = (uint8_t)topt_reads_back(m, i, k),
                              .next = m->tensor[t].producer == i - 1};
    }
}

int topt_order_init(struct topt_order *o, const struct topt_model *m,
                    struct topt_error *err)
{
    *o = (struct topt_order){.m = m};
    o->stop = calloc((size_t)m->nops + 1, sizeof *o->stop);
    o->place = calloc((size_t)m->ntensors + 1, sizeof *o->place);
    o->use = calloc((size_t)m->nops * TOPT_MAX_INPUTS + 1, sizeof *o->use);
    o->demanded = calloc((size_t)m->nops + 1, 1);
    if (!o->stop || !o->place || !o->use || !o->demanded)
        return topt_nomem(err, "the order of a step");
    for (int i = 0; i < m->nops; i++)
        look_at(o, m, i);
    for (int t = 0; t < m->ntensors; t++) {
        o->place[t].producer = m->tensor[t].producer;
        o->place[t].multi = m->tensor[t].nconsumers > 1;
    }
    return 0;
}

void topt_order_fini(struct topt_order *o)
{
    free(o->stop);
    free(o->place);
    free(o->use);
    free(o->demanded);
}

/* ---- places ------------------------------------------------------------------------ */

static struct topt_use *use_of(const struct topt_order *l, int op, int k)
{
    return &l->use[op * TOPT_MAX_INPUTS + k];
}

static struct topt_place *place_of(const struct topt_order *l, int op, int k)
{
    return &l->place[use_of(l, op, k)->tensor];
}

static enum topt_keep keep_of(const struct topt_order *l, int op, int k)
{
    return (enum topt_keep)l->s->keep[op * TOPT_MAX_INPUTS + k];
}

static int hub_kept(const struct topt_order *l, int tensor)
{
    return l->place[tensor].multi && l->s->hub[tensor].keep == TOPT_HUB_KEEP;
}

static void drop_use(struct topt_order *l, int tensor)
{
    struct topt_place *p = &l->place[tensor];
    if (--p->uses == 0) {
        l->c->release(l->c, p->value);
        p->value = -1;
    }
}

/* Forward uses the place once; backward as often as it reads there, or once to move
 * again. */
static int init_use(struct topt_order *l, int op, int k)
{
    struct topt_place *p = place_of(l, op, k);
    struct topt_use *u = use_of(l, op, k);
    int t = use_of(l, op, k)->tensor, in_place = l->c->in_place(l->c, op, k);
    u->own = -1;
    u->left = use_of(l, op, k)->reads + l->demanded[op];
    p->uses++;
    if (p->recomputed) {
        p->again += in_place ? u->left : u->left > 0;
    } else if (in_place) {
        p->uses += u->left;
    } else if (keep_of(l, op, k) == TOPT_KEEP_BEFORE && u->left) {
        if ((l->place[t].multi && !hub_kept(l, t)) || l->c->partial(l->c, t))
            return topt_fail(l->err, TOPT_ERR_INVAL,
                             "'%s' can't fetch '%s' again: that copy is not kept",
                             l->m->op[op].name, l->m->tensor[t].name);
        p->uses++;
    }
    return 0;
}

static int init_places(struct topt_order *l)
{
    topt_recompute_demand(l->m, l->s, l->demanded);
    for (int t = 0; t < l->m->ntensors; t++) {
        struct topt_place *p = &l->place[t];
        p->value = p->grad = -1;
        p->uses = p->again = 0;
        p->recomputed = (uint8_t)topt_is_recomputed(l->m, l->s, t);
    }
    for (int i = 0; i < l->m->nops; i++)
        for (int k = 0; k < l->stop[i].ninputs; k++)
            if (init_use(l, i, k))
                return -1;
    return 0;
}

/* ---- forward ----------------------------------------------------------------------- */

/* The operator's own copy where it does not read in place. */
static int fetch_input(struct topt_order *l, int op, int k, int backward)
{
    struct topt_place *p = place_of(l, op, k);
    int value = l->c->fetch(l->c, op, k, backward, p->value);
    if (value < 0)
        return -1;
    if (value == p->value)
        return 0;
    use_of(l, op, k)->own = value;
    drop_use(l, use_of(l, op, k)->tensor);
    return 0;
}

/* What the operator's kernels read. */
static int shown(const struct topt_order *l, int op, int k)
{
    int own = use_of(l, op, k)->own;
    return own >= 0 ? own : place_of(l, op, k)->value;
}

static void keep_place(struct topt_order *l, int tensor)
{
    if (!l->place[tensor].recomputed && !hub_kept(l, tensor))
        l->c->keep(l->c, l->place[tensor].value, TOPT_CLASS_KEPT);
}

/* What this use keeps for backward, and the end of its forward use. */
static void settle_input(struct topt_order *l, int op, int k)
{
    struct topt_use *u = use_of(l, op, k);
    int t = use_of(l, op, k)->tensor;
    int own_stays = keep_of(l, op, k) == TOPT_KEEP_AFTER && !l->place[t].recomputed;
    if (u->own < 0) {
        if (u->left)
            keep_place(l, t);
        drop_use(l, t);
    } else if (u->left && own_stays) {
        l->c->keep(l->c, u->own, TOPT_CLASS_KEPT);
    } else {
        if (u->left)
            keep_place(l, t);
        l->c->release(l->c, u->own);
        u->own = -1;
    }
}

/* The output goes where it waits. */
static int place_output(struct topt_order *l, int op, enum topt_pass pass, int out)
{
    int t = l->stop[op].output, again = pass == TOPT_PASS_RECOMPUTE;
    struct topt_place *p = &l->place[t];
    if (again)
        p->uses = p->again;
    if (p->uses == 0 || (again && !p->recomputed)) {
        l->c->release(l->c, out);
        return 0;
    }
    p->value = out;
    if (l->place[t].multi) {
        p->value = l->c->into_hub(l->c, t, again, out);
        if (p->value < 0)
            return -1;
        if (p->value != out)
            l->c->release(l->c, out);
    }
    if (again || hub_kept(l, t))
        l->c->keep(l->c, p->value, again ? TOPT_CLASS_RECOMPUTED : TOPT_CLASS_KEPT);
    return 0;
}

/* The operator's kernels, on what it was shown. */
static int run_forward(struct topt_order *l, int op, enum topt_pass pass)
{
    int input[TOPT_MAX_INPUTS];
    for (int k = 0; k < l->stop[op].ninputs; k++)
        input[k] = shown(l, op, k);
    return l->c->forward(l->c, op, pass, input);
}

static int forward(struct topt_order *l, int op)
{
    int n = l->stop[op].ninputs;
    enum topt_pass pass = l->s->config[op].recompute ? TOPT_PASS_DROP : TOPT_PASS_KEEP;
    for (int first = 1; first >= 0; first--)
        for (int k = 0; k < n; k++)
            if (use_of(l, op, k)->next == first && fetch_input(l, op, k, 0))
                return -1;
    int out = run_forward(l, op, pass);
    if (out < 0)
        return -1;
    for (int k = 0; k < n; k++)
        settle_input(l, op, k);
    return place_output(l, op, pass, out);
}

/* ---- what was not kept ------------------------------------------------------------- */

static int recompute(struct topt_order *l, int op);

/* The value is where the operator's backward, or its forward again, reads it; a copy
 * made now stays until both have. */
static int ensure_input(struct topt_order *l, int op, int k)
{
    struct topt_use *u = use_of(l, op, k);
    int t = use_of(l, op, k)->tensor;
    if (u->own >= 0)
        return 0;
    if (l->place[t].value < 0 && recompute(l, l->place[t].producer))
        return -1;
    if (l->c->in_place(l->c, op, k))
        return 0;
    if (fetch_input(l, op, k, 1))
        return -1;
    l->c->keep(l->c, u->own, TOPT_CLASS_RECOMPUTED);
    return 0;
}

static void end_use(struct topt_order *l, int op, int k)
{
    struct topt_use *u = use_of(l, op, k);
    u->left--;
    if (u->own < 0) {
        drop_use(l, use_of(l, op, k)->tensor);
    } else if (u->left == 0) {
        l->c->release(l->c, u->own);
        u->own = -1;
    }
}

/* Forward once more, from inputs that are there or are recomputed themselves.  All
 * that is recomputed is there before the first input is moved, so that moves have
 * room. */
static int recompute(struct topt_order *l, int op)
{
    int n = l->stop[op].ninputs;
    l->demanded[op] = 0;
    for (int k = 0; k < n; k++) {
        int t = use_of(l, op, k)->tensor;
        if (use_of(l, op, k)->own < 0 && l->place[t].value < 0 &&
            recompute(l, l->place[t].producer))
            return -1;
    }
    for (int k = 0; k < n; k++)
        if (ensure_input(l, op, k))
            return -1;
    int out = run_forward(l, op, TOPT_PASS_RECOMPUTE);
    if (out < 0)
        return -1;
    for (int k = 0; k < n; k++)
        end_use(l, op, k);
    return place_output(l, op, TOPT_PASS_RECOMPUTE, out);
}

/* ---- backward ---------------------------------------------------------------------- */

/* The gradient of the operator's output, in the layout its backward wants; -1 on
 * failure. */
static int take_output_grad(struct topt_order *l, int op)
{
    int t = l->stop[op].output;
    struct topt_place *p = &l->place[t];
    int grad = l->c->take_grad(l->c, t, p->grad);
    if (grad >= 0 && grad != p->grad)
        l->c->release(l->c, p->grad);
    p->grad = -1;
    return grad;
}

static int give_input_grad(struct topt_order *l, int op, int k, int grad)
{
    struct topt_place *p = place_of(l, op, k);
    if (grad < 0)
        return 0;
    int moved = l->c->give_grad(l->c, op, k, grad);
    if (moved < 0)
        return -1;
    if (moved != grad)
        l->c->release(l->c, grad);
    if (p->grad < 0) {
        p->grad = moved;
        return 0;
    }
    if (l->c->add(l->c, op, moved, p->grad))
        return -1;
    l->c->release(l->c, moved);
    return 0;
}

/* What backward reads and is recomputed: while the gradient of the output still waits. */
static int recompute_inputs(struct topt_order *l, int op)
{
    if (l->demanded[op] && recompute(l, op))
        return -1;
    for (int k = 0; k < l->stop[op].ninputs; k++)
        if (use_of(l, op, k)->reads && place_of(l, op, k)->recomputed &&
            ensure_input(l, op, k))
            return -1;
    return 0;
}

/* What it reads and only its producer kept is moved again. */
static int restore_inputs(struct topt_order *l, int op, int *ret_input)
{
    for (int k = 0; k < l->stop[op].ninputs; k++) {
        ret_input[k] = -1;
        if (!use_of(l, op, k)->reads)
            continue;
        if (use_of(l, op, k)->own < 0 && !l->c->in_place(l->c, op, k) &&
            fetch_input(l, op, k, 1))
            return -1;
        ret_input[k] = shown(l, op, k);
    }
    return 0;
}

static int run_backward(struct topt_order *l, int op, int *ret_input_grad)
{
    int input[TOPT_MAX_INPUTS], grad = -1;
    if (recompute_inputs(l, op))
        return -1;
    if (op != l->m->loss && (grad = take_output_grad(l, op)) < 0)
        return -1;
    if (restore_inputs(l, op, input) ||
        l->c->backward(l->c, op, grad, input, ret_input_grad))
        return -1;
    if (grad >= 0)
        l->c->release(l->c, grad);
    return 0;
}

static int backward(struct topt_order *l, int op)
{
    int grad[TOPT_MAX_INPUTS], n = l->stop[op].ninputs;
    if (run_backward(l, op, grad))
        return -1;
    for (int k = 0; k < n; k++)
        if (use_of(l, op, k)->reads)
            end_use(l, op, k);
    for (int next = 0; next <= 1; next++)
        for (int k = 0; k < n; k++)
            if (use_of(l, op, k)->next == next && give_input_grad(l, op, k, grad[k]))
                return -1;
    return 0;
}

/* ---- the whole --------------------------------------------------------------------- */

int topt_order_run(struct topt_order *o, const struct topt_strategy *s,
                   struct topt_carrier *c, struct topt_error *err)
{
    const struct topt_model *m = o->m;
    o->s = s;
    o->c = c;
    o->err = err;
    if (init_places(o))
        return -1;
    for (int i = 0; i < m->nops; i++)
        if (forward(o, i))
            return topt_wrap(err, "operator '%.60s', forward", m->op[i].name);
    for (int i = m->nops - 1; i >= 0; i--)
        if (o->stop[i].trained && backward(o, i))
            return topt_wrap(err, "operator '%.60s', backward", m->op[i].name);
    return 0;
}
