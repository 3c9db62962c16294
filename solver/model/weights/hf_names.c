/* hf_names.c - tensors of Hugging Face checkpoints by name, and the parameters that
 * they are here, by the rows of the model's family (hf_name_rows.c). */
#include "hf_name_rows.h"
#include "topt_model.h"
#include "weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *topt_weights_base(const struct topt_model *m)
{
    const struct hf_naming *n = topt_hf_naming(m->family);
    return n ? n->base : "";
}

static int ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* Masks and frequencies that are saved with weights, and scales of those in few bits. */
static int is_buffer(const char *name)
{
    static const char *const ends[] = {
        ".attn.bias",   ".attn.masked_bias", ".inv_freq",
        "position_ids", ".attention.bias",   ".attention.masked_bias",
        "_scale_inv",   ".layer_scalar",     NULL};
    for (int i = 0; ends[i]; i++)
        if (ends_in(name, ends[i]))
            return 1;
    return 0;
}

/* Has the layer one of the operators that a layer has? */
static int is_layer(const struct topt_model *m, const char *prefix, int64_t layer)
{
    static const char *const ops[] = {"out", "mixer.out", "down", "experts"};
    char name[64];
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        snprintf(name, sizeof name, "%sh%lld.%s", prefix, (long long)layer, ops[i]);
        if (topt_model_find(m, name) >= 0)
            return 1;
    }
    return 0;
}

static int64_t count_layers(const struct topt_model *m, const char *prefix)
{
    int64_t n = 0;
    while (is_layer(m, prefix, n))
        n++;
    return n;
}

static int is_extra(const struct topt_model *m, const char *extra, const char *name)
{
    size_t n = strlen(extra);
    return !strncmp(name, extra, n) &&
           (strcmp(extra, HF_FURTHER_LAYERS) ||
            strtoll(name + n, NULL, 10) >= count_layers(m, ""));
}

int topt_weights_may_be_there(const struct topt_model *m, const char *name)
{
    const struct hf_naming *n = topt_hf_naming(m->family);
    int extra = is_buffer(name);
    for (int i = 0; n && i < 4 && n->extra[i]; i++)
        extra |= is_extra(m, n->extra[i], name);
    return extra;
}

/* ---- from rows to tensors ---------------------------------------------------------- */

struct visit {
    const struct topt_model *m;
    topt_weight_visit *f;
    void *ctx;
};

/* The text with '#' as the layer and '@' as the expert. */
static void name_of(const char *pattern, int64_t layer, int64_t expert, char *ret,
                    size_t size)
{
    size_t n = 0;
    for (const char *c = pattern; *c && n + 24 < size; c++)
        if (*c == '#' || *c == '@')
            n += (size_t)snprintf(ret + n, size - n, "%lld",
                                  (long long)(*c == '#' ? layer : expert));
        else
            ret[n++] = *c;
    ret[n] = '\0';
}

static const struct topt_op *op_named(const struct topt_model *m, const char *name)
{
    int i = topt_model_find(m, name);
    return i < 0 ? NULL : &m->op[i];
}

/* The parameter of that name, or NULL. */
static const struct topt_operand *operand_of(const struct topt_op *op, const char *name)
{
    for (int o = 0; op && o < op->spec->noperands; o++)
        if (op->operand[o].role == TOPT_PARAM && op->operand[o].present &&
            !strcmp(op->spec->operand[o].name, name))
            return &op->operand[o];
    return NULL;
}

static int64_t extent(struct topt_dim d)
{
    return d.count * d.unit;
}

/* Rows of the queries (or of the key, or value) of all heads, by the attention that
 * reads the projection: "h3.qkv", "h3.qkv.bias" -> "h3.attention". */
static int64_t head_rows(const struct topt_model *m, const char *op, enum hf_piece piece)
{
    char name[80];
    const char *end = strstr(op, "qkv");
    snprintf(name, sizeof name, "%.*sattention", end ? (int)(end - op) : 0, op);
    const struct topt_op *a = op_named(m, name);
    int64_t heads = !a ? 0 : piece == QUERY ? a->attrs->heads : a->attrs->kv_heads;
    return a ? heads * a->attrs->head_dim : 0;
}

/* Shape of a piece of an operand; experts without their own dimension. */
static void shape_of(const struct topt_model *m, const struct topt_op *op,
                     const struct topt_operand *x, int rank, enum hf_piece piece,
                     struct topt_weight *ret)
{
    int64_t dim[TOPT_MAX_RANK + 1] = {0}, pair = x->dim[rank > 2 ? 1 : 0].count;
    int64_t kernel = op->attrs->kernel_h;
    ret->ndim = rank;
    for (int i = 0; i < rank; i++)
        dim[i] = extent(x->dim[i]);
    if (piece == QUERY || piece == KEY || piece == VALUE)
        dim[0] = head_rows(m, op->name, piece);
    else if (piece == FIRST || piece == SECOND)
        dim[0] = pair;
    else if (piece == KERNEL) {
        ret->ndim = 4;
        dim[1] = x->dim[1].count;
        dim[2] = kernel;
        dim[3] = kernel ? x->dim[1].unit / kernel : 0;
    } else if (piece == LOW || piece == HIGH)
        dim[0] /= 2;
    if (piece == BATCHED) {
        memmove(dim + 3 - rank, dim, (size_t)rank * sizeof *dim);
        for (int i = 0; i < 3 - rank; i++)
            dim[i] = 1;
        ret->ndim = 3;
    }
    if (!strcmp(op->spec->name, "causal_conv") && rank == 2) { /* one channel a group */
        ret->ndim = 3;
        dim[2] = dim[1];
        dim[1] = 1;
    }
    if (piece == EXPERT_GATE || piece == EXPERT_UP)
        dim[1] = pair;
    int skip = piece == EXPERT || piece == EXPERT_GATE || piece == EXPERT_UP;
    ret->ndim -= skip;
    memcpy(ret->dim, dim + skip, sizeof ret->dim);
    int last = ret->ndim - 1;
    if (piece == TURNED || piece == EXPERTS_TURNED) {
        int64_t t = ret->dim[last];
        ret->dim[last] = ret->dim[last - 1];
        ret->dim[last - 1] = t;
    }
}

