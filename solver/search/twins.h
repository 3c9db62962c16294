/* twins.h - tables of repeated layers, which weigh the same but for a number.
 * Internal to this folder.  Thread safety: as weigh.h. */
#ifndef TOPT_TWINS_H
#define TOPT_TWINS_H

#include "weigh.h"

/* Find an earlier table that is made the same way as 't', which is new, of others. */
void topt_twin_find(struct tables *ts, struct table *t);

/* Where a table's factors are those of its twin plus a number, so is it: fill its 'least', 1.  Else 0. */
int topt_twin_least(const struct table *t, struct bound *b);

/* The same of what its factors' rests get from it, where it is the twin of a later table. */
int topt_twin_rest(const struct table *t, struct bound *b, int for_a, int for_b);

#endif
