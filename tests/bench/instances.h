/* instances.h - generated problems of the sizes that the search is measured with.
 *
 *   chain      operators in a row, every edge its own table
 *   forkjoin   blocks: a fork, three operators beside each other, a join; joins feed forks
 *   comb       a chain, and an operator at each of its own
 *   star       one operator that all others read
 *   isolated   operators without edges
 *   branches   operators beside each other, between the first and the last
 *   parallel   as many edges between the first and the last
 *   residual   blocks as a transformer's: two residual branches, of three and of two
 *              operators, around hubs
 *
 * Costs are either independent ("random"), or what splitting work does ("split"): a
 * configuration that takes less memory takes more time, with noise on both.  Deterministic in
 * the seed. */
#ifndef TOPT_BENCH_INSTANCES_H
#define TOPT_BENCH_INSTANCES_H

#include "topt_search.h"

struct instance_spec {
    const char *shape; /* one of those above */
    const char *costs; /* random or split; NULL: random */
    int size; /* operators of a chain, a star ..., teeth of a comb; else blocks */
    int configs;
    int64_t range; /* costs are at most that; 0: a million */
    int alike;     /* all blocks have the tables of the first */
    uint64_t seed;
};

struct instance;

/* NULL where the shape or the costs have no such name, or without memory. */
struct instance *instance_make(const struct instance_spec *spec);
const struct topt_search_problem *instance_problem(const struct instance *i);
void instance_free(struct instance *i);

#endif
