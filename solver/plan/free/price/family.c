/* family.c - configurations of alike operators, and of alike hubs, made once.
 *
 *     which operators are alike (here)
 *       -> which configurations (configs.c)
 *            -> what they cost (prices.c), how they look from edges (edge_classes.c) */
#include "family.h"
#include "edge_classes.h"
#include "configs.h"
#include "pins.h"
#include "prices.h"
#include "problem_data.h"
#include "space.h"
#include "topt_tensor.h"

#include <stdlib.h>
#include <string.h>

/* ---- which operators are alike ----------------------------------------------------- */

static int multi(const struct topt_model *m, int tensor)
{
    return m->tensor[tensor].nconsumers > 1;
}

static int wants_gradient(const struct topt_model *m, const struct topt_op *op, int input)
{
    return m->tensor[op->operand[op->input[input]].tensor].needs_gradient;
}

static int op_waits(const struct topt_problem *p, int op)
{
    const struct topt_op *o = &p->k.model->op[op];
    int t = o->operand[o->output].tensor;
    return multi(p->k.model, t) ? TOPT_SPAN_NEXT : p->spans.span[t];
}

/* Are two operators, alike by topt_model.h, alike in the problem too? */
static int alike_ops(const struct topt_problem *p, int a, int b)
{
    const struct topt_model *m = p->k.model;
    const struct topt_op *x = &m->op[a], *y = &m->op[b];
    if ((a == m->loss) != (b == m->loss) || op_waits(p, a) != op_waits(p, b) ||
        topt_problem_may_recompute(p, a) != topt_problem_may_recompute(p, b) ||
        topt_pins_at(p->options.pins, p->options.alike, a) !=
            topt_pins_at(p->options.pins, p->options.alike, b))
        return 0;
    if (p->options.tensor && p->options.tensor->op[a] != p->options.tensor->op[b])
        return 0;
    for (int k = 0; k < x->ninputs; k++)
        if (wants_gradient(m, x, k) != wants_gradient(m, y, k))
            return 0;
    return m->tensor[x->operand[x->output].tensor].needs_gradient ==
           m->tensor[y->operand[y->output].tensor].needs_gradient;
}

static int alike_hubs(const struct topt_problem *p, int a, int b)
{
    const struct topt_model *m = p->k.model;
    const struct topt_tensor *x = &m->tensor[a], *y = &m->tensor[b];
    if (x->ndim != y->ndim || memcmp(x->dim, y->dim, sizeof x->dim) ||
        x->nconsumers != y->nconsumers || x->needs_gradient != y->needs_gradient ||
        p->spans.span[a] != p->spans.span[b] || p->reread[a] != p->reread[b] ||
        topt_problem_may_recompute(p, x->producer) !=
            topt_problem_may_recompute(p, y->producer) ||
        (p->options.tensor && p->options.tensor->hub[a] != p->options.tensor->hub[b]))
        return 0;
    if (m->alike[x->producer] == m->alike[y->producer])
        return 1;
    struct topt_splits s = topt_splits_of_tensor(m, a), t = topt_splits_of_tensor(m, b);
    return !memcmp(&s, &t, sizeof s);
}

/* ---- families ---------------------------------------------------------------------- */

/* Room for what so many configurations cost. */
static int alloc_costs(struct family *f)
{
    size_t z = (size_t)(f->n > 0 ? f->n : 1);
    f->cost = calloc(z, sizeof *f->cost);
    f->recomputed = calloc(z, sizeof *f->recomputed);
    f->transient = calloc(z, sizeof *f->transient);
    f->waiting = calloc(z, sizeof *f->waiting);
    f->from_class = calloc(z, sizeof *f->from_class);
    int ok = f->cost && f->recomputed && f->transient && f->waiting && f->from_class;
    for (int i = 0; i < f->ninputs; i++) {
        f->to_class[i] = calloc(z, sizeof *f->to_class[i]);
        ok = ok && f->to_class[i];
    }
    return ok ? 0 : -1;
}

void topt_family_fini(struct family *f)
{
    free(f->config);
    free(f->hub_keep);
    free(f->cost);
    free(f->recomputed);
    free(f->transient);
    free(f->waiting);
    free(f->from_class);
    free(f->from_end);
    for (int i = 0; i < TOPT_MAX_INPUTS; i++) {
        free(f->to_class[i]);
        free(f->to_end[i]);
    }
}

/* ---- what it costs, and how it looks from edges ------------------------------------ */

/* A family while it is priced. */
struct listing {
    struct topt_problem *p;
    struct family *f;
    struct classes from, to[TOPT_MAX_INPUTS];
};

/* Bytes of a tensor where it waits past other operators: those that wait for long stay,
 * of others a cap counts. */
static void charge_waiting(const struct topt_problem *p, struct family *f, int i,
                           int tensor, int span, const struct topt_layout *where)
{
    int64_t bytes = span == TOPT_SPAN_NEXT ? 0 : topt_span_bytes(&p->k, tensor, where);
    if (span == TOPT_SPAN_LONG)
        f->cost[i].memory += bytes;
    else
        f->waiting[i] = bytes;
}

static void wait_op(const struct topt_problem *p, struct family *f, int i)
{
    const struct topt_op *o = &p->k.model->op[f->op];
    struct topt_layout l = topt_value_layout(o, o->output, &f->config[i], p->k.mesh);
    charge_waiting(p, f, i, o->operand[o->output].tensor, op_waits(p, f->op), &l);
}

