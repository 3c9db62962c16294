/* validation_rows.h - published runs as data: what docs/VALIDATION.md holds predictions
 * against.  A row is told as its source tells it; see validation_rows.c. */
#ifndef TOPT_VALIDATION_ROWS_H
#define TOPT_VALIDATION_ROWS_H

#include <stdint.h>

#include "topt_lower.h"

enum shape { GPT, LLAMA, BERT };

struct sizes {
    const char *name;
    enum shape shape;
    int width, layers, heads, kv_heads, inner, vocab;
    int64_t parameters; /* as published, 0: nothing is; checked */
    int dropout;        /* hidden activations are dropped */
};

/* What backward makes again. */
enum again {
    AGAIN_NOTHING,
    AGAIN_WHOLE,     /* every operator of every block, asked for or not */
    AGAIN_ASKED,     /* those of every block that backward asks for */
    AGAIN_SECOND,    /* the same, of every second block */
    AGAIN_PRODUCTS,  /* all but every second matrix product, and attention */
    AGAIN_ATTENTION, /* attention alone */
    AGAIN_COUNT
};

struct run {
    const struct group *group;
    const struct sizes *model;
    const char *hw;
    int gpus, per_node, tensor; /* the rest of the devices splits the batch */
    int positions; /* norms and dropout are split by positions over the tensor axes */
    enum topt_zero zero;
    enum again again;
    int seq, batch, micro_batches;
    enum topt_dtype dtype;
    enum topt_optimizer optimizer;
    enum topt_overlap overlap;
    int eager;
    const char *
        framework; /* whose row says what memory it takes; NULL: memory was not published */
    int staying;   /* by PyTorch 1, whose gradients are there all the time */
    /* Measured: one of seconds a step, tokens a second and GPU, TFLOP/s a GPU. */
    double seconds, tokens, tflops;
    double mib;      /* memory of a GPU; 0: not published */
    const char *job; /* rows of one job are plans for it; NULL: the only one */
};

/* Rows of one source. */
struct group {
    const char *name, *source;
    double beside_mib; /* of the published memory what is no tensor, as published too */
    const char *residual; /* what explains its errors */
    const struct run *run;
    int n;
};

extern const struct group validation_groups[];
extern const int validation_ngroups;

#endif
