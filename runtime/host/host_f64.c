/* host_f64.c - the kernels in double precision. */
#define TOPT_REAL_IS_DOUBLE 1
#include "k_all.h"

const struct topt_host_math topt_host_math_f64 = {kernels,  add_elements, update,
                                                  together, run_together, fill_normal};
