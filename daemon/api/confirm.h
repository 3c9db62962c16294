/* confirm.h - Slurm is asked whose jobs are that were reported, behind the reports, by a
 * thread of its own.
 *
 * A report waits here for its turn; what finds no room, or is still here when the daemon
 * ends, stays unconfirmed until the job reports again.  Thread safety: any thread adds;
 * create and destroy belong to the main thread. */
#ifndef TOPTD_CONFIRM_H
#define TOPTD_CONFIRM_H

#include <stdint.h>

#include "topt_error.h"

struct confirm;

/* What it asks, and what it does with the answer.  'ask' gives 1 the job is the user's, 0
 * it is not, -1 ask again later. */
struct confirm_config {
    int (*ask)(void *ctx, int64_t job, int64_t uid);
    void (*confirmed)(void *ctx, int64_t id);
    void *ctx;
    int64_t pause_ms; /* before it asks again where it got no answer */
};

int confirm_create(const struct confirm_config *config, struct confirm **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* Ends after the question that is under way; NULL is fine. */
void confirm_destroy(struct confirm *c);

enum { CONFIRM_ROOM = 64, CONFIRM_EACH = 8, CONFIRM_TRIES = 3 };
/* The report 'id' says that the job is of 'uid'.  At most CONFIRM_EACH of a user wait.  1
 * it waits, 0 there is no room. */
int confirm_add(struct confirm *c, int64_t id, int64_t job, int64_t uid);

#endif
