/* problem_stats.h - how large a problem is and what pricing it took.  Private to
 * plan/. */
#ifndef TOPT_PROBLEM_STATS_H
#define TOPT_PROBLEM_STATS_H

#include <stdint.h>

struct topt_problem; /* opaque */

struct topt_problem_stats {
    int64_t nodes, configs, layouts, edge_entries;
    /* The work of pricing: what is alike is priced once. */
    int64_t priced_configs; /* of operators and hubs */
    int64_t priced_entries; /* of tables, by classes of both ends */
    int64_t priced_moves;   /* of tensors of one shape, by layouts of both ends */
    int64_t routes;         /* of a shape's router; not of one problem */
};

#endif
