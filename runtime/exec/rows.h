/* rows.h - gradients of rows, and rows that have owners.  Inside the executor. */
#ifndef TOPT_EXEC_ROWS_H
#define TOPT_EXEC_ROWS_H

#include "session.h"

/* No rows.  A buffer that was just allocated is made so before anything else. */
void topt_session_rows_clear(struct topt_session *s, int buffer);

/* ROWS_FETCH and ROWS_ADD.  Every rank calls them. */
int topt_session_rows_fetch(struct topt_session *s, const struct topt_instr *i,
                            struct topt_error *err) TOPT_MUST_CHECK;
int topt_session_rows_add(struct topt_session *s, const struct topt_instr *i,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* What an update needs beside the whole parameter: rows of the gradient, and sums of squares of
 * rows that are cut, added up over ranks, in scratch memory. */
int topt_session_rows_update(struct topt_session *s, const struct topt_instr *i,
                             struct topt_update_call *c,
                             struct topt_error *err) TOPT_MUST_CHECK;

/* The block of the table that a gradient of rows is of, as doubles; 'ret' is zero before. */
void topt_session_rows_spread(const struct topt_session *s, int buffer, double *ret);
/* The sum of the squares of its values. */
double topt_session_rows_square(const struct topt_session *s, int buffer);

void topt_session_rows_fini(struct topt_session *s);

#endif
