/* host_f32.c - the kernels in single precision. */
#define TOPT_REAL_IS_DOUBLE 0
#include "k_all.h"

const struct topt_host_math topt_host_math_f32 = {kernels,  add_elements, update,
                                                  together, run_together, fill_normal};
