/* fed.h - loads of a part of the batch, and the moves to where samples are wanted.  Private to
 * lower/. */
#ifndef TOPT_FED_H
#define TOPT_FED_H

#include "fragment.h"

/* In place of a LOAD. */
int topt_fed_load(const struct topt_fragments *f, const struct topt_instr *load);

#endif
