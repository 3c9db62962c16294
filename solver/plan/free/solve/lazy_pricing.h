/* lazy_pricing.h - fixing by bounds, where prices of moves are lower bounds until they
 * matter: one loop for whatever is asked.  Private to plan/. */
#ifndef TOPT_LAZY_PRICING_H
#define TOPT_LAZY_PRICING_H

#include "bound_levels.h"
#include "free.h"

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
    const struct topt_search_options *options;
    struct topt_solutions *ret;
    struct topt_error *err;
    struct topt_problem *whole, *part; /* part: what is left; owned where not the whole */
    struct bound_levels levels;        /* of the part */
    int64_t near;                      /* entries of the next problem with exact prices */
};

/* Answer the question for the whole; 's->ret' is empty at first, and where this fails. */
int topt_lazy_pricing(struct lazy_pricing *s, struct topt_error *err) TOPT_MUST_CHECK;

/* Price what is up to a level exactly, search it as the question does, and add what that
 * finds to the answer; its certificate is of that alone. */
int topt_lazy_search(struct lazy_pricing *s, int level, int near,
                     struct topt_certificate *ret) TOPT_MUST_CHECK;

/* Add what was found, which is empty then, to the answer, but for its certificate. */
int topt_lazy_take(struct lazy_pricing *s, struct topt_solutions *found,
                   struct topt_certificate *ret) TOPT_MUST_CHECK;

#endif
