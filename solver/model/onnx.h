/* onnx.h - what the files of the ONNX importer share.  Private to model/.
 *
 * In passes: onnx_read.c checks and unpacks the bytes and names values; onnx_shape*.c infer the
 * shape of every value that the output needs, and onnx_const.c folds constants; onnx_fuse.c
 * finds groups of nodes that are one operator here; onnx_map*.c make operators.  What is done
 * with a type of node is a row of onnx_table.c.  Views (onnx_view.c) keep account of reshapes
 * and transposes, so that these need operators only where an order of numbers in memory
 * changes. */
#ifndef TOPT_ONNX_H
#define TOPT_ONNX_H

#include "onnx.pb-c.h"
#include "topt_model.h"
#include "topt_text.h"

enum {
    ONNX_MAX_BYTES = 512 << 20,
    ONNX_MAX_NODES = 1 << 17,
    ONNX_MAX_RANK = 8,
    ONNX_MAX_ATOMS = 12,
    ONNX_MAX_HELD = 1 << 16, /* elements of a constant whose numbers are kept */
    ONNX_MIN_OPSET = 1,
    ONNX_MAX_OPSET = 19,
};

struct onnx_shape {
    int ndim;
    int64_t dim[ONNX_MAX_RANK];
};

/* A factor of a tensor dimension: 'axis' is the dimension of the operator table's tensor, in
 * which atoms are numbered from the outermost by 'rank'; 'dim' that of the ONNX value. */
struct onnx_atom {
    int64_t extent;
    int8_t axis, dim;
    int16_t rank;
};

/* How the numbers of a value lie in a tensor: atoms in the order of the value's dimensions. */
struct onnx_view {
    int tensor; /* -1: none */
    int natoms;
    struct onnx_atom atom[ONNX_MAX_ATOMS];
};

struct onnx_value {
    const char *name;
    int node; /* that makes it, or -1 */
    int uses; /* by nodes that are needed */
    int known, constant, integer;
    int input; /* of the graph, without numbers */
    /* Read by a node as an image, as steps before samples. */
    int as_image, as_steps;
    /* Weights that the operator has already: a gain (1) and a shift (2) that follow are its. */
    int own_weights;
    struct onnx_shape shape;
    double *held; /* numbers of a small constant, or NULL */
    struct onnx_view view;
};

struct onnx;
struct onnx_node;

/* A step of the import for one node, see struct onnx_kind; -1 with an error. */
typedef int topt_onnx_step(struct onnx *x, const struct onnx_node *n);
typedef double *topt_onnx_folder(struct onnx *x, const struct onnx_node *n,
                                 const struct onnx_value *y);

struct onnx_node {
    const Onnx__NodeProto *proto;
    const char *type; /* with its domain in front where that is not ONNX's own */
    const struct onnx_kind *kind;
    topt_onnx_step *map;
    int nin, nout;
    int *in, *out; /* values, -1 where left out */
    int needed;
    int fused; /* made by another node's operator */
    /* What fusing found, for 'map': values, numbers. */
    int base[3], flag;
    double number;
};

struct onnx {
    const Onnx__GraphProto *graph;
    int64_t opset;
    int64_t batch; /* samples in the file's shapes; the model may have others */
    int nnodes, nvalues;
    struct onnx_node *node;
    struct onnx_value *value;
    int *slot, nslots; /* hash of names */
    int clashes;       /* operators whose first names were taken */
    int output;        /* value that the loss is put on */
    int classes;       /* dimension that has them where the file has the loss, else -1 */
    const char *loss;  /* asked for, or the file's own */
    struct topt_arena *arena;
    struct topt_model *model;
    struct topt_error *err;
};

/* An operator type of ONNX, a row of onnx_table.c. */
struct onnx_kind {
    const char *name;
    topt_onnx_step *infer;  /* fills the shapes of the outputs */
    topt_onnx_folder *fold; /* numbers of the first, where all inputs are held */
    topt_onnx_step *map;    /* makes operators where the output depends on samples */
    const char *why;        /* what to say where it has no 'infer', or no 'map' */
    uint32_t weights;       /* bit i: input i is a weight */
    uint32_t ignored;       /* ... is not looked at */
    uint8_t branches;       /* it holds two graphs, of which one is taken */
    uint8_t of_shape;       /* the output follows from the input's shape alone */
    uint8_t image;          /* input 0 is an image or a signal */
    uint8_t steps;          /* input 0 has steps before samples, unless "layout" is 1 */
};
const struct onnx_kind *topt_onnx_kind(const char *name);

