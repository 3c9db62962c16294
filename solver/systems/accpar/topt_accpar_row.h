/* topt_accpar_row.h - AccPar and HyPar as systems that choose splits by themselves, rows of
 * comparisons.
 *
 * Each cuts the devices in halves again and again, and gives every layer with weights one of its
 * types at every cut, by its own costs (topt_accpar.h).  A type is a split of our space: the
 * batch, input or output features.  What has no weights follows as is fastest. */
#ifndef TOPT_ACCPAR_ROW_H
#define TOPT_ACCPAR_ROW_H

#include "topt_plan.h"

/* ... and Tofu, whose recursion is of the same kind. */
extern const struct topt_system topt_accpar_row, topt_hypar_row, topt_tofu_row;

#endif
