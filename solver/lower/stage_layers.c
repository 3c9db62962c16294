/* stage_layers.c - the units that pipeline stages are cut from, and what a strategy's pieces add up to in each.
 *
 *     units     | embedding | layer 0 | layer 1 | ...            | layer n | norm, head, loss |
 *
 * Stages exchange one tensor of samples, so a unit begins where exactly one such tensor is read from there on.  Modules
 * that predict further tokens belong to the last unit, as Megatron-LM has them beside the loss. */
#include "stage_layers.h"

#include <stdlib.h>

/* Tensors of samples cross stages.  Parameters that both ends read, and inputs that every stage can load, do not. */
static int is_of_samples(const struct topt_model *m, int tensor)
{
    const struct topt_op *o = &m->op[m->tensor[tensor].producer];
    const struct topt_operand_spec *out = &o->spec->operand[o->output];
    for (int i = 0; i < m->tensor[tensor].ndim; i++)
        if (o->spec->dim[out->dim[i]].split == TOPT_SPLIT_BATCH)
            return 1;
    return 0;
}

static int begins_layer(const struct topt_model *m, int op)
{
    return m->unit[op] >= 0 && (op == 0 || m->unit[op - 1] != m->unit[op]);
}

/* Counts, by operator, of tensors that earlier operators make and it or later ones read. */
struct crossing {
    int samples;    /* tensors of samples, */
    int tables;     /* ... of which every stage can look these up in a table, */
    int tensor;     /* ... and one of the others, if there is one */
    int parameters; /* tensors of parameters */
};

/* NULL: no memory. */
static struct crossing *crossings(const struct topt_model *m)
{
    int *last = topt_model_last_uses(m);
    struct crossing *c = calloc((size_t)m->nops + 1, sizeof *c);
    for (int t = 0; last && c && t < m->ntensors; t++) {
        const struct topt_op *o = &m->op[m->tensor[t].producer];
        int of_samples = is_of_samples(m, t), gradient = m->tensor[t].needs_gradient;
        int shared = gradient && (!of_samples || !o->ninputs);
        of_samples &= gradient || o->ninputs;
        for (int i = m->tensor[t].producer + 1; i <= last[t]; i++) {
            c[i].samples += of_samples;
            c[i].tables += of_samples && !o->ninputs;
            c[i].parameters += shared;
            if (of_samples && (o->ninputs || c[i].samples == 1))
                c[i].tensor = t;
        }
    }
    free(last);
    return c;
}

/* A unit begins at operator 'op'; the first unit begins at the model's first operator instead. */
static void add_unit(struct topt_stage_units *u, const struct crossing *c, int op)
{
    u->at[u->n] = (struct topt_stage_unit){u->n ? op : 0, c[op].tensor, c[op].parameters};
    u->n++;
}

static void find_units(const struct topt_model *m, const struct crossing *c,
                       struct topt_stage_units *u)
{
    int last = m->mtp - 1;
    while (last >= 0 && m->unit[last] < 0)
        last--;
    for (int i = 0; i <= last && u->fault < 0; i++) {
        if (!begins_layer(m, i))
            continue;
        if (u->layers && c[i].samples - c[i].tables != 1)
            u->fault = i;
        if (!u->layers && i && c[i].samples == 1)
            add_unit(u, c, 0);
        u->first = u->layers ? u->first : u->n;
        u->layers++;
        add_unit(u, c, i);
    }
    if (u->fault >= 0)
        u->layers = 0;
    if (u->layers && last + 1 < m->nops && c[last + 1].samples == 1)
        add_unit(u, c, last + 1);
    u->at[u->n].op = m->nops;
}

int topt_stage_units_find(const struct topt_model *m, struct topt_stage_units *ret,
                          struct topt_error *err)
{
    struct crossing *c = crossings(m);
    *ret = (struct topt_stage_units){.fault = -1};
    ret->at = calloc((size_t)m->nops + 2, sizeof *ret->at);
    if (c && ret->at)
        find_units(m, c, ret);
    int rc = c && ret->at ? 0 : topt_nomem(err, "the model's layers");
    free(c);
    return rc;
}

void topt_stage_units_fini(struct topt_stage_units *u)
{
    free(u->at);
    u->at = NULL;
}

/* Modules that predict further tokens are not recomputed then (Megatron-LM, core/transformer/multi_token_prediction.py at
 * d98e8a6). */
