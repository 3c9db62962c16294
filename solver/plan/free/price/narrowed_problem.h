/* narrowed_problem.h - problems with some of the configurations of another one, on the
 * same nodes and edges.  Private to plan/. */
#ifndef TOPT_NARROWED_PROBLEM_H
#define TOPT_NARROWED_PROBLEM_H

#include "free.h"
#include "topt_error.h"

/* The part of a problem with bounds (or of a part of it) that has the configurations up to the
 * 'last' level, by their numbers among all; families of one variable have the same levels.  It
 * borrows from the problem, which must outlive it. */
int topt_narrowed_problem(struct topt_problem *p, const uint16_t *level, int last,
                          struct topt_problem **ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* The configurations of a problem with orbits, or 'every' one which they stand for, as a
 * problem of its own: with as many bounds, of moves between just these.  How many there
 * are of the latter, as what is searched. */
int topt_problem_of_orbits(const struct topt_problem *p, int every, int bounds,
                           struct topt_problem **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
