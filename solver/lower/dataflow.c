/* dataflow.c - the order in which a micro-batch runs, and the lifetimes of its tensors.
 *
 * Forward in order and backward in reverse.  A tensor waits for its consumers in one
 * place: the producer's output, or, where it has several consumers, its hub.  Every
 * tensor counts its uses, those of backward too, and is freed after the last.  The
 * value of an operator that recomputes is freed after its last use in forward, and
 * recomputed when backward first needs it.
 *
 *     producer --move--> [hub] --move--> consumer      values, forward
 *     producer <--move-- [hub] <--move-- consumer      gradients, backward (hub adds up)
 *
 * Of an operator's inputs the one from the operator just before comes first in forward
 * and last in backward: so only tensors that cross other operators wait beside it. */
#include "dataflow.h"

#include "recompute.h"

#include <stdlib.h>

/* Where a tensor waits for its consumers. */
struct topt_flow_tensor {
    int value, grad; /* -1: none now */
    int uses; /* of this value to come, those of backward too if it stays till then */
    int recompute_uses; /* uses in backward of a value that is recomputed */
    uint8_t recomputed;
};

/* One input of one operator. */
struct topt_flow_use {
    int tensor;
    int own;  /* moved copy, or -1 */
    int left; /* uses in backward to come: making the output again, and backward itself */
    uint8_t reads, next; /* backward reads it; the operator before makes it */
};

static void init_op(struct topt_dataflow *o, const struct topt_model *m, int i)
{
    const struct topt_op *op = &m->op[i];
    for (int k = 0; k < op->ninputs; k++) {
        int t = topt_input_tensor(op, k);
        o->use[i * TOPT_MAX_INPUTS + k] =
            (struct topt_flow_use){.tensor = t,
                                   .reads = (uint8_t)topt_reads_back(m, i, k),
                                   .next = m->tensor[t].producer == i - 1};
    }
}

int topt_dataflow_init(struct topt_dataflow *o, const struct topt_model *m,
                       struct topt_error *err)
{
    *o = (struct topt_dataflow){.m = m};
    o->tensor = calloc((size_t)m->ntensors + 1, sizeof *o->tensor);
    o->use = calloc((size_t)m->nops * TOPT_MAX_INPUTS + 1, sizeof *o->use);
    o->demanded = calloc((size_t)m->nops + 1, 1);
    if (!o->tensor || !o->use || !o->demanded)
        return topt_nomem(err, "the order of a step");
    for (int i = 0; i < m->nops; i++)
        init_op(o, m, i);
    return 0;
}

void topt_dataflow_fini(struct topt_dataflow *o)
{
    free(o->tensor);
    free(o->use);
    free(o->demanded);
}

/* ---- tensors ------------------------------------------------------------------------ */

static struct topt_flow_use *use_of(const struct topt_dataflow *d, int op, int k)
{
    return &d->use[op * TOPT_MAX_INPUTS + k];
}

static struct topt_flow_tensor *tensor_of(const struct topt_dataflow *d, int op, int k)
{
    return &d->tensor[use_of(d, op, k)->tensor];
}

static enum topt_keep keep_of(const struct topt_dataflow *d, int op, int k)
{
    return (enum topt_keep)d->s->keep[op * TOPT_MAX_INPUTS + k];
}

static int has_hub(const struct topt_dataflow *d, int tensor)
{
    return d->m->tensor[tensor].nconsumers > 1;
}

static int hub_kept(const struct topt_dataflow *d, int tensor)
{
    return has_hub(d, tensor) && d->s->hub[tensor].keep == TOPT_HUB_KEEP;
}

static void keep(struct topt_dataflow *d, int value, enum topt_class cls)
{
    if (d->c->keep)
        d->c->keep(d->c, value, cls);
}