void topt_recompute_first(const struct topt_model *m, const int16_t *layers, int64_t n,
                          struct topt_strategy *s)
{
    int in_chunk = -1, chunk = 0; /* the layer's number in its chunk */
    for (int i = 0; i < m->nops; i++) {
        int t = topt_output_tensor(&m->op[i]);
        if (i < m->mtp && begins_layer(m, i))
            for (in_chunk++; in_chunk == layers[chunk]; in_chunk = 0)
                chunk++;
        if (in_chunk < n && i < m->mtp)
            continue;
        s->config[i].recompute = 0;
        if (m->tensor[t].nconsumers > 1 && s->hub[t].keep == TOPT_HUB_RECOMPUTE)
            s->hub[t].keep = TOPT_HUB_KEEP;
    }
}

int topt_layers_init(struct topt_layers *t, struct topt_error *err)
{
    const struct topt_model *m = t->model;
    if (topt_stage_units_find(m, &t->units, err))
        return -1;
    t->stays = calloc((size_t)t->npieces + 1, sizeof *t->stays);
    t->from = calloc((size_t)t->units.n + 1, sizeof *t->from);
    t->unit = calloc((size_t)t->units.n + 1, sizeof *t->unit);
    if (!t->stays || !t->from || !t->unit)
        return topt_nomem(err, "pipeline stages");
    for (int i = 0; i <= t->units.n; i++) {
        const struct topt_stage_unit *u = &t->units.at[i];
        t->from[i] = u->op < m->nops ? t->piece[u->op] : t->npieces;
        t->shared |= i > t->units.first && u->parameters;
    }
    return 0;
}

void topt_layers_fini(struct topt_layers *t)
{
    free(t->stays);
    free(t->from);
    free(t->unit);
    topt_stage_units_fini(&t->units);
    *t = (struct topt_layers){.model = NULL};
}

void topt_layers_join(struct topt_layers *t, const struct topt_hw *whole,
                      struct topt_layers *next)
{
    t->whole = whole;
    t->next = next;
}

static void add_pass(struct topt_unit_sums *u, int backward,
                     const struct topt_part_time *t, const struct topt_settings *s)
{
    int64_t rounds = s->micro_batches, gather_ns = s->unsharded_sums ? 0 : t->gather_ns;
    int64_t *ns = u->ns[backward];
    u->passes_ns += t->compute_ns + t->waited_ns;
    ns[TOPT_LINK_COUNT] += t->compute_ns / rounds + t->waited_ns / rounds;
    for (int i = 0; i < TOPT_LINK_COUNT; i++) {
        int64_t aside = (t->gather_links >> i & 1) * (gather_ns / rounds) +
                        (t->reduce_links >> i & 1) * (t->reduce_ns / rounds);
        u->aside_ns[backward][i] += aside;
        ns[i] += aside + (t->waited_links >> i & 1) * (t->waited_ns / rounds);
    }
}

static int64_t stays_of(const struct topt_layers *t, int piece)
{
    int64_t bytes = 0;
    for (int i = 0; i < TOPT_CLASS_COUNT; i++)
        bytes += t->stays[piece][i];
    return bytes;
}

void topt_layers_sum(struct topt_layers *t)
{
    for (int u = 0; u < t->units.n; u++) {
        struct topt_unit_sums *x = &t->unit[u];
        *x = (struct topt_unit_sums){0};
        for (int p = t->from[u]; p < t->from[u + 1]; p++) {
            const struct topt_piece_bytes *b = &t->bytes[p];
            /* How many chunks have gathered parameters depends on the number of chunks: stage_cost.c adds them. */
            x->stays += stays_of(t, p) + (t->settings->unsharded_sums ? 0 : b->whole);
            x->kept += b->kept - b->saved;
            for (int d = 0; d < TOPT_DURING_COUNT; d++)
                x->exchange_ns += t->spent[p].at[d].exchange_ns;
            add_pass(x, 0, &t->spent[p].at[TOPT_DURING_FORWARD], t->settings);
            add_pass(x, 1, &t->spent[p].at[TOPT_DURING_BACKWARD], t->settings);
        }
    }
    t->unit[t->units.n] =
        (struct topt_unit_sums){.stays = t->shared ? stays_of(t, 0) : 0};
}
