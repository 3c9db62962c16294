/* fuse.c - operators of a traced graph that are one operator where a config describes the
 * model.
 *
 * A file of nodes says queries, keys and values apart, and what gates a feed-forward apart
 * from what it gates.  The readers of configs make one projection of each, so that splitting
 * it keeps what belongs together, and one operator of attention.  This pass does the same to a
 * model as a native document: the numbers of parameters stay, the order of the rows of a
 * projection, which no plan knows of, does not. */
#include "fuse.h"
#include "topt_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pass {
    json_t *ops;   /* borrowed from the document */
    json_t *at;    /* name -> place */
    int64_t *uses; /* of each operator's output */
    char *gone;    /* operators that another one has taken in */
    json_t **made; /* what stands in for an operator: an array, or NULL */
    int changed;
};

static json_t *op_at(const struct pass *p, int64_t i)
{
    return i < 0 ? NULL : json_array_get(p->ops, (size_t)i);
}

static const char *text_of(const json_t *op, const char *key)
{
    const char *s = json_string_value(json_object_get(op, key));
    return s ? s : "";
}

static int is_kind(const json_t *op, const char *kind)
{
    return op && !strcmp(text_of(op, "kind"), kind);
}

static int64_t number(const json_t *op, const char *key, int64_t otherwise)
{
    const json_t *n = json_object_get(op, key);
    return n ? json_integer_value(n) : otherwise;
}

/* Where input 'k' of an operator was made; -1: nowhere. */
static int64_t input(const struct pass *p, const json_t *op, size_t k)
{
    const json_t *name = json_array_get(json_object_get(op, "inputs"), k);
    const json_t *i = name ? json_object_get(p->at, json_string_value(name)) : NULL;
    return i ? json_integer_value(i) : -1;
}

static size_t inputs_of(const json_t *op)
{
    return json_array_size(json_object_get(op, "inputs"));
}

/* A part of a projection, and what lies between it and who reads it. */
struct projection_part {
    int64_t linear, bias;         /* the projection, and its bias or -1 */
    int64_t rotary;               /* -1: not rotated */
    int64_t first, features;      /* numbers of the projection's output; all: from 0 on */
    double factor;                /* of what is read */
    int64_t sliced;               /* a slice took them; -1: they are all */
    int64_t between[8], nbetween; /* operators that nobody else reads */
};

/* Follow a tensor back to its projection; 0 where something else lies between. */
static int follow(const struct pass *p, int64_t i, struct projection_part *ret)
{
    *ret = (struct projection_part){
        .linear = -1, .bias = -1, .rotary = -1, .factor = 1, .sliced = -1};
    for (int step = 0; step < 8 && i >= 0; step++) {
        const json_t *op = op_at(p, i);
        int own = p->uses[i] == 1, at_slice = ret->sliced >= 0;
        if (p->gone[i])
            return 0;
        if (is_kind(op, "linear") && inputs_of(op) == 1 &&
            !json_object_get(op, "frozen") && number(op, "features_unit", 1) == 1) {
            ret->linear = i;
            if (!at_slice)
                ret->features = number(op, "features", 0);
            return at_slice || own;
        }
        if (is_kind(op, "bias") && ret->bias < 0 && (at_slice || own))
            ret->bias = i;
        else if (is_kind(op, "rotary") && own && ret->rotary < 0 && !at_slice)
            ret->rotary = i;
        else if (is_kind(op, "scale") && own && !json_object_get(op, "shift"))
            ret->factor *= json_number_value(json_object_get(op, "factor"));
        else if (is_kind(op, "slice") && own && !at_slice) {
            ret->sliced = i;
            ret->first = number(op, "offset", 0);
            ret->features = number(op, "features_unit", 1);
        } else if (!is_kind(op, "regroup") || !own || ret->bias >= 0)
            return 0;
        if (!is_kind(op, "bias"))
            ret->between[ret->nbetween++] = i;
        i = input(p, op, 0);
    }
    return 0;
}

/* Are the parts projections of one tensor, all with a bias or none; or one projection whose
 * output they are, one after the other and nothing else? */
static int belong(const struct pass *p, const struct projection_part *part, int n)
{
    int64_t sum = 0;
    for (int k = 0; k < n; k++) {
        const json_t *op = op_at(p, part[k].linear), *first = op_at(p, part[0].linear);
        if ((part[k].bias >= 0) != (part[0].bias >= 0) ||
            (part[k].sliced >= 0) != (part[0].sliced >= 0))
            return 0;
        if (part[k].sliced >= 0 &&
            (part[k].linear != part[0].linear || part[k].first != sum))
            return 0;
        if (part[k].sliced < 0 && input(p, op, 0) != input(p, first, 0))
            return 0;
        sum += part[k].features;
    }
    if (part[0].sliced < 0)
        return 1;
    int64_t last = part[0].bias >= 0 ? part[0].bias : part[0].linear;
    return sum == number(op_at(p, part[0].linear), "features", 0) && p->uses[last] == n;
}

