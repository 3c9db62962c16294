/* graph.c - building a model operator by operator, checking shapes at each step.
 *
 * Operators are appended in an order of execution, so every input exists before its
 * user and no cycle can arise. */
#include "model_graph.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPS = 1 << 20 };
static const int64_t MAX_ELEMENTS = (int64_t)1
                                    << 46; /* of one tensor; products stay < 2^62 */

struct topt_model *topt_model_create(const char *name, int64_t batch, int64_t seq,
                                     struct topt_error *err)
{
    if (batch < 1 || seq < 1 || batch > 1 << 24 || seq > 1 << 24) {
        topt_fail(err, TOPT_ERR_INVAL, "batch %lld and seq %lld must be 1..16777216",
                  (long long)batch, (long long)seq);
        return NULL;
    }
    struct topt_model *m = calloc(1, sizeof *m);
    struct topt_arena *a = m ? topt_arena_create(0) : NULL;
    const char *copy = a ? topt_arena_strdup(a, name) : NULL;
    if (!copy) {
        topt_arena_destroy(a);
        free(m);
        topt_nomem(err, "a model");
        return NULL;
    }
    m->arena = a;
    m->name = copy;
    m->batch = batch;
    m->seq = seq;
    m->loss = m->at_layer = -1;
    return m;
}

void topt_model_destroy(struct topt_model *m)
{
    if (!m)
        return;
    topt_model_free_blocks(m);
    topt_arena_destroy(m->arena);
    free(m->op);
    free(m->tensor);
    free(m->named);
    free(m);
}

/* Room for so many operators and their outputs. */
static int reserve(struct topt_model *m, int cap, struct topt_error *err)
{
    if (TOPT_RESIZE(m->op, (size_t)cap) || TOPT_RESIZE(m->tensor, (size_t)cap))
        return topt_nomem(err, "an operator");
    m->cap = cap;
    return 0;
}

/* Room for one more. */
static int grow(struct topt_model *m, struct topt_error *err)
{
    if (m->nops >= MAX_OPS)
        return topt_fail(err, TOPT_ERR_LIMIT, "more than %d operators", MAX_OPS);
    return m->nops < m->cap ? 0 : reserve(m, m->cap ? 2 * m->cap : 16, err);
}

static int bind_input(struct topt_model *m, struct topt_op *op, int operand, int tensor,
                      struct topt_error *err)
{
    if (tensor < 0 || tensor >= m->ntensors)
        return topt_fail(err, TOPT_ERR_INVAL, "input %d is not a tensor", tensor);
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    const struct topt_tensor *t = &m->tensor[tensor];
    if (t->ndim == 3 && spec->ndim == 3 && t->dim[1].unit != 1 && !spec->slots)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "input '%s' has slots of experts, positions are needed",
                         t->name);
    if (t->ndim != spec->ndim)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "input '%s' has %d dimensions, %d are needed", t->name, t->ndim,
                         spec->ndim);
    struct topt_operand *x = &op->operand[operand];
    x->role = TOPT_INPUT;
    op->tensor[operand] = tensor;
    memcpy(x->dim, t->dim, sizeof x->dim);
    op->input[op->ninputs++] = operand;
    return 0;
}

/* An input that may be left out is, where the next tensor has another rank. */
static int is_left_out(const struct topt_model *m, const struct topt_operand_spec *spec,
                       int tensor)
{
    return spec->optional && tensor >= 0 && tensor < m->ntensors &&
           m->tensor[tensor].ndim != spec->ndim;
}

