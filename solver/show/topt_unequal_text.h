/* topt_unequal_text.h - the answer about groups of unlike devices (topt_unequal.h), in words.
 * Thread safety: reentrant; answers are only read. */
#ifndef TOPT_UNEQUAL_TEXT_H
#define TOPT_UNEQUAL_TEXT_H

#include <jansson.h>

/* Is a feasible answer about several groups together?  Else it is that about a cluster of like devices. */
int topt_is_unequal(const json_t *answer);

/* What several groups share, or the stages that lie on them; freed by the caller, NULL without memory. */
char *topt_unequal_text(const json_t *answer);

/* The questions that were asked, a line each; freed by the caller, NULL where there is none. */
char *topt_groups_text(const json_t *answer);

#endif
