/* topt_search_cmd.h - "topt solve": the search from the command line. */
#ifndef TOPT_SEARCH_CMD_H
#define TOPT_SEARCH_CMD_H

#include <stdatomic.h>

/* argv[0] is "solve".  Prints the frontier of a cost file on stdout, or one line on stderr;
 * returns the exit status: 0, 1 failed, 2 usage, 3 nothing fits.
 * Thread safety: for a program's main thread. */
int topt_cmd_solve(int argc, char **argv);

/* The flag that a command's search polls as its 'stop': set after so many seconds (0: never) of
 * the wall, and by the first interrupt.  For a program's main thread, once. */
const atomic_bool *topt_stop_after(double seconds);

/* Begin the time anew: clear the flag, and set it after so many seconds from now.  Not after an
 * interrupt. */
void topt_stop_again(double seconds);

/* Was it set by the time that was given, and not by an interrupt before? */
int topt_stop_was_in_time(void);

#endif