/* What a window does along rows [0] and columns [1]; a signal is one row. */
struct onnx_window {
    int64_t kernel[2], stride[2], dilation[2], before[2], after[2];
    int ceil;
};

/* Output 'i' of a node; NULL where it is left out. */
static inline struct onnx_value *onnx_out(const struct onnx *x, const struct onnx_node *n,
                                          int i)
{
    return i < n->nout && n->out[i] >= 0 ? &x->value[n->out[i]] : NULL;
}

/* Reading. */
int topt_onnx_read(struct onnx *x, const Onnx__ModelProto *proto,
                   const struct topt_import_options *o);
int topt_onnx_check_bytes(const uint8_t *bytes, size_t len, struct topt_error *err);

/* "Conv: 3 (why)" at the end of a list of types that has 'before' already. */
void topt_onnx_list_type(struct topt_text *list, int before, const struct onnx_kind *kind,
                         const char *type, int count);

/* Attributes, or what stands for them. */
const Onnx__AttributeProto *topt_onnx_attr(const struct onnx_node *n, const char *name);
int64_t topt_onnx_int(const struct onnx_node *n, const char *name, int64_t otherwise);
double topt_onnx_real(const struct onnx_node *n, const char *name, double otherwise);
/* Up to 'max' whole numbers; how many there are, -1 where the attribute is missing. */
int topt_onnx_ints(const struct onnx_node *n, const char *name, int64_t *ret, int max);

/* Values.  'in' gives NULL for an input that is left out. */
struct onnx_value *topt_onnx_in(const struct onnx *x, const struct onnx_node *n, int i);
int64_t topt_onnx_elements(const struct onnx_shape *s);
int topt_onnx_fail(const struct onnx *x, const struct onnx_node *n, const char *fmt, ...)
    TOPT_PRINTF(3, 4);

/* First places and steps of a Slice in every dimension of its input, the permutation of a
 * Transpose; of nodes whose shapes were inferred. */
void topt_onnx_slices(const struct onnx *x, const struct onnx_node *n, int64_t *start,
                      int64_t *step);
void topt_onnx_perm(const struct onnx *x, const struct onnx_node *n, int64_t *ret);
/* Dimensions that a reduction is over, as bits; -1 where they are not constant. */
int topt_onnx_reduced(const struct onnx *x, const struct onnx_node *n);
/* The window of a convolution or pool; -1 with an error. */
int topt_onnx_window(const struct onnx *x, const struct onnx_node *n,
                     struct onnx_window *ret);
/* The same of a transposed convolution, whose output's shape is inferred. */
int topt_onnx_spread(const struct onnx *x, const struct onnx_node *n,
                     struct onnx_window *ret);
/* Padding before and then after each dimension of the input; -1 with an error. */
int topt_onnx_pads(const struct onnx *x, const struct onnx_node *n, int64_t *ret);
/* By how much each dimension of the input is made larger; -1 with an error. */
int topt_onnx_scales(const struct onnx *x, const struct onnx_node *n, double *ret);
/* "axis" of a node on a value of so many dimensions, counted from 0. */
int topt_onnx_axis(const struct onnx_node *n, int ndim, int64_t otherwise);
/* Whole numbers given as an attribute, or as input 'i' since some operator set; how many, -1
 * where there are none, -2 where they are not constant. */
int topt_onnx_list(const struct onnx *x, const struct onnx_node *n, const char *name,
                   int i, int64_t *ret);

/* Put the nodes of a branch of node 'i' behind it, in its place. */
int topt_onnx_take_branch(struct onnx *x, int i, int condition);
/* Inputs that are used as weights alone are weights. */
void topt_onnx_mark_weights(struct onnx *x);

/* Shapes and constants of all needed nodes. */
int topt_onnx_infer(struct onnx *x);
/* Compute the output of a node whose inputs are held; nothing where they are not. */
int topt_onnx_fold(struct onnx *x, const struct onnx_node *n);
/* The numbers of an initializer or attribute as doubles; NULL where they are not in the file
 * or too many. */
double *topt_onnx_numbers(struct onnx *x, const Onnx__TensorProto *t);

/* Views. */
void topt_onnx_view_fresh(struct onnx_value *v, int tensor, const int8_t *axis_of_dim);
int topt_onnx_view_reshape(const struct onnx_view *from, const struct onnx_shape *to,
                           struct onnx_view *ret);
void topt_onnx_view_transpose(const struct onnx_view *from, const int64_t *perm, int ndim,
                              struct onnx_view *ret);
/* Do two values lie the same in tensors of the same axes? */
int topt_onnx_view_same(const struct onnx_view *a, const struct onnx_view *b);

#endif
