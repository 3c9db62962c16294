/* hw_kernels.h - times of single kernels as they were measured.  See hw_kernels.c. */
#ifndef TOPT_HW_KERNELS_H
#define TOPT_HW_KERNELS_H

#include "topt_hw_sweep.h"

struct topt_kernel_times; /* opaque: the rows of one device */

/* Read device.kernels: an array of rows, one for each kernel, variant and type; the table is empty
 * where the device has none.  'types': the names of enum topt_dtype, NULL-ended.  The caller owns the
 * table.  INVAL where a row is not well formed. */
int topt_kernel_times_read(const json_t *device, const char *const types[],
                           struct topt_kernel_times **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;
void topt_kernel_times_free(struct topt_kernel_times *times);

/* Are there samples of any kernel? */
int topt_kernel_times_any(const struct topt_kernel_times *times);
/* Nanoseconds of a run by the samples of its kernel; 0 where there are none. */
double topt_kernel_times_ns(const struct topt_kernel_times *times, enum topt_dtype t,
                            const struct topt_kernel_run *run);
/* The same of a sweep. */
double topt_sweep_times_ns(const struct topt_kernel_times *times, enum topt_dtype t,
                           enum topt_sweep p, const char *of, int64_t bytes);

#endif
