/* onnx_graph.h - small ONNX files for tests, written field by field in protobuf's wire format.
 *
 *     struct graph g = graph_begin(13);
 *     graph_input(&g, "x", 1, 2, (int64_t[]){4, 8});
 *     graph_weights(&g, "w", 2, (int64_t[]){8, 3});
 *     graph_node(&g, "MatMul", "x w", "y", "");
 *     graph_end(&g, "y");          g.file is the file
 */
#ifndef TOPT_ONNX_GRAPH_H
#define TOPT_ONNX_GRAPH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_model.h"
#include "topt_text.h"

/* Was the importer built in? */
static int reads_onnx(void)
{
    static const char file[] = {8, 8, 0};
    struct topt_error err = {0};
    return !topt_model_import(file, sizeof file, "x", NULL, &err) &&
           !strstr(err.text, "built without");
}

struct graph {
    struct topt_text nodes, rest, file;
    int opset;
};

static void pb_varint(struct topt_text *t, uint64_t v)
{
    char byte;
    for (; v >= 0x80; v >>= 7) {
        byte = (char)(v | 0x80);
        topt_text_put(t, &byte, 1);
    }
    byte = (char)v;
    topt_text_put(t, &byte, 1);
}

static void pb_int(struct topt_text *t, unsigned field, int64_t v)
{
    pb_varint(t, field << 3);
    pb_varint(t, (uint64_t)v);
}

static void pb_float(struct topt_text *t, unsigned field, float v)
{
    char bytes[4];
    memcpy(bytes, &v, 4);
    pb_varint(t, field << 3 | 5);
    topt_text_put(t, bytes, 4);
}

static void pb_bytes(struct topt_text *t, unsigned field, const void *bytes, size_t n)
{
    pb_varint(t, field << 3 | 2);
    pb_varint(t, n);
    topt_text_put(t, bytes, n);
}

/* A message that was written apart. */
static void pb_take(struct topt_text *t, unsigned field, struct topt_text *part)
{
    pb_bytes(t, field, part->s ? part->s : "", part->len);
    topt_text_fini(part);
    *part = (struct topt_text){0};
}

static struct graph graph_begin(int opset)
{
    return (struct graph){.opset = opset};
}

/* 'type' 1 is float, 7 int64; extents of 0 are left open. */
static void graph_input(struct graph *g, const char *name, int type, int ndim,
                        const int64_t *dim)
{
    struct topt_text shape = {0}, tensor = {0}, kind = {0}, info = {0};
    for (int d = 0; d < ndim; d++) {
        struct topt_text one = {0};
        if (dim[d])
            pb_int(&one, 1, dim[d]);
        else
            pb_bytes(&one, 2, "n", 1);
        pb_take(&shape, 1, &one);
    }
    pb_int(&tensor, 1, type);
    pb_take(&tensor, 2, &shape);
    pb_take(&kind, 1, &tensor);
    pb_bytes(&info, 1, name, strlen(name));
    pb_take(&info, 2, &kind);
    pb_take(&g->rest, 11, &info);
}

/* An initializer: floats (type 1) or whole numbers (7); 'x' NULL: no numbers in the file. */
static void graph_tensor(struct graph *g, const char *name, int type, int ndim,
                         const int64_t *dim, const double *x)
{
    struct topt_text t = {0};
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) {
        pb_int(&t, 1, dim[d]);
        n *= dim[d];
    }
    pb_int(&t, 2, type);
    pb_bytes(&t, 8, name, strlen(name));
    for (int64_t i = 0; x && i < n; i++)
        if (type == 1)
            pb_float(&t, 4, (float)x[i]);
        else
            pb_int(&t, 7, (int64_t)x[i]);
    if (!x)
        pb_int(&t, 14, 1); /* they are in another file */
    pb_take(&g->rest, 5, &t);
}

__attribute__((unused)) static void graph_weights(struct graph *g, const char *name,
                                                  int ndim, const int64_t *dim)
{
    graph_tensor(g, name, 1, ndim, dim, NULL);
}

__attribute__((unused)) static void graph_number(struct graph *g, const char *name,
                                                 double x)
{
    graph_tensor(g, name, 1, 0, NULL, &x);
}

/* Whole numbers of one dimension: shapes, axes. */
__attribute__((unused)) static void graph_list(struct graph *g, const char *name, int n,
                                               const int64_t *list)
{
    double x[8];
    int64_t count = n;
    for (int i = 0; i < n; i++)
        x[i] = (double)list[i];
    graph_tensor(g, name, 7, 1, &count, x);
}