static void drop_use(struct topt_dataflow *d, int tensor)
{
    struct topt_flow_tensor *p = &d->tensor[tensor];
    if (--p->uses == 0) {
        d->c->release(d->c, p->value);
        p->value = -1;
    }
}

/* Forward uses the tensor once; backward as often as it reads there, or once to move
 * again. */
static int init_use(struct topt_dataflow *d, int op, int k)
{
    struct topt_flow_tensor *p = tensor_of(d, op, k);
    struct topt_flow_use *u = use_of(d, op, k);
    int t = use_of(d, op, k)->tensor, in_place = d->c->in_place(d->c, op, k);
    u->own = -1;
    u->left = use_of(d, op, k)->reads + d->demanded[op];
    p->uses++;
    if (p->recomputed) {
        p->recompute_uses += in_place ? u->left : u->left > 0;
    } else if (in_place) {
        p->uses += u->left;
    } else if (keep_of(d, op, k) == TOPT_KEEP_BEFORE && u->left) {
        if ((has_hub(d, t) && !hub_kept(d, t)) || d->c->partial(d->c, t))
            return topt_fail(d->err, TOPT_ERR_INVAL,
                             "'%s' can't fetch '%s' again: that copy is not kept",
                             d->m->op[op].name, d->m->tensor[t].name);
        p->uses++;
    }
    return 0;
}

static int init_tensors(struct topt_dataflow *d)
{
    topt_recompute_demand(d->m, d->s, d->demanded);
    for (int t = 0; t < d->m->ntensors; t++) {
        struct topt_flow_tensor *p = &d->tensor[t];
        p->value = p->grad = -1;
        p->uses = p->recompute_uses = 0;
        p->recomputed = (uint8_t)topt_is_recomputed(d->m, d->s, t);
    }
    for (int i = 0; i < d->m->nops; i++)
        for (int k = 0; k < d->m->op[i].ninputs; k++)
            if (init_use(d, i, k))
                return -1;
    return 0;
}

/* ---- forward ----------------------------------------------------------------------- */

/* The operator's own copy where it does not read in place. */
static int fetch_input(struct topt_dataflow *d, int op, int k, int backward)
{
    struct topt_flow_tensor *p = tensor_of(d, op, k);
    int value = d->c->fetch(d->c, op, k, backward, p->value);
    if (value < 0)
        return -1;
    if (value == p->value)
        return 0;
    use_of(d, op, k)->own = value;
    drop_use(d, use_of(d, op, k)->tensor);
    return 0;
}

/* The operands that the operator's kernels read. */
static int input_value(const struct topt_dataflow *d, int op, int k)
{
    int own = use_of(d, op, k)->own;
    return own >= 0 ? own : tensor_of(d, op, k)->value;
}

static void keep_tensor(struct topt_dataflow *d, int tensor)
{
    if (!d->tensor[tensor].recomputed && !hub_kept(d, tensor))
        keep(d, d->tensor[tensor].value, TOPT_CLASS_KEPT);
}

/* Keep this use's copy for backward, and end its forward use. */
static void end_forward_use(struct topt_dataflow *d, int op, int k)
{
    struct topt_flow_use *u = use_of(d, op, k);
    int t = use_of(d, op, k)->tensor;
    int own_stays = keep_of(d, op, k) == TOPT_KEEP_AFTER && !d->tensor[t].recomputed;
    if (u->own < 0) {
        if (u->left)
            keep_tensor(d, t);
        drop_use(d, t);
    } else if (u->left && own_stays) {
        keep(d, u->own, TOPT_CLASS_KEPT);
    } else {
        if (u->left)
            keep_tensor(d, t);
        d->c->release(d->c, u->own);
        u->own = -1;
    }
}

