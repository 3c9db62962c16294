/* block_elimination.h - a problem whose blocks have become edges.
 * Internal to this folder.  Thread safety: one owner; lift.h reads it. */
#ifndef TOPT_SEARCH_BLOCK_ELIMINATION_H
#define TOPT_SEARCH_BLOCK_ELIMINATION_H

#include "condensed_problem.h"

/* Of operators of 'p', those stay that 'keep' marks and those where blocks hang together;
 * of the others, those whose tables stay small go.  Points beyond the options' limits are
 * left out.  0, or -1; finish also what failed. */
int topt_eliminate_blocks(const struct topt_search_problem *p, const char *keep,
                          const struct topt_search_options *options,
                          struct condensed *ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_condensed_fini(struct condensed *c);

#endif
