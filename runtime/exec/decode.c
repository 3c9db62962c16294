/* decode.c - see decode.h.
 *
 * The forward instructions of the program are gone through as in training, but on buffers
 * of this file and on boxes that hold the new positions only.  What operators keep of older
 * positions stays in the buffers that they read it from:
 *
 *     ALL_ROWS    attention's keys and values: new rows are put behind the old ones
 *     LAST_ROWS   a convolution's inputs: the last kernel_w - 1 rows lie before the new ones
 *     STATE       a scan's state after the last position, in place of that at the start
 *
 * Experts keep nothing: a token goes to its own, where there are slots for all tokens.  Where
 * there are fewer, which tokens find one depends on those before them, and nothing here
 * counts that; such a model is refused. */
#include "decode.h"
#include "memory.h"
#include "number.h"
#include "operands.h"

#include <stdlib.h>
#include <string.h>

enum keeps { NOTHING, ALL_ROWS, LAST_ROWS, STATE };

struct block {
    void *data;
    int64_t bytes;
    enum keeps keeps;
    int64_t last, row; /* LAST_ROWS: how many; bytes of a row */
};

struct topt_decode {
    struct topt_session *s;
    int64_t done, n; /* positions that are computed; new ones */
    const int32_t *id;
    int end;             /* the loss's first kernel: what it reads are the logits */
    struct block *block; /* by buffer of the program */
};

static int dim_called(const struct topt_op *op, const char *name)
{
    for (int d = 0; d < op->spec->ndims; d++)
        if (!strcmp(op->spec->dim[d].name, name))
            return d;
    return -1;
}

static int is(const struct topt_op *op, const char *kind)
{
    return !strcmp(op->spec->name, kind);
}

/* The dimension of attention's keys; -1: it is none. */
static int keys_of(const struct topt_op *op)
{
    return is(op, "attention") ? dim_called(op, "t") : -1;
}

/* Operators that keep something else than attention does, and in which operand. */
static const struct {
    const char *kind;
    int operand;
    enum keeps keeps;
} keeper[] = {{"causal_conv", CAUSAL_X, LAST_ROWS},
              {"ssd", SSD_STATES, STATE},
              {"delta_rule", DELTA_STATES, STATE},
              {"selective_scan", SELECTIVE_STATES, STATE}};
enum { KEEPERS = sizeof keeper / sizeof *keeper };

/* Has the operand slots of experts in place of positions?  It is [sample, expert, .]. */
static int has_slots(const struct topt_op *op, int operand)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    return spec->role != TOPT_PARAM && spec->ndim == 3 &&
           spec->dim[1] == dim_called(op, "e") && dim_called(op, "e") >= 0;
}

/* Of a mixture of experts in which each has a slot for every token. */
static int drops_nothing(const struct topt_op *op)
{
    static const char *const kind[] = {"route", "dispatch", "experts", "combine", NULL};
    int64_t seq = op->model->seq;
    int i = 0;
    while (kind[i] && !is(op, kind[i]))
        i++;
    for (int o = 0; o < op->spec->noperands && i > 0; o++)
        if (has_slots(op, o) && op->operand[o].dim[1].unit != seq)
            return 0;
    return kind[i] && (i > 0 || topt_expert_slots(op->attrs, seq, op->count[2]) == seq);
}

/* Kinds that compute each position by itself, and those that keep what they need. */
static int known_kind(const struct topt_op *op)
{
    static const char *const kind[] = {
        "embedding", "linear", "bias", "position", "unary",     "scale",
        "glu",       "add",    "mul",  "norm",     "head_norm", "variable",
        "rotary",    "concat", "gain", "weigh",    "regroup",   NULL};
    for (int i = 0; kind[i]; i++)
        if (is(op, kind[i]))
            return 1;
    for (int i = 0; i < KEEPERS; i++)
        if (is(op, keeper[i].kind))
            return 1;
    return (is(op, "attention") && op->attrs->causal) || drops_nothing(op);
}

/* On one device what is reduced or moved stays as it is; anything else here is not known. */
static int known_instr(const struct topt_instr *i)
{
    switch (i->kind) {
    case TOPT_I_ALLOC:
    case TOPT_I_FREE:
    case TOPT_I_KERNEL:
        return 1;
    case TOPT_I_REDUCE:
        return i->axes == 0;
    default:
        return i->backward;
    }
}

