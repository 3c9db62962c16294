/* native.c - the document "topt-model/1": a model as the list of its operators.
 *
 * An operator's only output has the operator's name, so "inputs" are names of
 * operators that stand earlier in the list, and no document can hold a cycle.  Each
 * kind has the attributes that it reads and no others; writing leaves out those that
 * are zero, so that what is written is read back to the same model, and written again
 * to the same bytes. */
#include "model_graph.h"
#include "native.h"
#include "topt_json.h"
#include "topt_text.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NATIVE_OPS = 1 << 18 };
static const int64_t MAX_EXTENT = (int64_t)1 << 40;

enum attr_type { WHOLE, REAL, SIGNED, BOOLEAN, ACTIVATION, LIST };

static const struct attr_row {
    const char *name;
    enum attr_type type;
    size_t offset;
} attr_table[TOPT_ATTR_COUNT] = {
#define X(id, field, type)                                                               \
    [TOPT_A_##id] = {#field, type, offsetof(struct topt_attrs, field)},
    TOPT_ATTRS(X)
#undef X
};

/* What is said of an operator rather than to it: of any, and of one with parameters. */
static const topt_attr_set any_kind =
    (topt_attr_set)1 << TOPT_A_FUSED | (topt_attr_set)1 << TOPT_A_INSIDE;
static const topt_attr_set with_parameters =
    (topt_attr_set)1 << TOPT_A_FROZEN | (topt_attr_set)1 << TOPT_A_BITS;

_Static_assert(TOPT_ATTR_COUNT <= 8 * sizeof(topt_attr_set),
               "kinds have a bit for each attribute");

static int has_parameters(const struct topt_op_spec *kind)
{
    for (int o = 0; o < kind->noperands; o++)
        if (kind->operand[o].role == TOPT_PARAM)
            return 1;
    return 0;
}

static int takes(const struct topt_op_spec *kind, int attr)
{
    topt_attr_set all =
        kind->attrs | any_kind | (has_parameters(kind) ? with_parameters : 0);
    return (int)(all >> attr & 1);
}

/* ---- writing ----------------------------------------------------------------------- */

static json_t *list_to_json(const int64_t *list)
{
    json_t *a = list[0] ? json_array() : NULL;
    for (int i = 0; i < TOPT_MAX_TABLES && list[i]; i++)
        json_array_append_new(a, json_integer(list[i]));
    return a;
}

/* The value of an attribute, or NULL where it is zero and need not be written. */
static json_t *attr_to_json(const struct attr_row *row, const struct topt_attrs *attrs)
{
    const void *field = (const char *)attrs + row->offset;
    switch (row->type) {
    case WHOLE:
        return *(const int64_t *)field ? json_integer(*(const int64_t *)field) : NULL;
    case REAL:
    case SIGNED:
        return fpclassify(*(const double *)field) != FP_ZERO
                   ? json_real(*(const double *)field)
                   : NULL;
    case BOOLEAN:
        return *(const int *)field ? json_true() : NULL;
    case ACTIVATION:
        return json_string(
            topt_activation_name((enum topt_activation) * (const int *)field));
    case LIST:
        return list_to_json(field);
    }
    return NULL;
}

static json_t *op_to_json(const struct topt_model *m, const struct topt_op *op)
{
    json_t *o = json_object(), *inputs = json_array();
    json_object_set_new(o, "name", json_string(op->name));
    json_object_set_new(o, "kind", json_string(op->spec->name));
    for (int i = 0; i < op->ninputs; i++)
        json_array_append_new(inputs,
                              json_string(m->tensor[topt_input_tensor(op, i)].name));
    json_object_set_new(o, "inputs", inputs);
    if (op->layer >= 0)
        json_object_set_new(o, "layer", json_integer(op->layer));
    if (op->role)
        json_object_set_new(o, "role", json_string(topt_role_name(op->role)));
    for (int a = 0; a < TOPT_ATTR_COUNT; a++) {
        json_t *v = takes(op->spec, a) ? attr_to_json(&attr_table[a], op->attrs) : NULL;
        if (v)
            json_object_set_new(o, attr_table[a].name, v);
    }
    return o;
}

json_t *topt_model_to_json(const struct topt_model *m)
{
    json_t *doc = json_object(), *ops = json_array();
    json_object_set_new(doc, "format", json_string("topt-model/1"));
    json_object_set_new(doc, "name", json_string(m->name));
    json_object_set_new(doc, "batch", json_integer(m->batch));
    json_object_set_new(doc, "seq", json_integer(m->seq));
    json_object_set_new(doc, "vocab", json_integer(m->vocab));
    if (m->note)
        json_object_set_new(doc, "note", json_string(m->note));
    if (m->plan_only)
        json_object_set_new(doc, "plan_only", json_string(m->plan_only));
    if (m->train)
        json_object_set_new(doc, "train", json_string(m->train));
    for (int i = 0; i < m->nops; i++)
        json_array_append_new(ops, op_to_json(m, &m->op[i]));
    json_object_set_new(doc, "ops", ops);
    return doc;
}

/* ---- reading ----------------------------------------------------------------------- */

static int activation_from_json(const json_t *obj, const char *path, int *ret,
                                struct topt_error *err)
{
    const char *name = NULL;
    struct topt_text known = {0};
    if (topt_json_string(obj, path, "activation", &name, err))
        return -1;
    for (int i = 0; i < TOPT_ACT_COUNT; i++)
        if (!strcmp(topt_activation_name((enum topt_activation)i), name)) {
            *ret = i;
            return 0;
        }
    for (int i = 0; i < TOPT_ACT_COUNT; i++)
        topt_text_add(&known, " %s", topt_activation_name((enum topt_activation)i));
    topt_fail(err, TOPT_ERR_INVAL, "%s.activation is \"%.40s\"; known are%s", path, name,
              known.s ? known.s : "");
    topt_text_fini(&known);
    return -1;
}

static int list_from_json(const json_t *obj, const char *path, const char *name,
                          int64_t *ret, struct topt_error *err)
{
    const json_t *list = json_object_get(obj, name), *x;
    size_t i;
    if (list && (!json_is_array(list) || json_array_size(list) > TOPT_MAX_TABLES))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s.%s must be an array of at most %d numbers", path, name,
                         TOPT_MAX_TABLES);
    json_array_foreach(list, i, x)
    {
        if (!json_is_integer(x) || json_integer_value(x) < 1 ||
            json_integer_value(x) > MAX_EXTENT)
            return topt_fail(err, TOPT_ERR_INVAL, "%s.%s[%zu] must be 1..%lld", path,
                             name, i, (long long)MAX_EXTENT);
        ret[i] = json_integer_value(x);
    }
    return 0;
}

