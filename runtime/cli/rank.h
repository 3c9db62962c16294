/* rank.h - a rank before there is a communicator: its number, and how it complains. */
#ifndef TOPT_RUNTIME_RANK_H
#define TOPT_RUNTIME_RANK_H

#include "topt_error.h"

/* Rank as the launcher's environment has it, before there is a communicator; 0 alone. */
int topt_launch_rank(void);
/* Is it the first of its node?  Where no launcher says: rank 0. */
int topt_launch_first_of_node(void);

/* The line "topt CMD: ..." on standard error. */
void topt_complain(const char *cmd, const struct topt_error *err);
void topt_complain_line(const char *cmd, const char *line);

#endif
