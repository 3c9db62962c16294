/* hf_tower.h - what a config says of a vision tower.  Private to model/. */
#ifndef TOPT_HF_TOWER_H
#define TOPT_HF_TOWER_H

#include "hf_arch.h"

/* Blocks over patches of an image, and what makes tokens of the text's width of them. */
struct hf_tower {
    struct hf_arch a;            /* of the blocks */
    int64_t patch, side, frames; /* pixels, patches of a side, images at once */
    int64_t rows;                /* of learned positions; 0: none */
    int patch_bias, class_token, norm_before, norm_after;
    int64_t beside;         /* parameters of each feature that nothing here reads */
    int64_t unread;         /* more of them, of the whole */
    int64_t merge;          /* patches of a side that become a token */
    int pooled;             /* by their mean, else by a convolution */
    int64_t merge_features; /* of that convolution */
    int merge_bias, merge_activated;
    int joint_norm, joint_rms; /* before the projection */
    int64_t joint_beside;
    int64_t hidden, out; /* of its linear maps; 0: one alone */
    int hidden_bias, out_bias, activation;
    int across;      /* the text attends to its tokens, which stand not among its own */
    int merge_gated; /* half of what is merged gates the other */
    int merged_out;  /* nothing comes behind that */
    int64_t after;   /* width inside of a gated feed-forward that does, after a map */
    int64_t scales;  /* numbers that a comparison with a text has */
    int text_bias;   /* of the text's projection */
    int newline;     /* a trained token ends each row */
    int64_t queries,
        cross_every;  /* trained tokens that read the patches in each so-many-th
                                     layer of blocks of their own; 0: none */
    struct hf_arch q; /* those blocks */
    int fixed_rows;   /* positions are sines without a table */
    int conformer;    /* blocks with a convolution of so wide a kernel */
    int64_t kernel;
    int64_t ends; /* trained tokens around those of a sound */
    int64_t deep; /* further projections, of outputs of blocks between */
};

#endif