int topt_decode_can(const struct topt_session *s)
{
    const struct topt_program *p = s->p;
    const struct topt_model *m = p->model;
    int end = topt_program_find_loss(p);
    if (s->comm->size > 1 || m->batch != 1 || p->settings.micro_batches != 1 || end < 0 ||
        strcmp(s->dev->ops->name, "host"))
        return 0;
    for (int i = 0; i < m->nops; i++) {
        int d = dim_called(&m->op[i], "s"), t = keys_of(&m->op[i]);
        int other = d >= 0 && m->op[i].count[d] != m->seq;
        if (i != m->loss &&
            (!known_kind(&m->op[i]) || other || (t >= 0 && m->op[i].count[t] != m->seq)))
            return 0;
    }
    for (int i = p->micro_begin; i < end; i++)
        if (!known_instr(&p->instr[i]))
            return 0;
    return 1;
}

/* ---- boxes of the new positions -------------------------------------------------------- */

/* What attention reads at positions that were there before: keys and values, and what has
 * them beside the queries. */
static int reads_all(const struct topt_op *op, int operand)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    return is(op, "attention") && spec->role == TOPT_INPUT &&
           (spec->dim[1] == keys_of(op) ||
            (operand == ATTENTION_Q && !op->operand[ATTENTION_KV].present));
}

static void narrow_box(const struct topt_decode *d, const struct topt_op *op, int operand,
                       struct topt_box *box)
{
    int s = dim_called(op, "s"), t = keys_of(op);
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    for (int i = 0; i < spec->ndim && spec->role != TOPT_PARAM; i++) {
        if (spec->dim[i] == t || (spec->dim[i] == s && reads_all(op, operand))) {
            box->off[i] = 0;
            box->len[i] = d->done + d->n;
        } else if (spec->dim[i] == s) {
            box->off[i] = d->done;
            box->len[i] = d->n;
        }
    }
}

static void narrow_op(const struct topt_decode *d, const struct topt_op *op, int64_t *off,
                      int64_t *len)
{
    int s = dim_called(op, "s"), t = keys_of(op);
    if (s >= 0) {
        off[s] = d->done;
        len[s] = d->n;
    }
    if (t >= 0) {
        off[t] = 0;
        len[t] = d->done + d->n;
    }
}

/* ---- buffers ---------------------------------------------------------------------------- */

static enum keeps keeps_of(const struct topt_op *op, int operand)
{
    if (reads_all(op, operand))
        return ALL_ROWS;
    for (int i = 0; i < KEEPERS; i++)
        if (operand == keeper[i].operand && is(op, keeper[i].kind))
            return keeper[i].keeps;
    return NOTHING;
}

static void mark_kept(struct topt_decode *d)
{
    const struct topt_program *p = d->s->p;
    for (int i = p->micro_begin; i < d->end; i++) {
        const struct topt_instr *k = &p->instr[i];
        if (k->kind != TOPT_I_KERNEL || k->backward)
            continue;
        const struct topt_op *op = &p->model->op[k->op];
        for (int o = 0; o < op->spec->noperands; o++) {
            enum keeps keeps = k->value[o] < 0 ? NOTHING : keeps_of(op, o);
            struct block *b = keeps ? &d->block[k->value[o]] : NULL;
            if (!b || b->keeps == ALL_ROWS)
                continue;
            b->keeps = keeps;
            if (keeps == LAST_ROWS && op->attrs->kernel_w - 1 > b->last)
                b->last = op->attrs->kernel_w - 1;
        }
    }
}

/* What is kept lies first, and so stays; what is new begins as zeros. */
static int grow(struct block *b, int64_t bytes, struct topt_error *err)
{
    if (bytes <= b->bytes)
        return 0;
    char *data = realloc(b->data, (size_t)bytes);
    if (!data)
        return topt_nomem(err, "what is kept of a text");
    memset(data + b->bytes, 0, (size_t)(bytes - b->bytes));
    b->data = data;
    b->bytes = bytes;
    return 0;
}

/* Where an operand's numbers are: weights where the session has them, rows behind those of
 * older positions, all else at the beginning of a block that holds just the box. */
static int place(struct topt_decode *d, int buffer, int slotted,
                 const struct topt_box *box, void **ret, struct topt_error *err)
{
    const struct topt_session *s = d->s;
    const struct topt_buffer *b = &s->p->buffer[buffer];
    struct block *k = &d->block[buffer];
    struct topt_shape shape = b->shape;
    if (slotted)
        shape.dim[1].unit = d->n;
    int64_t size = topt_session_element_bytes(s, b->elem);
    int64_t bytes = topt_box_elements(&shape, box) * size;
    if (s->ptr[buffer]) { /* between steps only weights are alive */
        *ret = s->ptr[buffer];
        return 0;
    }
    int64_t before = k->keeps == ALL_ROWS ? box->off[1] : k->last;
    k->row = k->keeps ? bytes / box->len[1] : 0;
    if (grow(k,
             k->keeps == ALL_ROWS ? topt_buffer_bytes(s, buffer)
                                  : before * k->row + bytes,
             err))
        return -1;
    *ret = (char *)k->data + before * k->row;
    return 0;
}

