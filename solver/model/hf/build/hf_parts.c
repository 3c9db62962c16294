/* hf_parts.c - what the builders of Hugging Face models are made of: one operator, or a
 * few that always stand together. */
#include "hf_parts.h"
#include "model_graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The roles of operators of these names. */
static enum topt_op_role role_of(const char *name)
{
    static const struct {
        const char *name;
        enum topt_op_role role;
    } of[] = {
        {"q", TOPT_ROLE_Q},
        {"k", TOPT_ROLE_K},
        {"v", TOPT_ROLE_V},
        {"kv", TOPT_ROLE_KV},
        {"qkv", TOPT_ROLE_QKV},
        {"gate", TOPT_ROLE_GATE},
        {"out", TOPT_ROLE_OUT},
        {"cross.q", TOPT_ROLE_Q},
        {"cross.k", TOPT_ROLE_K},
        {"cross.v", TOPT_ROLE_V},
        {"cross.out", TOPT_ROLE_OUT},
        {"up", TOPT_ROLE_UP},
        {"gate_up", TOPT_ROLE_GATE_UP},
        {"down", TOPT_ROLE_DOWN},
        {"shared.up", TOPT_ROLE_UP},
        {"shared.gate_up", TOPT_ROLE_GATE_UP},
        {"shared.down", TOPT_ROLE_DOWN},
        {"shared.gate", TOPT_ROLE_WHOLE},
        {"router", TOPT_ROLE_ROUTER},
        {"experts.in", TOPT_ROLE_WHOLE},
        {"experts", TOPT_ROLE_EXPERT},
        {"experts.out", TOPT_ROLE_WHOLE},
        {"embedding", TOPT_ROLE_EMBEDDING},
        {"wte", TOPT_ROLE_EMBEDDING},
        {"lm_head", TOPT_ROLE_HEAD},
        {"position", TOPT_ROLE_WHOLE},
        {"types", TOPT_ROLE_WHOLE},
        {"relative", TOPT_ROLE_WHOLE},
        {"project_in", TOPT_ROLE_WHOLE},
        {"project_out", TOPT_ROLE_WHOLE},
        {"q_down", TOPT_ROLE_WHOLE},
        {"kv_down", TOPT_ROLE_WHOLE},
        {"k_shared", TOPT_ROLE_WHOLE},
        {"transform", TOPT_ROLE_WHOLE},
        {"pooler", TOPT_ROLE_WHOLE},
        {"mtp", TOPT_ROLE_WHOLE},
        {"lm_head.table", TOPT_ROLE_EMBEDDING},
        {"classifier", TOPT_ROLE_WHOLE},
        {"score", TOPT_ROLE_WHOLE},
        {"qa_outputs", TOPT_ROLE_WHOLE},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!strcmp(of[i].name, name))
            return of[i].role;
    return TOPT_ROLE_NONE;
}

/* The role of the operator that was added last, by its name without the layer's. */
static void say_role(struct hf_builder *b)
{
    const struct topt_op *op = b->failed ? NULL : &b->m->op[b->m->nops - 1];
    enum topt_op_role role = op ? role_of(op->name + strlen(b->prefix)) : TOPT_ROLE_NONE;
    if (op && topt_role_fits(role, op->spec->name))
        topt_model_say_role(b->m, role);
}

void topt_hf_next_layer(struct hf_builder *b)
{
    b->m->at_layer = b->m->nlayers;
}

void topt_hf_no_layer(struct hf_builder *b)
{
    b->m->at_layer = -1;
}

int topt_hf_add(struct hf_builder *b, const char *kind, int x, int y,
                const struct topt_attrs *attrs, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int t = topt_model_append(b->m, &b->failed, b->prefix, kind, x, y, attrs, b->err, fmt,
                              ap);
    va_end(ap);
    say_role(b);
    return t;
}

/* ---- layers that share their parameters -------------------------------------------- */

static int64_t group_of(const struct hf_builder *b)
{
    return b->a->layer_groups < b->a->layers
               ? b->layer * b->a->layer_groups / b->a->layers
               : b->layer;
}

/* Does the builder stand in a layer whose parameters are also another's? */
static int is_sharing(const struct hf_builder *b)
{
    return b->shared && *b->prefix;
}

/* What the group has by that name; made where it is new, then '*ret_new' is 1. */
static struct hf_shared *shared_by(struct hf_builder *b, const char *name, int *ret_new)
{
    static const char text[] = "text."; /* another stream by the same maps */
    struct hf_shared *s = b->shared;
    name += strncmp(name, text, sizeof text - 1) ? 0 : sizeof text - 1;
    *ret_new = 0;
    for (; s->next; s = s->next)
        if (s->next->group == group_of(b) && !strcmp(s->next->name, name))
            return s->next;
    s->next = calloc(1, sizeof *s);
    if (!s->next) {
        b->failed = 1;
        topt_nomem(b->err, "layers that share their parameters");
        return NULL;
    }
    s->next->group = group_of(b);
    snprintf(s->next->name, sizeof s->next->name, "%s", name);
    *ret_new = 1;
    return s->next;
}

void topt_hf_free_shared(struct hf_shared *s)
{
    while (s) {
        struct hf_shared *next = s->next;
        free(s);
        s = next;
    }
}

