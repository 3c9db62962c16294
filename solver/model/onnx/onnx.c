/* onnx.c - an ONNX file to a model for training.
 *
 * A file holds a function of samples; the loss asked for is put on its first output,
 * and the graph from the samples to the loss is the model.  A softmax before a cross
 * entropy is part of the loss.  The batch of the file's shapes need not be the
 * model's. */
#include "fuse.h"
#include "model_graph.h"
#include "onnx.h"
#include "onnx_fuse.h"
#include "onnx_infer.h"
#include "onnx_map.h"
#include "onnx_node.h"
#include "onnx_read.h"
#include "onnx_shape_order.h"
#include "onnx_tie.h"
#include "onnx_view.h"
#include "topt_text.h"

#include <stdio.h>
#include <string.h>

/* ---- inputs ------------------------------------------------------------------------ */

/* Does the node make samples, channels, rows, columns of samples, rows, columns,
 * channels, as Keras has images? */
static int puts_channels_first(const struct onnx *x, const struct onnx_node *n)
{
    int64_t perm[ONNX_MAX_RANK];
    if (strcmp(n->kind->name, "Transpose") || topt_onnx_in(x, n, 0)->shape.ndim != 4)
        return 0;
    topt_onnx_perm(x, n, perm);
    return perm[0] == 0 && perm[1] == 3 && perm[2] == 1 && perm[3] == 2;
}

/* How nodes read the values that are their first inputs. */
static void mark_readings(struct onnx *x)
{
    for (int i = 0; i < x->nnodes; i++) {
        const struct onnx_node *n = &x->node[i];
        struct onnx_value *v = n->needed ? topt_onnx_in(x, n, 0) : NULL;
        if (v && n->kind->image)
            v->as_image = 1;
        if (v && n->kind->steps && !topt_onnx_int(n, "layout", 0))
            v->as_steps = 1;
        if (v && v->input && v->uses == 1 && puts_channels_first(x, n))
            v->as_image = v->channels_last = 1;
    }
}

/* Samples and positions that an input has. */
static int64_t samples_of(const struct onnx *x, int value)
{
    const struct onnx_shape *s = &x->value[value].shape;
    return s->ndim ? s->dim[x->value[value].as_steps && s->ndim > 1] : 1;
}

static int64_t positions_of(const struct onnx *x, int value)
{
    const struct onnx_shape *s = &x->value[value].shape;
    if (x->value[value].integer)
        return s->ndim == 2 ? s->dim[1] : 1;
    return s->ndim == 3 && !x->value[value].as_image ? s->dim[!x->value[value].as_steps]
                                                     : 1;
}

static int is_needed_sample(const struct onnx *x, int value)
{
    return x->value[value].input && !x->value[value].constant && x->value[value].uses;
}

/* The operator that an input is loaded by; tokens are loaded by their table. */
static int map_input(struct onnx *x, int value)
{
    static const int8_t plain[] = {0, 1, 2}, turned[] = {1, 0, 2}, flat[] = {0, 2},
                        image[] = {0, 1, 2, 3, 3}, last[] = {0, 2, 3, 1},
                        signal[] = {0, 1, 3}, row[] = {0, -1, -1, 2};
    struct onnx_value *v = &x->value[value];
    const struct onnx_shape *s = &v->shape;
    struct onnx_node as = {.nout = 1, .out = &value};
    if (v->integer || !v->known)
        return 0;
    int is_row =
        s->ndim == 4 && s->dim[1] == 1 && s->dim[2] == 1 && !x->value[value].as_image;
    int is_image =
        !is_row && (s->ndim >= 4 || (s->ndim == 3 && x->value[value].as_image));
    if (s->ndim < 1 || s->ndim > 5)
        return topt_fail(x->err, TOPT_ERR_INVAL,
                         "input '%.60s' has %d dimensions; 1 to 5 are read", v->name,
                         s->ndim);
    if (samples_of(x, value) != x->batch ||
        (!is_image && positions_of(x, value) != x->model->seq))
        return topt_fail(
            x->err, TOPT_ERR_INVAL,
            "input '%.60s' has another number of samples or positions than the "
            "first",
            v->name);
    struct topt_attrs a = {.features = s->ndim > 1 ? s->dim[s->ndim - 1] : 1};
    if (is_image)
        a = (struct topt_attrs){.channels = s->dim[1],
                                .height = s->ndim >= 4 ? s->dim[2] : 1,
                                .width =
                                    s->dim[s->ndim - 1] * (s->ndim == 5 ? s->dim[3] : 1)};
    if (v->channels_last)
        a = (struct topt_attrs){
            .channels = s->dim[3], .height = s->dim[1], .width = s->dim[2]};
    int t = topt_onnx_emit(x, &as, is_image ? "image" : "input", "", -1, -1, &a);
    if (t < 0)
        return -1;
    topt_onnx_view_fresh(v, t,
                         is_row                     ? row
                         : v->channels_last         ? last
                         : s->ndim >= 4             ? image
                         : is_image                 ? signal
                         : s->ndim <= 2             ? flat
                         : x->value[value].as_steps ? turned
                                                    : plain);
    return 0;
}

