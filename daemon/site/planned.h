/* planned.h - Slurm's queue as it is planned, for many who look: what `topt queue --json` prints,
 * made behind them by a thread of its own.
 *
 * Nothing runs while nobody looks.  A look that finds a plan older than PLANNED_FRESH_MS has it made
 * again, and is given the old one unless that is older than PLANNED_OLD_MS: then there is none yet.
 * Thread safety: any thread looks; create and destroy belong to the main thread. */
#ifndef TOPTD_SITE_PLANNED_H
#define TOPTD_SITE_PLANNED_H

#include <stdint.h>

#include "topt_error.h"

enum { PLANNED_FRESH_MS = 10000, PLANNED_OLD_MS = 60000, PLANNED_RUN_MS = 30000 };

struct planned;

/* 'program' is topt-rightsize; 'scontrol' as site_create has it.  NOTFOUND where either isn't there. */
int planned_create(const char *program, const char *scontrol, struct planned **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* A plan that is being made is not waited for longer than a second; NULL is fine. */
void planned_destroy(struct planned *p);

/* 1 and a copy of the document, which the caller frees, with its age; 0: it is being made, ask again in a
 * second; -1: it can't be made, and why. */
int planned_look(struct planned *p, char **ret, int64_t *ret_age_ms,
                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
