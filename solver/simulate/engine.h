/* engine.h - tasks run in time.  Private to simulate/. */
#ifndef TOPT_SIMULATE_ENGINE_H
#define TOPT_SIMULATE_ENGINE_H

#include "graph.h"

/* Runs all tasks, which get their times; the end of the last one. */
int sim_graph_run(struct sim_graph *g, int64_t *ret_ns,
                  struct topt_error *err) TOPT_MUST_CHECK;

#endif
