/* solutions.h - solutions of problems.  Private to plan/. */
#ifndef TOPT_SOLUTIONS_H
#define TOPT_SOLUTIONS_H

#include "caps.h"
#include "certificate.h"
#include "degrees.h"

struct topt_memo_point;

struct topt_solution {
    int64_t memory_bytes, time_ns;
    struct topt_strategy *strategy;
    struct topt_degrees degrees;  /* of which the problem was made */
    struct topt_memo_point *memo; /* that it is a copy of, borrowed; NULL: none */
};

struct topt_solutions {
    int n;
    struct topt_solution *at; /* memory ascending, time strictly descending */
    struct topt_certificate certificate;
    int stopped; /* what was not looked at, nothing is known of */
    int ncaps;   /* pairs of caps that were solved */
    struct topt_caps *caps;
};

/* Add 'from' to 'into' (which takes its strategies) and reduce. */
int topt_solutions_merge(struct topt_solutions *into, struct topt_solutions *from,
                         struct topt_error *err) TOPT_MUST_CHECK;

void topt_solutions_fini(struct topt_solutions *s);

/* Copies of 'n' more, which take over their strategies. */
int topt_solutions_append(struct topt_solutions *s, const struct topt_solution *more,
                          int n, struct topt_error *err) TOPT_MUST_CHECK;

/* In order, without what others are as good as. */
int topt_solutions_reduce(struct topt_solutions *s,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Only the i-th is left, or (-1) none. */
void topt_solutions_keep(struct topt_solutions *s, int i);

/* Time of the fastest so far, or INT64_MAX. */
int64_t topt_solutions_best(const struct topt_solutions *s);

#endif
