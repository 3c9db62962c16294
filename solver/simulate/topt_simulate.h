/* topt_simulate.h - a step of any strategy, instruction by instruction in time.
 *
 * All ranks run the same program on blocks of the same size, so that one rank stands for
 * all: the schedule has one owner (topt_schedule.h says what its streams and links do).
 *
 * Instructions wait for the buffers that they touch, and run in the order of the program;
 * but what the system moves asynchronously (enum topt_overlap) waits for its buffers alone, and
 * parameters are gathered while the unit before is at work, no earlier.  Prices are those of the search, so that without overlap a step takes
 * the sum that is predicted.
 *
 * Thread safety: reentrant; a simulation has one owner. */
#ifndef TOPT_SIMULATE_H
#define TOPT_SIMULATE_H

#include <jansson.h>

#include "topt_lower.h"
#include "topt_schedule.h"

struct topt_simulate_options {
    enum topt_overlap overlap; /* instead of the settings' */
    /* Gradients that only wait for their sum over replicas are packed into buckets of so
     * many bytes, as Horovod and DDP do; 0: each goes by itself. */
    int64_t bucket_bytes;
    /* With buckets: gradients are looked at so often, and share a bucket only with those of the
     * same cycle (Sergeev and Del Balso, Horovod, 2018); 0: a bucket waits until it is full. */
    int64_t cycle_ns;
};
extern const struct topt_simulate_options
    topt_simulate_horovod; /* its buffer and cycle */

enum topt_part { TOPT_PART_BEGIN, TOPT_PART_MICRO, TOPT_PART_END };

/* What a task of the schedule does. */
struct topt_simulated {
    int instr; /* of the program; of a bucket the first of its reductions */
    int micro; /* micro-batch it belongs to, as far as those are simulated */
    enum topt_part part;
    int packed; /* gradients in a bucket; 0: it is none */
};

struct topt_simulation {
    struct topt_program *program;  /* with times */
    struct topt_schedule schedule; /* its tasks are in the order of the program */
    struct topt_simulated *task;   /* by task of the schedule */
    int micros; /* micro-batches that were simulated: the others repeat one of them */
    int64_t time_ns; /* of a step */
    /* of all that computes and all that moves, by itself */
    int64_t compute_ns, network_ns;
    int64_t idle_ns; /* of the step nothing was computed */
    int64_t link_ns[TOPT_LINK_COUNT];
    int buckets;       /* of gradients that are packed */
    int64_t bucket_ns; /* of all of them, each by itself */
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
