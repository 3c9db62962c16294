/* kernels_bf16.cu - the kernels in bf16, computed in single precision. */
#define TOPT_CU_TYPE 16
#include "k_all.h"

const struct cu_math topt_cu_bf16 = CU_MATH;
