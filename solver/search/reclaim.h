/* reclaim.h - points of a growing plan that nobody needs any more, taken out.
 * Internal to this folder.  Thread safety: as make.h. */
#ifndef TOPT_SEARCH_RECLAIM_H
#define TOPT_SEARCH_RECLAIM_H

#include "eliminate.h"
#include "make.h"

/* Which tables may be read once more, by table: those of factors, and those that a step would come upon again whose own
 * tables may be read.  'needed' is all 0. */
void topt_reclaim_needed(const struct plan *p, char *needed);

/* Take out the points that neither are in a table that is needed, nor are what a point that
 * stays was made of; the others keep their order.  'has', by table: are its points in the maker's output?  It becomes 0
 * where nothing is left of a table that is not needed.  Such tables have one entry then, or none.  0, or -1: memory. */
int topt_reclaim(struct maker *k, struct tables *ts, const char *needed, char *has,
                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
