/* topt_unequal.h - groups of unlike devices share one job: which rows of the batch each takes,
 * and what part of the model's state.
 *
 * Either all obey one strategy, whose first axis lies between groups and has shares (joint.c).  Or
 * every group trains on its own rows by a plan of its own, on all of its devices, as any other
 * cluster would, and groups are data parallel to each other.  Rows go by speed: so many that the
 * slowest group is done as early as can be.  The model's state is either in every group whole,
 * and gradients are all-reduced between groups, or it is sharded over the devices of all groups,
 * by their memory, and gathered from the others as from the group's own.
 * Thread safety: reentrant; requests, models and profiles are only read. */
#ifndef TOPT_UNEQUAL_H
#define TOPT_UNEQUAL_H

#include "topt_plan.h"

/* The fastest shares for all devices of a profile with groups (topt_hw_groups() > 0); neither
 * r->mode nor r->algorithm is looked at.
 *  0 and '*ret' the answer, a new reference (docs/FORMATS.md: "The answer for unlike devices"),
 *    also where nothing fits ("feasible" is false);
 * -1: the request is malformed, was canceled, or passed a limit. */
int topt_plan_unequal(const struct topt_request *r, json_t **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Which groups a job takes: of mini-parallelism the fewest devices that hold it, of mini-time the
 * fastest of so many; a group by itself, or numbers of several that people book.
 *  0 and '*ret' the answer, a new reference: that of topt_plan about the group "group", or that of
 *    topt_plan_unequal, both with "choices", [{"groups", "gpus", "feasible", "time_ns"}], what was
 *    asked, and where not all devices of several groups, "gpus_of" each;
 * -1: as topt_plan; USAGE where no groups have as many devices as are asked for, or there is no group
 *     of that name.
 * 'which', the field "groups" of a question: "" or "all"; "one": groups by themselves alone, for who gives
 * one job one kind of GPUs; or names with commas between, of those that are chosen among. */
int topt_plan_groups(const struct topt_request *r, const char *which, json_t **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
int topt_groups_named(const char *which); /* does it have names? */

/* The profile of so many devices (r->gpus), for questions about one profile: '*ret' is the whole where
 * all of its devices are asked for, or where it has no groups; else the group in which so many are
 * fastest, borrowed from r->hw, or, unless 'one_kind', numbers of several groups, which is
 * '*ret_own' as well, for the caller to destroy (else NULL). */
int topt_groups_profile(const struct topt_request *r, int one_kind,
                        const struct topt_hw **ret, struct topt_hw **ret_own,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Frontiers of all devices of a profile with groups, as topt_plan_frontier has them: the best
 * shares for one memory limit after another, each three tenths below what the last one needed, and
 * what equal shares can do.  "memory_limit" is that of the group that has most; every point fits
 * each of the groups. */
int topt_unequal_frontier(const struct topt_request *r, json_t **ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Shares of unlike devices as ours in comparisons; no plan where the profile has no groups, or not
 * all devices are asked for. */
extern const struct topt_system topt_unequal_row;

#endif
