/* sweep.h - the frontier of a planned problem, band after band.
 * Internal to this folder.  Thread safety: one owner; uses threads of its own inside. */
#ifndef TOPT_SWEEP_H
#define TOPT_SWEEP_H

#include "eliminate.h"

/* The frontier within the options' limits, or at least its fastest point where only that is
 * wanted.  0 and an owned frontier, or -1. */
int topt_sweep(struct plan *plan, const struct topt_search_options *options,
               struct topt_frontier **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
