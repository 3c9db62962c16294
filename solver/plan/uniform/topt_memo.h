/* topt_memo.h - what was priced and searched of one problem, from which further questions about it
 * are answered (topt_plan_from).
 *
 * A problem is all that decides what strategies cost: model with batch and length, hardware,
 * framework, precision, what is trained, limits on tables.  A question adds a memory limit, a mode,
 * numbers of GPUs, an efficiency, a selection of factors.
 * Thread safety: one owner at a time. */
#ifndef TOPT_MEMO_H
#define TOPT_MEMO_H

#include <stddef.h>
#include <stdint.h>

struct topt_memo; /* opaque */

struct topt_memo *topt_memo_create(void);    /* empty; NULL without memory */
void topt_memo_destroy(struct topt_memo *m); /* NULL is fine */

/* Bytes that it holds, about. */
size_t topt_memo_bytes(const struct topt_memo *m);
/* Variants that were priced or searched since it was made: as before, where an answer took none. */
int64_t topt_memo_searches(const struct topt_memo *m);

#endif
