/* bounds.h - problems whose prices are lower bounds until they matter: fixing by bounds.  Private to
 * plan/free/solve. */
#ifndef TOPT_BOUNDS_H
#define TOPT_BOUNDS_H

#include "exact.h"
#include "topt_lower_bound.h"

/* A cost where memory and time count so much. */
static inline topt_wide topt_weight(int64_t memory, int64_t time, struct topt_cost c)
{
    return (topt_wide)memory * c.memory + (topt_wide)time * c.time;
}

/* ---- bound_levels.c: how near to what is wanted configurations are ----------------- */

/* Most are for what is very near; the last is what does not matter. */
enum { TOPT_LEVEL_BEYOND = 4095 };

/* By configuration of all families.  Families of one variable have the same levels. */
struct bound_levels {
    struct topt_problem *p;
    uint16_t *of;
};

/* Everything is beyond.  Where it fails there is nothing to free. */
int topt_bound_levels_init(struct bound_levels *l, struct topt_problem *p,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Everything is beyond again. */
void topt_bound_levels_clear(struct bound_levels *l);

void topt_bound_levels_fini(struct bound_levels *l);

/* The level of what stands 'part' of the way from the best to the end of what matters. */
int topt_bound_level_of(double part);

/* After topt_lower_bound_within of the problem's weigher: everything by where its
 * lightest strategy stands on the way from 'begin' to 'end', where that is nearer than it
 * is yet. Families of a variable are not yet alike. */
void topt_bound_levels_find(struct bound_levels *l, const struct topt_lower_bound *w,
                            struct topt_cost begin, struct topt_cost end);

/* Families of a variable get the nearest level of all. */
void topt_bound_levels_share(struct bound_levels *l);

/* Entries of all tables that configurations up to a level have; INT64_MAX where memory is
 * short. */
int64_t topt_bound_levels_entries(const struct bound_levels *l, int level);

/* The farthest level with no more entries than that, but the nearest at least. */
int topt_bound_levels_with(const struct bound_levels *l, int64_t entries);

/* The configurations up to a level as a problem (narrowed_problem.c) with exact prices of all
 * moves between them. */
int topt_bound_levels_exact(const struct bound_levels *l, int level,
                            struct topt_problem **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

/* ---- caps_bound.c: what can be as fast as is wanted -------------------------------- */

struct caps_bound {
    struct solve_context context; /* of the problem */
    /* Slower strategies are of no interest; INT64_MAX: nothing is known, and a guess is
     * made. */
    int64_t aim;
    double bound; /* ns: nothing that fits is faster; a survey only raises it */
    /* The balance of memory and time by which the bound is best lies between these, of
     * which one fits and one does not.  Both 0: not known.  That of a part is hardly
     * another than that of the whole, so they are kept from one survey to the next. */
    struct topt_cost fast, small; /* small: of less memory */
    /* Levels go from 'begin', that of the nearest, to 'end', where what matters ends
     * (ns). */
    int64_t begin, end;
};

/* Look at all strategies that fit.  '*ret_some': can any be as fast as is wanted?  Then
 * 'levels', which are the problem's and beyond at first, say how near each configuration
 * is.  LIMIT where the problem can't be weighed. */
int topt_caps_bound(struct caps_bound *s, struct bound_levels *levels, int *ret_some,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* After that: the level of what is no slower than 'aim'. */
int topt_caps_bound_level(const struct caps_bound *s, int64_t aim);

/* ---- dual_bound.c: what scalarised passes at all slopes say ------------------------ */

/* One weighted sum. */
struct line {
    struct topt_weights by;
    /* By configuration of all families: what the lightest strategy with it weighs; INT64_MAX
     * beyond the allowance.  Of variables that are alike, and of families of one variable, one
     * has it. */
    int64_t *of;
};

struct dual_bound {
    const struct topt_problem *p; /* which may be gone when this is finished */
    struct line line[HULL_PASSES];
    int n;
    int64_t work; /* pairs of entries that were looked at */
};

/* The part of a problem's hull that is of interest. */
struct dual_bound_options {
    const struct topt_search_options *search;
    struct topt_cost limit; /* nothing heavier, nothing slower */
    double reach;           /* of the hull: what is farther by a part is all alike */
    /* A corner by which the hull is nearer by a part is worth another pass. */
    double fine;
};

/* Weigh a problem.  '*ret_some': can anything be within the limits?  LIMIT where it can't
 * be weighed; where it fails there is nothing to free. */
int topt_dual_bound_init(struct dual_bound *h, struct topt_problem *p,
                         const struct dual_bound_options *o, int *ret_some,
                         struct topt_error *err) TOPT_MUST_CHECK;

void topt_dual_bound_fini(struct dual_bound *h);

/* Can a strategy with this configuration cost no more than one of these corners? */
int topt_dual_bound_reaches(const struct dual_bound *h, int config,
                            const struct topt_cost *corner, int ncorners);

/* Where the lightest strategy with it stands, by the weighted sum that is best for it: 0
 * on the hull, 1 where the reach ends, or beyond that. */
double topt_dual_bound_at(const struct dual_bound *h, int config);

/* By what part a cost is farther than the hull, by the weighted sum that tells the
 * least. */
double topt_dual_bound_beyond(const struct dual_bound *h, struct topt_cost c);

/* No strategy within so much memory is faster. */
int64_t topt_dual_bound_fastest(const struct dual_bound *h, int64_t memory);

/* ---- lazy_pricing.c: one loop for whatever is asked -------------------------------- */

struct lazy_pricing;

/* The next step after a search of the configurations that are nearest. */
enum lazy_step {
    LAZY_FAILED = -1,
    LAZY_KEEP,    /* the configurations up to a level are the next round's */
    LAZY_FURTHER, /* nothing is known yet: search more of them */
    LAZY_FINISH,  /* bounds exclude little: price and search all that is left */
    LAZY_DONE     /* nothing that is left matters */
};

/* The question: the fastest strategy (lazy_fastest.c) or the frontier (lazy_frontier.c). */
struct lazy_question {
    /* Bound the strategies of the part that is left: levels of its configurations, which
     * are all beyond at first, and the last that matters.  1, 0 where nothing matters, or
     * -1, with LIMIT where it can't be weighed. */
    int (*bound)(struct lazy_pricing *s, int *ret_level);
    /* Search a problem whose prices are exact; 'near': it is not all that is left. */
    int (*search)(struct lazy_pricing *s, struct topt_problem *exact, int near,
                  struct topt_solutions *ret);
    /* The levels anew, with what was found by now; 'left' entries mattered before, and
     * 'tries' searches of this round came before. */
    enum lazy_step (*update)(struct lazy_pricing *s, int64_t left, int tries,
                             int *ret_level);
    /* Search all that is left, up to a level: what it claims. */
    int (*finish)(struct lazy_pricing *s, int level, struct topt_certificate *ret);
    /* Claim the whole answer; 'stopped': not all was looked at. */
    void (*certificate)(struct lazy_pricing *s, int stopped);
};

struct lazy_pricing {
    const struct lazy_question *question;
    struct solve_context context; /* of the whole */
    struct topt_problem *part;    /* what is left; owned where not the whole */
    struct bound_levels levels;   /* of the part */
    int64_t near;                 /* entries of the next problem with exact prices */
};

/* Answer the question for the whole; its solutions are empty at first, and where this fails. */
int topt_lazy_pricing(struct lazy_pricing *s, struct topt_error *err) TOPT_MUST_CHECK;

/* Price what is up to a level exactly, search it as the question does, and add what that
 * finds to the answer; its certificate is of that alone. */
int topt_lazy_search(struct lazy_pricing *s, int level, int near,
                     struct topt_certificate *ret) TOPT_MUST_CHECK;

/* Add what was found, which is empty then, to the answer, but for its certificate. */
int topt_lazy_take(struct lazy_pricing *s, struct topt_solutions *found,
                   struct topt_certificate *ret) TOPT_MUST_CHECK;

#endif
