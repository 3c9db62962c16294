/* onnx_read.c - the bytes of an ONNX file: limits, protobuf, names of values, what is
 * needed.
 *
 * Unpacking allocates for every message, and recurses where messages nest, so what
 * bytes would become is measured first, by the descriptors that unpacking itself goes
 * by. */
#include "onnx_read.h"
#include "onnx_node.h"
#include "onnx_numbers.h"
#include "onnx_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_graph.h"
#include "topt_text.h"

enum { MAX_DEPTH = 24 };
static const int64_t MAX_UNPACKED = (int64_t)1 << 30;

/* ---- measuring --------------------------------------------------------------------- */

struct wire {
    const uint8_t *at, *end;
};

/* A base-128 number; -1 past the end or where it is too long. */
static int read_varint(struct wire *w, uint64_t *ret)
{
    *ret = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t byte = *w->at++;
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return 0;
    }
    return -1;
}

/* Step over a field's contents; those of a length-delimited one are put into 'ret'. */
static int read_field(struct wire *w, uint64_t tag, struct wire *ret)
{
    static const int fixed[8] = {-1, 8, -1, -1, -1, 4, -1, -1};
    uint64_t n = 0;
    *ret = (struct wire){NULL, NULL};
    if ((tag & 7) == 0)
        return read_varint(w, &n);
    if ((tag & 7) == 2) {
        if (read_varint(w, &n) || n > (uint64_t)(w->end - w->at))
            return -1;
        *ret = (struct wire){w->at, w->at + n};
    } else {
        if (fixed[tag & 7] < 0 || fixed[tag & 7] > w->end - w->at)
            return -1;
        n = (uint64_t)fixed[tag & 7];
    }
    w->at += n;
    return 0;
}

/* Bytes that unpacking takes, about and not less; -1 where the wire format is broken
 * and -2 where messages nest too deep. */
static int64_t measure(struct wire w, const ProtobufCMessageDescriptor *d, int depth)
{
    enum { EACH = 40 };
    int64_t total = (int64_t)d->sizeof_message + EACH;
    if (depth > MAX_DEPTH)
        return -2;
    while (w.at < w.end && total < MAX_UNPACKED) {
        uint64_t tag;
        struct wire in;
        if (read_varint(&w, &tag) || read_field(&w, tag, &in))
            return -1;
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));
        int64_t n = EACH;
        if (in.at && f && f->type == PROTOBUF_C_TYPE_MESSAGE)
            n += measure(in, f->descriptor, depth + 1);
        else if (in.at) /* a packed number is a byte or more, and becomes eight at most */
            n += (f && f->type != PROTOBUF_C_TYPE_BYTES &&
                          f->type != PROTOBUF_C_TYPE_STRING
                      ? 8
                      : 1) *
                 (in.end - in.at);
        if (n < EACH)
            return n - EACH;
        total += n;
    }
    return total;
}

int topt_onnx_check_bytes(const uint8_t *bytes, size_t len, struct topt_error *err)
{
    if (len > ONNX_MAX_BYTES)
        return topt_fail(
            err, TOPT_ERR_LIMIT,
            "an ONNX file of %zu MiB, more than %d: keep the weights in a file "
            "of their own (external data)",
            len >> 20, ONNX_MAX_BYTES >> 20);
    struct wire w = {bytes, bytes + len};
    int64_t need = measure(w, &onnx__model_proto__descriptor, 0);
    if (need == -2)
        return topt_fail(err, TOPT_ERR_LIMIT, "its messages nest more than %d deep",
                         MAX_DEPTH);
    if (need < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "it is no ONNX file, or a part is missing");
    return need < MAX_UNPACKED ? 0
                               : topt_fail(err, TOPT_ERR_LIMIT,
                                           "unpacking it would take more than %lld MiB",
                                           (long long)MAX_UNPACKED >> 20);
}

/* ---- values ------------------------------------------------------------------------ */

