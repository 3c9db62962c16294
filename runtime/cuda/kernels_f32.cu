/* kernels_f32.cu - the kernels in single precision. */
#define TOPT_CU_TYPE 32
#include "k_all.h"

const struct cu_math topt_cu_f32 = CU_MATH;