/* A linear map by a table that the group's layers share; its biases are the first
 * layer's. */
static int shared_linear(struct hf_builder *b, int x, int64_t features, int64_t unit,
                         int bias, const char *name)
{
    int fresh;
    struct hf_shared *s = b->failed ? NULL : shared_by(b, name, &fresh);
    if (!s)
        return -1;
    struct topt_dim d = b->m->tensor[x].dim[2]; /* tensors move when one is added */
    struct topt_attrs in = {.features = d.count * d.unit, .features_unit = 1},
                      out = {.features = features, .features_unit = unit},
                      table = {.vocab = features * unit,
                               .features = d.count * d.unit,
                               .init_std = b->a->init_std};
    if (fresh)
        s->tensor = topt_hf_add(b, "variable", -1, -1, &table, "%s.table", name);
    if (d.unit > 1)
        x = topt_hf_add(b, "regroup", x, -1, &in, "%s.in", name);
    x = topt_hf_add(b, "linear", x, s->tensor, NULL, "%s", name);
    if (unit > 1)
        x = topt_hf_add(b, "regroup", x, -1, &out, "%s.out", name);
    return bias && fresh ? topt_hf_add(b, "bias", x, -1, NULL, "%s.bias", name) : x;
}

int topt_hf_norm(struct hf_builder *b, int x, const char *name)
{
    int plain = b->a->unbiased_norms || b->a->untrained_norms, fresh = 1;
    if (is_sharing(b) && !shared_by(b, name, &fresh))
        return -1;
    plain |= !fresh;
    struct topt_attrs attrs = {
        .rms = b->a->rms, .plain = plain, .eps = b->a->eps, .written = b->a->wide_gains};
    x = topt_hf_add(b, "norm", x, -1, &attrs, "%s", name);
    return b->a->unbiased_norms ? topt_hf_add(b, "gain", x, -1, NULL, "%s.gain", name)
                                : x;
}

int topt_hf_linear(struct hf_builder *b, int x, int64_t features, int64_t unit, int bias,
                   const char *name)
{
    if (is_sharing(b))
        return shared_linear(b, x, features, unit, bias, name);
    struct topt_attrs attrs = {
        .features = features, .features_unit = unit, .init_std = b->a->init_std};
    int y = topt_hf_add(b, "linear", x, -1, &attrs, "%s", name);
    return bias ? topt_hf_add(b, "bias", y, -1, NULL, "%s.bias", name) : y;
}

int topt_hf_scale(struct hf_builder *b, int x, double factor, const char *name)
{
    struct topt_attrs attrs = {.factor = factor};
    return topt_hf_add(b, "scale", x, -1, &attrs, "%s", name);
}

int topt_hf_sum(struct hf_builder *b, int x, int y, const char *name)
{
    struct topt_attrs attrs = {.masked = b->a->dropout};
    return topt_hf_add(b, "add", x, y, &attrs, "%s", name);
}

int topt_hf_unary(struct hf_builder *b, int x, int activation, const char *name)
{
    struct topt_attrs attrs = {.activation = activation};
    return topt_hf_add(b, "unary", x, -1, &attrs, "%s", name);
}

int topt_hf_add_all(struct hf_builder *b, const char *kind, const int input[4],
                    const struct topt_attrs *attrs, const char *name)
{
    char full[60];
    int list[4], n = 0;
    for (int i = 0; i < 4; i++)
        if (input[i] >= 0)
            list[n++] = input[i];
    snprintf(full, sizeof full, "%s%s", b->prefix, name);
    int t = b->failed ? -1 : topt_model_add(b->m, kind, full, n, list, attrs, b->err);
    b->failed |= t < 0;
    return t;
}

int topt_hf_attend(struct hf_builder *b, const int input[4],
                   const struct topt_attrs *attrs)
{
    return topt_hf_add_all(b, "attention", input, attrs, "attend");
}

int topt_hf_unread(struct hf_builder *b, int x, int64_t n, const char *name)
{
    struct topt_attrs sum = {.mean = 1}, extra = {.extra = n};
    if (!n)
        return x;
    int y = topt_hf_add(b, "reduce_features", x, -1, &sum, "%s.sum", name);
    y = topt_hf_add(b, "beside", y, -1, &extra, "%s", name);
    return topt_hf_add(b, "weigh", x, y, NULL, "%s.weigh", name);
}

int topt_hf_input_image(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs image = {
        .channels = a->channels, .height = a->image, .width = a->image};
    return topt_hf_add(b, "image", -1, -1, &image, "image");
}

int topt_hf_as_image(struct hf_builder *b, int x, int64_t side, const char *name)
{
    struct topt_attrs grid = {.height = side, .width = side};
    return topt_hf_add(b, "untokens", x, -1, &grid, "%s", name);
}

struct topt_attrs topt_hf_patches(const struct hf_builder *b, int64_t patch)
{
    struct topt_attrs attrs = topt_attrs_window(patch, patch, 0);
    attrs.features = b->a->width;
    attrs.init_std = b->a->init_std;
    return attrs;
}

struct topt_attrs topt_hf_same_window(int64_t kernel, int64_t stride)
{
    return topt_attrs_window(kernel, stride, kernel / 2);
}
