/* topt_simulate.h - a step of any strategy, instruction by instruction in time.
 *
 * All ranks run the same program on blocks of the same size, so that one rank stands for
 * all.  It has a stream that computes and links that move: those within its node, and
 * those between nodes.  A stream does one thing at a time, first come, first served; what
 * moves takes the links of every level that its group spans.
 *
 *     computing       | forward ............ | backward n | backward n-1 | ... | update |
 *     within nodes          | gather |                    | scatter n |
 *     between nodes                                       | reduce n    | reduce n-1 |
 *
 * Instructions wait for the buffers that they touch, and run in the order of the program;
 * but what the system moves asynchronously (enum topt_overlap) waits for its buffers alone, gives
 * way to what computing waits for, and parameters are gathered while the unit before is at
 * work, no earlier.  Prices are those of the search, so that without overlap a step takes
 * the sum that is predicted.
 *
 * Thread safety: reentrant; a simulation has one owner. */
#ifndef TOPT_SIMULATE_H
#define TOPT_SIMULATE_H

#include <jansson.h>

#include "topt_lower.h"

struct topt_simulate_options {
    enum topt_overlap overlap; /* instead of the settings' */
    /* Gradients that only wait for their sum over replicas are packed into buckets of so
     * many bytes, as Horovod and DDP do; 0: each goes by itself. */
    int64_t bucket_bytes;
};

enum topt_link { TOPT_LINK_NODE, TOPT_LINK_NETWORK, TOPT_LINK_COUNT };

enum topt_part { TOPT_PART_BEGIN, TOPT_PART_MICRO, TOPT_PART_END };

struct topt_task {
    int instr; /* of the program; of a bucket the first of its reductions */
    int micro; /* micro-batch it belongs to, as far as those are simulated */
    enum topt_part part;
    int packed; /* gradients in a bucket; 1 for anything else */
    int64_t ns; /* what it takes by itself */
    int64_t ready_ns, start_ns, end_ns;
    uint8_t links; /* bits of enum topt_link; 0: it computes */
    uint8_t async; /* other instructions do not wait for it */
};

struct topt_simulation {
    struct topt_timed_program timed;
    int ntasks;
    struct topt_task *task; /* in the order of the program */
    int micros;      /* micro-batches that were simulated: the others repeat the last */
    int64_t time_ns; /* of a step */
    int64_t compute_ns,
        network_ns;     /* of all that computes and all that moves, by itself */
    int64_t exposed_ns; /* of the step nothing was computed */
    int64_t link_ns[TOPT_LINK_COUNT];
};

/* One step of 's'.  LIMIT where the program is too long. */
int topt_simulate(const struct topt_costing *k, const struct topt_strategy *s,
                  const struct topt_simulate_options *o, struct topt_simulation *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;
void topt_simulation_fini(struct topt_simulation *s);

/* A task's name for people: "l3.up backward", "reduce l3.up". */
const char *topt_task_words(const struct topt_simulation *s, int task, char *buf,
                            size_t size);

/* Figures of the whole, "topt-simulation/1"; a new reference. */
json_t *topt_simulation_json(const struct topt_simulation *s,
                             const struct topt_simulate_options *o);
/* All tasks in the trace-event format that chrome://tracing and Perfetto read; freed by the
 * caller, NULL when out of memory. */
char *topt_simulation_trace(const struct topt_simulation *s);
/* The timeline as a picture that stands alone. */
char *topt_simulation_svg(const struct topt_simulation *s, const char *title);

#endif
