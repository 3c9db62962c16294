/* prices.h - what the configurations of a family of operators cost.  Private to plan/. */
#ifndef TOPT_PRICES_H
#define TOPT_PRICES_H

#include "problem_data.h"

/* Price the configurations of operators. */
int topt_family_cost(const struct topt_problem *p, struct family *f,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