static const enum topt_weight_piece told_as[] = {
    [WHOLE] = TOPT_WEIGHT_WHOLE,
    [TURNED] = TOPT_WEIGHT_TURNED,
    [QUERY] = TOPT_WEIGHT_QUERY,
    [KEY] = TOPT_WEIGHT_KEY,
    [VALUE] = TOPT_WEIGHT_VALUE,
    [FIRST] = TOPT_WEIGHT_FIRST,
    [SECOND] = TOPT_WEIGHT_SECOND,
    [KERNEL] = TOPT_WEIGHT_WHOLE,
    [BATCHED] = TOPT_WEIGHT_WHOLE,
    [EXPERT] = TOPT_WEIGHT_EXPERT,
    [EXPERT_GATE] = TOPT_WEIGHT_EXPERT_FIRST,
    [EXPERT_UP] = TOPT_WEIGHT_EXPERT_SECOND,
    [EXPERTS_TURNED] = TOPT_WEIGHT_OTHER,
    [EXPERTS_ALL] = TOPT_WEIGHT_EXPERTS,
    [EXPERTS_PAIRED] = TOPT_WEIGHT_EXPERTS_PAIRED,
    [RUN] = TOPT_WEIGHT_RUN,
    [LOW] = TOPT_WEIGHT_LOW,
    [HIGH] = TOPT_WEIGHT_HIGH,
    [BY_KEY] = TOPT_WEIGHT_TURNS,
    [BY_HEAD] = TOPT_WEIGHT_TURNS,
};

/* In how many parts a tensor is that holds several parameters, or one parameter of which
 * it holds a half of each. */
static int64_t parts_of(const struct visit *v, const struct hf_name_row *r, int64_t layer,
                        const struct topt_operand *x)
{
    char name[80];
    if (r->piece != BY_KEY && r->piece != BY_HEAD)
        return x->dim[0].count;
    name_of(r->piece == BY_KEY ? "h#.in.qk" : "h#.attend", layer, 0, name, sizeof name);
    const struct topt_op *op = op_named(v->m, name);
    if (r->piece == BY_HEAD)
        return op ? op->attrs->heads : 1;
    return op ? op->operand[op->output].dim[2].count : 1;
}

/* All tensors that a row gives of one layer. */
static int visit_row(struct visit *v, const struct hf_name_row *r, int64_t layer)
{
    char name[160], op_name[80];
    name_of(r->op, layer, 0, op_name, sizeof op_name);
    const struct topt_op *op = op_named(v->m, op_name);
    const struct topt_operand *x = operand_of(op, r->operand);
    if (!x)
        return 0;
    struct topt_weight w = {.name = name,
                            .op = (int)(op - v->m->op),
                            .operand = (int)(x - op->operand),
                            .piece = told_as[r->piece],
                            .parts = parts_of(v, r, layer, x)};
    int64_t each = strchr(r->tensor, '@') ? x->dim[0].count : 1;
    shape_of(v->m, op, x, op->spec->operand[x - op->operand].ndim, r->piece, &w);
    for (int64_t e = 0; e < each; e++) {
        w.expert = e;
        name_of(r->tensor, layer, e, name, sizeof name);
        if (v->f(v->ctx, &w))
            return -1;
    }
    return 0;
}

static int visit_rows(struct visit *v, const struct hf_name_row *rows)
{
    int64_t layers = count_layers(v->m, ""), encoder = count_layers(v->m, "encoder.");
    for (const struct hf_name_row *r = rows; r && r->tensor; r++) {
        int64_t n = !strchr(r->op, '#')              ? 1
                    : !strncmp(r->op, "encoder.", 8) ? encoder
                                                     : layers;
        for (int64_t i = 0; i < n; i++)
            if (visit_row(v, r, i))
                return -1;
    }
    return 0;
}

int topt_model_weights(const struct topt_model *m, topt_weight_visit *f, void *ctx)
{
    const struct hf_naming *n = topt_hf_naming(m->family);
    struct visit v = {.m = m, .f = f, .ctx = ctx};
    if (!n)
        return 0;
    int ranked = topt_model_find(m, "h0.q_down") >= 0;
    for (int i = 0; i < HF_NAME_TABLES; i++)
        if (visit_rows(&v, topt_hf_name_rows(n, i, ranked)))
            return -1;
    return 0;
}
