/* profile.c - placeholder */
#include "cli.h"
#include <stdio.h>
int topt_cmd_profile(int argc, char **argv)
{
    (void)argc, (void)argv;
    fprintf(stderr, "topt profile: not there yet\n");
    return 1;
}
