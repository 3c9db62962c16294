/* command.h - what a command of Slurm prints.  Thread safety: reentrant. */
#ifndef TOPTD_SITE_COMMAND_H
#define TOPTD_SITE_COMMAND_H

#include <stdint.h>

#include "topt_error.h"
#include "topt_text.h"

/* Run 'args' (the program and at least three more, NULL-ended) and append what it prints,
 * until 'deadline' in milliseconds of the monotonic clock.  NOTFOUND: there is no such
 * program. */
int site_run(const char *const *args, int64_t deadline, struct topt_text *out,
             struct topt_error *err) TOPT_MUST_CHECK;

/* The same, and what it says on standard error, too: of a command that is told to do
 * something.  IO where it fails, with what it says. */
int site_tell(const char *const *args, int64_t deadline,
              struct topt_error *err) TOPT_MUST_CHECK;

#endif