/* The slot of a name: its value's number + 1, or 0 where it is new. */
static int *slot_of(struct onnx *x, const char *name)
{
    uint32_t h = 2166136261u;
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    uint32_t mask = (uint32_t)x->nslots - 1;
    for (h &= mask; x->slot[h]; h = (h + 1) & mask)
        if (!strcmp(x->value[x->slot[h] - 1].name, name))
            break;
    return &x->slot[h];
}

/* The value of a name; -1 where it is new, or empty. */
static int known_value(struct onnx *x, const char *name)
{
    return name && *name ? *slot_of(x, name) - 1 : -1;
}

/* The value of a name, made where it is new; -1 for the empty name. */
static int value_of(struct onnx *x, const char *name)
{
    if (!name || !*name)
        return -1;
    int *slot = slot_of(x, name);
    if (!*slot) {
        x->value[x->nvalues] =
            (struct onnx_value){.name = name, .node = -1, .view.tensor = -1};
        *slot = ++x->nvalues;
    }
    return *slot - 1;
}

/* Names and nodes of a graph and of those in its nodes, which may come to stand among
 * them. */
static void count_graph(const Onnx__GraphProto *g, size_t *names, size_t *nodes)
{
    *names += g->n_initializer + g->n_input + g->n_output;
    *nodes += g->n_node + g->n_output;
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        *names += n->n_input + n->n_output;
        for (size_t k = 0; k < n->n_attribute; k++)
            if (n->attribute[k]->g)
                count_graph(n->attribute[k]->g, names, nodes);
    }
}

static int alloc_tables(struct onnx *x)
{
    size_t names = 0, nodes = 0;
    count_graph(x->graph, &names, &nodes);
    if (nodes > 2 * ONNX_MAX_NODES)
        return topt_fail(x->err, TOPT_ERR_LIMIT,
                         "%zu nodes in graphs within graphs, more "
                         "than %d",
                         nodes, 2 * ONNX_MAX_NODES);
    x->nslots = 64;
    while ((size_t)x->nslots < 2 * names)
        x->nslots *= 2;
    x->slot = TOPT_NEW(x->arena, x->nslots, int);
    x->value = TOPT_NEW(x->arena, names + 1, struct onnx_value);
    x->node = TOPT_NEW(x->arena, nodes + 1, struct onnx_node);
    return x->slot && x->value && x->node ? 0 : topt_nomem(x->err, "the graph's tables");
}

static int check_shape(const struct onnx_shape *s)
{
    double n = 1;
    for (int i = 0; i < s->ndim; i++) {
        if (s->dim[i] < 0)
            return -1;
        n *= (double)s->dim[i];
    }
    return n < 0x1p46 ? 0 : -1;
}

static int read_initializer(struct onnx *x, const Onnx__TensorProto *t)
{
    int i = value_of(x, t->name);
    if (i < 0 || t->n_dims > ONNX_MAX_RANK)
        return topt_fail(x->err, TOPT_ERR_INVAL,
                         "initializer '%.60s' has no name or more than %d dimensions",
                         t->name ? t->name : "", ONNX_MAX_RANK);
    struct onnx_value *v = &x->value[i];
    v->known = v->constant = 1;
    v->integer = t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
                 t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE &&
                 t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 &&
                 t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
    v->shape.ndim = (int)t->n_dims;
    for (size_t d = 0; d < t->n_dims; d++)
        v->shape.dim[d] = t->dims[d];
    if (check_shape(&v->shape))
        return topt_fail(x->err, TOPT_ERR_LIMIT,
                         "initializer '%.60s' has negative extents or over 2^46 elements",
                         v->name);
    v->held = topt_onnx_numbers(x, t);
    return 0;
}

/* Training has no padding: a mask of tokens is ones; and positions are counted from 0
 * on.  Both become constants, so that what is made of them is known. */
