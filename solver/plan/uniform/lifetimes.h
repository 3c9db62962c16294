/* lifetimes.h - memory of uniform strategies of another framework that is never in
 * use at once.  Private to plan/. */
#ifndef TOPT_PLAN_LIFETIMES_H
#define TOPT_PLAN_LIFETIMES_H

#include "grid_data.h"

/* The bytes that a uniform strategy of another framework never holds at once, into the
 * variant (settings.apart_bytes, late_permille): what backward recomputes, and a block's
 * gradients on their way, are not there while an operator outside of blocks runs (the head
 * and the loss, which take most at once); in a step of one micro-batch no gradients are. */
int topt_uniform_lifetimes(struct topt_grid_search *s, struct topt_degrees *v,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