/* Give tensors to the INPUT operands in order, then to parameters that may be tensors. */
static int bind_inputs(struct topt_model *m, struct topt_op *op, int ninputs,
                       const int *inputs, struct topt_error *err)
{
    int used = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int o = 0; o < op->spec->noperands && used < ninputs; o++) {
            const struct topt_operand_spec *spec = &op->spec->operand[o];
            int fits = pass == 0 ? spec->role == TOPT_INPUT &&
                                       !is_left_out(m, spec, inputs[used])
                                 : spec->tensor_ok;
            if (fits && bind_input(m, op, o, inputs[used++], err))
                return -1;
        }
    for (int o = 0; o < op->spec->noperands; o++) {
        if (op->spec->operand[o].role != TOPT_INPUT || op->tensor[o] >= 0)
            continue;
        op->operand[o].present = 0;
        if (!op->spec->operand[o].optional)
            return topt_fail(err, TOPT_ERR_INVAL, "input '%s' is missing",
                             op->spec->operand[o].name);
    }
    return used == ninputs
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "%d inputs are too many", ninputs);
}

/* Where the weight is another operator's tensor, that one's shape decides. */
static int check_tied(const struct topt_op *op, struct topt_error *err)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->spec->operand[o].role == TOPT_PARAM &&
            op->operand[o].role == TOPT_INPUT &&
            (op->attrs->features || op->attrs->vocab))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the weight is a tensor, so %s can't be given",
                             op->attrs->features ? "features" : "vocab");
    return 0;
}

/* Few bits are for what is not updated. */
static int check_bits(const struct topt_op *op, struct topt_error *err)
{
    int64_t bits = op->attrs->bits;
    if (bits && bits != 4 && bits != 8)
        return topt_fail(err, TOPT_ERR_INVAL, "bits are 4 or 8, not %lld",
                         (long long)bits);
    return bits && !op->attrs->frozen
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "parameters of %lld bits are not trained: they need frozen",
                           (long long)bits)
               : 0;
}

static int is_work(const struct topt_op *op, int o)
{
    return op->operand[o].role == TOPT_WORK_FWD || op->operand[o].role == TOPT_WORK_BWD;
}

/* By dimension, how often one operand which a step reads or writes has it at most (scores have it
 * twice); 1 of what a loop goes over.  Of a table's rows those are read that are named. */
static void find_times(const struct topt_op *op, const struct topt_step *step,
                       int ret[TOPT_MAX_OPDIMS])
{
    uint32_t touched = step->reads | step->writes;
    memset(ret, 0, TOPT_MAX_OPDIMS * sizeof *ret);
    if (step->loop)
        ret[step->loop - 1] = 1;
    for (int o = 0; o < op->spec->noperands; o++) {
        const struct topt_operand_spec *x = &op->spec->operand[o];
        int times[TOPT_MAX_OPDIMS] = {0};
        for (int i = 0; (touched | touched >> 16) >> o & 1 && i < x->ndim; i++) {
            int d = x->dim[i];
            if (!(x->rows_of && i == x->ndim - 2) && ++times[d] > ret[d])
                ret[d] = times[d];
        }
    }
}

/* By dimension, the largest unit that an operand has of it, but for those it only works in. */
static void find_widest(const struct topt_op *op, int64_t ret[TOPT_MAX_OPDIMS])
{
    for (int d = 0; d < op->spec->ndims; d++)
        ret[d] = 1;
    for (int o = 0; o < op->spec->noperands; o++)
        for (int i = 0; !is_work(op, o) && i < op->spec->operand[o].ndim; i++) {
            int d = op->spec->operand[o].dim[i];
            ret[d] = topt_max(ret[d], op->operand[o].dim[i].unit);
        }
}

/* Floating-point operations must stay far from 2^63: what a kernel goes over does, the
 * space of all that it reads and writes. */
static int check_volume(const struct topt_op *op, const struct topt_step *list,
                        struct topt_error *err)
{
    int64_t widest[TOPT_MAX_OPDIMS];
    find_widest(op, widest);
    for (const struct topt_step *step = list; step < list + TOPT_MAX_STEPS && step->kind;
         step++) {
        int times[TOPT_MAX_OPDIMS];
        double volume = 1;
        find_times(op, step, times);
        for (int d = 0; d < op->spec->ndims; d++) {
            volume *= times[d] && !(op->spec->within >> d & 1) ? (double)widest[d] : 1;
            for (; times[d] > 0; times[d]--)
                volume *= (double)op->count[d];
        }
        if (volume >= 0x1p58)
            return topt_fail(err, TOPT_ERR_LIMIT,
                             "%.3g elements to visit, more than 2^58", volume);
    }
    return 0;
}