static int take_known_input(struct onnx *x, struct onnx_value *v)
{
    int mask = strstr(v->name, "mask") != NULL,
        places = strstr(v->name, "position_ids") != NULL;
    if (!v->integer || v->shape.ndim != 2 || !(mask || places))
        return 0;
    int64_t n = topt_onnx_elements(&v->shape), row = v->shape.dim[1];
    if (n > ONNX_MAX_HELD)
        return 0;
    v->held = TOPT_NEW(x->arena, n, double);
    if (!v->held)
        return topt_nomem(x->err, "the numbers of an input");
    for (int64_t i = 0; i < n; i++)
        v->held[i] = mask ? 1 : (double)(i % row);
    v->constant = 1;
    v->input = 0;
    topt_onnx_note(x, "input %.60s is taken as %s", v->name,
                   mask ? "ones: no padding" : "0, 1, 2...");
    return 0;
}

/* The first extent without a number is the batch; other ones are the sequence's. */
static int read_input(struct onnx *x, const Onnx__ValueInfoProto *info,
                      const struct topt_import_options *o)
{
    int number = value_of(x, info->name);
    struct onnx_value *v = number < 0 ? NULL : &x->value[number];
    const Onnx__TypeProto__Tensor *t =
        info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
            ? info->type->tensor_type
            : NULL;
    if (!v || v->constant)
        return 0;
    v->input = 1;
    if (!t || !t->shape || t->shape->n_dim > ONNX_MAX_RANK)
        return 0; /* an error where somebody needs it */
    v->integer = t->elem_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
                 t->elem_type != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE &&
                 t->elem_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 &&
                 t->elem_type != ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
    v->shape.ndim = (int)t->shape->n_dim;
    for (size_t d = 0; d < t->shape->n_dim; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = t->shape->dim[d];
        int64_t n =
            dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                ? dim->dim_value
                : 0;
        if (n < 1 && d == 0)
            n = o && o->batch ? o->batch : TOPT_DEFAULT_BATCH;
        else if (n < 1 && o && o->seq)
            n = o->seq;
        if (n < 1)
            return 0;
        v->shape.dim[d] = n;
    }
    if (check_shape(&v->shape))
        return topt_fail(x->err, TOPT_ERR_LIMIT, "input '%.60s' has over 2^46 elements",
                         v->name);
    v->known = 1;
    return take_known_input(x, v);
}

/* ---- nodes ------------------------------------------------------------------------- */

static int bind_names(struct onnx *x, char **names, size_t n, int **ret)
{
    *ret = TOPT_NEW(x->arena, n + 1, int);
    for (size_t i = 0; *ret && i < n; i++)
        (*ret)[i] = value_of(x, names[i]);
    return *ret ? 0 : topt_nomem(x->err, "the graph");
}

/* "Conv" of ONNX itself; a type of another domain has it in front. */
static const char *type_of(struct onnx *x, const Onnx__NodeProto *p)
{
    if (!p->domain || !*p->domain || !strcmp(p->domain, "ai.onnx"))
        return p->op_type ? p->op_type : "";
    size_t n = strlen(p->domain) + strlen(p->op_type ? p->op_type : "") + 3;
    char *s = topt_arena_alloc(x->arena, n, 1);
    if (s)
        snprintf(s, n, "%s::%s", p->domain, p->op_type ? p->op_type : "");
    return s ? s : "";
}

static int add_capture(struct onnx *x, struct onnx_node *n, int value)
{
    int *in = TOPT_NEW(x->arena, n->nin + 1, int);
    if (!in)
        return topt_nomem(x->err, "the graph");
    memcpy(in, n->in, sizeof *in * (size_t)n->nin);
    in[n->nin++] = value;
    n->in = in;
    return 0;
}

/* Values that the graphs in a node read from outside are inputs of the node. */
static int capture(struct onnx *x, struct onnx_node *n, const Onnx__GraphProto *g)
{
    enum { MOST = 1024 };
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *p = g->node[i];
        for (size_t k = 0; k < p->n_input; k++) {
            int v = known_value(x, p->input[k]);
            if (v >= 0 && n->nin < MOST && add_capture(x, n, v))
                return -1;
        }
        for (size_t k = 0; k < p->n_attribute; k++)
            if (p->attribute[k]->g && capture(x, n, p->attribute[k]->g))
                return -1;
    }
    for (size_t i = 0; i < g->n_output; i++) { /* or the branch hands it on as it is */
        int v = known_value(x, g->output[i]->name);
        if (v >= 0 && n->nin < MOST && add_capture(x, n, v))
            return -1;
    }
    return 0;
}

