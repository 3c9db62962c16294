/* backward.c - which steps of an operator's backward run.
 *
 * A row's backward makes every gradient that there could be.  Somebody wants those of
 * trained parameters, and of inputs with a trained parameter upstream; a step runs
 * where it makes one of them, or a value that a later step that runs reads.  So a
 * frozen linear map has one product in backward instead of two, and does not read its
 * input there, which then need not be kept. */
#include "model_graph.h"

enum { GRAD = 16 }; /* bit of an operand's gradient in a step's masks */

static int wants_gradient(const struct topt_op *op, int o)
{
    const struct topt_operand *x = &op->operand[o];
    if (x->role == TOPT_INPUT)
        return x->present && op->model->tensor[op->tensor[o]].needs_gradient;
    return topt_is_trained(op, o);
}

/* What is asked of backward: gradients, and windows of gradients. */
static uint32_t wanted_of(const struct topt_op *op)
{
    uint32_t wanted = 0;
    for (int o = 0; o < op->spec->noperands; o++) {
        const struct topt_operand_spec *spec = &op->spec->operand[o];
        if (wants_gradient(op, o))
            wanted |= 1u << (GRAD + o);
        if (spec->of_grad && wants_gradient(op, spec->window_of - 1))
            wanted |= 1u << o;
    }
    return wanted;
}

struct touch {
    uint32_t reads, writes;
};

/* Exchanges as reads and writes of values.  A sum is part of what wrote its operand:
 * who reads that wants it, and it wants nothing for itself. */
static struct touch touch_of(const struct topt_step *s)
{
    uint32_t from = 1u << s->operand, into = 1u << s->into;
    switch (s->kind) {
    case TOPT_STEP_KERNEL:
        return (struct touch){s->reads, s->writes};
    case TOPT_STEP_HALO:
    case TOPT_STEP_MOVE:
        return (struct touch){from, into};
    case TOPT_STEP_HALO_ADD:
        return (struct touch){from, into << GRAD};
    default:
        return (struct touch){from, from};
    }
}

static int count_steps(const struct topt_step *s)
{
    int n = 0;
    while (n < TOPT_MAX_STEPS && s[n].kind != TOPT_STEP_END)
        n++;
    return n;
}

/* One pass from the last step to the first.  What is written outright is wanted no
 * more before; in a loop each round writes a part. */
static uint32_t steps_for(const struct topt_op *op, uint32_t wanted)
{
    const struct topt_step *s = op->spec->backward;
    uint32_t runs = 0, before;
    int n = count_steps(s);
    do { /* what a loop's first steps read may come from its last, a round before */
        uint32_t live = wanted;
        before = runs;
        for (int i = n - 1; i >= 0; i--) {
            struct touch t = touch_of(&s[i]);
            if (!(t.writes & live) && !(runs >> i & 1))
                continue;
            runs |= 1u << i;
            if (!s[i].loop)
                live &= ~(t.writes & 0xffffu);
            live |= t.reads & 0xffffu;
            if (s[i].loop)
                for (int k = 0; k < n; k++)
                    if (s[k].loop == s[i].loop && touch_of(&s[k]).writes & t.reads)
                        runs |= 1u << k;
        }
    } while (runs != before);
    return runs;
}

void topt_op_find_backward(struct topt_op *op)
{
    const struct topt_step *s = op->spec->backward;
    op->runs_back = steps_for(op, wanted_of(op));
    op->reads_back = op->touches_back = 0;
    for (int i = 0; i < TOPT_MAX_STEPS; i++)
        if (op->runs_back >> i & 1) {
            struct touch t = touch_of(&s[i]);
            op->reads_back |= t.reads & 0xffffu;
            op->touches_back |= (t.reads | t.writes) & 0xffffu;
        }
}
