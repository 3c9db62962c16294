/* train.c - what of a model is trained: all of it, parameters by name, or adapters
 * beside it.
 *
 * The model is built once more, operator by operator.  What is not trained is frozen:
 * it has a value and nothing else.  An adapter (Hu et al., LoRA: Low-Rank Adaptation,
 * 2021) stands beside a frozen linear map and adds to what that makes:
 *
 *     x --W--> y --------------.
 *     x --A--> r numbers --B--> + --> the readers of y          B starts as zeros
 *
 * These are operators like any other, so that they are split, priced and run as such.
 * A starts as PEFT's does, Kaiming-uniform with a = sqrt(5): within 1 / sqrt(inputs) of 0.
 * The factor alpha / r of the paper is 1, as where alpha is the rank.  Where a
 * projection here is several modules of a checkpoint (query, key and value; gate and
 * up) each has an adapter of its own, as such frameworks do that wrap modules one by
 * one. */
#include "train.h"
#include "model_graph.h"
#include "topt_array.h"
#include "topt_text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_RANK = 65536,
    MAX_SPEC = 1000,
    MAX_PARTS = 4, /* of one operator: what concat joins */
    NAME = 200
};

static const char all_linear[] = "all-linear";

/* A tensor of a checkpoint that an operator holds. */
struct module {
    char *name;
    int op;
    int64_t rows;
};

struct trainer {
    const struct topt_model *from;
    struct topt_model *to;
    int *tensor;      /* by tensor of 'from': its number in 'to' */
    uint8_t *trained; /* by operator: its parameters are */
    uint8_t *adapted; /* by operator: which of its parts have adapters, as bits */
    struct module *module;
    int nmodules, modules_cap;
    int head; /* the linear map before the loss, or -1 */
    int64_t rank, bits;
    int drops; /* some of what adapters read */
    struct topt_error *err;
};

/* ---- names ------------------------------------------------------------------------- */

static int note_module(void *ctx, const struct topt_weight *w)
{
    struct trainer *t = ctx;
    if (TOPT_ROOM(t->module, t->nmodules, t->modules_cap, 64))
        return topt_nomem(t->err, "names");
    char *name = strdup(w->name);
    if (!name)
        return topt_nomem(t->err, "names");
    t->module[t->nmodules++] = (struct module){name, w->op, w->ndim > 0 ? w->dim[0] : 0};
    return 0;
}

/* One pattern against a name and against its last parts: "q_proj" is
 * "model.layers.0.self_attn.q_proj" too. */
static int fits(const char *pattern, const char *name)
{
    for (const char *s = name; s; s = strchr(s, '.')) {
        s += s != name;
        if (!fnmatch(pattern, s, 0))
            return 1;
    }
    return 0;
}

/* The same with what a checkpoint calls the parameters of a module. */
static int fits_tensor(const char *pattern, const char *name)
{
    static const char *const ends[] = {".weight", ".bias"};
    char module[NAME];
    if (fits(pattern, name))
        return 1;
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(name), k = strlen(ends[i]);
        if (n > k && n - k < sizeof module && !strcmp(name + n - k, ends[i])) {
            snprintf(module, sizeof module, "%.*s", (int)(n - k), name);
            return fits(pattern, module);
        }
    }
    return 0;
}

static int has_parameters(const struct topt_op *op)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->operand[o].role == TOPT_PARAM && op->operand[o].present)
            return 1;
    return 0;
}

/* A linear map whose weight is its own. */
static int is_linear(const struct topt_op *op)
{
    return !strcmp(op->spec->name, "linear") && has_parameters(op);
}

/* The last linear map before the loss, whose output is what the model says. */
static int find_head(const struct topt_model *m)
{
    int op = m->loss;
    while (op >= 0 && strcmp(m->op[op].spec->name, "linear"))
        op = m->op[op].ninputs ? topt_input_producer(m, &m->op[op], 0) : -1;
    return op;
}

/* ---- the parts of an operator ------------------------------------------------------ */

/* The modules that one linear map is here, in the order of its outputs' units. */
struct parts {
    int n;
    const struct module *of[MAX_PARTS];
};

