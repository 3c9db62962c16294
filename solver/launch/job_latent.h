/* job_latent.h - the shape of a decoder with latent attention and experts.  Private to launch/. */
#ifndef TOPT_JOB_LATENT_H
#define TOPT_JOB_LATENT_H

#include <jansson.h>
#include <stdint.h>

struct job_latent {
    int64_t query_rank,
        rank; /* features that queries, and keys and values, come from; 0: queries from all */
    int64_t plain, turned,
        value;     /* features of a head: of keys without and with angles, of values */
    int64_t dense; /* the first layers, which have no experts */
    int64_t inner, expert_inner,
        shared_inner;             /* 0: there are no such layers, or experts */
    int64_t groups, top_groups;   /* of experts; 1: no groups */
    double theta, factor, mscale; /* of angles; 'factor' 0: not YaRN's */
    double scaling;               /* of the weights of experts */
    int corrected;                /* a bias chooses experts, too */
};

/* 1 where all operators of 'ops' (of a model document) are of such a decoder's layers, or of none; else 0. */
int job_latent_read(const json_t *ops, struct job_latent *ret);

#endif