/* Extents of every operand that 'shape' did not set, and limits on all of them. */
static int fill_operands(struct topt_op *op, struct topt_error *err)
{
    for (int o = 0; o < op->spec->noperands; o++) {
        const struct topt_operand_spec *spec = &op->spec->operand[o];
        struct topt_operand *x = &op->operand[o];
        double elements = 1;
        for (int i = 0; i < spec->ndim; i++) {
            int64_t count =
                spec->own >> i & 1 ? x->dim[i].count : op->count[spec->dim[i]];
            if (x->role == TOPT_INPUT && x->present && x->dim[i].count != count)
                return topt_fail(err, TOPT_ERR_INVAL,
                                 "input '%s' has %lld in dimension %s, not %lld",
                                 spec->name, (long long)x->dim[i].count,
                                 op->spec->dim[spec->dim[i]].name, (long long)count);
            if (x->dim[i].unit < 1)
                x->dim[i].unit = 1;
            x->dim[i].count = count;
            elements *= (double)count * (double)x->dim[i].unit;
        }
        if (spec->ragged)
            elements = (double)topt_operand_numbers(op, o);
        if (elements > (double)MAX_ELEMENTS)
            return topt_fail(err, TOPT_ERR_LIMIT,
                             "operand '%s' has %.3g elements, more than 2^46", spec->name,
                             elements);
    }
    return 0;
}

static int append_output(struct topt_model *m, struct topt_op *op)
{
    const struct topt_operand *y = &op->operand[op->output];
    struct topt_tensor *t = &m->tensor[m->ntensors];
    *t = (struct topt_tensor){.name = op->name,
                              .ndim = op->spec->operand[op->output].ndim,
                              .producer = m->nops};
    memcpy(t->dim, y->dim, sizeof t->dim);
    for (int o = 0; o < op->spec->noperands; o++) {
        const struct topt_operand *x = &op->operand[o];
        if (topt_is_trained(op, o))
            t->needs_gradient = 1;
        if (x->role == TOPT_INPUT && x->present) {
            m->tensor[op->tensor[o]].nconsumers++;
            t->needs_gradient |= m->tensor[op->tensor[o]].needs_gradient;
        }
    }
    return m->ntensors++;
}

/* ---- names ------------------------------------------------------------------------- */

/* Operators by name: open addressing, at most half full, 1 + the operator in each
 * slot. */
static uint32_t slot_of(const struct topt_model *m, const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    uint32_t mask = (uint32_t)m->named_cap - 1;
    for (h &= mask; m->named[h]; h = (h + 1) & mask)
        if (!strcmp(m->op[m->named[h] - 1].name, name))
            break;
    return h;
}

int topt_model_find(const struct topt_model *m, const char *name)
{
    return m->named_cap ? m->named[slot_of(m, name)] - 1 : -1;
}

/* Room for one more name. */
static int grow_names(struct topt_model *m, struct topt_error *err)
{
    if (2 * (m->nops + 1) <= m->named_cap)
        return 0;
    int cap = m->named_cap ? 2 * m->named_cap : 64;
    int *named = calloc((size_t)cap, sizeof *named);
    if (!named)
        return topt_nomem(err, "an operator's name");
    free(m->named);
    m->named = named;
    m->named_cap = cap;
    for (int i = 0; i < m->nops; i++)
        m->named[slot_of(m, m->op[i].name)] = i + 1;
    return 0;
}

/* Appends an operator whose operands are known, but for its output's tensor, which is returned. */
static int append(struct topt_model *m, struct topt_op *op)
{
    op->tensor[op->output] = append_output(m, op);
    topt_op_find_backward(op);
    m->op[m->nops] = *op;
    m->named[slot_of(m, op->name)] = m->nops + 1;
    m->nops++;
    m->nlayers = op->layer >= m->nlayers ? op->layer + 1 : m->nlayers;
    return topt_output_tensor(op);
}