static struct parts parts_of(const struct trainer *t, int op)
{
    const struct topt_op *o = &t->from->op[op];
    const struct topt_dim *y = &o->operand[o->output].dim[2];
    struct parts p = {0};
    int64_t rows = 0;
    for (int i = 0; i < t->nmodules; i++) {
        const struct module *m = &t->module[i];
        if (m->op != op)
            continue;
        if (p.n == MAX_PARTS || m->rows % y->count ||
            (p.n && !strcmp(m->name, p.of[p.n - 1]->name)))
            return (struct parts){0};
        p.of[p.n++] = m;
        rows += m->rows;
    }
    return p.n > 1 && rows == y->count * y->unit ? p : (struct parts){0};
}

/* ---- by name ----------------------------------------------------------------------- */

/* Does the pattern name the operator's parameters?  Some of its tensors alone: -1. */
static int names_op(const struct trainer *t, const char *pattern, int op)
{
    int all = 0, some = 0;
    if (!has_parameters(&t->from->op[op]))
        return 0;
    if (fits(pattern, t->from->op[op].name))
        return 1;
    for (int i = 0; i < t->nmodules; i++)
        if (t->module[i].op == op) {
            all++;
            some += fits_tensor(pattern, t->module[i].name);
        }
    return some == all ? some > 0 : some ? -1 : 0;
}

/* The operator's name for a projection that checkpoints of families without a table of tensors call
 * otherwise; it is one module there and one operator here. */
static const char *called_here(const struct trainer *t, const char *pattern)
{
    static const char *const names[][2] = {{"query_key_value", "qkv"},
                                           {"Wqkv", "qkv"},
                                           {"c_attn", "qkv"},
                                           {"dense", "out"},
                                           {"dense_h_to_4h", "up"},
                                           {"dense_4h_to_h", "down"},
                                           {NULL, NULL}};
    for (int i = 0; !t->nmodules && names[i][0]; i++)
        if (!strcmp(names[i][0], pattern))
            return names[i][1];
    return pattern;
}

/* Which parts of the operator does the pattern name, as bits; bit 0 of one without
 * parts. */
static int names_parts(const struct trainer *t, const char *pattern, int op)
{
    struct parts p = parts_of(t, op);
    int bits = 0, every = p.n ? (1 << p.n) - 1 : 1;
    if (!strcmp(pattern, all_linear))
        return op == t->head ? 0 : every;
    if (fits(called_here(t, pattern), t->from->op[op].name))
        return every;
    for (int k = 0; k < p.n; k++)
        bits |= fits_tensor(pattern, p.of[k]->name) << k;
    for (int i = 0; i < t->nmodules && !p.n; i++)
        bits |= t->module[i].op == op && fits_tensor(pattern, t->module[i].name);
    return bits;
}

static int refuse_part(const struct trainer *t, const char *pattern, int op)
{
    struct topt_text names = {0};
    for (int i = 0; i < t->nmodules; i++)
        if (t->module[i].op == op)
            topt_text_add(&names, "%s%s", names.len ? "," : "", t->module[i].name);
    topt_fail(
        t->err, TOPT_ERR_INVAL,
        "'%.80s' is a part of operator '%.60s', which is trained as a whole: name all "
        "of %.400s",
        pattern, t->from->op[op].name, names.s ? names.s : "it");
    topt_text_fini(&names);
    return -1;
}

/* Names that people know, one of an operator and one of a checkpoint. */
static int refuse_pattern(const struct trainer *t, const char *pattern, int linear)
{
    const char *op = "", *tensor = NULL;
    if (!strcmp(pattern, all_linear))
        return topt_fail(t->err, TOPT_ERR_INVAL,
                         "there is no linear operator but the head's");
    for (int i = 0; i < t->from->nops && !*op; i++)
        if (linear ? is_linear(&t->from->op[i]) : has_parameters(&t->from->op[i]))
            op = t->from->op[i].name;
    for (int i = 0; i < t->nmodules && !tensor; i++)
        if (!linear || is_linear(&t->from->op[t->module[i].op]))
            tensor = t->module[i].name;
    return topt_fail(t->err, TOPT_ERR_INVAL,
                     "no %s is named '%.80s'; names are like %s%s%s",
                     linear ? "linear operator" : "parameter", pattern, op,
                     tensor ? " or " : "", tensor ? tensor : "");
}

