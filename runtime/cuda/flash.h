/* flash.h - attention of all heads in one kernel, where k_flash.h has one for it.  See flash.c. */
#ifndef TOPT_CU_FLASH_H
#define TOPT_CU_FLASH_H

#include "attention.h"
#include "cuda.h"

/* Which keys queries of local sample 'b' see, as kernels take it. */
struct cu_mask topt_cuda_mask(const struct attention *a, int64_t b);

/* Has the device a kernel for this attention in its numbers? */
int topt_cuda_flash_takes(const struct topt_device *d, const struct attention *a);

/* As the kernels of the same names (cuda.h), of an attention that is taken. */
int topt_cuda_flash_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                        struct topt_error *err);
int topt_cuda_flash_delta(struct topt_device *d, const struct topt_kernel_call *c,
                          struct topt_error *err);
int topt_cuda_flash_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                        struct topt_error *err);

#endif
