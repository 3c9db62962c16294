/* host.h - inside the host backend: its table of kernels by enum topt_kernel.
 * Thread safety: kernels keep no state. */
#ifndef TOPT_HOST_H
#define TOPT_HOST_H

#include "topt_device.h"

typedef void topt_host_kernel(const struct topt_kernel_call *c);

struct topt_host_math {
    topt_host_kernel *const *kernel; /* TOPT_KERNEL_COUNT, NULL: not a computation */
    void (*add)(void *dst, const void *src, int64_t n);
    void (*update)(const struct topt_update_call *c);
};

extern const struct topt_host_math topt_host_math_f32, topt_host_math_f64;

/* Call 'row' for each row of a region: source, destination, elements. */
typedef void topt_host_row(void *dst, const void *src, int64_t n);
void topt_host_box_rows(const struct topt_box_copy *c, topt_host_row *row);
/* Copy a box between two blocks; the CPU's copy_box. */
void topt_host_copy_box(const struct topt_box_copy *c);

#endif
