/* fuse.h - operators that are one here.  Private to model/. */
#ifndef TOPT_FUSE_H
#define TOPT_FUSE_H

#include "topt_model.h"

/* Make one operator of those that a config's reader has as one: projections of queries, keys
 * and values with attention, and of a gate with what it gates.  Replaces '*m' where
 * there are any; -1 leaves it. */
int topt_model_fuse(struct topt_model **m, struct topt_error *err) TOPT_MUST_CHECK;

#endif
