/* hw_here.h - the profile of the GPUs that are at hand, where --hw names none.  Private to cli/; for a program's main
 * thread, and never for a daemon: other programs are run. */
#ifndef TOPT_CLI_HW_HERE_H
#define TOPT_CLI_HW_HERE_H

#include "topt_error.h"
#include "topt_text.h"

/* '*ret': the shipped profile of the GPUs that nvidia-smi shows, else of those that sinfo says Slurm's nodes have, as is
 * appended to 'said'; NULL where neither shows a GPU.  USAGE, which names profiles that are near, where none is of them.
 * Takes 15 seconds at most. */
int topt_hw_here(const char **ret, struct topt_text *said,
                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