/* The output goes where it waits. */
static int place_output(struct topt_dataflow *d, int op, enum topt_pass pass, int out)
{
    int t = topt_output_tensor(&d->m->op[op]), again = pass == TOPT_PASS_RECOMPUTE;
    struct topt_flow_tensor *p = &d->tensor[t];
    if (again)
        p->uses = p->recompute_uses;
    if (p->uses == 0 || (again && !p->recomputed)) {
        d->c->release(d->c, out);
        return 0;
    }
    p->value = out;
    if (has_hub(d, t)) {
        p->value = d->c->fetch(d->c, op, TOPT_FLOW_HUB, again, out);
        if (p->value < 0)
            return -1;
        if (p->value != out)
            d->c->release(d->c, out);
    }
    if (again || hub_kept(d, t))
        keep(d, p->value, again ? TOPT_CLASS_RECOMPUTED : TOPT_CLASS_KEPT);
    return 0;
}

/* The operator's kernels, on the values of its inputs. */
static int run_forward(struct topt_dataflow *d, int op, enum topt_pass pass)
{
    int input[TOPT_MAX_INPUTS];
    for (int k = 0; k < d->m->op[op].ninputs; k++)
        input[k] = input_value(d, op, k);
    return d->c->forward(d->c, op, pass, input);
}

static int forward(struct topt_dataflow *d, int op)
{
    int n = d->m->op[op].ninputs;
    enum topt_pass pass =
        topt_runs_again(&d->s->config[op]) ? TOPT_PASS_DROP : TOPT_PASS_KEEP;
    for (int first = 1; first >= 0; first--)
        for (int k = 0; k < n; k++)
            if (use_of(d, op, k)->next == first && fetch_input(d, op, k, 0))
                return -1;
    int out = run_forward(d, op, pass);
    if (out < 0)
        return -1;
    for (int k = 0; k < n; k++)
        end_forward_use(d, op, k);
    return place_output(d, op, pass, out);
}

/* ---- what was not kept ------------------------------------------------------------- */

static int recompute(struct topt_dataflow *d, int op);

/* The value is where the operator's backward, or its forward again, reads it; a copy
 * made now stays until both have. */
static int ensure_input(struct topt_dataflow *d, int op, int k)
{
    struct topt_flow_use *u = use_of(d, op, k);
    int t = use_of(d, op, k)->tensor;
    if (u->own >= 0)
        return 0;
    if (d->tensor[t].value < 0 && recompute(d, d->m->tensor[t].producer))
        return -1;
    if (d->c->in_place(d->c, op, k))
        return 0;
    if (fetch_input(d, op, k, 1))
        return -1;
    keep(d, u->own, TOPT_CLASS_RECOMPUTED);
    return 0;
}

static void end_use(struct topt_dataflow *d, int op, int k)
{
    struct topt_flow_use *u = use_of(d, op, k);
    u->left--;
    if (u->own < 0) {
        drop_use(d, use_of(d, op, k)->tensor);
    } else if (u->left == 0) {
        d->c->release(d->c, u->own);
        u->own = -1;
    }
}

/* Forward once more, from inputs that are there or are recomputed themselves.  All
 * that is recomputed is there before the first input is moved, so that moves have
 * room. */
static int recompute(struct topt_dataflow *d, int op)
{
    int n = d->m->op[op].ninputs;
    d->demanded[op] = 0;
    for (int k = 0; k < n; k++) {
        int t = use_of(d, op, k)->tensor;
        if (use_of(d, op, k)->own < 0 && d->tensor[t].value < 0 &&
            recompute(d, d->m->tensor[t].producer))
            return -1;
    }
    for (int k = 0; k < n; k++)
        if (ensure_input(d, op, k))
            return -1;
    int out = run_forward(d, op, TOPT_PASS_RECOMPUTE);
    if (out < 0)
        return -1;
    for (int k = 0; k < n; k++)
        end_use(d, op, k);
    return place_output(d, op, TOPT_PASS_RECOMPUTE, out);
}

/* ---- backward ---------------------------------------------------------------------- */

/* The gradient of the operator's output, in the layout its backward wants; -1 on
 * failure. */
