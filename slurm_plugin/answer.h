/* answer.h - what toptd says, as KEY=VALUE lines.
 *
 * Pure: knows no Slurm.  Thread safety: none needed, plain values. */
#ifndef TOPT_SLURM_ANSWER_H
#define TOPT_SLURM_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "topt_carry.h"
#include "topt_error.h"

/* Numbers are 0 and texts "" where the answer did not say.  Texts are cut to fit, and
 * control characters in them become blanks: they are printed on a terminal. */
struct topt_answer {
    char plan_id[72];
    int64_t gpus, nodes, gpus_per_node;
    int64_t memory_bytes, time_ns;
    /* Of a plan with one choice for the whole model ('dp' at least 1): data and tensor
     * parallel ranks, level of sharding 0..3, recomputation 0 or 1, samples that a rank takes
     * at once, and how often a step does (0: not said).  'dp' 0: another plan. */
    int64_t dp, tp, pp, vp, cp, ep, etp, fsdp, shard, recompute, micro_batch,
        accumulation;
    char why[512], strategy[512];
    char gpu_type[64];   /* to be set on the job, where it names none */
    char partition[256]; /* of several that it names those where the plan can run */
    char needs[256];     /* what the script must support */
    char note[256];      /* what follows from how the site gives out nodes */
    char training[256];  /* days, GPU-hours and cost of the whole training */
    char hint[256];      /* another question that is worth asking */
    char error[64], description[512], nearest[256];
    /* What people read of the answer, lines of it; cut to fit. */
    char shown[16384];
    /* The plan itself, packed (topt_carry.h): copied as it is into the job's environment.
     * "" where it was too long. */
    char plan_doc[TOPT_CARRY_MOST + 1];
};

/* What an HTTP status with this body means for the submission. */
enum topt_verdict {
    TOPT_VERDICT_PLAN,    /* a whole plan: size the job with it */
    TOPT_VERDICT_CURVE,   /* what was asked for to be shown, and sizes nothing */
    TOPT_VERDICT_REFUSED, /* the request itself is wrong or can't be met */
    TOPT_VERDICT_OUTAGE,  /* the planner isn't able to answer now, or isn't toptd */
};

/* Read 'len' bytes (any bytes) into '*ret'.  Keys that aren't known are passed over. */
void topt_answer_parse(const char *body, size_t len, struct topt_answer *ret);

/* With REFUSED and OUTAGE 'err' holds the line for the user, REFUSED's from the answer. */
enum topt_verdict topt_answer_judge(int status, const struct topt_answer *a,
                                    struct topt_error *err);

#endif