/* A model of the batch and positions of the first input that is samples. */
static int start_model(struct onnx *x, const char *name,
                       const struct topt_import_options *o)
{
    int first = -1;
    int64_t seq = 1;
    mark_readings(x);
    for (int i = 0; i < x->nvalues; i++)
        if (is_needed_sample(x, i)) {
            if (!x->value[i].known)
                return topt_fail(x->err, TOPT_ERR_INVAL, "input '%.60s' has no shape",
                                 x->value[i].name);
            first = first < 0 ? i : first;
            seq = seq > 1 ? seq : positions_of(x, i);
        }
    if (first < 0)
        return topt_fail(x->err, TOPT_ERR_INVAL, "no input of samples: all is constant");
    x->batch = samples_of(x, first);
    int64_t batch = o && o->batch  ? o->batch
                    : x->batch > 1 ? x->batch
                                   : TOPT_DEFAULT_BATCH;
    x->model = topt_model_create(name, batch, seq, x->err);
    for (int i = 0; x->model && i < x->nvalues; i++)
        if (is_needed_sample(x, i) && map_input(x, i))
            return -1;
    return x->model ? 0 : -1;
}

/* ---- nodes and loss ---------------------------------------------------------------- */

/* Whole numbers are tokens, which their table loads, or nobody's. */
static int is_mapped(const struct onnx *x, const struct onnx_node *n)
{
    const struct onnx_value *y = onnx_out(x, n, 0);
    return n->needed && !n->fused && n->nout > 0 && !(y && (y->constant || y->integer));
}

/* Types that depend on samples and that nothing maps, with how often they occur. */
static int refuse_unmapped(struct onnx *x)
{
    struct topt_text list = {0};
    int kinds = 0;
    for (int i = 0; i < x->nnodes; i++) {
        const struct onnx_kind *kind = x->node[i].kind;
        int count = 0, first = 1;
        if (!is_mapped(x, &x->node[i]) || x->node[i].map)
            continue;
        for (int k = 0; k < x->nnodes && first; k++)
            if (is_mapped(x, &x->node[k]) && !x->node[k].map && x->node[k].kind == kind) {
                first = k >= i;
                count++;
            }
        if (first)
            topt_onnx_list_type(&list, kinds++, kind, kind->name, count);
    }
    if (kinds)
        topt_fail(x->err, TOPT_ERR_INVAL,
                  "operators on samples that no row of the table does (with their "
                  "numbers): %s",
                  list.s ? list.s : "");
    topt_text_fini(&list);
    return kinds ? -1 : 0;
}

static int map_nodes(struct onnx *x)
{
    for (int i = 0; i < x->nnodes; i++) {
        struct onnx_node *n = &x->node[i];
        if (n->needed && !n->map)
            n->map = n->kind->map;
    }
    if (refuse_unmapped(x))
        return -1;
    for (int i = 0; i < x->nnodes; i++)
        if (is_mapped(x, &x->node[i]) && x->node[i].map(x, &x->node[i]))
            return -1;
    return 0;
}

/* Features of the prediction: those of a position, or of a pixel where there is an
 * image. */
static int put_loss(struct onnx *x)
{
    const struct onnx_value *y = &x->value[x->output];
    struct onnx_node as = {.nout = 1, .out = &x->output};
    struct onnx_view v = y->view;
    Onnx__NodeProto none = ONNX__NODE_PROTO__INIT;
    none.op_type = (char *)"loss";
    as.proto = &none;
    if (v.tensor < 0)
        return topt_fail(x->err, TOPT_ERR_INVAL,
                         "the output '%.60s' does not depend on "
                         "samples",
                         y->name);
    if (x->classes >= 0 && y->shape.ndim > 2 &&
        topt_onnx_features(x, &as, y, x->classes, &v))
        return -1;
    const struct topt_tensor *t = &x->model->tensor[v.tensor];
    if (t->ndim == 4) {
        int pixels = t->dim[2].count * t->dim[3].count > 1;
        v.tensor = topt_onnx_emit(x, &as, pixels ? "tokens" : "flatten", ".pixels",
                                  v.tensor, -1, NULL);
        t = v.tensor < 0 ? NULL : &x->model->tensor[v.tensor];
    }
    if (!t)
        return -1;
    int64_t features = t->dim[2].count * t->dim[2].unit;
    const char *kind = x->loss ? x->loss : features > 1 ? "cross_entropy" : "mse";
    v.tensor = topt_onnx_regroup(x, &as, v.tensor, features, 1);
    return v.tensor < 0 || topt_onnx_emit(x, &as, kind, ".loss", v.tensor, -1, NULL) < 0
               ? -1
               : 0;
}

