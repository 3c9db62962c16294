/* topt_stages.h - pipeline stages: the units that layers are cut from, and what each stage takes and holds.
 *
 * A unit is a layer, or what stands before the first or behind the last one.  Consecutive units make a chunk, and each
 * stage has one chunk or several (topt_order.h says which). */
#ifndef TOPT_STAGES_H
#define TOPT_STAGES_H

#include "topt_model.h"
#include "topt_schedule.h"

struct topt_strategy;

enum {
    TOPT_MAX_STAGES = 64,
    TOPT_MAX_CHUNKS = 256,
    TOPT_MAX_EMPTY = 1 /* chunks without a unit */
};

/* The stages of a strategy.  Its time and bytes are then those of the whole step and of the stage 'most'; its compute_ns
 * and network_ns are means over stages, and idle_ns is the rest of the time: the bubble, and communication that a stage
 * waits for. */
struct topt_stage_costs {
    int stages, chunks; /* 'chunks': of all stages; 0 stages: there are none */
    int16_t layers[TOPT_MAX_CHUNKS]; /* of each chunk, in the model's order */
    int64_t bytes[TOPT_MAX_STAGES], busy_ns[TOPT_MAX_STAGES];
    int most; /* the stage that holds most; of unlike stages, as a share of its device's memory */
    int8_t group[TOPT_MAX_STAGES]; /* of unlike devices, on which each stage lies */
    int64_t idle_ns;
};

/* The units of a model in its order.  Each gives one tensor of samples to the next; operators before the first layer or
 * behind the last that give more are part of the layer beside them. */
struct topt_stage_units {
    /* 'first': the unit of the first layer; without layers nothing can be cut */
    int n, first, layers;
    int fault; /* the operator before which a layer gives more than one tensor; -1: there is none */
    struct topt_stage_unit {
        int op, tensor; /* its first operator, and the tensor that it is given */
        int parameters; /* tensors of parameters that operators before and behind its beginning read */
    } * at; /* and one more behind the last; owned */
};
int topt_stage_units_find(const struct topt_model *m, struct topt_stage_units *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;
void topt_stage_units_fini(struct topt_stage_units *u);

/* What a unit takes and holds on each device of its stage, whatever the stages, chunks and schedule are. */
struct topt_unit_sums {
    int64_t passes_ns;   /* of all micro-batches, by which units are cut into chunks */
    int64_t exchange_ns; /* ... of which tokens move to experts, or back */
    /* Of one micro-batch, forward and backward: the time of each link, and last that of computing and of the communication
     * that computing waits for. */
    int64_t ns[2][TOPT_LINK_COUNT + 1];
    /* The part of each link's time that is asynchronous communication, which overlaps computing and slows it. */
    int64_t aside_ns[2][TOPT_LINK_COUNT];
    int64_t stays, kept; /* bytes: throughout; of a micro-batch until it goes backward */
};

/* Of a strategy that recomputes whole layers, recompute only the first 'n' layers of each chunk; 'layers': how many each
 * chunk has. */
void topt_recompute_first(const struct topt_model *m, const int16_t *layers, int64_t n,
                          struct topt_strategy *s);

#endif