int topt_model_add(struct topt_model *m, const char *kind, const char *name, int ninputs,
                   const int *inputs, const struct topt_attrs *attrs,
                   struct topt_error *err)
{
    int rank = ninputs > 0 && inputs[0] >= 0 && inputs[0] < m->ntensors
                   ? m->tensor[inputs[0]].ndim
                   : 0;
    const struct topt_op_spec *spec = topt_op_spec_find(kind, rank);
    if (!spec)
        return topt_fail(err, TOPT_ERR_INVAL, "operator '%.60s' has unknown kind '%.40s'",
                         name, kind);
    if (topt_model_find(m, name) >= 0)
        return topt_fail(err, TOPT_ERR_INVAL, "two operators are named '%.60s'", name);
    if (grow(m, err) || grow_names(m, err))
        return -1;
    struct topt_op_form *form = TOPT_NEW(m->arena, 1, struct topt_op_form);
    struct topt_op op = {.spec = spec,
                         .model = m,
                         .layer = m->at_layer,
                         .name = topt_arena_strdup(m->arena, name)};
    if (!op.name || !form)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for operator '%.60s'", name);
    topt_op_take_form(&op, form);
    if (attrs)
        *op.attrs = *attrs;
    for (int o = 0; o < spec->noperands; o++) {
        op.operand[o].role = spec->operand[o].role;
        op.tensor[o] = TOPT_NO_TENSOR;
        op.operand[o].present = 1;
        if (spec->operand[o].role == TOPT_OUTPUT)
            op.output = o;
    }
    if (ninputs > TOPT_MAX_INPUTS || bind_inputs(m, &op, ninputs, inputs, err) ||
        check_tied(&op, err) || check_bits(&op, err) || spec->shape(&op, err) ||
        fill_operands(&op, err) || check_volume(&op, spec->forward, err) ||
        check_volume(&op, spec->backward, err))
        return topt_wrap(err, "operator '%.60s' (%s)", name, kind);
    return append(m, &op);
}

void topt_model_say_role(struct topt_model *m, enum topt_op_role role)
{
    m->op[m->nops - 1].role = role;
}

static void find_head(struct topt_model *m)
{
    m->head = m->loss;
    while (m->head > 0) {
        const struct topt_op *op = &m->op[m->head], *before = op - 1;
        int t = topt_output_tensor(before);
        const struct topt_tensor *x = &m->tensor[t];
        if (before->spec->loss) {
            m->head--;
            continue;
        }
        if (op->ninputs != 1 || topt_input_tensor(op, 0) != t || x->nconsumers != 1 ||
            x->dim[x->ndim - 1].count != m->vocab)
            return;
        m->head--;
    }
}

/* The first operator that the last loss does not read. */
static int find_mtp(struct topt_model *m, struct topt_error *err)
{
    char *read = calloc((size_t)m->nops + 1, 1);
    if (!read)
        return topt_nomem(err, "the model");
    read[m->loss] = 1;
    for (int i = m->loss; i >= 0; i--)
        for (int k = 0; read[i] && k < m->op[i].ninputs; k++)
            read[topt_input_producer(m, &m->op[i], k)] = 1;
    for (m->mtp = 0; m->mtp < m->nops && read[m->mtp];)
        m->mtp++;
    free(read);
    return 0;
}

/* Another loss is that of a module that predicts further tokens. */
static int is_further_loss(const struct topt_op *loss, const struct topt_op *last)
{
    return loss->spec == last->spec && loss->spec->eager &&
           loss->count[2] == last->count[2];
}

