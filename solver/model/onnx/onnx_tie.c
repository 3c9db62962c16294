/* onnx_tie.c - a table of tokens that is also the last product's.
 *
 * A file has the one table for both, by a Transpose or by Gemm's transB, or, where an
 * exporter turned it over beforehand, a second one with the same numbers: then some of
 * them are compared. */
#include "onnx_tie.h"
#include "onnx_node.h"

#include <string.h>

static const Onnx__TensorProto *initializer_of(const struct onnx *x, int value)
{
    for (size_t i = 0; i < x->graph->n_initializer; i++)
        if (!strcmp(x->graph->initializer[i]->name, x->value[value].name))
            return x->graph->initializer[i];
    return NULL;
}

/* Are numbers of 'b', [columns, rows], those of 'a', [rows, columns]?  Looked at are some
 * thousands, which must not all be the same. */
static int same_turned(const Onnx__TensorProto *a, const Onnx__TensorProto *b)
{
    enum { LOOKS = 4099, WIDTH = 4 };
    if (!a || !b || !a->has_raw_data || !b->has_raw_data || a->data_type != 1 ||
        b->data_type != 1)
        return 0;
    int64_t rows = a->dims[0], cols = a->dims[1], n = rows * cols;
    if (n < 2 || a->raw_data.len != (size_t)n * WIDTH ||
        b->raw_data.len != (size_t)n * WIDTH)
        return 0;
    int64_t stride = n / LOOKS + 1;
    int varied = 0;
    for (int64_t i = 0; i < n; i += stride) {
        int64_t at = i % cols * rows + i / cols;
        if (memcmp(a->raw_data.data + i * WIDTH, b->raw_data.data + at * WIDTH, WIDTH))
            return 0;
        varied |= memcmp(a->raw_data.data + i * WIDTH, a->raw_data.data, WIDTH) != 0;
    }
    return varied;
}

static int is_kind(const struct onnx_node *n, const char *name)
{
    return n->kind && !strcmp(n->kind->name, name);
}

/* Are the weights of a product the table, turned over? */
static int is_tied(const struct onnx *x, const struct onnx_node *n, int table)
{
    int w = n->nin > 1 ? n->in[1] : -1;
    const struct onnx_shape *t = &x->value[table].shape;
    if (w < 0 || !x->value[w].constant)
        return 0;
    if (is_kind(n, "Gemm") && topt_onnx_int(n, "transB", 0))
        return w == table;
    const struct onnx_shape *s = &x->value[w].shape;
    if (s->ndim != 2 || s->dim[0] != t->dim[1] || s->dim[1] != t->dim[0])
        return 0;
    const struct onnx_node *turn =
        x->value[w].node >= 0 ? &x->node[x->value[w].node] : NULL;
    if (turn)
        return is_kind(turn, "Transpose") && turn->in[0] == table;
    return same_turned(initializer_of(x, table), initializer_of(x, w));
}

void topt_onnx_find_tie(struct onnx *x)
{
    x->table = x->head = -1;
    for (int i = 0; i < x->nnodes && x->table < 0; i++) {
        const struct onnx_node *n = &x->node[i];
        const struct onnx_value *t = n->needed ? topt_onnx_in(x, n, 0) : NULL;
        const struct onnx_value *y = t ? onnx_out(x, n, 0) : NULL;
        if (t && y && is_kind(n, "Gather") && t->constant && !t->integer &&
            !y->constant && t->shape.ndim == 2 && t->node < 0)
            x->table = n->in[0];
    }
    for (int i = x->nnodes - 1; i >= 0 && x->table >= 0 && x->head < 0; i--)
        if (x->node[i].needed && !x->node[i].fused &&
            (is_kind(&x->node[i], "MatMul") || is_kind(&x->node[i], "Gemm")) &&
            is_tied(x, &x->node[i], x->table))
            x->head = i;
    x->table = x->head < 0 ? -1 : x->table;
}
