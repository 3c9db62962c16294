/* onnx_graph.h - an ONNX graph while it is imported: its nodes, its values, and how
 * these lie in tensors.  Private to model/.
 *
 * In passes: onnx_read.c checks and unpacks the bytes and names values; onnx_shape*.c
 * infer the shape of every value that the output needs, and onnx_const.c folds
 * constants; onnx_fuse.c finds groups of nodes that are one operator here; onnx_map*.c
 * make operators.  What is done with a type of node is a row of onnx_table.c.  Views
 * (onnx_view.c) keep account of reshapes and transposes, so that these need operators
 * only where an order of numbers in memory changes. */
#ifndef TOPT_ONNX_GRAPH_H
#define TOPT_ONNX_GRAPH_H

#include "onnx.pb-c.h"
#include "topt_model.h"
#include "topt_text.h"

enum {
    ONNX_MAX_BYTES = 512 << 20,
    ONNX_MAX_NODES = 1 << 17,
    ONNX_MAX_RANK = 8,
    ONNX_MAX_ATOMS = 12,
    ONNX_MAX_HELD = 1 << 16,       /* elements of a constant whose numbers are kept */
    ONNX_MAX_FOLDED = 1 << 21,     /* of one that is computed: masks of scores */
    ONNX_MAX_ALL_FOLDED = 1 << 25, /* of all those together */
    ONNX_MIN_OPSET = 1,
    ONNX_MAX_OPSET = 23,
};

struct onnx_shape {
    int ndim;
    int64_t dim[ONNX_MAX_RANK];
};

/* A factor of a tensor dimension: 'axis' is the dimension of the operator table's
 * tensor, in which atoms are numbered from the outermost by 'rank'; 'dim' that of the
 * ONNX value. */
struct onnx_atom {
    int64_t extent;
    int8_t axis, dim;
    int16_t rank;
};

/* How the numbers of a value lie in a tensor: atoms in the order of the value's
 * dimensions. */
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
    int channels_last; /* of an input that is turned to an image at once */
    /* Weights that the operator has already: a gain (1) and a shift (2) that follow
     * are its. */
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
    int64_t folded;    /* numbers of constants that were computed */
    int clashes;       /* operators whose first names were taken */
    /* A table of tokens (value), the node of the product that has it too, and the
     * tensor of both; -1: none. */
    int table, head, table_tensor;
    int output;       /* value that the loss is put on */
    int classes;      /* dimension that has them where the file has the loss, else -1 */
    const char *loss; /* asked for, or the file's own */
    char note[600];   /* what is not imported as it is: "; " between */
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

/* What a window does along rows [0] and columns [1]; a signal is one row. */
struct onnx_window {
    /* of rows and columns, a signal's alone of columns; of depth before these */
    int64_t kernel[3], stride[3], dilation[3], before[3], after[3];
    int ceil;
};

/* Output 'i' of a node; NULL where it is left out. */
static inline struct onnx_value *onnx_out(const struct onnx *x, const struct onnx_node *n,
                                          int i)
{
    return i < n->nout && n->out[i] >= 0 ? &x->value[n->out[i]] : NULL;
}
/* Attributes of operators are below it. */
#define ONNX_MAX_NUMBER 1e18

static inline const struct topt_tensor *tensor_of(const struct onnx *x,
                                                  const struct onnx_view *v)
{
    return &x->model->tensor[v->tensor];
}

#endif