static int read_node(struct onnx *x, int i, const Onnx__NodeProto *p)
{
    struct onnx_node *n = &x->node[i];
    const char *type = type_of(x, p);
    *n = (struct onnx_node){.proto = p,
                            .type = type,
                            .kind = topt_onnx_kind(type),
                            .nin = (int)p->n_input,
                            .nout = (int)p->n_output};
    if (bind_names(x, p->input, p->n_input, &n->in) ||
        bind_names(x, p->output, p->n_output, &n->out))
        return -1;
    for (size_t k = 0; n->kind && n->kind->branches && k < p->n_attribute; k++)
        if (p->attribute[k]->g && capture(x, n, p->attribute[k]->g))
            return -1;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] >= 0 && x->value[n->in[k]].node < 0 && !x->value[n->in[k]].input &&
            !x->value[n->in[k]].constant)
            return topt_fail(x->err, TOPT_ERR_INVAL,
                             "node %d reads '%.60s', which nothing before it makes", i,
                             x->value[n->in[k]].name);
    for (int k = 0; k < n->nout; k++) {
        if (n->out[k] < 0)
            continue;
        struct onnx_value *v = &x->value[n->out[k]];
        if (v->node >= 0 || v->input || v->constant)
            return topt_fail(x->err, TOPT_ERR_INVAL, "'%.60s' is made twice", v->name);
        v->node = i;
    }
    return 0;
}

static struct onnx_node *maker(const struct onnx *x, int value)
{
    return value < 0 || x->value[value].node < 0 ? NULL : &x->node[x->value[value].node];
}

static int is_kind(const struct onnx_node *n, const char *name)
{
    return n && n->kind && !strcmp(n->kind->name, name);
}

/* A cross entropy that the file has at its end is ours, and so is a softmax before it. */
static int take_loss(struct onnx *x)
{
    const struct onnx_node *n = maker(x, x->output), *soft;
    int whole = is_kind(n, "SoftmaxCrossEntropyLoss");
    if (!whole && !is_kind(n, "NegativeLogLikelihoodLoss"))
        return 0;
    soft = whole ? n : n->nin > 0 ? maker(x, n->in[0]) : NULL;
    if (!soft || n->nin != 2 || topt_onnx_attr(n, "ignore_index") || soft->nin < 1 ||
        soft->in[0] < 0 || (!whole && !is_kind(soft, "LogSoftmax")) ||
        maker(x, soft->in[0]) == NULL)
        return 0;
    if (x->loss && strcmp(x->loss, "cross_entropy"))
        return topt_fail(
            x->err, TOPT_ERR_INVAL,
            "the file ends in its own loss, a cross entropy: leave out --loss");
    x->loss = "cross_entropy";
    x->classes = 1;
    x->output = soft->in[0];
    return 0;
}

/* A softmax at the end is part of a cross entropy. */
static void strip_softmax(struct onnx *x)
{
    const struct onnx_node *n = maker(x, x->output);
    int soft = is_kind(n, "Softmax") || is_kind(n, "LogSoftmax");
    if (soft && (!x->loss || !strcmp(x->loss, "cross_entropy")) && n->nin == 1 &&
        maker(x, n->in[0]))
        x->output = n->in[0];
}

/* Nodes that the output needs, found backwards. */
static void mark_needed(struct onnx *x)
{
    x->node[x->value[x->output].node].needed = 1;
    x->value[x->output].uses++; /* by the loss */
    for (int i = x->nnodes - 1; i >= 0; i--) {
        struct onnx_node *n = &x->node[i];
        for (int k = 0; n->needed && k < n->nin; k++) {
            if (n->in[k] < 0 || (n->kind && k < 32 && n->kind->ignored >> k & 1))
                continue;
            struct onnx_value *v = &x->value[n->in[k]];
            v->uses++;
            if (v->node >= 0)
                x->node[v->node].needed = 1;
        }
    }
}

