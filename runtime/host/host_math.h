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
    /* Kernels in one pass: how many of 'n' from the first on can be, and these. */
    int (*together)(const struct topt_kernel_call *c, int n);
    void (*run_together)(const struct topt_kernel_call *c, int n);
    /* Standard normal numbers 'first'... of a stream (random.h). */
    void (*normal)(double *dst, int64_t n, uint64_t stream, uint64_t first);
};

extern const struct topt_host_math topt_host_math_f32, topt_host_math_f64;

/* The same kernels compiled for wider vectors.  Nothing is fused and sums keep their order,
 * so that each level gives the same bits. */
enum topt_host_level {
    TOPT_HOST_BASE,
    TOPT_HOST_V3, /* AVX2 */
    TOPT_HOST_V4, /* AVX-512 */
    TOPT_HOST_LEVEL_COUNT
};
extern const struct topt_host_math topt_host_math_f32_v3, topt_host_math_f64_v3,
    topt_host_math_f32_v4, topt_host_math_f64_v4;
/* NULL where this processor, or the build, has no such level. */
const struct topt_host_math *topt_host_math_at(enum topt_dtype dtype,
                                               enum topt_host_level l);

#endif
