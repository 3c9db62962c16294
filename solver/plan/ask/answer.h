/* answer.h - one answer written down.  Private to plan/. */
#ifndef TOPT_ANSWER_H
#define TOPT_ANSWER_H

#include "gpu_count.h"

/* The checked plan, and why it is the one. */
int topt_answer_write(struct topt_planning *m, const struct topt_best *b, const char *why,
                      json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The search was ended before all was looked at, and where a part of it was too large, why. */
void topt_answer_put_stopped(json_t *answer, const struct topt_planning *m);

/* Nothing was found on so many before the search was stopped. */
int topt_answer_unfinished(const struct topt_planning *m, int64_t gpus, json_t **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Nothing fits on so many: the lightest that there is; 'doubt': of fewer it is not
 * known. */
int topt_answer_infeasible(struct topt_planning *m, int64_t gpus, int doubt, json_t **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* So many can't share the batch (topt_count_divides_batch). */
int topt_answer_indivisible(const struct topt_planning *m, int64_t gpus,
                            const int64_t nearest[2], json_t **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
