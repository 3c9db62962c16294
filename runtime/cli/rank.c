/* rank.c - a rank before there is a communicator: its number, and how it complains. */
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>

int topt_launch_rank(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                       "SLURM_PROCID", NULL};
    for (int i = 0; name[i]; i++)
        if (getenv(name[i]))
            return atoi(getenv(name[i]));
    return 0;
}

void topt_complain(const char *cmd, const struct topt_error *err)
{
    fprintf(stderr, "topt %s: %s\n", cmd, err->text);
}
