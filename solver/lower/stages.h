/* stages.h - a strategy's cost over pipeline stages, from what its layers take.  Private to lower/. */
#ifndef TOPT_LOWER_STAGES_H
#define TOPT_LOWER_STAGES_H

#include "topt_lower.h"
#include "topt_pipeline.h"

/* Pieces of a step, which their owner fills, and the units that they make.  Where stages lie on groups of unlike devices,
 * each group has its own, filled by the same strategy, 'next' to each other in the order of the profile. */
struct topt_layers {
    const struct topt_model *model; /* borrowed, as all up to 'bytes' */
    const struct topt_settings *settings;
    const struct topt_hw *hw;
    const struct topt_mesh *mesh; /* of one stage */
    struct topt_schedule *schedule;
    const int *piece; /* by operator */
    int npieces;
    const struct topt_piece_time *spent; /* by piece */
    const struct topt_piece_bytes *bytes;
    int64_t (*stays)
        [TOPT_CLASS_COUNT]; /* by piece: bytes that it stays with, by class; owned */
    struct topt_stage_units units;    /* owned */
    int *from;                        /* by unit: its first piece; and one more; owned */
    struct topt_unit_sums *unit;      /* and behind them as topt_evaluator_units; owned */
    int shared;                       /* the first and the last unit have one table */
    struct topt_fragment_cost summed; /* of all pieces */
    struct topt_layers *next;         /* borrowed; NULL: none, or devices are alike */
    const struct topt_hw *whole; /* the profile of all groups; NULL: devices are alike */
    int units_only;              /* topt_evaluate_units() */
    int64_t memory_limit, time_limit; /* topt_evaluator_limit() */
    struct topt_passes *passes;       /* topt_evaluator_passes() */
    const int16_t *given;             /* topt_evaluator_cut() */
};
/* With what is borrowed filled in. */
int topt_layers_init(struct topt_layers *t, struct topt_error *err) TOPT_MUST_CHECK;
void topt_layers_fini(struct topt_layers *t);
/* One of the groups of a profile, before the next one; both stay where they are. */
void topt_layers_join(struct topt_layers *t, const struct topt_hw *whole,
                      struct topt_layers *next);

/* Add units up, once pieces are known. */
void topt_layers_sum(struct topt_layers *t);

/* The cost over as many stages as the settings have; 't': of the first group.  INVAL where groups of unlike devices are
 * not made of such stages. */
int topt_stages_cost(struct topt_layers *t, const struct topt_strategy *s,
                     struct topt_strategy_cost *cost,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
