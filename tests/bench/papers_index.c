/* papers_index.c - the end of docs/PAPERS.md: each claim, the command that shows it, and what came
 * out. */
#include "papers_index.h"

#include "papers_claim.h"

#include <stdio.h>
#include <string.h>

#define TEST(name) "`ctest -R '^" name "$'`"
static const char HERE[] = "`papers_figures`";

/* A claim is shown by a test that fails where it does not hold, or by the rows of that name above. */
static const struct {
    const char *id, *claim, *command;
    int gate;
} rows[] = {
    {"T1", "algorithm 1 is the quadratic filter, on 1000 random sets with ties",
     TEST("search_unit"), 1},
    {"T2", "frontiers of points in random order have H_N points (lemma 2)",
     TEST("search_unit"), 1},
    {"T3",
     "linear dynamic programming finds the worked example's frontier, and on chains "
     "brute "
     "force's",
     TEST("search_unit") ", " TEST("search_property"), 1},
    {"T4",
     "linear dynamic programming, elimination and brute force find the same frontiers; "
     "what heuristics decide is never below them",
     TEST("search_property"), 1},
    {"T5", "every point costs what it says when its strategy is costed from scratch",
     TEST("search_property") ", " TEST("solver_checked"), 1},
    {"T6", "sizes of the models (table 1)", HERE, 0},
    {"T7", "pairs grow as n^2 log n and K^2, by elimination as K^3 (theorems 1 and 2)",
     TEST("search_unit"), 1},
    {"T8", "elimination alone adds up more pairs (table 3)", HERE, 0},
    {"T8", "at least 5 times as many (RNN, 8 GPUs)", TEST("solver_systems"), 0},
    {"T8",
     "the same of three models on 16 GPUs, ten minutes a cell; a search that does not "
     "finish says so (slow)",
     TEST("search_tables"), 0},
    {"T9", "time drops up to a turning point, and is stable beyond (figure 6)", HERE, 0},
    {"T10", "computing stays, the network's time falls, as tensors are kept (figure 6)",
     HERE, 0},
    {"T11", "TensorOpt is never above Mesh-TensorFlow (figure 6)", HERE, 0},
    {"T11",
     "all that Mesh-TensorFlow finds lies on our frontier or beyond it, random "
     "models",
     TEST("solver_baselines"), 1},
    {"T12", "OptCNN is the right end of the frontier (figure 6)", HERE, 0},
    {"T12",
     "who looks at time alone finds exactly that, 21 architectures, full on 8 GPUs and "
     "canonical on 16 (slow)",
     TEST("solver_baselines_real"), 1},
    {"T13", "8 GPUs run neither data parallelism nor OptCNN, 16 do (figure 8)", HERE, 0},
    {"T14", "16 GPUs are marginally faster than 8 (figure 8)", HERE, 0},
    {"T15", "ToFu takes little memory, and more time (figures 6 and 8)", HERE, 0},
    {"T16", "networks (figure 7 b)", HERE, 0},
    {"T17", "PCIe and NVLink (figure 7 c)", HERE, 0},
    {"T18", "model sizes (figure 7 a)", HERE, 0},
    {"T19", "mini-time over data parallelism (table 4)", HERE, 0},
    {"T20", "Horovod over data parallelism (table 4)", HERE, 0},
    {"T21",
     "table 2: a simulator that adds what costs leave out: time, network and memory low "
     "by less than 8 %",
     TEST("solver_simulator"), 0},
    {"T22",
     "with every second point of a curve left out its times are off by less than 8 % on "
     "the mean; below 1 MiB bytes over rates are off by more than 70 %",
     TEST("hw_profiles"), 0},
    {"T23",
     "more devices are never slower at equal memory; no random plan is below the "
     "frontier; fewer configurations never make a better point; paths are shortest, "
     "slices free, the triangle inequality",
     TEST("solver_counts") ", " TEST("search_property") ", " TEST("solver_layout"), 1},
    {"T24", "the fewest GPUs (mini-parallelism)", HERE, 0},
    {"F1",
     "delta simulation is the full one, 1000 changes; at most 1.1 times the tasks run "
     "again that are new or end at another time",
     TEST("systems_flexflow"), 1},
    {"F2",
     "what takes ln 2 / beta more is taken half of the time; strategies are as frequent "
     "as exp(-beta cost) (chi-square)",
     TEST("systems_flexflow"), 1},
    {"F3",
     "never worse than data parallelism, nor better than the busiest device or the "
     "longest path; on chains at most 1.1 times our best that splits outputs",
     TEST("systems_flexflow"), 0},
    {"F4", "speed-ups and bytes on AlexNet, Inception, a language model and a translator",
     HERE, 0},
    {"F4",
     "on topt's links `ft` is at most 3 % slower than FlexFlow's best walk, six models, "
     "of Inception without the sums of its batch norms' statistics, with which 5 %; of "
     "Inception walks of 3,000 proposals gain less than 0.1 % (slow)",
     TEST("flexflow_beside_ours"), 0},
    {"F5",
     "tasks that take 15 % more or less: within 30 %, ten strategies keep their order",
     TEST("systems_flexflow"), 0},
    {"A1", "the 3 x 3 table between layers; HyPar's is its corner",
     TEST("systems_accpar"), 1},
    {"A2", "the search is the cheapest of all 3^L, by exchange alone and with shares",
     TEST("systems_accpar"), 1},
    {"A3",
     "equal halves take 0.5; both sides end together; v3 takes 0.70 by computing alone",
     TEST("systems_accpar"), 1},
    {"A4", "data parallelism, one weird trick, HyPar, AccPar: each faster", HERE, 0},
    {"A5", "speed-ups and AccPar over HyPar", HERE, 0},
    {"A6", "VGG over ResNet, unequal over equal boards", HERE, 0},
    {"A",
     "AccPar and HyPar by our costs, never faster than ft; on unlike boards by their "
     "shares of these; no weight is left to ft",
     TEST("systems_accpar") ", " TEST("systems_accpar_row"), 0},
    {"P1", "bytes of servers, rings and gathers by simulation are the formulas",
     TEST("systems_parallax"), 1},
    {"P2", "dense servers are a ring; sparse N/2; equal at alpha 1",
     TEST("systems_parallax"), 1},
    {"P3", "all-reduce for images, servers for words (tables 1 and 4)", HERE, 0},
    {"P4", "aggregation and the hybrid (table 4)", HERE, 0},
    {"P5", "chosen partitions of table 2 reach 95 % of the best row",
     TEST("systems_parallax"), 0},
    {"P6", "of a convex curve the choice is within 5 % of the best, by five samples",
     TEST("systems_parallax"), 0},
    {"P7", "the hybrid gains more where alpha is less (table 6)", HERE, 0},
    {"P8", "the hybrid is no slower than servers or all-reduce (figure 9)", HERE, 0},
    {"P9", "pushes fall from workers to machines; rows touched at most 1 - (1 - alpha)^G",
     TEST("systems_parallax"), 1},
    {"unlike devices",
     "a GPT of 1.3 B on 8 A100 and 8 V100: 1.05 of the sum of rates (f16, and gradients "
     "in f32 with the optimizer's state sharded), 1.6 times faster than equal shares; 40 "
     "and 80 GB hold what equal shares do not",
     TEST("systems_unequal"), 0},
    {"unlike devices",
     "rows by speed, state 1 to 3, two ranks and one of a slower group: the losses of "
     "one",
     TEST("runtime_shares"), 1},
};

