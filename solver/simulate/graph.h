/* graph.h - a program as tasks of a schedule.  Private to simulate/. */
#ifndef TOPT_SIMULATE_GRAPH_H
#define TOPT_SIMULATE_GRAPH_H

#include "topt_simulate.h"

/* Into 'ret', whose program and times are known: its schedule, run, and what its tasks do. */
int sim_schedule(const struct topt_costing *k, const struct topt_simulate_options *o,
                 struct topt_simulation *ret, struct topt_folded *ret_folded,
                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
