/* say.h - lines for the user, as the program says them: sbatch's plugin by Slurm, others
 * on standard error. Thread safety: none; for a program's main thread. */
#ifndef TOPT_SAY_H
#define TOPT_SAY_H

#include "topt_error.h"

/* From now on 'say' takes each line. */
void topt_say_by(void (*say)(int is_error, const char *line));

void topt_say_info(const char *format, ...) TOPT_PRINTF(1, 2);
void topt_say_error(const char *format, ...) TOPT_PRINTF(1, 2);

#endif
