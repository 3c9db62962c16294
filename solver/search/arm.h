/* arm.h - what a slice costs along a chain of operators that begins where it is cut.
 * Internal to this folder.  Thread safety: reentrant; an arena has one owner. */
#ifndef TOPT_SEARCH_ARM_H
#define TOPT_SEARCH_ARM_H

#include "outdo.h"

enum { TOPT_ARM_STEPS = 8 };

/* Operators in the order of the chain, the first one cut; edge[i] leads to op[i]. */
struct arm {
    int nops;
    int op[TOPT_ARM_STEPS + 1], edge[TOPT_ARM_STEPS + 1];
};

/* The arm of one edge, which joins an operator that is cut to one that is not; it has only the
 * first as yet. */
struct arm topt_arm_start(const struct topt_search_problem *p, const char *cut, int edge);

/* Make the arm longer by one operator.  0 where it has its full length, or where the chain ends:
 * at an operator that has more than one edge beside the arm's, or at one that is cut. */
int topt_arm_grow(const struct topt_search_problem *p, const char *cut, struct arm *arm);

/* Everything of a slice ('p', in which the first operator has one value) from the arm's first
 * edge to its last operator's own costs as a port: an entry for each configuration of the last
 * operator.  'before' is that of the arm without its last operator; of the first alone, nothing
 * is to be paid.  All in the arena.  1; 0 where a sum passes 2^63 - 1, or where 'max_work'
 * sums do not do ('*ret_work': those that were made); -1: memory. */
int topt_arm_port(const struct topt_search_problem *p, const struct arm *arm,
                  const struct port *before, int64_t max_work, struct topt_arena *a,
                  struct port *ret, int64_t *ret_work) TOPT_MUST_CHECK;
int topt_arm_nothing(const struct topt_search_problem *p, const struct arm *arm,
                     struct topt_arena *a, struct port *ret) TOPT_MUST_CHECK;

#endif