static int take_output_grad(struct topt_dataflow *d, int op)
{
    int t = topt_output_tensor(&d->m->op[op]);
    struct topt_flow_tensor *p = &d->tensor[t];
    int grad =
        has_hub(d, t) ? d->c->give_grad(d->c, op, TOPT_FLOW_HUB, p->grad) : p->grad;
    if (grad >= 0 && grad != p->grad)
        d->c->release(d->c, p->grad);
    p->grad = -1;
    return grad;
}

static int give_input_grad(struct topt_dataflow *d, int op, int k, int grad)
{
    struct topt_flow_tensor *p = tensor_of(d, op, k);
    if (grad < 0)
        return 0;
    int moved = d->c->give_grad(d->c, op, k, grad);
    if (moved < 0)
        return -1;
    if (moved != grad)
        d->c->release(d->c, grad);
    if (p->grad < 0) {
        p->grad = moved;
        return 0;
    }
    if (d->c->add && d->c->add(d->c, op, moved, p->grad))
        return -1;
    d->c->release(d->c, moved);
    return 0;
}

/* Recompute the tensors that backward reads, while the gradient of the output still waits. */
static int recompute_inputs(struct topt_dataflow *d, int op)
{
    if (d->demanded[op] && recompute(d, op))
        return -1;
    for (int k = 0; k < d->m->op[op].ninputs; k++)
        if (use_of(d, op, k)->reads && tensor_of(d, op, k)->recomputed &&
            ensure_input(d, op, k))
            return -1;
    return 0;
}

/* Move again the tensors that it reads and only their producer kept. */
static int restore_inputs(struct topt_dataflow *d, int op, int *ret_input)
{
    for (int k = 0; k < d->m->op[op].ninputs; k++) {
        ret_input[k] = -1;
        if (!use_of(d, op, k)->reads)
            continue;
        if (use_of(d, op, k)->own < 0 && !d->c->in_place(d->c, op, k) &&
            fetch_input(d, op, k, 1))
            return -1;
        ret_input[k] = input_value(d, op, k);
    }
    return 0;
}

static int run_backward(struct topt_dataflow *d, int op, int *ret_input_grad)
{
    int input[TOPT_MAX_INPUTS], grad = -1;
    if (recompute_inputs(d, op))
        return -1;
    if (!d->m->op[op].spec->loss && (grad = take_output_grad(d, op)) < 0)
        return -1;
    if (restore_inputs(d, op, input) ||
        d->c->backward(d->c, op, grad, input, ret_input_grad))
        return -1;
    if (grad >= 0)
        d->c->release(d->c, grad);
    return 0;
}

static int backward(struct topt_dataflow *d, int op)
{
    int grad[TOPT_MAX_INPUTS], n = d->m->op[op].ninputs;
    if (run_backward(d, op, grad))
        return -1;
    for (int k = 0; k < n; k++)
        if (use_of(d, op, k)->reads)
            end_use(d, op, k);
    for (int next = 0; next <= 1; next++)
        for (int k = 0; k < n; k++)
            if (use_of(d, op, k)->next == next && give_input_grad(d, op, k, grad[k]))
                return -1;
    return 0;
}

/* ---- the whole --------------------------------------------------------------------- */

int topt_dataflow_run(struct topt_dataflow *o, const struct topt_strategy *s,
                      struct topt_emitter *c, struct topt_error *err)
{
    const struct topt_model *m = o->m;
    o->s = s;
    o->c = c;
    o->err = err;
    if (init_tensors(o))
        return -1;
    for (int i = 0; i < m->nops; i++)
        if (forward(o, i))
            return topt_wrap(err, "operator '%.60s', forward", m->op[i].name);
    for (int i = m->nops - 1; i >= 0; i--)
        if (topt_has_backward(m, i) && backward(o, i))
            return topt_wrap(err, "operator '%.60s', backward", m->op[i].name);
    return 0;
}