static int find_loss(struct topt_model *m, struct topt_error *err)
{
    int losses = 0;
    m->loss = -1;
    for (int t = 0; t < m->ntensors; t++) {
        if (m->tensor[t].nconsumers)
            continue;
        const struct topt_op *op = &m->op[m->tensor[t].producer];
        if (!op->spec->loss)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the output of '%s' (%s) is used by nobody", op->name,
                             op->spec->name);
        if (losses++ && !is_further_loss(&m->op[m->loss], op))
            return topt_fail(err, TOPT_ERR_INVAL, "two losses: '%s' and '%s'",
                             m->op[m->loss].name, op->name);
        m->loss = m->tensor[t].producer;
    }
    if (m->loss < 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the model has no loss (such as cross_entropy)");
    m->vocab = m->op[m->loss].count[2];
    m->mtp = m->nops;
    if (losses > 1 && find_mtp(m, err))
        return -1;
    find_head(m);
    for (int i = 0; i < m->nops; i++)
        m->parameters += topt_op_parameters(&m->op[i]);
    return 0;
}

static int set_text(struct topt_model *m, const char **field, const char *text,
                    struct topt_error *err)
{
    const char *copy = text ? topt_arena_strdup(m->arena, text) : NULL;
    if (text && !copy)
        return topt_nomem(err, "a note");
    *field = copy;
    return 0;
}

/* Once, after what is said already. */
static int add_plan_only(struct topt_model *m, const char *why, struct topt_error *err)
{
    enum { MOST = 900 };
    char text[MOST];
    if (m->plan_only && strstr(m->plan_only, why))
        return 0;
    snprintf(text, sizeof text, "%s%s%s", m->plan_only ? m->plan_only : "",
             m->plan_only ? "; " : "", why);
    return set_text(m, &m->plan_only, text, err);
}

/* What no backend computes of its operators. */
static int name_what_is_not_run(struct topt_model *m, struct topt_error *err)
{
    for (int i = 0; i < m->nops; i++)
        if (m->op[i].spec->plan_only && add_plan_only(m, m->op[i].spec->plan_only, err))
            return -1;
    return m->mtp < m->nops ? add_plan_only(m, "multi-token prediction", err) : 0;
}

int topt_model_finish(struct topt_model *m, struct topt_error *err)
{
    return find_loss(m, err) || topt_model_find_repeats(m, err) ||
                   name_what_is_not_run(m, err)
               ? -1
               : 0;
}

int topt_model_note(struct topt_model *m, const char *note, struct topt_error *err)
{
    return set_text(m, &m->note, note, err);
}

int topt_model_plan_only(struct topt_model *m, const char *why, struct topt_error *err)
{
    return set_text(m, &m->plan_only, why, err);
}

int topt_model_say_trained(struct topt_model *m, const char *spec, struct topt_error *err)
{
    return set_text(m, &m->train, spec, err);
}

int topt_model_check_run(const struct topt_model *m, struct topt_error *err)
{
    return m->plan_only
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "model '%.60s' can be planned, not run: no kernel for "
                           "%s",
                           m->name, m->plan_only)
               : 0;
}

/* An operator's inputs stand in the order in which they were given. */
static int add_again(struct topt_model *m, const struct topt_op *op,
                     struct topt_error *err)
{
    int inputs[TOPT_MAX_INPUTS];
    for (int k = 0; k < op->ninputs; k++)
        inputs[k] = topt_input_tensor(op, k);
    m->at_layer = op->layer;
    if (topt_model_add(m, op->spec->name, op->name, op->ninputs, inputs, op->attrs, err) <
        0)
        return -1;
    topt_model_say_role(m, op->role);
    return 0;
}

/* The same for an operator that is alike to an earlier one, unless the shapes of their inputs do not change alike: 0.
 * 1: it was added, -1: failed. */
