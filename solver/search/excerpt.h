/* excerpt.h - a problem without some configurations and some pairs of them.
 * Internal to this folder.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_EXCERPT_H
#define TOPT_SEARCH_EXCERPT_H

#include "narrow.h"

/* Give a problem that has few of its configurations left (topt_narrow_to) tables of its own, of their
 * classes alone.  'entry' (by edge, by entry of the table it has now) marks the pairs that stay
 * allowed; where it, or an edge's, is NULL, all do.  Edges that share a table and marks share the
 * new one. */
int topt_excerpt(struct narrowed *n, const char *const *entry,
                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
