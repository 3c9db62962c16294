/* operands.h - which operand of a kernel's row is which, for all backends: the order of the
 * rows of solver/model/operators/ops_*.c, named; and what describes a
 * window.  Device code includes this, so it includes nothing of ours. */
#ifndef RUNTIME_OPERANDS_H
#define RUNTIME_OPERANDS_H

#include <stdint.h>

/* Several tensors joined; then the whole. */
enum { JOINED = 4 };
/* Experts. */
enum { EX, EUP, EDOWN, EY, EH, EA, EDA, EDH };
/* Norms of a row, of a channel or of a group of channels. */
enum { NORM_X, NORM_G, NORM_B, NORM_Y, NORM_MU, NORM_V, NORM_S1, NORM_S2 };
/* What is done to channels: gains, biases, slopes. */
enum { CH_X, CH_W, CH_Y };
/* Convolution, pooling, norm by neighbouring channels, other extents, transposed
 * convolution.  XW: the part of the input that windows see, neighbours' included. */
enum { CONV_X, CONV_W, CONV_Y, CONV_XW, CONV_XW_BWD, CONV_DXW, CONV_COL, CONV_COL_BWD };
enum { POOL_X, POOL_Y, POOL_WHICH, POOL_XW, POOL_DXW };
enum { LRN_X, LRN_Y, LRN_XW, LRN_XW_BWD, LRN_DXW };
enum { RESIZE_X, RESIZE_Y, RESIZE_XW, RESIZE_DXW };
enum { CT_X, CT_W, CT_Y, CT_XW, CT_XW_BWD, CT_DXW };

/* Attention.  KV is absent where queries, keys and values are in one tensor. */
enum {
    ATTENTION_Q,
    ATTENTION_KV,
    ATTENTION_KR,
    ATTENTION_RP,
    ATTENTION_Y,
    ATTENTION_LSE,
    ATTENTION_MOST,
    ATTENTION_WEIGHT,
    ATTENTION_SCORES,
    ATTENTION_P,
    ATTENTION_DP,
    ATTENTION_DELTA
};
/* Recurrences; GRU_*: a gated unit's further ones. */
enum {
    REC_PRE,
    REC_WH,
    REC_Y,
    REC_GATES,
    REC_STATE,
    REC_Z,
    REC_H,
    REC_HK,
    REC_DHK,
    REC_DH,
    REC_CARRY,
    REC_STATES,
    GRU_Q,
    GRU_BH
};

/* Recurrences that are computed by chunks: state space duality, the gated delta rule,
 * selective state spaces; a convolution along the sequence. */
enum {
    SSD_X,
    SSD_DT,
    SSD_BC,
    SSD_A_LOG,
    SSD_D,
    SSD_BIAS,
    SSD_Y,
    SSD_STATES,
    SSD_WORK,
    SSD_WORK_BACK,
    SSD_CARRY
};
enum {
    DELTA_V,
    DELTA_QK,
    DELTA_BETA,
    DELTA_GATE,
    DELTA_A_LOG,
    DELTA_BIAS,
    DELTA_Y,
    DELTA_STATES,
    DELTA_WORK,
    DELTA_WORK_BACK,
    DELTA_CARRY
};
enum {
    SELECTIVE_X,
    SELECTIVE_DT,
    SELECTIVE_B,
    SELECTIVE_C,
    SELECTIVE_A_LOG,
    SELECTIVE_D,
    SELECTIVE_Y,
    SELECTIVE_STATES,
    SELECTIVE_WORK_BACK,
    SELECTIVE_CARRY
};
enum { CAUSAL_X, CAUSAL_W, CAUSAL_BIAS, CAUSAL_Y };

/* Bags of tables' rows, BAG_TABLES a dimension; products of every two vectors. */
enum { BAG_IDS, BAG_W, BAG_Y, BAG_TABLES = 2 };
enum { INTERACT_TABLES = 3, INTERACT_X = 3, INTERACT_Y };

/* Local sizes of a recurrence by chunks: heads of p numbers, groups of keys of n, which
 * 'per_group' heads share. */
struct scan {
    int64_t batch, seq, heads, first_head, per_group;
    int64_t p, n, chunk, chunks;
    int64_t ld, ldg; /* from one position to the next: of heads, of groups */
    int carries;     /* as of the call */
};

/* Local sizes of a causal convolution, and weights that do not reach before the first
 * position. */
struct causal {
    int64_t batch, seq, d, kernel;
};

/* Where windows lie in this rank's part of an image: place (r, q) of the window of output
 * pixel (i, j) is row first_row + i stride_h + r dilation_h, columns likewise. */
struct windows {
    int64_t height, width; /* of the part of the input */
    int64_t rows, cols;    /* of the block of the output */
    int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int64_t first_row, first_col;
};

#endif
