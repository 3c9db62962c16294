/* papers_index.c - the end of docs/PAPERS.md: each claim, the command that shows it, and what came
 * out. */
#include "papers_index.h"

#include "papers_claim.h"

#include <stdio.h>
#include <string.h>

#define TEST(name) "`ctest -R '^" name "$'`", NULL
#define HERE(part) "`papers_figures`", part

/* A claim is shown by a test that fails where it does not hold, or by the rows of a section. */
static const struct {
    const char *of, *claim, *command, *section;
    int gate;
} rows[] = {
    {"TensorOpt",
     "algorithm 1 is the quadratic filter; frontiers of points in random order have H_N "
     "points (lemma 2); the worked example; pairs grow as n^2 log n and K^2, by "
     "elimination "
     "as K^3 (theorems 1 and 2)",
     TEST("search_unit"), 1},
    {"TensorOpt",
     "linear dynamic programming, elimination and brute force find the same frontiers; "
     "what "
     "heuristics decide is never below them; every point costs what it says",
     TEST("search_property"), 1},
    {"TensorOpt",
     "table 3: elimination alone adds up at least 5 times the pairs of linear dynamic "
     "programming (RNN, 8 GPUs)",
     TEST("solver_systems"), 0},
    {"TensorOpt",
     "table 3: the same on 16 GPUs, ten minutes a cell; a search that does not finish "
     "says so "
     "(slow)",
     TEST("search_tables"), 0},
    {"TensorOpt",
     "table 2: a simulator that adds what costs leave out: time, network and memory low "
     "by less "
     "than 8 %",
     TEST("solver_simulator"), 0},
    {"TensorOpt",
     "re-scheduling: paths are shortest, slices free, the triangle inequality",
     TEST("solver_layout"), 1},
    {"TensorOpt",
     "more devices are never slower at equal memory; no random plan is below the "
     "frontier",
     TEST("solver_counts"), 1},
    {"TensorOpt", "sizes of the models", HERE("TensorOpt, table 1"), 0},
    {"TensorOpt", "model sizes, networks and buses", HERE("TensorOpt, figure 7"), 0},
    {"TensorOpt", "the fewest GPUs", HERE("The fewest GPUs"), 0},
    {"TensorOpt",
     "all that Mesh-TensorFlow finds lies on our frontier or beyond it, random models",
     TEST("solver_baselines"), 1},
    {"TensorOpt",
     "the same, OptCNN, ToFu and the right end of the frontier exactly, 21 "
     "architectures, "
     "encoder-decoders among them, full on 8 GPUs and canonical on 16 (slow)",
     TEST("solver_baselines_real"), 1},
    {"TensorOpt",
     "what Mesh-TensorFlow, OptCNN, ToFu and data parallelism take beside the frontier",
     HERE("TensorOpt, figure 6"), 0},
    {"TensorOpt",
     "8 GPUs run neither data parallelism nor OptCNN, 16 do; ToFu from 8 to 16",
     HERE("TensorOpt, figure 8"), 0},
    {"TensorOpt", "mini-time and Horovod over data parallelism",
     HERE("TensorOpt, table 4"), 0},
    {"FlexFlow", "delta simulation is the full one, 1000 changes",
     TEST("systems_flexflow"), 1},
    {"FlexFlow",
     "what takes ln 2 / beta more is taken half of the time; strategies are as frequent "
     "as "
     "exp(-beta cost) (chi-square)",
     TEST("systems_flexflow"), 1},
    {"FlexFlow",
     "never worse than data parallelism, nor better than the busiest device or the "
     "longest "
     "path; on chains at most 1.1 times our best that splits outputs",
     TEST("systems_flexflow"), 0},
    {"FlexFlow",
     "speed-ups and bytes on AlexNet, Inception, a language model and a translator",
     HERE("FlexFlow"), 0},
    {"FlexFlow",
     "tasks that take 15 % more or less: within 30 %, ten strategies keep their order",
     TEST("systems_flexflow"), 0},
    {"AccPar", "the 3 x 3 table between layers; HyPar's is its corner",
     TEST("systems_accpar"), 1},
    {"AccPar", "the search is the cheapest of all 3^L, by exchange alone and with shares",
     TEST("systems_accpar"), 1},
    {"AccPar",
     "equal halves take 0.5; both sides end together; v3 takes 0.70 by computing alone",
     TEST("systems_accpar"), 1},
    {"AccPar",
     "order and ratios of speed-ups, VGG over ResNet, unequal over equal boards",
     HERE("AccPar and HyPar"), 0},
    {"AccPar",
     "AccPar and HyPar by our costs, never faster than ft; on unlike boards by their "
     "shares of these",
     TEST("systems_accpar_row"), 0},
    {"Parallax",
     "bytes of servers, rings and gathers by simulation are the formulas; N/2; equal at "
     "alpha 1",
     TEST("systems_parallax"), 1},
    {"Parallax", "chosen partitions of table 2 and of a convex curve",
     TEST("systems_parallax"), 0},
    {"Parallax",
     "pushes fall from workers to machines; rows touched at most 1 - (1 - alpha)^G",
     TEST("systems_parallax"), 1},
    {"Parallax",
     "all-reduce for images, servers for words, the hybrid fastest; more where alpha is "
     "less",
     HERE("Parallax"), 0},
    {"unlike devices",
     "a GPT of 1.3 B on 8 A100 and 8 V100: 1.05 of the sum of rates (f16, and gradients "
     "in "
     "f32 with the optimizer's state sharded), 1.6 times faster than equal shares; 40 "
     "and 80 GB hold what equal shares do not",
     TEST("systems_unequal"), 0},
    {"unlike devices",
     "rows by speed, state 1 to 3, two ranks and one of a slower group: the losses of "
     "one",
     TEST("runtime_shares"), 1},
};

void papers_index(void)
{
    printf("\n## Where each claim is shown\n\n"
           "Tests are run in a build's folder (`ctest --test-dir build/release -R ...`) "
           "and fail where "
           "the claim\ndoes not hold; a gate is what has to hold exactly, by its "
           "definition.\n\n"
           "| paper | claim | command | result |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("| %s | %s | %s | ", rows[i].of, rows[i].claim, rows[i].command);
        if (rows[i].section)
            papers_counts(rows[i].section);
        else
            printf("%s%s",
                   strstr(rows[i].claim, "(slow)") ? "slow, not run with this document"
                                                   : "held by the test",
                   rows[i].gate ? ", a gate" : "");
        printf(" |\n");
    }
}
