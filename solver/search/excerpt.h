/* excerpt.h - a problem without some configurations and some pairs of them.
 * Internal to this folder.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_EXCERPT_H
#define TOPT_SEARCH_EXCERPT_H

#include "narrow.h"

/* Give a problem that has few of its configurations left (topt_narrow_to) tables of its own, of their
 * classes alone.  'mark' is a set (bits.h) of the pairs that stay allowed: 'at' says by edge where the marks of its table's
 * entries begin, as that is now; where it is -1, or 'at' NULL, all do.  Edges that share a table and marks share
 * the new one. */
int topt_excerpt(struct narrowed *n, const uint64_t *mark, const int64_t *at,
                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