static int mark_pattern(struct trainer *t, const char *pattern, int linear)
{
    int found = 0;
    for (int i = 0; i < t->from->nops; i++) {
        if (linear && !is_linear(&t->from->op[i]))
            continue;
        int named = linear ? names_parts(t, pattern, i) : names_op(t, pattern, i);
        if (named < 0)
            return refuse_part(t, pattern, i);
        if (linear)
            t->adapted[i] |= (uint8_t)named;
        else
            t->trained[i] |= (uint8_t)named;
        found |= named;
    }
    return found ? 0 : refuse_pattern(t, pattern, linear);
}

static int mark_patterns(struct trainer *t, char *list, int linear)
{
    char *save = NULL;
    int n = 0;
    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save), n++)
        if (mark_pattern(t, p, linear))
            return -1;
    return n ? 0 : topt_fail(t->err, TOPT_ERR_INVAL, "no name is given");
}

/* ---- building ---------------------------------------------------------------------- */

static int add(struct trainer *t, const char *kind, const char *name, int n,
               const int *inputs, const struct topt_attrs *attrs)
{
    return topt_model_add(t->to, kind, name, n, inputs, attrs, t->err);
}

/* Few bits are for the matrices of linear maps and of experts, but not the head's. */
static int64_t bits_of(const struct trainer *t, int op)
{
    const struct topt_op *o = &t->from->op[op];
    int matrix = is_linear(o) || !strcmp(o->spec->name, "experts");
    return matrix && op != t->head ? t->bits : 0;
}

/* The operator again, frozen or not; its output or -1. */
static int add_again(struct trainer *t, int op)
{
    const struct topt_op *o = &t->from->op[op];
    struct topt_attrs attrs = *o->attrs;
    int inputs[TOPT_MAX_INPUTS];
    attrs.frozen = has_parameters(o) && !t->trained[op];
    attrs.bits = attrs.frozen ? bits_of(t, op) : 0;
    for (int k = 0; k < o->ninputs; k++)
        inputs[k] = t->tensor[topt_input_tensor(o, k)];
    int y = add(t, o->spec->name, o->name, o->ninputs, inputs, &attrs);
    if (y >= 0)
        topt_model_say_role(t->to, o->role);
    return y;
}

/* Is x kept besides what this adapter keeps: by attention, whose kernels keep what they make, or for an adapter before?  If
 * not, what dropout leaves of x stands in its place: PyTorch's native_dropout keeps the mask alone, a linear map what it
 * reads, and one with frozen weights nothing. */
static int is_kept(const struct topt_model *m, int x)
{
    if (topt_op_turns(&m->op[m->tensor[x].producer]))
        return 1;
    for (int i = m->tensor[x].producer + 1; i < m->nops; i++)
        if (m->op[i].attrs->masked && is_linear(&m->op[i]) &&
            m->op[i].tensor[m->op[i].input[0]] == x)
            return 1;
    return 0;
}

/* Both maps of an adapter named 'stem'; the second's output or -1. */
static int add_maps(struct trainer *t, const char *stem, int x, int64_t count,
                    int64_t unit)
{
    char name[NAME + 64];
    struct topt_attrs a = {.features = t->rank,
                           .features_unit = 1,
                           .uniform = 1,
                           .masked = t->drops,
                           .written = t->drops && is_kept(t->to, x)};
    struct topt_attrs b = {.features = count, .features_unit = unit, .zero = 1};
    snprintf(name, sizeof name, "%s.lora_a", stem);
    int y = add(t, "linear", name, 1, &x, &a);
    snprintf(name, sizeof name, "%s.lora_b", stem);
    return y < 0 ? -1 : add(t, "linear", name, 1, &y, &b);
}

/* "model.layers.0.self_attn.q_proj.weight" -> "h0.qkv.q_proj" */
static void stem_of(const struct topt_op *op, const char *module, char ret[NAME])
{
    size_t end = strlen(module);
    const char *dot = strrchr(module, '.');
    if (dot && (!strcmp(dot, ".weight") || !strcmp(dot, ".bias")))
        end = (size_t)(dot - module);
    size_t start = end;
    while (start && module[start - 1] != '.')
        start--;
    snprintf(ret, NAME, "%.90s.%.*s", op->name,
             (int)(end - start < 90 ? end - start : 90), module + start);
}