/* "axis=1 pads=0,1,1,0": whole numbers, several with commas. */
static void put_attributes(struct topt_text *node, const char *attrs)
{
    char copy[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", attrs);
    for (char *a = strtok_r(copy, " ", &save); a; a = strtok_r(NULL, " ", &save)) {
        struct topt_text t = {0};
        char *value = strchr(a, '=');
        int list = strchr(value, ',') != NULL;
        pb_bytes(&t, 1, a, (size_t)(value - a));
        for (char *v = value; v && v[1]; v = strchr(v + 1, ','))
            pb_int(&t, list ? 8 : 3, strtoll(v + 1, NULL, 10));
        pb_int(&t, 20, list ? 7 : 2);
        pb_take(node, 5, &t);
    }
}

static void put_names(struct topt_text *node, unsigned field, const char *names)
{
    char copy[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *a = strtok_r(copy, " ", &save); a; a = strtok_r(NULL, " ", &save))
        pb_bytes(node, field, a, strcmp(a, "-") ? strlen(a) : 0);
}

/* Names are given with blanks between; - is one that is left out. */
static void graph_node(struct graph *g, const char *type, const char *inputs,
                       const char *outputs, const char *attrs)
{
    struct topt_text node = {0};
    put_names(&node, 1, inputs);
    put_names(&node, 2, outputs);
    pb_bytes(&node, 4, type, strlen(type));
    put_attributes(&node, attrs);
    pb_take(&g->nodes, 1, &node);
}

/* If 'condition': y is 'then' of x, else 'otherwise' of x (types of one input). */
__attribute__((unused)) static void graph_if(struct graph *g, const char *condition,
                                             const char *then, const char *otherwise,
                                             const char *x, const char *y)
{
    const char *const branch[] = {"then_branch", "else_branch"},
                      *const type[] = {then, otherwise}, *const inner[] = {"yes", "no"};
    struct topt_text node = {0};
    put_names(&node, 1, condition);
    put_names(&node, 2, y);
    pb_bytes(&node, 4, "If", 2);
    for (int i = 0; i < 2; i++) {
        struct topt_text attr = {0}, sub = {0}, one = {0}, info = {0};
        put_names(&one, 1, x);
        put_names(&one, 2, inner[i]);
        pb_bytes(&one, 4, type[i], strlen(type[i]));
        pb_take(&sub, 1, &one);
        pb_bytes(&info, 1, inner[i], strlen(inner[i]));
        pb_take(&sub, 12, &info);
        pb_bytes(&attr, 1, branch[i], strlen(branch[i]));
        pb_take(&attr, 6, &sub);
        pb_int(&attr, 20, 5);
        pb_take(&node, 5, &attr);
    }
    pb_take(&g->nodes, 1, &node);
}

static void graph_end(struct graph *g, const char *output)
{
    struct topt_text set = {0}, info = {0};
    pb_bytes(&info, 1, output, strlen(output));
    pb_take(&g->rest, 12, &info);
    topt_text_put(&g->nodes, g->rest.s, g->rest.len);
    topt_text_fini(&g->rest);
    pb_int(&g->file, 1, 8);
    pb_take(&g->file, 7, &g->nodes);
    pb_int(&set, 2, g->opset);
    pb_take(&g->file, 8, &set);
}

/* ---- whole models ---------------------------------------------------------------------- */

#define DIMS(...)                                                                        \
    (const int64_t[])                                                                    \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }

/* One block of a transformer as exporters write it: layer norm by its parts, attention by
 * heads under a causal mask, GELU by erf. */
