/* topt_milp.h - a minimisation over binary variables under linear rows, and a solver in
 * another program.
 *
 * Thread safety: plain values; reentrant. */
#ifndef TOPT_MILP_H
#define TOPT_MILP_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

/* Columns are variables.  'begin' has ncols + 1 places in 'row' and 'value', which are a
 * column's entries.  A row's sum is 'most', where 'is_equal', or at most that. */
struct topt_milp {
    size_t ncols, nrows, nentries;
    int64_t *cost;
    size_t *begin;
    int *row;
    int64_t *value;
    int64_t *most;
    unsigned char *is_equal;
};

/* Sets ret[ncols] to 0 or 1.  -1 where no solution was found. */
typedef int topt_milp_solve(void *context, const struct topt_milp *p, unsigned char *ret,
                            struct topt_error *err);

void topt_milp_fini(struct topt_milp *p);

/* As text, and from it: numbers with blanks between.  INVAL where the text is none. */
int topt_milp_write(const struct topt_milp *p, const char *path,
                    struct topt_error *err) TOPT_MUST_CHECK;
int topt_milp_read(const char *path, struct topt_milp *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* The path of topt-queue, which lies beside the program that runs.  NOTFOUND where it doesn't. */
int topt_milp_program(char *ret, size_t size, struct topt_error *err) TOPT_MUST_CHECK;

/* A topt_milp_solve: 'context' is the path of a program (topt-queue), which gets the path of
 * a problem and prints the places of the variables that are 1.  NOTFOUND where there is no
 * such program. */
int topt_milp_ask(void *context, const struct topt_milp *p, unsigned char *ret,
                  struct topt_error *err);

#endif