static json_t *operator(const char *name, const char *kind, json_t *from)
{
    return json_pack("{s:s, s:s, s:[O]}", "name", name, "kind", kind, "inputs", from);
}

/* One projection for the parts, of 'count' units; its last operator's name is left in
 * '*ret_name'.  The parts' operators are gone. */
static json_t *projected(struct pass *p, const struct projection_part *part, int n,
                         int64_t count, int64_t unit, const char **ret_name)
{
    const json_t *linear = op_at(p, part[0].linear), *bias = op_at(p, part[0].bias);
    json_t *made = json_array(),
           *x = json_array_get(json_object_get(linear, "inputs"), 0);
    json_t *op = operator(text_of(linear, "name"), "linear", x);
    json_object_set_new(op, "features", json_integer(count));
    json_object_set_new(op, "features_unit", json_integer(unit));
    json_array_append_new(made, op);
    *ret_name = text_of(linear, "name");
    if (bias) {
        json_array_append_new(made, operator(text_of(bias, "name"), "bias",
                                             json_object_get(linear, "name")));
        *ret_name = text_of(bias, "name");
    }
    for (int k = 0; k < n; k++) {
        p->gone[part[k].linear] = 1;
        if (part[k].bias >= 0)
            p->gone[part[k].bias] = 1;
        for (int64_t j = 0; j < part[k].nbetween; j++)
            p->gone[part[k].between[j]] = 1;
    }
    return made;
}

/* ---- attention --------------------------------------------------------------------- */

/* Are queries and keys both rotated, alike and all their numbers, or neither? */
static int rotated_alike(const struct pass *p, const struct projection_part *part,
                         int64_t head)
{
    const json_t *q = op_at(p, part[0].rotary), *k = op_at(p, part[1].rotary);
    const char *key;
    json_t *value;
    if (part[2].rotary >= 0 || fabs(part[2].factor - 1) > 0 || !q != !k)
        return 0;
    if (!q)
        return 1;
    if (number(q, "rope_dim", head) != head || json_object_get(q, "scale"))
        return 0;
    json_object_foreach((json_t *)q, key,
                        value) if (strcmp(key, "name") && strcmp(key, "inputs") &&
                                   !json_equal(value, json_object_get(k, key))) return 0;
    return json_object_size(q) == json_object_size(k);
}

/* What the fused operator has: the pairs it sees, its scale where that is not the usual one, and
 * the angles. */
static void say_attention(const json_t *attend, const json_t *rotary, double factor,
                          json_t *ret)
{
    static const char *const kept[] = {"heads", "kv_heads", "head_dim", "causal", NULL};
    static const char *const angles[] = {"rope_theta", "rope_factor", "rope_context",
                                         "rope_slow",  "rope_fast",   "rope_by_pair",
                                         NULL};
    double head = (double)number(attend, "head_dim", 1);
    const json_t *scale = json_object_get(attend, "scale");
    factor *= scale ? json_number_value(scale) : 1 / sqrt(head);
    for (int i = 0; kept[i]; i++)
        if (json_object_get(attend, kept[i]))
            json_object_set(ret, kept[i], json_object_get(attend, kept[i]));
    if (fabs(factor * sqrt(head) - 1) > 1e-6)
        json_object_set_new(ret, "scale", json_real(factor));
    for (int i = 0; rotary && angles[i]; i++)
        if (json_object_get(rotary, angles[i]))
            json_object_set(ret, angles[i], json_object_get(rotary, angles[i]));
}

static void fuse_attention(struct pass *p, int64_t i)
{
    static const char *const others[] = {"window",   "chunk",  "cap",
                                         "distance", "factor", NULL};
    json_t *attend = op_at(p, i), *kv = op_at(p, input(p, attend, 1));
    int64_t heads = number(attend, "heads", 0),
            groups = number(attend, "kv_heads", heads);
    int64_t head = number(attend, "head_dim", 0);
    struct projection_part part[3];
    const char *name;
    for (int k = 0; others[k]; k++)
        if (json_object_get(attend, others[k]))
            return;
    if (inputs_of(attend) != 2 || groups < 1 ||
        number(attend, "v_head_dim", head) != head || !is_kind(kv, "concat") ||
        inputs_of(kv) != 2 || p->uses[input(p, attend, 1)] != 1 ||
        !follow(p, input(p, attend, 0), &part[0]) ||
        !follow(p, input(p, kv, 0), &part[1]) || !follow(p, input(p, kv, 1), &part[2]) ||
        !belong(p, part, 3) || part[0].features != heads * head ||
        part[1].features != groups * head || part[2].features != groups * head ||
        !rotated_alike(p, part, head))
        return;
    p->gone[input(p, attend, 1)] = 1;
    json_t *made = projected(p, part, 3, groups, (heads / groups + 2) * head, &name);
    json_t *from = json_string(name);
    json_t *op = operator(text_of(attend, "name"), "attention", from);
    json_decref(from);
    say_attention(attend, op_at(p, part[0].rotary), part[0].factor * part[1].factor, op);
    json_array_append_new(made, op);
    p->made[i] = made;
    p->changed = 1;
}