__attribute__((unused)) static void graph_block(struct graph *g)
{
    double mask[36];
    for (int i = 0; i < 36; i++)
        mask[i] = i % 6 > i / 6 ? -1e9 : 0;
    *g = graph_begin(13);
    graph_input(g, "ids", 7, 2, DIMS(0, 6));
    graph_weights(g, "table", 2, DIMS(50, 16));
    graph_weights(g, "places", 2, DIMS(6, 16));
    graph_number(g, "two", 2);
    graph_number(g, "eps", 1e-5);
    graph_number(g, "one", 1);
    graph_number(g, "half", 0.5);
    graph_number(g, "root2", 1.41421356);
    graph_number(g, "width", 2);
    graph_weights(g, "gain", 1, DIMS(16));
    graph_weights(g, "shift", 1, DIMS(16));
    graph_tensor(g, "mask", 1, 4, DIMS(1, 1, 6, 6), mask);
    graph_list(g, "heads", 4, DIMS(0, 6, 4, 4));
    graph_list(g, "flat", 3, DIMS(0, 6, 16));
    for (int i = 0; i < 4; i++)
        graph_weights(g, (const char *[]){"wq", "wk", "wv", "wo"}[i], 2, DIMS(16, 16));
    graph_weights(g, "bq", 1, DIMS(16));
    graph_weights(g, "up", 2, DIMS(16, 64));
    graph_weights(g, "down", 2, DIMS(64, 16));
    graph_weights(g, "head", 2, DIMS(16, 50));
    graph_node(g, "Gather", "table ids", "e", "");
    graph_node(g, "Add", "e places", "x", "");
    graph_node(g, "ReduceMean", "x", "mean", "axes=-1,");
    graph_node(g, "Sub", "x mean", "c", "");
    graph_node(g, "Pow", "c two", "c2", "");
    graph_node(g, "ReduceMean", "c2", "var", "axes=-1,");
    graph_node(g, "Add", "var eps", "ve", "");
    graph_node(g, "Sqrt", "ve", "sd", "");
    graph_node(g, "Div", "c sd", "n0", "");
    graph_node(g, "Mul", "n0 gain", "n1", "");
    graph_node(g, "Add", "n1 shift", "n", "");
    graph_node(g, "MatMul", "n wq", "q0", "");
    graph_node(g, "Add", "q0 bq", "q1", "");
    graph_node(g, "Reshape", "q1 heads", "q2", "");
    graph_node(g, "Transpose", "q2", "q", "perm=0,2,1,3");
    graph_node(g, "MatMul", "n wk", "k0", "");
    graph_node(g, "Reshape", "k0 heads", "k1", "");
    graph_node(g, "Transpose", "k1", "k", "perm=0,2,3,1");
    graph_node(g, "MatMul", "n wv", "v0", "");
    graph_node(g, "Reshape", "v0 heads", "v1", "");
    graph_node(g, "Transpose", "v1", "v", "perm=0,2,1,3");
    graph_node(g, "MatMul", "q k", "s0", "");
    graph_node(g, "Div", "s0 width", "s1", "");
    graph_node(g, "Add", "s1 mask", "s2", "");
    graph_node(g, "Softmax", "s2", "p", "axis=-1");
    graph_node(g, "MatMul", "p v", "a0", "");
    graph_node(g, "Transpose", "a0", "a1", "perm=0,2,1,3");
    graph_node(g, "Reshape", "a1 flat", "a2", "");
    graph_node(g, "MatMul", "a2 wo", "a3", "");
    graph_node(g, "Add", "x a3", "r", "");
    graph_node(g, "MatMul", "r up", "u", "");
    graph_node(g, "Div", "u root2", "g0", "");
    graph_node(g, "Erf", "g0", "g1", "");
    graph_node(g, "Add", "g1 one", "g2", "");
    graph_node(g, "Mul", "u g2", "g3", "");
    graph_node(g, "Mul", "g3 half", "g4", "");
    graph_node(g, "MatMul", "g4 down", "d", "");
    graph_node(g, "Add", "r d", "r2", "");
    graph_node(g, "MatMul", "r2 head", "logits", "");
    graph_end(g, "logits");
}

/* Convolutions, grouped too, channels weighed, a residual, pools, a flattened image, softmax. */
__attribute__((unused)) static void graph_images(struct graph *g)
{
    *g = graph_begin(11);
    graph_input(g, "image", 1, 4, DIMS(1, 3, 12, 12));
    graph_weights(g, "w1", 4, DIMS(8, 3, 3, 3));
    graph_weights(g, "b1", 1, DIMS(8));
    graph_weights(g, "w2", 4, DIMS(8, 2, 3, 3));
    graph_weights(g, "bn", 1, DIMS(8));
    graph_weights(g, "w4", 4, DIMS(8, 8, 1, 1));
    graph_weights(g, "w3", 2, DIMS(10, 288));
    graph_weights(g, "b3", 1, DIMS(10));
    graph_node(g, "Conv", "image w1 b1", "c1", "pads=1,1,1,1");
    graph_node(g, "Relu", "c1", "r1", "");
    graph_node(g, "Conv", "r1 w2", "c2", "pads=1,1,1,1 group=4");
    graph_node(g, "BatchNormalization", "c2 bn bn bn bn", "n2", "");
    graph_node(g, "GlobalAveragePool", "n2", "e1", "");
    graph_node(g, "Conv", "e1 w4", "e2", "");
    graph_node(g, "Sigmoid", "e2", "e3", "");
    graph_node(g, "Mul", "n2 e3", "n3", "");
    graph_node(g, "Add", "r1 n3", "s", "");
    graph_node(g, "MaxPool", "s", "p", "kernel_shape=2,2 strides=2,2");
    graph_node(g, "Flatten", "p", "f", "axis=1");
    graph_node(g, "Gemm", "f w3 b3", "y", "transB=1");
    graph_node(g, "Softmax", "y", "prob", "axis=1");
    graph_end(g, "prob");
}