static int add_sum(struct trainer *t, const char *stem, int y, int delta)
{
    char name[NAME + 64];
    int inputs[] = {y, delta};
    snprintf(name, sizeof name, "%s.lora", stem);
    return delta < 0 ? -1 : add(t, "add", name, 2, inputs, NULL);
}

/* One part of y with what its adapter adds; of one without adapter, the part itself. */
static int adapt_slice(struct trainer *t, const char *stem, int y, int64_t offset,
                       int64_t unit, int delta)
{
    char name[NAME + 64];
    struct topt_attrs attrs = {.offset = offset, .features_unit = unit};
    snprintf(name, sizeof name, "%s.part", stem);
    int part = add(t, "slice", name, 1, &y, &attrs);
    return part < 0 || delta < 0 ? part : add_sum(t, stem, part, delta);
}

/* All parts at once where each has an adapter, else one by one. */
static int adapt_parts(struct trainer *t, int op, const struct parts *p, int x, int y)
{
    const struct topt_op *o = &t->from->op[op];
    int64_t count = o->operand[o->output].dim[2].count, offset = 0;
    int each[MAX_PARTS], whole = t->adapted[op] == (1 << p->n) - 1;
    char stem[NAME], name[NAME + 64];
    for (int k = 0; k < p->n; k++) {
        int64_t unit = p->of[k]->rows / count;
        int delta = -1, has = t->adapted[op] >> k & 1;
        stem_of(o, p->of[k]->name, stem);
        if (has && (delta = add_maps(t, stem, x, count, unit)) < 0)
            return -1;
        each[k] = whole ? delta : adapt_slice(t, stem, y, offset, unit, delta);
        if (each[k] < 0)
            return -1;
        offset += unit;
    }
    snprintf(name, sizeof name, "%.120s.lora_parts", o->name);
    int joined = add(t, "concat", name, p->n, each, NULL);
    return whole ? add_sum(t, o->name, y, joined) : joined;
}

/* What readers of y read from now on, or -1. */
static int adapt(struct trainer *t, int op, int y)
{
    const struct topt_op *o = &t->from->op[op];
    const struct topt_dim *out = &o->operand[o->output].dim[2];
    if (!t->adapted[op])
        return y;
    struct parts p = parts_of(t, op);
    int x = t->tensor[topt_input_tensor(o, 0)];
    if (p.n)
        return adapt_parts(t, op, &p, x, y);
    return add_sum(t, o->name, y, add_maps(t, o->name, x, out->count, out->unit));
}

static int is_anything_trained(const struct topt_model *m)
{
    const struct topt_op *loss = &m->op[m->loss];
    return m->tensor[topt_output_tensor(loss)].needs_gradient;
}

static int build(struct trainer *t)
{
    const struct topt_model *m = t->from;
    for (int i = 0; i < m->nops; i++) {
        t->to->at_layer = m->op[i].layer; /* of its adapters, too */
        int y = add_again(t, i);
        y = y < 0 ? -1 : adapt(t, i, y);
        if (y < 0)
            return -1;
        t->tensor[topt_output_tensor(&m->op[i])] = y;
    }
    if (topt_model_finish(t->to, t->err))
        return -1;
    if (!is_anything_trained(t->to))
        return topt_fail(t->err, TOPT_ERR_INVAL, "no parameter of the model is trained");
    return topt_model_note(t->to, m->note, t->err) ||
                   topt_model_plan_only(t->to, m->plan_only, t->err)
               ? -1
               : 0;
}

/* ---- what is asked for ------------------------------------------------------------- */

/* Cut "+4bit" or "+8bit" off. */
static int read_bits(struct trainer *t, char *spec)
{
    char *plus = strrchr(spec, '+');
    if (!plus)
        return 0;
    if (strcmp(plus, "+4bit") && strcmp(plus, "+8bit"))
        return topt_fail(t->err, TOPT_ERR_INVAL, "'%.40s' is not +4bit or +8bit", plus);
    t->bits = plus[1] - '0';
    *plus = '\0';
    return 0;
}

