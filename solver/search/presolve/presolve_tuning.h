/* presolve_tuning.h - the numbers by which reductions are tuned: unit, and the row of
 * tests/bench/questions.txt that its mechanism is there for: run that row after changing
 * it.  None of them changes an exact answer. Internal to this folder. */
#ifndef TOPT_SEARCH_PRESOLVE_TUNING_H
#define TOPT_SEARCH_PRESOLVE_TUNING_H

/* ---- when it pays (presolve.c) ----------------------------------------------------- */

enum {
    /* Values that the operators of a cutset have together; transformer-16. */
    MAX_SLICES = 1024,
    /* Operators from which on it pays to make a problem smaller first;
     * gpt-frontier-full-8. */
    MANY_OPS = 80,
};

/* ---- blocks become edges (block_elimination.c) ------------------------------------- */

enum {
    /* Points of an entry in the mean, of tables that are kept; of an operator's list of
     * costs, of which there is one; wideresnet-16. */
    MEAN_POINTS = 64,
    OWN_POINTS = 256,
    /* Points of a table; pairs of points looked at for one table, and for all;
     * wideresnet-16. */
    TABLE_POINTS = 1 << 22,
    TABLE_WORK = 1 << 27,
    TOTAL_WORK = 1 << 30,
    /* A table of very many entries may have so many points, and pairs, for each; all tables so
     * many pairs for each pair of configurations; wideresnet-16. */
    ENTRY_POINTS = 32,
    ENTRY_WORK = 1024,
    PAIR_WORK = 32,
    /* Points that are looked at before it is known whether a part of them that makes
     * thinning worth while is left out; forkjoin-96x32. */
    THIN_POINTS = 1 << 15,
    THIN_PART = 8,
    /* Links of a kind, that it is worth leaving out; forkjoin-96x32. */
    MANY_LINKS = 4,
};

#endif
