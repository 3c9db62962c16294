/* host.h - inside the host backend: what the executor has of it, whatever the device. */
#ifndef TOPT_HOST_H
#define TOPT_HOST_H

#include "topt_device.h"

/* Copy a box between two blocks; the CPU's copy_box. */
void topt_host_copy_box(const struct topt_box_copy *c);

/* Standard normal numbers 'first'... of a stream, as fast as the processor makes them. */
void topt_host_normal(double *dst, int64_t n, uint64_t stream, uint64_t first);

#endif
