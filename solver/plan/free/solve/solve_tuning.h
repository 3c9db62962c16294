/* solve_tuning.h - the numbers by which this folder's searches are tuned: unit, and the
 * row of tests/bench/questions.txt that its mechanism is there for: run that row
 * after changing it.  None of them changes an exact answer. Private to plan/solve. */
#ifndef TOPT_SOLVE_TUNING_H
#define TOPT_SOLVE_TUNING_H

/* ---- fixing by bounds (lazy_pricing.c, lazy_fastest.c, lazy_frontier.c) ------------ */

enum {
    /* Entries of a small problem to those of the one before, times; 8b-frontier-64. */
    NEARER_TIMES = 4,
    /* A problem at most so many times larger than its next small problem is searched as a
     * whole; 8b-frontier-64. */
    SMALL_TIMES = 4,
    /* Entries whose moves are priced at most where no bound says which matter: a minute,
     * and some GiB; GPT-3 in canonical on 1024. */
    WHOLE_ENTRIES = 1 << 24,
    /* Entries of the first small problem for the fastest: a part of all, and at most;
     * 70b-canonical-pow2. */
    NEAR_PART = 512,
    NEAR_MOST = 16384,
    /* Orbits are searched with one such part of the tolerance; gpt3-64-full. */
    PROOF_PART = 2,
    /* A problem has to become so many times smaller for another round of a frontier,
     * unless what was searched is less than a part of it; 8b-frontier-64. */
    SHRINK_TIMES = 2,
    ENOUGH_TIMES = 64,
    /* A small problem's tolerance to that of the one before, times; 8b-frontier-64. */
    FINER_TIMES = 16,
    /* Entries of tables whose bound takes some hundredths of a second; 8b-frontier-64. */
    WEIGHED_ENTRIES = 1 << 20,
};
/* Parts of a cost, 8b-frontier-64.  Tolerance of a frontier's first small problem; a
 * corner of the hull that is nearer by less is of no use; how far beyond the hull the
 * first bound looks. */
#define FIRST_TOLERANCE (1.0 / 1024)
#define FINEST_CORNER   (1.0 / 8192)
#define FIRST_REACH     (1.0 / 64)

/* ---- bounds (caps_bound.c, dual_bound.c, solve_context.c) -------------------------- */

enum {
    /* Scalarised passes for one balance, and for one hull, at most; gpt3-64-full and
     * 8b-frontier-64. */
    BALANCE_PASSES = 24,
    HULL_PASSES = 24,
    /* Ranges of caps that are looked at, at most; gpt3-64-full. */
    RANGES = 16,
    /* A rise of the bound by less than such a part of what is between it and what is
     * wanted did not pay; narrower caps are looked at where they can tell such a part;
     * gpt3-64-full. */
    PAID_PART = 8,
    WIDE_PART = 2,
    /* Where nothing is known that fits: what matters ends by such a part above the bound;
     * gpt3-64-full. */
    GUESS_PART = 4,
    /* Steps in which caps are lowered to what fits; they come down fast, or hardly;
     * 70b-any. */
    FEASIBLE_STEPS = 16,
};

/* ---- branch and bound over caps (cap_search.c) ------------------------------------- */

/* Searches below what is in excess, at most, in a box; gpt3-64-full. */
enum { EXCESS_SEARCHES = 4 };

#endif
