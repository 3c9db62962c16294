/* stage_layers.h - what a strategy's pieces add up to in each unit that stages are cut from.  Private to lower/. */
#ifndef TOPT_LOWER_STAGE_LAYERS_H
#define TOPT_LOWER_STAGE_LAYERS_H

#include "topt_lower.h"

/* Where stages lie on groups of unlike devices, each group has its own layers, filled by the same strategy and chained by
 * 'next' in the order of the profile. */
struct topt_layers {
    /* Borrowed, and filled by the owner: */
    const struct topt_model *model;
    const struct topt_settings *settings;
    const struct topt_hw *hw;
    const struct topt_mesh *mesh; /* of one stage */
    struct topt_schedule *schedule;
    const int *piece; /* by operator */
    int npieces;
    const struct topt_piece_time *spent;  /* by piece */
    const struct topt_piece_bytes *bytes; /* by piece */
    struct topt_fragment_cost summed;     /* of all pieces */
    /* Owned: */
    int64_t (*stays)[TOPT_CLASS_COUNT]; /* by piece: bytes held throughout, by class */
    struct topt_stage_units units;
    int *from;                   /* by unit: its first piece; and one more */
    struct topt_unit_sums *unit; /* by unit; and one more, as topt_evaluate_units says */
    int shared;                  /* the first and the last unit have one table */
    /* Borrowed, of unlike devices; else NULL: */
    struct topt_layers *next;    /* NULL: of the last group */
    const struct topt_hw *whole; /* the profile of all groups */
    /* What is asked: */
    int units_only;                   /* topt_evaluate_units() */
    int64_t memory_limit, time_limit; /* topt_evaluator_limit() */
    struct topt_passes *passes;       /* topt_evaluator_passes() */
    const int16_t *given;             /* topt_evaluator_cut() */
};
/* Fills what is owned, from what is borrowed. */
int topt_layers_init(struct topt_layers *t, struct topt_error *err) TOPT_MUST_CHECK;
void topt_layers_fini(struct topt_layers *t);
/* Makes 't' the layers of a group of 'whole', before those of the next group; both must stay where they are. */
void topt_layers_join(struct topt_layers *t, const struct topt_hw *whole,
                      struct topt_layers *next);

/* Adds units up, once pieces are known. */
void topt_layers_sum(struct topt_layers *t);

#endif