/* ---- gated feed-forwards ----------------------------------------------------------- */

/* mul(activation(gate), up), in either order. */
static int fuse_gate(struct pass *p, int64_t i, size_t side)
{
    json_t *mul = op_at(p, i);
    int64_t u = input(p, mul, side);
    const json_t *unary = op_at(p, u);
    struct projection_part part[2];
    const char *name;
    if (!is_kind(unary, "unary") || p->uses[u] != 1 || p->gone[u] ||
        !follow(p, input(p, unary, 0), &part[0]) ||
        !follow(p, input(p, mul, 1 - side), &part[1]) || part[0].rotary >= 0 ||
        part[1].rotary >= 0 || fabs(part[0].factor - 1) > 0 ||
        fabs(part[1].factor - 1) > 0 || !belong(p, part, 2) ||
        part[0].features != part[1].features)
        return 0;
    p->gone[u] = 1;
    json_t *made = projected(p, part, 2, part[0].features, 2, &name);
    json_t *from = json_string(name);
    json_t *op = operator(text_of(mul, "name"), "glu", from);
    json_decref(from);
    static const char *const kept[] = {"activation", "alpha", "beta", NULL};
    for (int k = 0; kept[k]; k++)
        if (json_object_get(unary, kept[k]))
            json_object_set(op, kept[k], json_object_get(unary, kept[k]));
    json_array_append_new(made, op);
    p->made[i] = made;
    return p->changed = 1;
}

/* ---- the whole --------------------------------------------------------------------- */

/* A loop over operators that reads their names once and each input twice. */
static int start(struct pass *p, const json_t *doc)
{
    size_t n, i, k;
    json_t *op, *name;
    p->ops = json_object_get(doc, "ops");
    n = json_array_size(p->ops);
    p->at = json_object();
    p->uses = calloc(n + 1, sizeof *p->uses);
    p->gone = calloc(n + 1, 1);
    p->made = calloc(n + 1, sizeof *p->made);
    if (!p->at || !p->uses || !p->gone || !p->made)
        return -1;
    json_array_foreach(p->ops, i, op)
    {
        json_object_set_new(p->at, text_of(op, "name"), json_integer((json_int_t)i));
        json_array_foreach(json_object_get(op, "inputs"), k, name)
        {
            const json_t *from = json_object_get(p->at, json_string_value(name));
            if (from)
                p->uses[json_integer_value(from)]++;
        }
    }
    return 0;
}

static json_t *rest(const struct pass *p)
{
    json_t *ret = json_array(), *op;
    size_t i;
    json_array_foreach(p->ops, i, op)
    {
        if (p->made[i])
            json_array_extend(ret, p->made[i]);
        else if (!p->gone[i])
            json_array_append(ret, op);
    }
    return ret;
}

static void finish(struct pass *p)
{
    for (size_t i = 0; p->made && i < json_array_size(p->ops); i++)
        json_decref(p->made[i]);
    free(p->made);
    free(p->gone);
    free(p->uses);
    json_decref(p->at);
}

static int has_kind(const struct topt_model *m, const char *kind)
{
    for (int i = 0; i < m->nops; i++)
        if (!strcmp(m->op[i].spec->name, kind))
            return 1;
    return 0;
}

int topt_model_fuse(struct topt_model **m, struct topt_error *err)
{
    struct pass p = {0};
    struct topt_model *fused = NULL;
    if (!has_kind(*m, "attention") && !has_kind(*m, "mul"))
        return 0;
    json_t *doc = topt_model_to_json(*m);
    int rc = doc && !start(&p, doc) ? 0 : topt_nomem(err, "a model");
    for (size_t i = 0; !rc && i < json_array_size(p.ops); i++) {
        const json_t *op = op_at(&p, (int64_t)i);
        if (is_kind(op, "attention"))
            fuse_attention(&p, (int64_t)i);
        else if (is_kind(op, "mul") && inputs_of(op) == 2 &&
                 !fuse_gate(&p, (int64_t)i, 0))
            fuse_gate(&p, (int64_t)i, 1);
    }
    if (!rc && p.changed) {
        json_t *ops = rest(&p);
        finish(&p);
        p = (struct pass){0};
        json_object_set_new(doc, "ops", ops);
        fused = topt_model_from_json(doc, err);
        rc = fused ? 0 : -1;
    }
    if (fused) {
        topt_model_destroy(*m);
        *m = fused;
    }
    finish(&p);
    json_decref(doc);
    return rc;
}