/* The last rows of a pass come before those of the next one. */
static void keep_last(struct topt_decode *d)
{
    for (int i = 0; i < d->s->p->nbuffers; i++) {
        struct block *b = &d->block[i];
        if (b->keeps == LAST_ROWS)
            memmove(b->data, (char *)b->data + d->n * b->row, (size_t)(b->last * b->row));
    }
}

/* ---- a pass ------------------------------------------------------------------------------- */

static int run_kernel(struct topt_decode *d, const struct topt_instr *i,
                      struct topt_error *err)
{
    const struct topt_session *s = d->s;
    const struct topt_op *op = &s->p->model->op[i->op];
    const struct topt_config *config = &s->p->config[i->op];
    struct topt_op narrow = *op; /* whose experts have a slot for each new token */
    struct topt_operand operand[TOPT_MAX_OPERANDS];
    memcpy(operand, op->operand, sizeof operand);
    narrow.operand = operand;
    struct topt_kernel_call c = {.op = &narrow,
                                 .kernel = i->kernel,
                                 .at = is(op, "causal_conv") ? d->done : i->at,
                                 .carries = 1,
                                 .micro_batches = 1,
                                 .seed = s->options.seed};
    if (dim_called(op, "s") < 0 && !is(op, "experts") && d->done)
        return 0; /* what has no positions is as it was */
    topt_op_box(op, config, &s->p->mesh, 0, c.off, c.len);
    narrow_op(d, op, c.off, c.len);
    for (int o = 0; o < op->spec->noperands; o++) {
        c.box[o] = topt_operand_box(op, o, config, &s->p->mesh, 0);
        narrow_box(d, op, o, &c.box[o]);
        if (keeps_of(op, o) == STATE) /* at the starts of chunks, and at the end */
            c.box[o].len[1] = (d->n + op->attrs->chunk - 1) / op->attrs->chunk + 1;
        int slotted = has_slots(op, o);
        if (slotted)
            narrow.operand[o].dim[1].unit = d->n;
        if (i->value[o] >= 0 &&
            place(d, i->value[o], slotted, &c.box[o], &c.value[o], err))
            return -1;
        if (i->kernel == TOPT_K_LOAD && c.value[o])
            memcpy(c.value[o], d->id, (size_t)d->n * sizeof *d->id);
    }
    return i->kernel == TOPT_K_LOAD ? 0 : s->dev->ops->kernel(s->dev, &c, err);
}

int topt_decode_open(struct topt_session *s, struct topt_decode **ret,
                     struct topt_error *err)
{
    if (!topt_decode_can(s))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.80s' has operators of which nothing is kept between tokens",
                         s->p->model->name);
    struct topt_decode *d = calloc(1, sizeof *d);
    if (d) {
        d->s = s;
        d->end = topt_program_find_loss(s->p);
        d->block = calloc((size_t)s->p->nbuffers + 1, sizeof *d->block);
    }
    if (!d || !d->block) {
        topt_decode_close(d);
        return topt_nomem(err, NULL);
    }
    mark_kept(d);
    *ret = d;
    return 0;
}

void topt_decode_close(struct topt_decode *d)
{
    if (!d)
        return;
    for (int i = 0; d->block && i < d->s->p->nbuffers; i++)
        free(d->block[i].data);
    free(d->block);
    free(d);
}

int topt_decode_more(struct topt_decode *d, const int32_t *id, int64_t n, double *ret,
                     int64_t classes, struct topt_error *err)
{
    const struct topt_program *p = d->s->p;
    if (n < 1 || d->done + n > p->model->seq)
        return topt_fail(err, TOPT_ERR_LIMIT, "%lld tokens after %lld, of at most %lld",
                         (long long)n, (long long)d->done, (long long)p->model->seq);
    d->id = id;
    d->n = n;
    for (int i = p->micro_begin; i < d->end; i++)
        if (p->instr[i].kind == TOPT_I_KERNEL && !p->instr[i].backward &&
            p->instr[i].op != p->model->loss && run_kernel(d, &p->instr[i], err))
            return -1;
    const void *logits = d->block[p->instr[d->end].value[0]].data;
    for (int64_t i = 0; i < classes; i++)
        ret[i] = topt_number_get(d->s->dev->dtype, logits, (n - 1) * classes + i);
    d->done += n;
    keep_last(d);
    return 0;
}
