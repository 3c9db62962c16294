/* topt_unequal.h - groups of unlike devices share one job: which rows of the batch each takes,
 * and what part of the model's state.
 *
 * Every group trains on its own rows by a plan of its own, on all of its devices, as any other
 * cluster would; groups are data parallel to each other.  Rows go by speed: so many that the
 * slowest group is done as early as can be.  The model's state is either in every group whole,
 * and gradients are all-reduced between groups, or it is sharded over the devices of all groups,
 * by their memory, and gathered from the others as from the group's own.
 * Thread safety: reentrant; requests, models and profiles are only read. */
#ifndef TOPT_UNEQUAL_H
#define TOPT_UNEQUAL_H

#include "topt_question.h"

/* The fastest shares for all devices of a profile with groups (topt_hw_groups() > 0).
 *  0 and '*ret' the answer, a new reference (docs/FORMATS.md: "The answer for unlike devices"),
 *    also where nothing fits ("feasible" is false);
 * -1: the request is malformed, was canceled, or passed a limit. */
int topt_plan_unequal(const struct topt_request *r, json_t **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The same for people; freed by the caller, NULL without memory. */
char *topt_unequal_text(const json_t *answer);

#endif