/* A classifier of small images with functions and norms of other kinds, channels shuffled and
 * cut, and made larger again. */
__attribute__((unused)) static void graph_digits(struct graph *g)
{
    const double scales[] = {1, 1, 2, 2};
    *g = graph_begin(14);
    graph_input(g, "image", 1, 4, DIMS(0, 1, 8, 8));
    graph_weights(g, "w1", 4, DIMS(8, 1, 3, 3));
    graph_weights(g, "b1", 1, DIMS(8));
    graph_weights(g, "w2", 4, DIMS(8, 4, 3, 3));
    graph_weights(g, "w3", 4, DIMS(4, 6, 2, 2));
    graph_weights(g, "slope", 3, DIMS(6, 1, 1));
    graph_weights(g, "g", 1, DIMS(8));
    graph_weights(g, "w4", 2, DIMS(96, 10));
    graph_weights(g, "b4", 1, DIMS(10));
    graph_list(g, "groups", 5, DIMS(0, 2, 4, 8, 8));
    graph_list(g, "image8", 4, DIMS(0, 8, 8, 8));
    graph_list(g, "halves", 2, DIMS(4, 4));
    graph_tensor(g, "scales", 1, 1, DIMS(4), scales);
    graph_number(g, "low", 0);
    graph_number(g, "high", 6);
    graph_node(g, "Conv", "image w1 b1", "c1", "pads=1,1,1,1");
    graph_node(g, "HardSwish", "c1", "h1", "");
    graph_node(g, "Reshape", "h1 groups", "s1", "");
    graph_node(g, "Transpose", "s1", "s2", "perm=0,2,1,3,4");
    graph_node(g, "Reshape", "s2 image8", "s3", "");
    graph_node(g, "Conv", "s3 w2", "c2", "pads=1,1,1,1 group=2");
    graph_node(g, "InstanceNormalization", "c2 g g", "n2", "");
    graph_node(g, "Clip", "n2 low high", "r2", "");
    graph_node(g, "Split", "r2 halves", "left right", "axis=1");
    graph_node(g, "Sigmoid", "right", "gate", "");
    graph_node(g, "Mul", "left gate", "m", "");
    graph_node(g, "MaxPool", "m", "p", "kernel_shape=2,2 strides=2,2");
    graph_node(g, "ConvTranspose", "p w3", "t", "strides=2,2");
    graph_node(g, "PRelu", "t slope", "t2", "");
    graph_node(g, "AveragePool", "t2", "p2", "kernel_shape=4,4 strides=4,4");
    graph_node(g, "Resize", "p2 - scales", "z", "");
    graph_node(g, "Flatten", "z", "f", "axis=1");
    graph_node(g, "MatMul", "f w4", "y0", "");
    graph_node(g, "Add", "y0 b4", "y", "");
    graph_end(g, "y");
}

/* A recurrence of which the last step goes on, steps before samples. */
__attribute__((unused)) static void graph_steps(struct graph *g)
{
    *g = graph_begin(14);
    graph_input(g, "x", 1, 3, DIMS(5, 2, 4));
    graph_weights(g, "w", 3, DIMS(1, 24, 4));
    graph_weights(g, "r", 3, DIMS(1, 24, 6));
    graph_weights(g, "b", 2, DIMS(1, 48));
    graph_list(g, "axis", 1, DIMS(0));
    graph_weights(g, "out", 2, DIMS(6, 3));
    graph_node(g, "LSTM", "x w r b", "- last", "hidden_size=6");
    graph_node(g, "Squeeze", "last axis", "h", "");
    graph_node(g, "MatMul", "h out", "y", "");
    graph_end(g, "y");
}

#endif
