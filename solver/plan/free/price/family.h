/* family.h - configurations of alike operators, and of alike hubs, made once.  Private
 * to plan/. */
#ifndef TOPT_FAMILY_H
#define TOPT_FAMILY_H

#include "problem_data.h"

/* The family of an operator, or (op -1) of a tensor's hub, made where it is new.
 * -1 with an error. */
int topt_problem_family(struct topt_problem *p, int op, int tensor,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
