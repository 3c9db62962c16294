/* drive_tuning.h - the numbers by which the search of segments and slices is tuned: unit,
 * and the row of tests/bench/questions.txt that its mechanism is there for: run
 * that row after changing it. None of them changes an exact answer. Internal to this
 * folder. */
#ifndef TOPT_SEARCH_DRIVE_TUNING_H
#define TOPT_SEARCH_DRIVE_TUNING_H

/* ---- a segment (segment.c) --------------------------------------------------------- */

enum {
    /* The part of a segment's range that is tried first; and the part where one strategy is
     * wanted, which is hardly above its edge of the hull; chain-480x28 and 70b-any. */
    FIRST_REACH = 64,
    FIRST_REACH_FAST = 1 << 14,
    /* Times as far each further time; where a time costs more than what it finds; and
     * where it is expensive only a part farther; chain-480x28. */
    NEXT_REACH = 2,
    NEXT_REACH_CHEAP = 8,
    DEAR_PART = 3,
    /* Shares of the pairs of a scalarised pass: less than a part is cheap, more than so many
     * times is expensive; chain-480x28. */
    CHEAP_PART = 4,
    DEAR_TIMES = 2,
    /* So much less far where tables took too much, and so many times more may be taken
     * from then on; 70b-any. */
    STEP_BACK = 4,
    BUDGET_TIMES = 16,
    /* Rests are found so many times farther at a time; chain-480x28. */
    REST_REACH = 8,
    /* Where known costs leave less than a part, that is tried at once; transformer-16. */
    KNOWN_PART = 8,
    /* Pairs: a table takes as long as that, however small it is; chain-480x28. */
    TABLE_PAIRS = 32,
    /* A segment is parted untried that sags by a part of its corner, or by so many times
     * the tolerance; forkjoin-96x32. */
    SAG = 64,
    TOL = 1,
};

/* ---- a segment's problem of its own (reduced_cost_fixing.c) ------------------------ */

enum {
    /* Depth of segments before which hardly anything is left out; chain-480x28. */
    MIN_DEPTH = 4,
    /* Pairs of entries: what looks at less is not worth a plan; chain-480x28. */
    MIN_PAIRS = 1 << 12,
    /* Times fewer pairs of configurations; chain-480x28. */
    GAIN = 3,
    /* Rounds of narrowing, at most; chain-480x28. */
    FIXING_TRIES = 2,
};

/* ---- slices (cutset_conditioning.c) ------------------------------------------------ */

/* Slices at a time, that know nothing of each other yet; transformer-16. */
enum { AT_A_TIME = 8 };

#endif