void topt_onnx_count_uses(struct onnx *x)
{
    for (int k = 0; k < x->nvalues; k++)
        x->value[k].uses = 0;
    for (int k = 0; k < x->nnodes; k++)
        x->node[k].needed = 0;
    mark_needed(x);
}

void topt_onnx_list_type(struct topt_text *list, int before, const struct onnx_kind *kind,
                         const char *type, int count)
{
    topt_text_add(list, "%s%.50s: %d", before ? ", " : "", type, count);
    if (kind && kind->why)
        topt_text_add(list, " (%s)", kind->why);
}

static int is_unread(const struct onnx_node *n)
{
    return n->needed && !(n->kind && n->kind->infer);
}

/* Every needed type that nothing reads, with how often it occurs and perhaps why, in one
 * line. */
static int refuse_unknown(struct onnx *x)
{
    struct topt_text list = {0};
    int kinds = 0;
    for (int i = 0; i < x->nnodes; i++) {
        const char *type = x->node[i].type;
        int count = 0, first = 1;
        if (!is_unread(&x->node[i]) || kinds > 24)
            continue;
        for (int k = 0; k < x->nnodes && first; k++)
            if (is_unread(&x->node[k]) && !strcmp(x->node[k].type, type)) {
                first &= k >= i;
                count++;
            }
        if (first)
            topt_onnx_list_type(&list, kinds++, x->node[i].kind, type, count);
    }
    if (kinds)
        topt_fail(x->err, TOPT_ERR_INVAL,
                  "operators that no row of the table does (with their numbers): %s",
                  list.s ? list.s : "");
    topt_text_fini(&list);
    return kinds ? -1 : 0;
}

/* ---- branches ---------------------------------------------------------------------- */

static const Onnx__GraphProto *branch_of(const struct onnx_node *n, int condition)
{
    const Onnx__AttributeProto *a =
        topt_onnx_attr(n, condition ? "then_branch" : "else_branch");
    return a ? a->g : NULL;
}

/* A node that gives a value another name. */
static Onnx__NodeProto *same_as(struct onnx *x, char *from, char *to)
{
    Onnx__NodeProto *p = TOPT_NEW(x->arena, 1, Onnx__NodeProto);
    char **names = TOPT_NEW(x->arena, 2, char *);
    if (!p || !names)
        return NULL;
    *p = (Onnx__NodeProto)ONNX__NODE_PROTO__INIT;
    names[0] = from;
    names[1] = to;
    p->op_type = (char *)"Identity";
    p->n_input = p->n_output = 1;
    p->input = names;
    p->output = names + 1;
    return p;
}

/* Is input 'i' of such a node a weight? */
static int is_weight_place(const struct onnx *x, const struct onnx_node *n, int i)
{
    if (!strcmp(n->kind->name, "MatMul"))
        return i == 1 && x->value[n->in[1]].shape.ndim == 2;
    return i < 32 && (n->kind->weights | n->kind->ignored) >> i & 1;
}

void topt_onnx_mark_weights(struct onnx *x)
{
    for (int i = 0; i < x->nvalues; i++)
        x->value[i].constant |= x->value[i].input && x->value[i].known;
    for (int i = 0; i < x->nnodes; i++)
        for (int k = 0; x->node[i].needed && k < x->node[i].nin; k++) {
            int v = x->node[i].in[k];
            if (v >= 0 && x->value[v].input && !is_weight_place(x, &x->node[i], k))
                x->value[v].constant = 0;
        }
}

/* Room for 'count' nodes behind node 'i'. */
static void make_room(struct onnx *x, int i, int count)
{
    memmove(&x->node[i + 1 + count], &x->node[i + 1],
            sizeof *x->node * (size_t)(x->nnodes - i - 1));
    x->nnodes += count;
    for (int k = 0; k < x->nvalues; k++)
        x->value[k].node += x->value[k].node > i ? count : 0;
}

