/* flexflow_walk.c - FlexFlow's search beside our plan, both by its simulation, and what each cause of
 * the difference does, by switching it off.
 *
 *     flexflow_walk MODEL BATCH HW NODES GPUS_A_NODE PROPOSALS [SEED [norms-apart]]
 *
 * Half of the proposals begin at data parallelism, half at a random strategy; every thousand
 * proposals the walk goes on from its best, as FlexFlow's public code does.  Our plan is the fastest
 * where nothing overlaps; it splits what it can over all devices, so that nothing of it is placed.  With
 * norms-apart norms of the batch are those of each sample: our plan is then chosen without their sums
 * over devices, which are not among FlexFlow's tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flexflow_study.h"

int main(int argc, char **argv)
{
    if (argc < 7) {
        fprintf(stderr, "usage: flexflow_walk MODEL BATCH HW NODES GPUS_A_NODE PROPOSALS "
                        "[SEED [norms-apart]]\n");
        return 2;
    }
    struct study s;
    struct study_ask ask = {.model = argv[1],
                            .batch = atoll(argv[2]),
                            .hw = argv[3],
                            .nodes = atoi(argv[4]),
                            .per_node = atoi(argv[5]),
                            .space = TOPT_SPACE_CANONICAL,
                            .blocks = TOPT_BLOCKS_ALIKE,
                            .norms_apart = argc > 8 && !strcmp(argv[8], "norms-apart"),
                            .rows = 1};
    const struct topt_flexflow_rules *rules[FLEXFLOW_CAUSES];
    double ours[FLEXFLOW_CAUSES];
    setvbuf(stdout, NULL, _IOLBF, 0);
    study_open(&s, &ask);
    for (int i = 0; i < FLEXFLOW_CAUSES; i++)
        rules[i] = &flexflow_causes[i].rules;
    flexflow_ours(&s, rules, FLEXFLOW_CAUSES, ours);
    printf("%-28s %14s %12s %7s %10s %6s %12s %6s\n", "", "data parallel", "flexflow",
           "placed", "proposals", "seeds", "ft", "ratio");
    for (int i = 0; i < FLEXFLOW_CAUSES; i++) {
        struct walked w = flexflow_walked(&s, rules[i], atoll(argv[6]),
                                          argc > 7 ? (uint64_t)atoll(argv[7]) : 1);
        printf("%-28s %11.2f ms %9.2f ms %7d %10lld %6llu %9.2f ms %6.3f\n",
               flexflow_causes[i].name, w.data_ms, w.best_ms, w.placed, w.proposals,
               w.seeds, ours[i], ours[i] / w.best_ms);
    }
    study_close(&s);
    return 0;
}
