/* script.h - a batch script's #SBATCH lines.  Thread safety: none needed. */
#ifndef TOPT_SBATCH_SCRIPT_H
#define TOPT_SBATCH_SCRIPT_H

#include <stddef.h>

#include "options.h"

/* Read the options of the lines before the first command.  '*out' gets the script without
 * those that topt takes, and '*ret_changed' says whether that is another text.  INVAL for
 * a heterogeneous job. */
int sbatch_script_read(const char *text, size_t len, struct sbatch_options *o,
                       struct topt_text *out, int *ret_changed,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
