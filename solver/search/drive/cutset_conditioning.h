/* cutset_conditioning.h - a problem searched once for every configuration of a few of its
 * operators. Internal to this folder.  Thread safety: one owner; uses threads of its own
 * inside. */
#ifndef TOPT_SEARCH_CUTSET_CONDITIONING_H
#define TOPT_SEARCH_CUTSET_CONDITIONING_H

#include "topt_search.h"

struct conditioned {
    struct topt_frontier *frontier; /* with its epsilon and the counts of all slices */
    int nslices;
    char *decided; /* by operator: by heuristic, somewhere */
};

/* The frontier of 'p', by slices of the operators that 'cutset' marks; none: at once.
 * 0, or -1; finish also what failed. */
int topt_condition_on_cutset(const struct topt_search_problem *p, const char *cutset,
                             const struct topt_search_options *options,
                             struct conditioned *ret,
                             struct topt_error *err) TOPT_MUST_CHECK;
void topt_conditioned_fini(struct conditioned *c);

#endif