/* Extents that the file says of its output must be those that were inferred. */
static int check_output(const struct onnx *x)
{
    const Onnx__ValueInfoProto *info = x->graph->output[0];
    const struct onnx_value *y = &x->value[x->output];
    const Onnx__TypeProto__Tensor *t =
        info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
            ? info->type->tensor_type
            : NULL;
    if (!t || !t->shape || x->classes >= 0)
        return 0;
    if ((int)t->shape->n_dim != y->shape.ndim)
        return topt_fail(x->err, TOPT_ERR_INVAL,
                         "its output '%.60s' comes to %d dimensions, the file says %zu",
                         y->name, y->shape.ndim, t->shape->n_dim);
    for (int d = 0; d < y->shape.ndim; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = t->shape->dim[d];
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            dim->dim_value > 0 && dim->dim_value != y->shape.dim[d])
            return topt_fail(
                x->err, TOPT_ERR_INVAL,
                "dimension %d of its output '%.60s' comes to %lld, the file says %lld", d,
                y->name, (long long)y->shape.dim[d], (long long)dim->dim_value);
    }
    return 0;
}

/* Outputs after the first, with the weights that only they read. */
static void note_outputs(struct onnx *x)
{
    char names[200] = "";
    size_t n = 0, outputs = x->graph->n_output;
    int64_t weights = 0;
    enum { SHOWN = 4 };
    for (size_t i = 1; i < outputs && i <= SHOWN; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%.30s", i > 1 ? ", " : "",
                              x->graph->output[i]->name ? x->graph->output[i]->name : "");
    for (int i = 0; i < x->nvalues; i++) {
        const struct onnx_value *v = &x->value[i];
        if (v->constant && v->node < 0 && !v->integer && !v->uses)
            weights += topt_onnx_elements(&v->shape);
    }
    if (outputs > 1)
        topt_onnx_note(x,
                       "left out: %zu output%s after the first (%s%s), with %lld "
                       "weights that only those read",
                       outputs - 1, outputs > 2 ? "s" : "", names,
                       outputs > SHOWN + 1 ? "..." : "", (long long)weights);
}

/* What is not as in the file; without parameters there is nothing to train. */
static int tell(struct onnx *x, const struct topt_import_options *o)
{
    struct topt_model_stats stats;
    topt_model_stats(x->model, &stats);
    for (char *c = x->note; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    if (x->note[0] && topt_model_note(x->model, x->note, x->err))
        return -1;
    return stats.parameters || (o && o->untrained)
               ? 0
               : topt_fail(x->err, TOPT_ERR_INVAL,
                           "it has no weights, so that there is nothing to train");
}

static int build(struct onnx *x, const Onnx__ModelProto *proto, const char *name,
                 const struct topt_import_options *o)
{
    if (topt_onnx_read(x, proto, o))
        return -1;
    topt_onnx_mark_weights(x);
    if (topt_onnx_infer(x) || check_output(x))
        return -1;
    topt_onnx_fuse(x);
    topt_onnx_find_tie(x);
    note_outputs(x);
    return start_model(x, name, o) || map_nodes(x) || put_loss(x) || tell(x, o) ||
                   topt_model_finish(x->model, x->err)
               ? -1
               : 0;
}

/* Names in a file may hold anything; a message is one line. */
static void make_one_line(struct topt_error *err)
{
    for (char *c = err ? err->text : NULL; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
}

struct topt_model *topt_onnx_build(const char *bytes, size_t len, const char *name,
                                   const struct topt_import_options *o,
                                   struct topt_error *err)
{
    if (topt_onnx_check_bytes((const uint8_t *)bytes, len, err))
        return NULL;
    struct onnx x = {.err = err, .arena = topt_arena_create(0), .table_tensor = -1};
    Onnx__ModelProto *proto =
        onnx__model_proto__unpack(NULL, len, (const uint8_t *)bytes);
    int rc = !proto || !x.arena ? topt_fail(err, TOPT_ERR_INVAL,
                                            "it is no ONNX file, or memory is short")
                                : build(&x, proto, name, o);
    rc = rc ? rc : topt_model_fuse(&x.model, err);
    onnx__model_proto__free_unpacked(proto, NULL);
    topt_arena_destroy(x.arena);
    if (rc) {
        make_one_line(err);
        topt_model_destroy(x.model);
        return NULL;
    }
    return x.model;
}
