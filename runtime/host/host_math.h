/* host_math.h - the host backend's tables of kernels by enum topt_kernel, one for each
 * precision.  Thread safety: kernels keep no state. */
#ifndef TOPT_HOST_MATH_H
#define TOPT_HOST_MATH_H

#include "topt_device.h"

typedef void topt_host_kernel(const struct topt_kernel_call *c);

struct topt_host_math {
    topt_host_kernel *const *kernel; /* TOPT_KERNEL_COUNT, NULL: not a computation */
    void (*add)(void *dst, const void *src, int64_t n);
    void (*update)(const struct topt_update_call *c);
};

extern const struct topt_host_math topt_host_math_f32, topt_host_math_f64;

#endif