static int add_as_first(struct topt_model *m, const struct topt_model *of, int i,
                        struct topt_error *err)
{
    const struct topt_op *was = &of->op[i];
    int first = of->alike ? of->alike[i] : i;
    if (first == i)
        return 0;
    struct topt_op op = m->op[first];
    for (int k = 0; k < was->ninputs; k++) {
        const struct topt_operand *x = &op.operand[was->input[k]];
        int tensor = op.tensor[was->input[k]] = topt_input_tensor(was, k);
        if (op.input[k] != was->input[k] ||
            memcmp(x->dim, m->tensor[tensor].dim, sizeof x->dim))
            return 0;
    }
    op.name = topt_arena_strdup(m->arena, was->name);
    op.layer = was->layer;
    op.role = was->role;
    if (!op.name || grow(m, err) || grow_names(m, err))
        return topt_nomem(err, "an operator");
    (void)append(m, &op);
    return 1;
}

struct topt_model *topt_model_rebatch(const struct topt_model *m, int64_t batch,
                                      struct topt_error *err)
{
    struct topt_model *r = topt_model_create(m->name, batch, m->seq, err);
    int rc = r ? reserve(r, m->nops, err) : -1;
    for (int i = 0; i < m->nops && !rc; i++) {
        int added = add_as_first(r, m, i, err);
        rc = added ? -(added < 0) : add_again(r, &m->op[i], err);
    }
    if (!rc)
        rc = find_loss(r, err) || topt_model_copy_repeats(r, m, err) ||
             topt_model_note(r, m->note, err) ||
             topt_model_plan_only(r, m->plan_only, err) ||
             topt_model_say_trained(r, m->train, err);
    if (!rc) {
        r->stored_bits = m->stored_bits;
        return r;
    }
    topt_model_destroy(r);
    topt_wrap(err, "batch %lld", (long long)batch);
    return NULL;
}

static double op_flops(const struct topt_op *op)
{
    double total = 0;
    const struct topt_step *lists[] = {op->spec->forward, op->spec->backward};
    for (int l = 0; l < 2; l++)
        for (const struct topt_step *s = lists[l];
             s < lists[l] + TOPT_MAX_STEPS && s->kind; s++)
            if (s->kind == TOPT_STEP_KERNEL && !s->dims &&
                (l == 0 || op->runs_back >> (s - lists[l]) & 1))
                total += (double)op->spec->flops(op, s->kernel, op->count) *
                         (s->loop ? (double)op->count[s->loop - 1] : 1);
    return total;
}

/* The attributes of an operator with as many keys as a query attends to: all of the sequence, or of the window or
 * chunk.  A causal mask is not discounted. */
static struct topt_attrs without_mask(const struct topt_op *op,
                                      int64_t len[TOPT_MAX_OPDIMS])
{
    enum { KEYS = 3 }; /* dimension t of the row "attention" */
    struct topt_attrs whole = *op->attrs, *a = &whole;
    int64_t window = a->causal || !a->window ? a->window : 2 * a->window - 1;
    if (window > 0 && window < len[KEYS])
        len[KEYS] = window;
    if (a->chunk > 0 && a->chunk < len[KEYS])
        len[KEYS] = a->chunk;
    a->causal = 0;
    a->window = a->chunk = 0;
    return whole;
}

/* Three times the matrix products of forward: one for forward, two for backward; of attention all positions, or
 * ('masked') those that its mask leaves. */
static double op_model_flops(const struct topt_op *op, int masked)
{
    double total = 0;
    for (const struct topt_step *s = op->spec->forward;
         s < op->spec->forward + TOPT_MAX_STEPS && s->kind; s++) {
        int64_t len[TOPT_MAX_OPDIMS];
        struct topt_op all = *op;
        struct topt_attrs attrs;
        memcpy(len, op->count, sizeof len);
        if (s->kind != TOPT_STEP_KERNEL || s->dims ||
            topt_kernel_work(s->kernel) == TOPT_WORK_ELEMENTWISE)
            continue;
        if (s->kernel == TOPT_K_ATTENTION_FWD && !masked) {
            attrs = without_mask(op, len);
            all.attrs = &attrs;
        }
        total += 3 * (double)op->spec->flops(&all, s->kernel, len) *
                 (s->loop ? (double)op->count[s->loop - 1] : 1);
    }
    return total;
}

