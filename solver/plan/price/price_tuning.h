/* price_tuning.h - the numbers by which pricing is tuned: unit, and the row of
 * tests/bench/questions.txt that its mechanism is there for: run that row after changing
 * it.  None of them changes an exact answer. Private to plan/. */
#ifndef TOPT_PRICE_TUNING_H
#define TOPT_PRICE_TUNING_H

/* Bytes that a problem's tables may take by default: most machines have that to
 * spare.  More is refused; GPT-3's whole frontier in full on 64. */
#define TOPT_PROBLEM_MAX_BYTES ((int64_t)4 << 30)

enum {
    /* Layouts of a tensor of three dimensions from which on finding paths between layouts
     * takes longer than all else, so that prices begin as bounds; 8b-frontier-64 (400 of
     * them; 2 nodes of 8 have 80).  In the full space, where which axes do what is
     * chosen, too; gpt3-64-full (4,096; 70b-full-16 has 256, and is faster by exact
     * prices). */
    MANY_LAYOUTS = 128,
    MANY_FULL_LAYOUTS = 512,
    /* Entries that are priced exactly at first then; 8b-frontier-64. */
    PRICED_FIRST = 2048,
    /* Counted work of pricing a configuration, or a row of a table of moves: pairs of points that
     * are added up in the same time. */
    PRICED_WORK = 1 << 16,
};

#endif
