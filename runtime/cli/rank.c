/* rank.c - a rank before there is a communicator: its number, and how it complains. */
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int topt_launch_rank(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                       "SLURM_PROCID", NULL};
    if (getenv("TOPT_RENDEZVOUS") && getenv("TOPT_RANK"))
        return atoi(getenv("TOPT_RANK"));
    for (int i = 0; name[i]; i++)
        if (getenv(name[i]))
            return atoi(getenv(name[i]));
    return 0;
}

int topt_launch_first_of_node(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                       "MPI_LOCALRANKID", NULL};
    for (int i = 0; name[i] && !getenv("TOPT_RENDEZVOUS"); i++)
        if (getenv(name[i]))
            return atoi(getenv(name[i])) == 0;
    return topt_launch_rank() == 0;
}

void topt_complain(const char *cmd, const struct topt_error *err)
{
    topt_complain_line(cmd, err->text);
}

void topt_complain_line(const char *cmd, const char *line)
{
    fprintf(stderr, "%stopt %s: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", cmd,
            line);
}
