/* tally.h - fragments added up as a cost.  Private to lower/. */
#ifndef TOPT_TALLY_H
#define TOPT_TALLY_H

#include "fragment.h"

enum { TOPT_TALLY_BUFFERS = 128 }; /* of one fragment */

struct topt_tally {
    struct topt_sink sink; /* first: it is cast to this */
    const struct topt_costing *k;
    struct topt_fragment_cost cost;
    int64_t rounds; /* micro-batches that do what is written now */
    int64_t times;  /* each instruction counts so often in one of them */
    int along;      /* ... once at each count of this dimension; -1: none */
    int64_t live;
    int64_t output_bytes; /* of an operator that is not fused; made inside too */
    int muted;            /* buffers made now are counted elsewhere */
    int64_t
        len[TOPT_MAX_OPDIMS]; /* local box of the operator whose kernels are written */
    int nbuffers;
    struct topt_buffer buffer[TOPT_TALLY_BUFFERS];
    uint8_t counted[TOPT_TALLY_BUFFERS];
};

void topt_tally_init(struct topt_tally *t, const struct topt_costing *k);
struct topt_fragments topt_tally_fragments(struct topt_tally *t, struct topt_error *err);

/* What was added up, weighed by the accounting of the settings. */
struct topt_fragment_cost topt_tally_cost(const struct topt_tally *t);
void topt_weigh(const struct topt_costing *k, struct topt_fragment_cost *c);
int64_t topt_in_flight(const struct topt_costing *k, int64_t bytes); /* bytes that wait */

#endif
