/* kernels_f64.cu - the kernels in double precision. */
#define TOPT_CU_TYPE 64
#include "k_all.h"

const struct cu_math topt_cu_f64 = CU_MATH;
