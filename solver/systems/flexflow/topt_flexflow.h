/* topt_flexflow.h - FlexFlow's search: Jia, Zaharia and Aiken, "Beyond Data and Model
 * Parallelism for Deep Neural Networks", MLSys 2019.
 *
 * Every operator is split along dimensions of its output, samples, attributes and
 * parameters (SOAP, with the devices as operators), into equal parts, each on a device of
 * its own choice.  A strategy becomes a graph of tasks: a part computes forward, then
 * backward; where a part reads what another device made, a task moves it; replicas of a
 * parameter are summed up; parameters are updated. Devices and links run tasks first
 * come, first served, so that what moves runs beside what computes.  The search walks from
 * strategy to strategy, one operator at a time, by the Metropolis rule (Markov chain
 * Monte Carlo), and keeps the fastest.
 *
 *     simulating     a device or link takes tasks by the time at which they are ready
 *     full           from nothing, all tasks in that order
 *     delta          after one operator changed: what was ready before the first task that
 *                    is new, gone or waits for others stays, the rest runs again
 *
 * Prices are those of the search: kernels by the profile, moves by its links, sums by its
 * collectives.  Memory is that of a device's parts: parameters with their gradients and
 * states, and outputs once; the search does not look at it.
 *
 * Thread safety: reentrant; a strategy has one owner. */
#ifndef TOPT_FLEXFLOW_H
#define TOPT_FLEXFLOW_H

#include <stdatomic.h>

#include "topt_hw.h"
#include "topt_lower.h"
#include "topt_model.h"

enum { TOPT_FLEXFLOW_DEVICES = 64 };

/* How one operator is split: parts along each of its dimensions, and the device of each
 * part, the last dimension's parts next to each other. */
struct topt_soap {
    uint8_t degree[TOPT_MAX_OPDIMS];
    int nparts;
    uint8_t device[TOPT_FLEXFLOW_DEVICES];
};

/* Of the simulation: all 0 is the paper's. */
struct topt_flexflow_rules {
    /* What a node sends to the others goes by one link, and what a device sends in its node, as in
     * topt's own schedules, held as long as bytes pass; else each pair of nodes has its own link, and
     * each pair of devices of a node. */
    int shared_links;
    int all_devices; /* nothing is placed: no configuration has fewer parts than it could */
    int moves_wait; /* while activations move, both devices wait */
};
/* The network of topt's own schedules, all else as the paper has it. */
extern const struct topt_flexflow_rules topt_flexflow_links;

/* A model on a cluster, with a strategy and its simulation. */
struct topt_flexflow;

/* Starts data parallel: samples over all devices, as many as there are.  LIMIT for more
 * devices than TOPT_FLEXFLOW_DEVICES.  Borrows what 'k' points to. */
int topt_flexflow_create(const struct topt_costing *k,
                         const struct topt_flexflow_rules *rules,
                         struct topt_flexflow **ret,
                         struct topt_error *err) TOPT_MUST_CHECK;
void topt_flexflow_destroy(struct topt_flexflow *f);

/* Configurations that a proposal chooses between for an operator: every division of its
 * splittable dimensions into parts, from each device on, with devices next to each other
 * or spread evenly; the i-th. */
int64_t topt_flexflow_choices(const struct topt_flexflow *f, int op);
struct topt_soap topt_flexflow_choice(const struct topt_flexflow *f, int op, int64_t i);
struct topt_soap topt_flexflow_data_parallel(const struct topt_flexflow *f, int op);

const struct topt_soap *topt_flexflow_get(const struct topt_flexflow *f, int op);
/* Is it one: degrees that its dimensions allow, devices that there are? */
int topt_flexflow_valid(const struct topt_flexflow *f, int op, const struct topt_soap *s);
/* Gives an operator another configuration, and simulates what that changes. */
int topt_flexflow_set(struct topt_flexflow *f, int op, const struct topt_soap *s,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The time of a step, by the simulation that is kept up to date; and by a new one, in which each task takes up to a
 * share more or less than its price, by 'seed': a machine that the prices miss. */
int64_t topt_flexflow_time(const struct topt_flexflow *f);
int topt_flexflow_full(const struct topt_flexflow *f, uint64_t seed, double share,
                       int64_t *ret_ns, struct topt_error *err) TOPT_MUST_CHECK;

struct topt_flexflow_facts {
    int64_t time_ns, compute_ns; /* the busiest device's */
    int64_t memory_bytes;        /* of the device that needs most */
    int64_t moved_bytes;         /* over links between devices, sums as rings move them */
    int64_t critical_ns; /* the longest path, as if no two tasks shared anything */
    int tasks;
    int placed; /* operators that leave some device without a part */
    /* Tasks that the last change made run again, and those of them that end at another time
     * than before, or are new. */
    int touched, moved;
};
void topt_flexflow_facts(const struct topt_flexflow *f, struct topt_flexflow_facts *ret);

/* What a step of one of our plans takes by the same simulation: its computing, sums and moves wait
 * for what they need alone.  All devices do the same, so that one stands for all.  INVAL for several
 * micro-batches. */
int topt_flexflow_plan(const struct topt_costing *k, const struct topt_strategy *s,
                       const struct topt_flexflow_rules *rules, int64_t *ret_ns,
                       struct topt_error *err) TOPT_MUST_CHECK;

struct topt_flexflow_search {
    uint64_t seed;
    int64_t proposals;       /* at most */
    double beta;             /* of a nanosecond; 0: 50 over the time of the start */
    int random_start;        /* else data parallel */
    int never_stalls;        /* all proposals are tried, whatever they bring */
    const atomic_bool *stop; /* polled: end with the best so far; may be NULL */
    /* Told after each proposal what it would have taken more, and whether it was; may be
     * NULL. */
    void (*told)(void *ctx, const struct topt_flexflow *f, int64_t more_ns, int taken);
    void *ctx;
};
struct topt_flexflow_found {
    int64_t best_ns, start_ns;
    int64_t tried, best_at; /* proposals */
};
/* The probability with which the rule takes a strategy that takes 'more_ns' more. */
double topt_flexflow_accepts(double beta, int64_t more_ns);
/* Half of the proposals from data parallelism, half from a random strategy, in walks of a quarter of
 * that and at most a thousand, each on from the best before with the next seed, as FlexFlow's public code does; a half whose
 * last half improves nothing ends.  Ends at the fastest strategy of both. */
struct topt_flexflow_walks {
    int64_t data_ns, random_ns; /* the starts */
    int64_t tried, best_ns;
    uint64_t seeds; /* so many, from the first on */
};
int topt_flexflow_walk(struct topt_flexflow *f, const struct topt_flexflow_search *o,
                       struct topt_flexflow_walks *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Walks; ends at the fastest strategy that was met. */
int topt_flexflow_search(struct topt_flexflow *f, const struct topt_flexflow_search *o,
                         struct topt_flexflow_found *ret,
                         struct topt_error *err) TOPT_MUST_CHECK;

#endif