void papers_index(void)
{
    printf(
        "\n## Where each claim is shown\n\n"
        "T: TensorOpt; F: FlexFlow; A: AccPar and HyPar; P: Parallax. Tests are run in a "
        "build's folder\n(`ctest --test-dir build/release -R ...`) and fail where the "
        "claim does not hold; a gate is what\nhas to hold exactly, by its definition. "
        "Of `papers_figures` the rows above with the same name\nare counted. Single "
        "plans of T9, "
        "T12 to T15, T19 and T20 are also rows of\n\n"
        "    topt compare paper:wideresnet --hw v100-dgx1-2x8 --gpus 16 --accounting "
        "paper-reuse "
        "--space canonical --blocks free\n\n"
        "and what A4 to A6, P3, P4 and P8 rest on is what `topt study accpar` (`--group "
        "tpu-v3`) and "
        "`topt study\nparallax` print.\n\n"
        "| row | claim | command | result |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("| %s | %s | %s | ", rows[i].id, rows[i].claim, rows[i].command);
        if (rows[i].command == HERE)
            papers_counts(rows[i].id);
        else
            printf("%s%s",
                   strstr(rows[i].claim, "(slow)") ? "slow, not run with this document"
                                                   : "held by the test",
                   rows[i].gate ? ", a gate" : "");
        printf(" |\n");
    }
    puts("\nThis is the last line, so that a document that was cut off is seen.");
}
