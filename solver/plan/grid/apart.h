/* apart.h - what uniform strategies of another framework never have in memory
 * together.  Private to plan/. */
#ifndef TOPT_APART_H
#define TOPT_APART_H

#include "grid_data.h"

/* What uniform strategies of another framework never have in memory together, into the
 * variant: what backward recomputes, and a block's gradients on their way, are not there
 * while an operator outside of blocks runs (the head and the loss, which take most at
 * once); in a step of one micro-batch no gradients are. */
int topt_grid_apart(struct topt_grid_search *s, struct topt_variant *v,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
