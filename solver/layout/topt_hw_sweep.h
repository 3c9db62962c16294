/* topt_hw_sweep.h - times of a step's work beside its operators' kernels: clearing, adding up, updating.
 * They follow from bytes alone, as 'topt profile' clocked them by size (hw_kernels.c). */
#ifndef TOPT_HW_SWEEP_H
#define TOPT_HW_SWEEP_H

#include "topt_hw.h"

enum topt_sweep { TOPT_SWEEP_ZERO, TOPT_SWEEP_ADD, TOPT_SWEEP_UPDATE, TOPT_SWEEP_COUNT };
/* As rows of device.kernels name it.  Static. */
const char *topt_sweep_name(enum topt_sweep p);

/* A sweep that reads and writes so many bytes together; 'of': the optimizer whose update it is, or "".
 * A profile without samples of it gives the time of an elementwise kernel of as many bytes. */
struct topt_time topt_hw_sweep(const struct topt_hw *hw, enum topt_dtype t,
                               enum topt_sweep p, const char *of, int64_t bytes,
                               int devices);

#endif
