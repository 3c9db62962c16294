/* topt_command.h - what another program prints.  Thread safety: reentrant. */
#ifndef TOPT_COMMAND_H
#define TOPT_COMMAND_H

#include <stdint.h>

#include "topt_error.h"
#include "topt_text.h"

/* Run 'args' (the program and its arguments, NULL-ended) and append what it prints,
 * until 'deadline' in milliseconds of the monotonic clock.  NOTFOUND: there is no such
 * program; IO where it fails, with the first line that it says on standard error. */
int topt_command_read(const char *const *args, int64_t deadline, struct topt_text *out,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The same, and what it says on standard error, too: of a command that is told to do
 * something.  IO where it fails, with what it says. */
int topt_command_tell(const char *const *args, int64_t deadline,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
