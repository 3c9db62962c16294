/* stages.h - a strategy's cost over pipeline stages.  Private to lower/. */
#ifndef TOPT_LOWER_STAGES_H
#define TOPT_LOWER_STAGES_H

#include "stage_layers.h"

/* The cost over as many stages as the settings have; 't': of the first group.  INVAL where groups of unlike devices are
 * not made of such stages. */
int topt_stages_cost(struct topt_layers *t, const struct topt_strategy *s,
                     struct topt_strategy_cost *cost,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