static int classify_op(struct listing *l, int i, struct topt_error *err)
{
    const struct topt_problem *p = l->p;
    struct family *f = l->f;
    struct topt_edge_end e = topt_edge_producer(&p->k, f->op, &f->config[i]);
    f->from_class[i] = topt_class_of(&l->from, &e);
    if (f->from_class[i] < 0)
        return topt_nomem(err, "configurations");
    for (int k = 0; k < f->ninputs; k++) {
        e = topt_edge_consumer(&p->k, f->op, k, &f->config[i], f->transient[i]);
        f->to_class[k][i] = topt_class_of(&l->to[k], &e);
        if (f->to_class[k][i] < 0)
            return topt_nomem(err, "configurations");
    }
    return 0;
}

static int classify_ops(struct listing *l, struct topt_error *err)
{
    struct family *f = l->f;
    for (int i = 0; i < f->n; i++)
        if (classify_op(l, i, err))
            return -1;
    for (int i = 0; i < f->n; i++)
        f->transient[i] = topt_round_transient(f->transient[i]);
    return 0;
}

static int price_ops(struct listing *l, struct topt_error *err)
{
    if (topt_family_cost(l->p, l->f, err))
        return -1;
    for (int i = 0; i < l->f->n; i++)
        wait_op(l->p, l->f, i);
    return classify_ops(l, err);
}

static int price_hub(struct listing *l, int i, struct topt_error *err)
{
    struct topt_problem *p = l->p;
    struct family *f = l->f;
    struct topt_hub h = {f->config[i], f->hub_keep[i]};
    struct topt_fragment_cost c;
    if (topt_cost_hub(&p->k, f->tensor, &h, &c, err))
        return -1;
    f->cost[i].time = c.compute_ns + c.network_ns;
    struct topt_edge_end e = topt_edge_hub(&p->k, &h);
    f->from_class[i] = topt_class_of(&l->from, &e);
    f->to_class[0][i] = topt_class_of(&l->to[0], &e);
    if (f->from_class[i] < 0 || f->to_class[0][i] < 0)
        return topt_nomem(err, "configurations");
    charge_waiting(p, f, i, f->tensor, p->spans.span[f->tensor], &e.value);
    return 0;
}

static struct listing listing_of(struct topt_problem *p, struct family *f)
{
    struct listing l = {.p = p, .f = f};
    l.from = (struct classes){.end = &f->from_end, .n = &f->nfrom};
    for (int k = 0; k < f->ninputs; k++)
        l.to[k] = (struct classes){.end = &f->to_end[k], .n = &f->nto[k]};
    return l;
}

static void listing_fini(struct listing *l)
{
    topt_classes_fini(&l->from);
    for (int k = 0; k < l->f->ninputs; k++)
        topt_classes_fini(&l->to[k]);
}

static int price_family(struct listing *l, struct topt_error *err)
{
    struct family *f = l->f;
    if (f->op >= 0)
        return price_ops(l, err);
    for (int i = 0; i < f->n; i++)
        if (topt_problem_canceled(l->p, err) || price_hub(l, i, err))
            return -1;
    return 0;
}

static int make_family(struct topt_problem *p, struct family *f, struct topt_error *err)
{
    f->ninputs = f->op >= 0 ? p->k.model->op[f->op].ninputs : 1;
    struct listing l = listing_of(p, f);
    int rc = topt_family_list(p, f, err);
    if (!rc)
        rc = alloc_costs(f) ? topt_nomem(err, "configurations") : price_family(&l, err);
    listing_fini(&l);
    return rc;
}

/* Operators of a family are alike as such, hubs mostly have producers that are: those
 * families are chained, the latest first. */
static int find_chained(const struct topt_problem *p, int op, int tensor)
{
    const struct topt_model *m = p->k.model;
    int i = op >= 0 ? p->of_op[m->alike[op]]
                    : p->of_hub[m->alike[m->tensor[tensor].producer]];
    while (i >= 0 && !(op >= 0 ? alike_ops(p, p->family[i].op, op)
                               : alike_hubs(p, p->family[i].tensor, tensor)))
        i = p->family[i].next;
    return i;
}

static int find_hub(const struct topt_problem *p, int tensor)
{
    for (int i = 0; i < p->nfamilies; i++)
        if (p->family[i].op < 0 && alike_hubs(p, p->family[i].tensor, tensor))
            return i;
    return -1;
}

/* The blocks that pay for what is recomputed of an operator, or the hub of its tensor. */
static int paying_blocks(const struct topt_problem *p, int op, int tensor)
{
    int apart = p->options.alike || p->k.settings->by_unit;
    const struct topt_blocks *b = apart ? NULL : p->options.blocks;
    int kind = b ? b->kind[op >= 0 ? op : p->k.model->tensor[tensor].producer] : -1;
    return kind >= 0 ? b->of[kind].count : 1;
}

int topt_problem_family(struct topt_problem *p, int op, int tensor,
                        struct topt_error *err)
{
    const struct topt_model *m = p->k.model;
    int found = find_chained(p, op, tensor), among = paying_blocks(p, op, tensor);
    if (found < 0 && op < 0)
        found = find_hub(p, tensor);
    if (found >= 0) { /* of several kinds, that with most blocks: none pays too much */
        if (among > p->family[found].among)
            p->family[found].among = among;
        return found;
    }
    int *head = op >= 0 ? &p->of_op[m->alike[op]]
                        : &p->of_hub[m->alike[m->tensor[tensor].producer]];
    struct family *f = &p->family[p->nfamilies];
    *f = (struct family){.op = op, .tensor = tensor, .next = *head, .among = among};
    *head = p->nfamilies++;
    return make_family(p, f, err) ? -1 : p->nfamilies - 1;
}
