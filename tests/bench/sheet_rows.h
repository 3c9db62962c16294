/* sheet_rows.h - runs of public models whose outcome is documented: they fit the memory of their
 * GPUs, or ran out of it.  See sheet_rows.c. */
#ifndef TOPT_SHEET_ROWS_H
#define TOPT_SHEET_ROWS_H

#include <stdint.h>

#include "topt_lower.h"

struct sheet_model {
    const char *name;
    const char *config; /* config.json of public figures */
    int64_t parameters; /* as published, 0: nothing is said; checked */
};

enum sheet_outcome { SHEET_FITS, SHEET_OOM };

/* Numbers as the frameworks have them. */
enum sheet_precision {
    SHEET_F32,
    SHEET_MIXED, /* weights, gradients and moments in f32, computing in 16 bits: FSDP, ZeRO */
    SHEET_AUTOCAST, /* the same in one piece: autocast keeps 16-bit copies of the weights */
    SHEET_MAIN_F32, /* 16-bit weights, gradients added up in f32, f32 master: Megatron */
    SHEET_PURE_BF16 /* weights, gradients and moments of 16 bits */
};

/* What backward makes again. */
enum sheet_again {
    SHEET_NOTHING,
    SHEET_BLOCKS,   /* every block, from its input */
    SHEET_PRODUCTS, /* all but every second matrix product, and attention */
    SHEET_HALF,     /* every second block */
    SHEET_SCORES    /* attention alone */
};

/* What a published figure of memory is. */
enum sheet_seen {
    SHEET_NO_FIGURE,
    SHEET_RESERVED,  /* most that the allocator held */
    SHEET_ACTIVE,    /* most that tensors held */
    SHEET_SMI,       /* what the driver showed, or was said to be needed */
    SHEET_AT_FAILURE /* what tensors held when one more did not fit */
};

struct sheet_row {
    const struct sheet_model *model;
    const char *gpu; /* as the source names it */
    const char *hw;  /* the shipped profile that is nearest */
    double gpu_gib;  /* what the driver shows of the device; 0: as in the profile */
    int gpus, per_node, tensor;
    int whole_norms; /* tensor parallelism without sequence parallelism, where the framework has both */
    int shards; /* GPUs that share one copy of the states; 0: all that are not tensor's */
    const char *framework;
    enum topt_zero zero;
    int micro, accumulation, seq;
    enum sheet_again again;
    enum sheet_precision precision;
    int eager; /* bits of enum topt_eager_part */
    enum sheet_outcome outcome;
    double gib; /* memory of a GPU */
    enum sheet_seen seen;
    const char *technique; /* what it does that a plan does not say; NULL: nothing */
    const char *open;      /* what decides and the source does not say; NULL: nothing */
    const char *source;
    int ask; /* the fewest GPUs are asked for, as this run was */
};

extern const struct sheet_row sheet_rows[];
extern const int sheet_nrows;

/* Peaks of FSDP2 as PyTorch's own memory tracker has them, and of which versions, when. */
extern const struct sheet_row sheet_tracked[];
extern const int sheet_ntracked;
extern const char sheet_tracker[];

/* Documented runs that have pipelines or what else no plan says, left out by name. */
struct sheet_left_out {
    const char *what, *why, *source;
};
extern const struct sheet_left_out sheet_left_out[];
extern const int sheet_nleft_out;

#endif
