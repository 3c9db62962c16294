/* stage_state.h - one way to cut a strategy's units into stages, while its cost is found.  Private to lower/.
 *
 * stage_cut.c cuts the units into chunks, stage_passes.c finds the time and the bytes of each chunk's passes, and
 * stage_cost.c runs the pipeline's schedule and adds the cost up. */
#ifndef TOPT_LOWER_STAGE_STATE_H
#define TOPT_LOWER_STAGE_STATE_H

#include "stage_layers.h"

/* Passes of two chunks that run as one. */
struct topt_chunk_pair {
    int forward, backward;
    int64_t ns; /* 0: not known */
};

struct topt_stage_state {
    /* The question: */
    struct topt_layers
        *t; /* of the first stage; facts of all stages are read from here */
    const struct topt_strategy *strategy; /* NULL: only the sums of units are known */
    const struct topt_order *order;
    struct topt_order_shape shape;
    int nunits, nchunks;
    int lean; /* stages are cut for memory */
    struct topt_error *err;
    struct topt_stage_costs *ret;

    /* The cut: */
    const struct topt_layers *of[TOPT_MAX_STAGES]; /* by stage: on its own devices */
    int64_t room[TOPT_MAX_STAGES];  /* bytes of units in each unlike stage; 0: any */
    int64_t ahead[TOPT_MAX_CHUNKS]; /* by chunk: passes before its stage goes backward */
    int64_t slowest_ns;             /* of a chunk, once that is chosen */
    int64_t next;                   /* of the last try (stage_cut.c) */
    int cut[TOPT_MAX_CHUNKS + 1];   /* by chunk: its first unit; and one more */

    /* Room for pieces in one micro-batch: times of two chunks, bytes of one. */
    struct topt_piece_time *time;
    struct topt_piece_bytes *bytes;
    int64_t waited_ns; /* for copies, of the parts that were timed last */

    /* By chunk: */
    struct topt_chunk *chunk;
    int like[TOPT_MAX_CHUNKS];          /* the first chunk with equal passes */
    int64_t late_ns[TOPT_MAX_CHUNKS];   /* passes wait for the host to start kernels, */
    int64_t copies_ns[TOPT_MAX_CHUNKS]; /* ... and for copies to the host and back */
    int64_t send_ns[TOPT_MAX_CHUNKS];   /* to the next chunk, and back from it */
    int64_t hidden_ns[TOPT_MAX_CHUNKS]; /* which passes beside this one's may hide */
    /* By stage: */
    int64_t end_ns[TOPT_MAX_STAGES];   /* after its last pass */
    int64_t saved_ns[TOPT_MAX_STAGES]; /* by a pair of passes, in the mean */
    /* Of schedules that run two passes as one, else NULL: */
    struct topt_chunk_pair *pairs; /* those that are known, and one more */
    int64_t *pair_ns;              /* as of struct topt_pipeline */
};

static inline int topt_stage_of(const struct topt_stage_state *x, int chunk)
{
    return topt_order_stage(x->order, &x->shape, chunk);
}

/* The chunk that is the 'own'th of its stage. */
static inline int topt_chunk_of(const struct topt_stage_state *x, int stage, int own)
{
    return topt_order_chunk(x->order, &x->shape, stage, own);
}

static inline const struct topt_layers *
topt_chunk_layers(const struct topt_stage_state *x, int chunk)
{
    return x->of[topt_stage_of(x, chunk)];
}

static inline int topt_first_piece(const struct topt_stage_state *x, int chunk)
{
    return x->t->from[x->cut[chunk]];
}

/* Do stages lie on groups of unlike devices? */
static inline int topt_stages_unlike(const struct topt_stage_state *x)
{
    return x->t->next != NULL;
}

/* Do two stages have the one table of the first and the last unit? */
static inline int topt_stages_share(const struct topt_stage_state *x)
{
    return x->t->shared && topt_stage_of(x, x->nchunks - 1) > 0;
}

#endif
