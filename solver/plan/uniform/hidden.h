/* hidden.h - how much of the asynchronous communication of a uniform strategy
 * computation hides.  Private to plan/. */
#ifndef TOPT_PLAN_HIDDEN_H
#define TOPT_PLAN_HIDDEN_H

#include "grid_data.h"

/* Into the variant (settings.hidden_ppm), of the uniform space with overlap: there what
 * every operator does is known before the search, so that the whole step's schedule says
 * what is hidden, where elsewhere each operator's own computation does. */
int topt_uniform_hidden(struct topt_grid_search *s, struct topt_degrees *v,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