/* Sums over operators may pass 2^63 though each is far below: then they stay at 2^62. */
static int64_t saturate(double x)
{
    return x < 0x1p62 ? (int64_t)x : (int64_t)1 << 62;
}

/* Is its output a parameter itself, not something made of samples? */
static int gives_parameter(const struct topt_op *op)
{
    int data = op->ninputs > 0, param = 0;
    for (int o = 0; o < op->spec->noperands; o++) {
        data |= op->operand[o].role == TOPT_DATA;
        param |= op->operand[o].role == TOPT_PARAM && op->operand[o].present;
    }
    return param && !data;
}

int topt_op_keeps(const struct topt_model *m, const struct topt_op *op, int o, char *seen)
{
    const struct topt_operand *x = &op->operand[o];
    if (!(op->reads_back >> o & 1) || !x->present)
        return 0;
    if (x->role == TOPT_SAVED)
        return 1;
    if (x->role != TOPT_INPUT || seen[op->tensor[o]] ||
        gives_parameter(&m->op[m->tensor[op->tensor[o]].producer]))
        return 0;
    return seen[op->tensor[o]] = 1;
}

/* Sums in double are exact to 2^53, and parameters are counted as integers. */
void topt_model_kind_stats(const struct topt_model *m, const char *kind,
                           struct topt_model_stats *ret)
{
    double flops = 0, model_flops = 0, masked_flops = 0, kept = 0;
    *ret = (struct topt_model_stats){0};
    char *seen = calloc((size_t)m->ntensors + 1, 1);
    for (int i = 0; i < m->nops && seen; i++) {
        const struct topt_op *op = &m->op[i];
        int counts = !kind || !strcmp(op->spec->name, kind);
        ret->operators += counts;
        flops += counts ? op_flops(op) : 0;
        model_flops += counts ? op_model_flops(op, 0) : 0;
        masked_flops += counts ? op_model_flops(op, 1) : 0;
        ret->images |= counts && m->seq <= 1 && !strcmp(op->spec->name, "image");
        for (int o = 0; o < op->spec->noperands; o++) {
            const struct topt_operand *x = &op->operand[o];
            if (counts && x->role == TOPT_PARAM && x->present &&
                ret->parameters < (int64_t)1 << 62) {
                ret->parameters += topt_operand_numbers(op, o);
                ret->trained += op->attrs->frozen ? 0 : topt_operand_numbers(op, o);
            }
            if (topt_op_keeps(m, op, o, seen) && counts)
                kept += (double)topt_operand_numbers(op, o) * 4;
        }
    }
    free(seen);
    ret->flops_per_sample = saturate(flops / (double)m->batch);
    ret->model_flops_per_sample = saturate(model_flops / (double)m->batch);
    ret->masked_flops_per_sample = saturate(masked_flops / (double)m->batch);
    ret->activation_bytes_per_sample = saturate(kept / (double)m->batch);
}

void topt_model_stats(const struct topt_model *m, struct topt_model_stats *ret)
{
    topt_model_kind_stats(m, NULL, ret);
}

struct topt_attrs topt_attrs_window(int64_t size, int64_t stride, int64_t pad)
{
    return (struct topt_attrs){.kernel_h = size,
                               .kernel_w = size,
                               .stride_h = stride,
                               .stride_w = stride,
                               .pad_top = pad,
                               .pad_bottom = pad,
                               .pad_left = pad,
                               .pad_right = pad};
}

int topt_model_append(struct topt_model *m, int *failed, const char *prefix,
                      const char *kind, int x, int y, const struct topt_attrs *attrs,
                      struct topt_error *err, const char *fmt, va_list ap)
{
    char name[80], leaf[48];
    int inputs[] = {x, y};
    vsnprintf(leaf, sizeof leaf, fmt, ap);
    snprintf(name, sizeof name, "%s%s", prefix, leaf);
    int t = *failed
                ? -1
                : topt_model_add(m, kind, name, (x >= 0) + (y >= 0), inputs, attrs, err);
    *failed |= t < 0;
    return t;
}
