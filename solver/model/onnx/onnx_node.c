/* onnx_node.c - attributes and inputs of a node, and how an error names it. */
#include "onnx_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const Onnx__AttributeProto *topt_onnx_attr(const struct onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++)
        if (n->proto->attribute[i]->name && !strcmp(n->proto->attribute[i]->name, name))
            return n->proto->attribute[i];
    return NULL;
}

int64_t topt_onnx_int(const struct onnx_node *n, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = topt_onnx_attr(n, name);
    return a && a->has_i ? a->i : otherwise;
}

double topt_onnx_real(const struct onnx_node *n, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = topt_onnx_attr(n, name);
    return a && a->has_f ? (double)a->f : otherwise;
}

int topt_onnx_ints(const struct onnx_node *n, const char *name, int64_t *ret, int max)
{
    const Onnx__AttributeProto *a = topt_onnx_attr(n, name);
    for (size_t i = 0; a && i < a->n_ints && i < (size_t)max; i++)
        ret[i] = a->ints[i];
    return a ? (int)(a->n_ints < (size_t)max ? a->n_ints : (size_t)max) : -1;
}

/* ---- values ------------------------------------------------------------------------ */

struct onnx_value *topt_onnx_in(const struct onnx *x, const struct onnx_node *n, int i)
{
    return i < n->nin && n->in[i] >= 0 ? &x->value[n->in[i]] : NULL;
}

int64_t topt_onnx_elements(const struct onnx_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->ndim; i++)
        n *= s->dim[i];
    return n;
}

int topt_onnx_fail(const struct onnx *x, const struct onnx_node *n, const char *fmt, ...)
{
    char text[160];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *name = n->nout && n->out[0] >= 0 ? x->value[n->out[0]].name : "?";
    return topt_fail(x->err, TOPT_ERR_INVAL, "%.40s (makes '%.60s'): %s",
                     n->proto->op_type, name, text);
}

void topt_onnx_note(struct onnx *x, const char *fmt, ...)
{
    char text[300];
    size_t n = strlen(x->note);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!strstr(x->note, text) && n + strlen(text) + 3 < sizeof x->note)
        snprintf(x->note + n, sizeof x->note - n, "%s%s", n ? "; " : "", text);
}
