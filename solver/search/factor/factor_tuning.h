/* factor_tuning.h - the numbers by which tables and products are tuned: unit, and the row
 * of tests/bench/questions.txt that its mechanism is there for: run that row after
 * changing it. None of them changes an exact answer. Internal to this part. */
#ifndef TOPT_SEARCH_FACTOR_TUNING_H
#define TOPT_SEARCH_FACTOR_TUNING_H

/* ---- which operator is eliminated next (elimination.c) ----------------------------- */

enum {
    /* Factors of an operator, and operators that share one with it, of which all are
     * looked at; the star of bench_solve. */
    FACTORS_SEEN = 64,
    /* Factors of an operator of which all pairs are compared; 70b-full-16. */
    FACTORS_PAIRED = 8,
};

/* ---- tables of points (make_points.c) ------------- */

enum {
    /* Entries of a table after which it is said that all will have too many points, and
     * times the mean that is allowed; wideresnet-16. */
    MEAN_AFTER = 64,
    MEAN_TIMES = 2,
    /* The part of a segment's budget that its first table may use; chain-480x28. */
    FIRST_TABLE_PART = 16,
};

/* ---- tables of weighted sums (table.c, min_plus.c) ---------------------------------- */

enum {
    /* Entries of a tile that stays in registers; 8b-frontier-64. */
    TOPT_TILE_ROWS = 4,
    TOPT_TILE_COLUMNS = 16,
};

#endif
