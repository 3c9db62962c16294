/* rows.h - gradients of rows, and rows that have owners.  Inside the executor. */
#ifndef TOPT_EXEC_ROWS_H
#define TOPT_EXEC_ROWS_H

#include "session.h"

/* A gradient of rows: numbers of different rows of a table, in the order in which they came,
 * and their values one after the other. */
struct topt_rows {
    int64_t n, room, cols;
    int32_t *row, *slot; /* slot: a hash of 2 room places, 1 + place in 'row' */
    char *value;
};
/* That of a live buffer; borrowed until rows are added. */
struct topt_rows topt_session_rows_of(const struct topt_session *s, int buffer);

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
