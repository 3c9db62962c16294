/* papers_study.h - one model on one cluster, asked many things: its problems are made once. */
#ifndef TOPT_PAPERS_STUDY_H
#define TOPT_PAPERS_STUDY_H

#include "free.h"
#include "algorithm.h"
#include "grid.h"
#include "planning.h"
#include "configs.h"
#include "topt_plan.h"
#include "topt_choices.h"

struct study_ask {
    const char *model; /* "paper:transformer" */
    int64_t width;     /* of a transformer instead of its own; 0: its own */
    int64_t batch;     /* 0: its own */
    int norms_apart;   /* norms of the batch become those of each sample and channel */
    const char *hw;
    int nodes, per_node;
    enum topt_space space;
    enum topt_block_choice blocks;
    const char *algorithm; /* NULL: ft */
    int rows;              /* images are split by rows and columns too */
};

/* A system's restriction, and what the study leaves out beside it. */
struct study_restriction {
    struct topt_restriction all;           /* first: it is cast to this */
    const struct topt_restriction *system; /* or NULL */
};

/* Opaque but for what the document says. */
struct study {
    struct topt_request r;
    struct topt_model *model;
    struct topt_hw *hw;
    struct topt_planning micros;
    struct topt_grid_search shape;
    struct topt_algorithm algorithm; /* the row, restricted further */
    struct study_restriction restriction;
    struct topt_problem **problem; /* by variant, made when asked for */
};

struct figure {
    int found;
    double gib, seconds, compute, network;
    double fused; /* seconds where gradients are reduced in buckets behind backward */
    double apart; /* ... one by one */
    double again; /* seconds of the network that move inputs again in backward */
    int64_t bytes, time_ns;
};

/* Ends the program with a line where anything fails. */
void study_open(struct study *s, const struct study_ask *ask);
void study_close(struct study *s);
struct figure study_least(struct study *s);
/* The fastest within 'bytes' (0: any). */
struct figure study_fastest(struct study *s, int64_t bytes);
/* The fastest of all, told to whoever asks, who returns -1 with an error. */
typedef int study_told(void *ctx, const struct topt_costing *k,
                       const struct topt_strategy *at, struct topt_error *err);
void study_fastest_told(struct study *s, study_told *told, void *ctx);
/* The whole frontier; returns how many points, in an array that the caller frees. */
int study_frontier(struct study *s, struct figure **ret);
/* The same as what it costs alone, which is quicker. */
int study_costs(struct study *s, struct topt_cost **ret);
/* How many points of the frontier are faster than that. */
int study_faster(struct study *s, int64_t ns);
/* Points of the frontier: the fastest within each of 'n' limits, from the least memory to what
 * the fastest of all needs, in equal ratios.  Ascending, equal ones once; returns how many. */
int study_sample(struct study *s, int n, struct figure *ret);

#endif
