/* graph.h - the tasks of a step and what each waits for.  Private to simulate/. */
#ifndef TOPT_SIMULATE_GRAPH_H
#define TOPT_SIMULATE_GRAPH_H

#include "topt_simulate.h"

struct sim_edge {
    int to, next; /* of the same task, -1: none */
};

struct sim_graph {
    const struct topt_costing *k;
    const struct topt_simulate_options *o;
    const struct topt_timed_program *timed;
    int micros; /* micro-batches to make tasks of */
    int n, cap;
    struct topt_task *task;
    int *first, *waits; /* by task: its first edge, and how many it still waits for */
    int nedges, edges_cap;
    struct sim_edge *edge;
};

/* Tasks of 'micros' micro-batches.  On failure, too, followed by sim_graph_fini(). */
int sim_graph_make(struct sim_graph *g, struct topt_error *err) TOPT_MUST_CHECK;
void sim_graph_fini(struct sim_graph *g);

#endif
