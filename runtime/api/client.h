/* client.h - another program's output, for what is asked of a toptd: `topt client` knows
 * how, and keeps HTTP and credentials out of programs that train. */
#ifndef TOPT_RUNTIME_CLIENT_H
#define TOPT_RUNTIME_CLIENT_H

#include "topt_error.h"
#include "topt_text.h"

/* Runs args[0] (by $PATH where it has no slash) and appends what it prints; what it
 * complains of goes to standard error.  IO where it can't be started, NOTFOUND where it
 * fails, LIMIT beyond 64 MiB. */
int topt_client_output(char *const args[], struct topt_text *out,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