static int attr_from_json(const json_t *obj, const char *path, const struct attr_row *row,
                          struct topt_attrs *attrs, struct topt_error *err)
{
    void *field = (char *)attrs + row->offset;
    switch (row->type) {
    case WHOLE:
        return topt_json_int_or(obj, path, row->name, 1, MAX_EXTENT, field, err);
    case REAL:
        return topt_json_real_or(obj, path, row->name, 0, 1e18, field, err);
    case SIGNED:
        return topt_json_real_or(obj, path, row->name, -1e18, 1e18, field, err);
    case BOOLEAN:
        return topt_json_bool_or(obj, path, row->name, field, err);
    case ACTIVATION:
        return activation_from_json(obj, path, field, err);
    case LIST:
        return list_from_json(obj, path, row->name, field, err);
    }
    return 0;
}

/* Attributes of the operator's kind; every other field is refused. */
static int attrs_from_json(const json_t *obj, const char *path,
                           const struct topt_op_spec *kind, struct topt_attrs *ret,
                           struct topt_error *err)
{
    const char *allowed[TOPT_ATTR_COUNT + 6] = {"name", "kind", "inputs", "layer",
                                                "role"};
    int n = 5;
    for (int a = 0; a < TOPT_ATTR_COUNT; a++)
        if (takes(kind, a))
            allowed[n++] = attr_table[a].name;
    if (topt_json_only(obj, path, allowed, err))
        return -1;
    for (int a = 0; a < TOPT_ATTR_COUNT; a++)
        if (takes(kind, a) && attr_from_json(obj, path, &attr_table[a], ret, err))
            return -1;
    return 0;
}

static int role_from_json(const json_t *obj, const char *path, const char *kind,
                          enum topt_op_role *ret, struct topt_error *err)
{
    const char *name = NULL;
    *ret = TOPT_ROLE_NONE;
    if (topt_json_string_or(obj, path, "role", &name, err))
        return -1;
    if (name && topt_role_find(name, ret, err))
        return topt_wrap(err, "%s.role", path);
    return topt_role_fits(*ret, kind)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "%s.role is \"%.20s\", which no operator of kind %.40s is",
                           path, name, kind);
}

/* 'tensors' maps the names of earlier operators to their output tensors. */
static int inputs_from_json(const json_t *obj, const char *path, const json_t *tensors,
                            int ret[TOPT_MAX_INPUTS], int *ret_n, struct topt_error *err)
{
    const json_t *list = json_object_get(obj, "inputs");
    *ret_n = 0;
    if (!list)
        return 0;
    if (!json_is_array(list) || json_array_size(list) > TOPT_MAX_INPUTS)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s.inputs must be an array of at most %d names", path,
                         TOPT_MAX_INPUTS);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s.inputs[%zu] must be an operator's name", path, i);
        const json_t *t = json_object_get(tensors, name);
        if (!t)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s.inputs[%zu]: no earlier operator is named '%.60s'", path,
                             i, name);
        ret[(*ret_n)++] = (int)json_integer_value(t);
    }
    return 0;
}

