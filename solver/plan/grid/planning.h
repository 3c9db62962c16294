/* planning.h - what the planning of one request has at hand at each of its steps: the numbers of
 * micro-batches with the model of each, the stage of tensor parallelism, pins, the work done so
 * far, and the cache of variants.  Private to plan/. */
#ifndef TOPT_PLANNING_H
#define TOPT_PLANNING_H

#include "pins.h"
#include "topt_question.h"

struct topt_variant_cache;

/* Models by number of micro-batches are made when asked for. */
struct topt_planning {
    const struct topt_request *request;
    enum topt_tensor_where
        tensor;    /* where tensor parallelism of the uniform space may lie now */
    int64_t heads; /* tensor parallelism divides it; 0: no attention */
    struct topt_least_parameters parameters;
    double activation_bytes;   /* that backward reads, of the whole batch */
    struct topt_blocks blocks; /* of all of them */
    struct topt_pins pins;     /* of the request */
    int64_t work;              /* of searches so far */
    /* The cache of the request's variants, which gets what is missing; borrowed, NULL:
     * nothing is. */
    struct topt_variant_cache *cache;
    int n;
    struct topt_micro {
        int64_t batches;
        const struct topt_model *model;
        struct topt_model *owned;      /* NULL for the request's own */
        struct topt_settings settings; /* without what is never in memory together */
        /* What one device would recompute of it, of a block of each kind and of all
         * blocks. */
        int recomputed_known;
        int64_t recomputed, recomputed_all;
    } * at;
};

/* All divisors of the batch where micro-batches are searched, or are where nothing fits without,
 * ascending; one number else. */
int topt_planning_init(struct topt_planning *m, const struct topt_request *r,
                       struct topt_error *err) TOPT_MUST_CHECK;

void topt_planning_fini(struct topt_planning *m);

/* That with so many, its model made; NULL with an error. */
struct topt_micro *topt_planning_at(struct topt_planning *m, int64_t batches,
                                    struct topt_error *err);

#endif
