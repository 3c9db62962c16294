/* rival.h - what slices that were searched leave of another.
 * Internal to this folder.  Thread safety: rivals are read; a rivalry has one owner. */
#ifndef TOPT_SEARCH_RIVAL_H
#define TOPT_SEARCH_RIVAL_H

#include "arm.h"
#include "eliminate.h"
#include "make.h"

/* Tables that were made for a band. */
struct kept_band {
    int64_t from, to; /* memory at its ends */
    struct maker maker;
};

/* The tables of bands that took long. */
struct kept {
    struct kept_band *band;
    int n;
};

void topt_kept_fini(struct kept *k);

/* A slice's ports, and the slices that it need not be better than.  Everything is borrowed. */
struct rivals {
    const int *
        cut; /* operators that slices are cut at: their own costs are the first ports, ... */
    const struct arm *arm; /* ... these the others */
    int ncut, narms;
    const struct port *port;
    const int32_t *const *config; /* by operator: numbers in the whole; NULL: their own */
    const struct port *const *by; /* by other slice: its ports */
    int nby;
    /* The plan of the first of them, its configurations' numbers, and tables it kept. */
    const struct plan *plan;
    const int32_t *const *plan_config;
    const struct kept *kept;
    const struct match *match; /* by table; see topt_rivals_match */
};

/* Find which tables of the slice's plan are of the same operators and edges as one of the first
 * rival's.  In the arena; NOMEM. */
int topt_rivals_match(struct rivals *r, const struct plan *plan,
                      struct topt_arena *a) TOPT_MUST_CHECK;

/* What changing a port saves at least, if everything there becomes the fastest that is no heavier, or
 * what loses the least weight. */
enum { TOPT_NO_HEAVIER, TOPT_NEAREST, TOPT_SAVINGS };

/* The same for one band. */
struct rivalry {
    const struct rivals *rivals;
    const struct bound *bound; /* what weighs */
    struct topt_arena *arena;
    const struct maker *kept; /* tables of about this band; NULL: none */
    /* By port: of all that is near, and of what is left of it in the tables at hand. */
    struct saving (*near)[TOPT_SAVINGS], (*saving)[TOPT_SAVINGS];
    struct topt_cost loss[TOPT_RIVAL_WAYS]; /* outside the table at hand */
    int nways;
};

/* What is left between two strategies of so much memory, within the bound's allowance; it knows
 * the rest of operators, too.  1; 0 where nothing is that no rival has as well; -1: memory. */
int topt_rivalry_start(struct rivalry *v, const struct rivals *r, const struct plan *plan,
                       const struct bound *x, int64_t from, int64_t to) TOPT_MUST_CHECK;
void topt_rivalry_end(struct rivalry *v);

/* Where there are tables that were kept: begin to make tables; then begin with one; say what makes points of one of its
 * entries superfluous; and learn from it, once it is made, what is lost where it is outside. */
void topt_rivalry_begin(struct rivalry *v);
void topt_rivalry_table(struct rivalry *v, const struct table *t);
void topt_rivalry_entry(const struct rivalry *v, const struct table *t, int64_t entry,
                        struct merge_rival *ret);
void topt_rivalry_learn(struct rivalry *v, const struct maker *k, const struct table *t);

#endif
