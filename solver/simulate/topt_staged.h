/* topt_staged.h - a step of a strategy over pipeline stages: the passes of its schedule in time.
 *
 * They are those that its cost was found by (topt_pipeline.h); nothing is computed anew.  Thread safety:
 * reentrant; a staged step has one owner. */
#ifndef TOPT_STAGED_H
#define TOPT_STAGED_H

#include <jansson.h>

#include "topt_lower.h"
#include "topt_pipeline.h"

struct topt_staged {
    struct topt_strategy_cost cost;
    struct topt_passes passes;
    const struct topt_settings *settings; /* borrowed, as the model's name */
    const char *model;
};

/* One step of 's', whose settings have several stages. */
int topt_staged_step(const struct topt_costing *k, const struct topt_strategy *s,
                     struct topt_staged *ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_staged_fini(struct topt_staged *s);

/* Figures of the whole and of each stage, "topt-simulation/1"; a new reference. */
json_t *topt_staged_json(const struct topt_staged *s);

#endif
