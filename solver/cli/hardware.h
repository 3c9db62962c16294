/* hardware.h - one question for several kinds of hardware.  Private to cli/. */
#ifndef TOPT_CLI_HARDWARE_H
#define TOPT_CLI_HARDWARE_H

#include "ask.h"

/* --hw A,B,...: the question for each, as {"hardware": [row, ...], "soonest": row, "fewest_gpu_hours": row,
 * "cheapest": row (with prices), "feasible": whether any fits, "job", "assumed"}.  A row is an alternative of
 * the answer, or the answer without its plan, with "hw", "device" and "price".  New, owned by the
 * caller. */
int topt_hardware_compare(struct topt_question *q, json_t **ret,
                          struct topt_error *err) TOPT_MUST_CHECK;
/* Print it as a table, and in one line which kind is the cheapest and which the soonest. */
void topt_hardware_show(const json_t *doc);

#endif
