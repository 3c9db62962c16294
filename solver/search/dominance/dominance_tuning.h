/* dominance_tuning.h - the numbers by which dominance is tuned: unit, and the row of
 * tests/bench/questions.txt that its mechanism is there for: run that row after changing
 * it. None of them changes an exact answer. Internal to this folder. */
#ifndef TOPT_SEARCH_DOMINANCE_TUNING_H
#define TOPT_SEARCH_DOMINANCE_TUNING_H

/* ---- configurations (config_dominance.c) ------------------------------------------- */

/* Rounds over all operators, at most; transformer-16. */
enum { ROUNDS = 3 };
/* Pairs of entries that may be compared for one operator; it stays as it is where there
 * would be more.  Of a hundred that may be, one or two are: most pairs of configurations
 * differ too much at the first glance; transformer-16. */
#define MAX_PAIRS 0x1p34

/* ---- points of tables (table_dominance.c, entry_dominance.c) ----------------------- */

enum {
    /* Values of a table's end, as many squared of which are compared; wideresnet-16. */
    MOST_VALUES = 2048,
    /* Leaves that a table is made of: what is made of more has little outside;
     * wideresnet-16. */
    MOST_PARTS = 1024,
    /* Edges outside of an end of a table that is made of several: where there are more,
     * little is dominated; wideresnet-16. */
    MOST_SIDES = 1,
    /* Values that dominated others lately, which are tried first; wideresnet-16. */
    RECENT = 3,
    /* Costs beyond so many times what substitutions may cost are left as they are; a
     * substitution that is not possible costs more than those; wideresnet-16. */
    ROOM = 4,
};

#endif
