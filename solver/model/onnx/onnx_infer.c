/* onnx_infer.c - shapes and constants of all nodes that the output needs, from the
 * first to the last.
 *
 * Constants are folded on the way, since shapes are computed from them, and so is the
 * choice between two branches. */
#include "onnx_infer.h"
#include "onnx_const.h"
#include "onnx_node.h"
#include "onnx_read.h"

static int infer_node(struct onnx *x, const struct onnx_node *n)
{
    int constant = 1;
    for (int i = 0; i < n->nin; i++) {
        const struct onnx_value *a = topt_onnx_in(x, n, i);
        if (i < 32 && n->kind->ignored >> i & 1)
            continue;
        if (a && !a->known)
            return topt_onnx_fail(x, n, "the shape of '%.60s' is not known%s", a->name,
                                  a->input ? "; --seq fills what an input leaves open"
                                           : "");
        constant &= !a || a->constant;
    }
    if (n->kind->infer(x, n))
        return -1;
    for (int i = 0; i < n->nout; i++)
        if (onnx_out(x, n, i))
            onnx_out(x, n, i)->constant = constant || n->kind->of_shape;
    return topt_onnx_fold(x, n);
}

int topt_onnx_infer(struct onnx *x)
{
    for (int i = 0; i < x->nnodes; i++) {
        const struct onnx_node *n = &x->node[i];
        const struct onnx_value *c = n->needed ? topt_onnx_in(x, n, 0) : NULL;
        if (c && n->kind->branches && c->held && topt_onnx_elements(&c->shape) == 1 &&
            topt_onnx_take_branch(x, i, c->held[0] < 0 || c->held[0] > 0))
            return -1;
        if (x->node[i].needed && infer_node(x, &x->node[i]))
            return -1;
    }
    return 0;
}
