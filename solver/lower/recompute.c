/* recompute.c - recomputation: what is not kept after forward, and what backward asks for
 * again.
 *
 * A flagged operator keeps neither its output nor what it saves.  Backward asks for it
 * where it reads one of them: then the operator's forward runs again, which may ask
 * for the outputs of flagged operators before it, down to what was kept.  So what one
 * unit recomputes lives within the unit's backward, and units, which have their
 * backward one after the other, need room for the largest of them only (Chen et al.,
 * Training Deep Nets with Sublinear Memory Cost, 2016).  That is why flags are for
 * operators inside of units, or, in our runtime's plans, of blocks that repeat. */
#include "recompute.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

int topt_has_backward(const struct topt_model *m, int op)
{
    const struct topt_op *o = &m->op[op];
    return m->tensor[topt_output_tensor(o)].needs_gradient;
}

int topt_reads_back(const struct topt_model *m, int op, int input)
{
    const struct topt_op *o = &m->op[op];
    return (int)(o->reads_back >> o->input[input] & 1);
}

int topt_recomputes(const struct topt_strategy *s)
{
    for (int i = 0; i < s->nops; i++)
        if (s->config[i].recompute)
            return 1;
    return 0;
}

int topt_is_recomputed(const struct topt_model *m, const struct topt_strategy *s,
                       int tensor)
{
    const struct topt_tensor *t = &m->tensor[tensor];
    return s->config[t->producer].recompute == TOPT_AGAIN_ALL &&
           (t->nconsumers < 2 || s->hub[tensor].keep == TOPT_HUB_RECOMPUTE);
}

/* Does backward read what forward saves? */
static int saves(const struct topt_op *o)
{
    for (int x = 0; x < o->spec->noperands; x++)
        if (o->operand[x].role == TOPT_SAVED && o->operand[x].present &&
            o->reads_back >> x & 1)
            return 1;
    return 0;
}

/* Consumers come after producers, so one pass from the end knows all consumers. */
void topt_recompute_demand(const struct topt_model *m, const struct topt_strategy *s,
                           uint8_t *ret_demanded)
{
    memset(ret_demanded, 0, (size_t)m->nops);
    for (int i = topt_recomputes(s) ? m->nops - 1 : -1; i >= 0; i--) {
        const struct topt_op *o = &m->op[i];
        int asked = ret_demanded[i] || saves(o);
        ret_demanded[i] = topt_runs_again(&s->config[i]) && asked;
        for (int k = 0; k < o->ninputs; k++) {
            int t = topt_input_tensor(o, k);
            if ((ret_demanded[i] || topt_reads_back(m, i, k)) &&
                topt_is_recomputed(m, s, t))
                ret_demanded[m->tensor[t].producer] = 1;
        }
    }
}

int topt_recomputable(const struct topt_model *m, const struct topt_settings *s,
                      uint8_t **ret, struct topt_error *err)
{
    uint8_t *may = calloc((size_t)m->nops + 1, 1);
    if (!may)
        return topt_nomem(err, "the model's units");
    for (int i = 0; i < m->nops; i++)
        may[i] = topt_recomputed_with(m, s, i) >= 0 && !m->op[i].spec->loss;
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++) {
            int p = topt_input_producer(m, &m->op[i], k);
            if (topt_recomputed_with(m, s, p) != topt_recomputed_with(m, s, i))
                may[p] = 0;
        }
    *ret = may;
    return 0;
}

static int64_t largest_unit(const struct topt_model *m, const int64_t *bytes)
{
    int64_t most = 0;
    for (int i = 0; i < m->nops; i++)
        if (m->unit[i] == i)
            most = topt_max(most, bytes[i]);
    return most;
}

int64_t topt_recomputed_at_once(const struct topt_model *m, const struct topt_settings *s,
                                const int64_t *bytes)
{
    int64_t sum = 0;
    if (s->by_unit)
        return largest_unit(m, bytes);
    for (int i = 0; i < m->blocks->nkinds; i++) {
        const struct topt_block_kind *b = &m->blocks->of[i];
        int64_t most = 0;
        for (int n = 0; n < b->count; n++)
            most = topt_max(most, bytes[b->first + n * b->length]);
        sum += most;
    }
    return sum;
}

/* Hubs recompute where the producer does, and only there. */
static int check_hubs(const struct topt_model *m, const struct topt_strategy *s,
                      struct topt_error *err)
{
    for (int t = 0; t < m->ntensors; t++)
        if (m->tensor[t].nconsumers > 1 && s->hub[t].keep == TOPT_HUB_RECOMPUTE &&
            s->config[m->tensor[t].producer].recompute != TOPT_AGAIN_ALL)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "tensor '%.60s' can't be recomputed: its operator keeps it",
                             m->tensor[t].name);
    return 0;
}

int topt_recompute_check(const struct topt_model *m, const struct topt_settings *settings,
                         const struct topt_strategy *s, struct topt_recomputation *r,
                         struct topt_error *err)
{
    r->any = topt_recomputes(s);
    if (check_hubs(m, s, err) ||
        (r->any && !r->may && topt_recomputable(m, settings, &r->may, err)))
        return -1;
    for (int i = 0; r->any && i < m->nops; i++)
        if (s->config[i].recompute && !r->may[i])
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "operator '%.60s' can't be run again in backward: its output "
                "is used outside of a %s",
                m->op[i].name, settings->by_unit ? "layer" : "repeated block");
    return 0;
}

void topt_recomputation_fini(struct topt_recomputation *r)
{
    free(r->may);
}
