/* foresee.h - what need not be made of a product, from a few of its points and what swaps at its ends cost.
 * Internal to this folder.  Thread safety: one owner; once it is found it is read by many, each with a room of his
 * own. */
#ifndef TOPT_FORESEE_H
#define TOPT_FORESEE_H

#include "merge.h"
#include "table.h"
#include "topt_pool.h"

#include <stdatomic.h>

struct maker;

/* What stands around a table over two operators, as far as it is known before it is made.  All is by its classes. */
struct surroundings {
    const struct table *table; /* NULL: nothing is known of any */
    /* By end: what a strategy costs more at most that has class w there instead of v (v * n + w); beyond
     * TOPT_SWAP_MOST where that can't be.  NULL: nothing is known of the end. */
    const struct topt_cost *swap[2];
    struct beside {
        const struct table *table; /* over the same operators; NULL: there is none */
        const int32_t
            *entry[2]; /* offsets into it by class of the one end and of the other */
    } beside;
};

/* The points beside entry (x, y). */
struct run topt_beside_entry(const struct maker *k, const struct beside *b, int x, int y);

/* One operand: the table, and its entry (x, k) or (k, y). */
struct operand {
    const struct table *table;
    const int32_t *off; /* by row (or by y) */
    const int32_t *k;   /* by k */
};

/* A product by rows: row x is made of those entries (x, k) of the one operand that have points, and of those (k, y)
 * of the other. */
struct rows {
    const struct maker *maker;
    struct operand row, other;
    int nrows, ny, nk, row_is_a;
    const int32_t *y_first, *y; /* by k: those y that the other has points for */
};

struct run topt_rows_entry(const struct rows *r, const struct operand *o, int x, int k);

enum { TOPT_WEIGHINGS = 3 };

/* Points of an entry that are on its frontier: memory rises, time falls. */
struct seeds {
    struct topt_cost cost[TOPT_WEIGHINGS];
    uint32_t n;
};

struct foresight {
    const struct rows *rows;
    const struct surroundings *around;
    double memory[TOPT_WEIGHINGS], time[TOPT_WEIGHINGS]; /* how much they count */
    float
        *least[TOPT_WEIGHINGS]; /* by entry: its lightest point; INFINITY: it has none */
    float *swap
        [2]
        [TOPT_WEIGHINGS]; /* by end, from class v: at [0] v * n + w, at [1] w * n + v */
    struct seeds *seeds;  /* by entry, with what stands beside it */
    float *other
        [TOPT_WEIGHINGS]; /* by place in rows->y: the other operand's lightest point */
    atomic_int next, failed;
};

/* What is foreseen of a row: for every end, weighing and y the class whose points with its swap are lightest. */
struct foreseen {
    int x;
    float *best;
    int32_t *by[2][TOPT_WEIGHINGS];
};

/* Find it; 'r' and 'around' are borrowed.  0, or -1: memory.  Finish both also what failed. */
int topt_foresee(struct foresight *f, const struct rows *r,
                 const struct surroundings *around, struct topt_pool *pool);
void topt_foresight_fini(struct foresight *f);
int topt_foreseen_init(struct foreseen *s, int ny);
void topt_foreseen_fini(struct foreseen *s);

/* Look at a row; then have one of its entries merged against what outdoes points of it, before those are queued. */
void topt_foresee_row(const struct foresight *f, struct foreseen *s, int x);
int topt_foresee_entry(const struct foresight *f, const struct foreseen *s, int y,
                       struct merge *m) TOPT_MUST_CHECK;

#endif
