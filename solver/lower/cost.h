/* cost.h - all fragments of one operator, added up.  Private to lower/. */
#ifndef TOPT_COST_H
#define TOPT_COST_H

#include "tally.h"

/* All fragments of an operator of one step, into a fresh tally. */
int topt_tally_op(struct topt_tally *t, const struct topt_costing *k, int op,
                  const struct topt_config *c, struct topt_error *err) TOPT_MUST_CHECK;

#endif