/* "lora", "lora:16", "lora:16:q_proj,v_proj". */
static int read_lora(struct trainer *t, char *spec)
{
    char targets[MAX_SPEC + 1], *rank = strchr(spec, ':');
    char *names = rank ? strchr(rank + 1, ':') : NULL;
    if (names)
        *names++ = '\0';
    t->rank = TOPT_LORA_RANK;
    if (rank && rank[1] && topt_parse_int(rank + 1, 1, MAX_RANK, &t->rank, t->err))
        return topt_wrap(t->err, "the rank");
    snprintf(targets, sizeof targets, "%s", names && *names ? names : all_linear);
    return mark_patterns(t, targets, 1);
}

static int is_lora(const char *spec)
{
    return !strncmp(spec, "lora", 4) && (!spec[4] || strchr(":+", spec[4]));
}

static int read_spec(struct trainer *t, const char *spec)
{
    char text[MAX_SPEC + 1];
    if (!*spec || strlen(spec) > MAX_SPEC)
        return topt_fail(t->err, TOPT_ERR_INVAL, "it takes 1 to %d bytes", MAX_SPEC);
    strcpy(text, spec);
    if (read_bits(t, text))
        return -1;
    if (!strcmp(text, "all")) {
        memset(t->trained, 1, (size_t)t->from->nops);
        return t->bits
                   ? topt_fail(t->err, TOPT_ERR_INVAL,
                               "parameters of %lld bits are not trained; freeze them by "
                               "lora, or by naming others",
                               (long long)t->bits)
                   : 0;
    }
    if (!is_lora(text))
        return mark_patterns(t, text, 0);
    return t->from->train && is_lora(t->from->train)
               ? topt_fail(t->err, TOPT_ERR_INVAL,
                           "the model has adapters already (%.80s)", t->from->train)
               : read_lora(t, text);
}

static int train(struct trainer *t, const char *spec)
{
    const struct topt_model *m = t->from;
    t->tensor = calloc((size_t)m->ntensors + 1, sizeof *t->tensor);
    t->trained = calloc((size_t)m->nops + 1, 1);
    t->adapted = calloc((size_t)m->nops + 1, 1);
    t->head = find_head(m);
    if (!t->tensor || !t->trained || !t->adapted)
        return topt_nomem(t->err, "what is trained");
    if (topt_model_weights(m, note_module, t) || read_spec(t, spec))
        return -1;
    t->to = topt_model_create(m->name, m->batch, m->seq, t->err);
    if (!t->to || build(t))
        return -1;
    t->to->family = m->family;
    return topt_model_say_trained(t->to, strcmp(spec, "all") ? spec : NULL, t->err);
}

static void fini(struct trainer *t)
{
    for (int i = 0; i < t->nmodules; i++)
        free(t->module[i].name);
    free(t->module);
    free(t->tensor);
    free(t->trained);
    free(t->adapted);
}

/* "qlora", as people call it, is "lora+4bit", and so is "lora" beside weights that are stored so. */
static const char *whole_spec(const struct topt_model *m, const char *spec,
                              char room[2 * MAX_SPEC])
{
    int qlora = *spec == 'q' && is_lora(spec + 1) && !strchr(spec, '+');
    int bits = qlora ? 4 : is_lora(spec) && !strchr(spec, '+') ? m->stored_bits : 0;
    if (!bits || strlen(spec) > MAX_SPEC)
        return spec;
    snprintf(room, 2 * MAX_SPEC, "%s+%dbit", spec + qlora, bits);
    return room;
}

int topt_model_train(struct topt_model **m, const char *spec, struct topt_error *err)
{
    return topt_model_adapt(m, spec, 0, err);
}

int topt_model_adapt(struct topt_model **m, const char *spec, int drops,
                     struct topt_error *err)
{
    struct trainer t = {.from = *m, .drops = drops, .err = err};
    char room[2 * MAX_SPEC];
    spec = whole_spec(*m, spec, room);
    int rc = train(&t, spec);
    fini(&t);
    if (rc) {
        topt_model_destroy(t.to);
        return topt_wrap(err, "what is trained, '%.80s'", spec);
    }
    topt_model_destroy(*m);
    *m = t.to;
    return 0;
}