static int add_op(struct topt_model *m, const json_t *obj, size_t i, json_t *tensors,
                  struct topt_error *err)
{
    char path[32];
    snprintf(path, sizeof path, "ops[%zu]", i);
    if (!json_is_object(obj))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be an object", path);
    const char *name, *kind;
    if (topt_json_string(obj, path, "name", &name, err) ||
        topt_json_string(obj, path, "kind", &kind, err))
        return -1;
    if (!*name || strlen(name) > 200)
        return topt_fail(err, TOPT_ERR_INVAL, "%s.name must have 1 to 200 bytes", path);
    struct topt_attrs attrs = {0};
    int64_t layer = -1;
    enum topt_op_role role;
    int inputs[TOPT_MAX_INPUTS], ninputs;
    if (inputs_from_json(obj, path, tensors, inputs, &ninputs, err))
        return -1;
    const struct topt_op_spec *row =
        topt_op_spec_find(kind, ninputs ? m->tensor[inputs[0]].ndim : 0);
    if (!row)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s.kind is \"%.40s\", which no operator is", path, kind);
    if (attrs_from_json(obj, path, row, &attrs, err) ||
        topt_json_int_or(obj, path, "layer", 0, MAX_NATIVE_OPS - 1, &layer, err) ||
        role_from_json(obj, path, kind, &role, err))
        return -1;
    m->at_layer = (int)layer;
    int t = topt_model_add(m, kind, name, ninputs, inputs, &attrs, err);
    if (t < 0)
        return topt_wrap(err, "%s", path);
    topt_model_say_role(m, role);
    json_object_set_new(tensors, name, json_integer(t));
    return 0;
}

static int add_ops(struct topt_model *m, const json_t *ops, struct topt_error *err)
{
    size_t n = json_array_size(ops);
    if (n > MAX_NATIVE_OPS)
        return topt_fail(err, TOPT_ERR_LIMIT, "ops has %zu operators, more than %d", n,
                         MAX_NATIVE_OPS);
    json_t *tensors = json_object();
    int rc = tensors ? 0 : topt_nomem(err, "a model");
    for (size_t i = 0; !rc && i < n; i++)
        rc = add_op(m, json_array_get(ops, i), i, tensors, err);
    json_decref(tensors);
    return rc;
}

/* What is told of a model, in words. */
static int read_words(const json_t *doc, struct topt_model *m, struct topt_error *err)
{
    enum { MOST = 4000 };
    const char *note = NULL, *why = NULL, *train = NULL;
    if (topt_json_string_or(doc, "", "note", &note, err) ||
        topt_json_string_or(doc, "", "plan_only", &why, err) ||
        topt_json_string_or(doc, "", "train", &train, err))
        return -1;
    if ((note && strlen(note) > MOST) || (why && strlen(why) > MOST) ||
        (train && strlen(train) > MOST))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "note, plan_only and train must have at most %d bytes", MOST);
    return topt_model_note(m, note, err) || topt_model_plan_only(m, why, err) ||
                   topt_model_say_trained(m, train, err)
               ? -1
               : 0;
}

static int check_vocab(const json_t *doc, const struct topt_model *m,
                       struct topt_error *err)
{
    int64_t vocab = m->vocab;
    if (topt_json_int_or(doc, "", "vocab", 1, MAX_EXTENT, &vocab, err))
        return -1;
    return vocab == m->vocab ? 0
                             : topt_fail(err, TOPT_ERR_INVAL,
                                         "vocab is %lld, but the loss is over %lld",
                                         (long long)vocab, (long long)m->vocab);
}

struct topt_model *topt_native_build(const json_t *doc,
                                     const struct topt_import_options *o,
                                     struct topt_error *err)
{
    static const char *const fields[] = {"format", "name",      "batch", "seq", "vocab",
                                         "note",   "plan_only", "train", "ops", NULL};
    const char *name;
    const json_t *ops;
    int64_t batch, seq;
    if (topt_json_only(doc, "", fields, err) || topt_json_format(doc, "model", err) ||
        topt_json_string(doc, "", "name", &name, err) ||
        topt_json_int(doc, "", "batch", 1, 1 << 24, &batch, err) ||
        topt_json_int(doc, "", "seq", 1, 1 << 24, &seq, err) ||
        topt_json_array(doc, "", "ops", &ops, err))
        return NULL;
    struct topt_model *m = topt_model_create(name, o && o->batch ? o->batch : batch,
                                             o && o->seq ? o->seq : seq, err);
    if (m && (add_ops(m, ops, err) || topt_model_finish(m, err) ||
              check_vocab(doc, m, err) || read_words(doc, m, err))) {
        topt_model_destroy(m);
        m = NULL;
    }
    return m;
}

struct topt_model *topt_model_from_json(const json_t *doc, struct topt_error *err)
{
    return topt_native_build(doc, NULL, err);
}
