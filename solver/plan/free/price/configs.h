/* configs.h - which configurations a family has.  Private to plan/. */
#ifndef TOPT_CONFIGS_H
#define TOPT_CONFIGS_H

#include "problem_data.h"

/* The configurations of a new family. */
int topt_family_list(struct topt_problem *p, struct family *f,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* With axes that are alike in an order that does not depend on their names: what a
 * configuration costs follows from that alone, since within a dimension axes keep their
 * order. */
struct topt_config topt_config_nameless(const struct topt_mesh *m, struct topt_config c);

#endif