int topt_onnx_take_branch(struct onnx *x, int i, int condition)
{
    struct onnx_node *n = &x->node[i], taken = *n;
    const Onnx__GraphProto *g = branch_of(n, condition);
    if (!g || g->n_output != (size_t)n->nout || g->n_input)
        return topt_onnx_fail(x, n, "its branch is missing or has other outputs");
    make_room(x, i, (int)g->n_node + n->nout);
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] >= 0)
            x->value[n->out[k]].node = -1;
    n->nout = 0;
    for (size_t k = 0; k < g->n_initializer; k++) {
        const char *name = g->initializer[k]->name;
        if (known_value(x, name) >= 0)
            return topt_onnx_fail(x, &taken, "'%.60s' of its branch is there already",
                                  name);
        if (read_initializer(x, g->initializer[k]))
            return -1;
    }
    for (size_t k = 0; k < g->n_node; k++)
        if (read_node(x, i + 1 + (int)k, g->node[k]))
            return -1;
    for (int k = 0; k < taken.nout; k++) {
        Onnx__NodeProto *p = same_as(x, g->output[k]->name, taken.proto->output[k]);
        if (!p || read_node(x, i + 1 + (int)g->n_node + k, p))
            return p ? -1 : topt_nomem(x->err, "the graph");
    }
    topt_onnx_count_uses(x);
    if (refuse_unknown(x))
        return -1;
    topt_onnx_mark_weights(x);
    return 0;
}

static int check_version(struct onnx *x, const Onnx__ModelProto *proto)
{
    for (size_t i = 0; i < proto->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *s = proto->opset_import[i];
        if (!s->domain || !*s->domain || !strcmp(s->domain, "ai.onnx"))
            x->opset = s->version;
    }
    if (!proto->n_opset_import) /* as in files of the first two versions of the format */
        x->opset = 1;
    else if (!x->opset) /* all types are of other domains */
        x->opset = ONNX_MAX_OPSET;
    return x->opset >= ONNX_MIN_OPSET && x->opset <= ONNX_MAX_OPSET
               ? 0
               : topt_fail(x->err, TOPT_ERR_INVAL,
                           "operator set %lld, %d to %d are read; convert it with "
                           "onnx.version_converter",
                           (long long)x->opset, ONNX_MIN_OPSET, ONNX_MAX_OPSET);
}

int topt_onnx_read(struct onnx *x, const Onnx__ModelProto *proto,
                   const struct topt_import_options *o)
{
    const Onnx__GraphProto *g = proto->graph;
    if (check_version(x, proto))
        return -1;
    if (!g || !g->n_node || !g->n_output)
        return topt_fail(x->err, TOPT_ERR_INVAL, "its graph has no nodes or no output");
    if (g->n_node > ONNX_MAX_NODES)
        return topt_fail(x->err, TOPT_ERR_LIMIT, "%zu nodes, more than %d", g->n_node,
                         ONNX_MAX_NODES);
    x->graph = g;
    if (alloc_tables(x))
        return -1;
    for (size_t i = 0; i < g->n_initializer; i++)
        if (read_initializer(x, g->initializer[i]))
            return -1;
    for (size_t i = 0; i < g->n_input; i++)
        if (read_input(x, g->input[i], o))
            return -1;
    for (size_t i = 0; i < g->n_node; i++, x->nnodes++)
        if (read_node(x, (int)i, g->node[i]))
            return -1;
    x->output = value_of(x, g->output[0]->name);
    if (x->output < 0 || x->value[x->output].node < 0)
        return topt_fail(x->err, TOPT_ERR_INVAL, "nothing makes the output '%.60s'",
                         g->output[0]->name ? g->output[0]->name : "");
    x->loss = o ? o->loss : NULL;
    x->classes = -1;
    if (take_loss(x))
        return -1;
    if (x->classes < 0)
        strip_softmax(x);
    mark_needed(x);
    return refuse_unknown(x);
}
