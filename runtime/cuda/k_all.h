/* k_all.h - all kernels and their table; includes the sources, see real.h. */
#include "k_sums.h"
#include "k_linear.h"
#include "k_elementwise.h"
#include "k_norm.h"
#include "k_attention.h"
#include "k_flash.h"
#include "k_xent.h"
#include "k_image.h"
#include "k_channel.h"
#include "k_shape.h"
#include "k_moe.h"
#include "k_recurrent.h"
#include "k_scan.h"
#include "k_ssd.h"
#include "k_delta.h"
#include "k_selective.h"
#include "k_causal_conv.h"
#include "k_tables.h"
#include "k_update.h"

/* Kernels in the order of TOPT_CU_KERNELS, then the rest in that of struct cu_math. */
#define X(name)             name,
#define SPECIAL(name, type) name,
#define CU_MATH                                                                          \
    {                                                                                    \
        {TOPT_CU_KERNELS(X)}, rotate, softmax, again, slopes, table_slopes, narrow,      \
            settle, TOPT_CU_SPECIAL(SPECIAL) copy_box, add_box, add, add_wide, update    \
    }
