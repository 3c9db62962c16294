/* k_all.h - all kernels and their table; includes the sources, see real.h. */
#include "k_gemm.h"
#include "k_linear.h"
#include "k_image.h"
#include "k_elementwise.h"
#include "k_norm.h"
#include "k_attention.h"
#include "k_moe.h"
#include "k_xent.h"
#include "k_update.h"

static topt_host_kernel *const kernels[TOPT_KERNEL_COUNT] = {
    [TOPT_K_EMBEDDING_FWD] = embedding_fwd,
    [TOPT_K_EMBEDDING_BWD] = embedding_bwd,
    [TOPT_K_LINEAR_FWD] = linear_fwd,
    [TOPT_K_LINEAR_BWD_X] = linear_bwd_x,
    [TOPT_K_LINEAR_BWD_W] = linear_bwd_w,
    [TOPT_K_BIAS_FWD] = bias_fwd,
    [TOPT_K_BIAS_BWD] = bias_bwd,
    [TOPT_K_POSITION_FWD] = position_fwd,
    [TOPT_K_POSITION_BWD] = position_bwd,
    [TOPT_K_UNARY_FWD] = unary_fwd,
    [TOPT_K_UNARY_BWD] = unary_bwd,
    [TOPT_K_GLU_FWD] = glu_fwd,
    [TOPT_K_GLU_BWD] = glu_bwd,
    [TOPT_K_SCALE_FWD] = scale_fwd,
    [TOPT_K_SCALE_BWD] = scale_bwd,
    [TOPT_K_ADD_FWD] = add_fwd,
    [TOPT_K_ADD_BWD] = add_bwd,
    [TOPT_K_MUL_FWD] = mul_fwd,
    [TOPT_K_MUL_BWD] = mul_bwd,
    [TOPT_K_NORM_MEAN] = norm_mean,
    [TOPT_K_NORM_VAR] = norm_var,
    [TOPT_K_NORM_APPLY] = norm_apply,
    [TOPT_K_NORM_BWD_SUM] = norm_bwd_sum,
    [TOPT_K_NORM_BWD_APPLY] = norm_bwd_apply,
    [TOPT_K_CHANNEL_BIAS_FWD] = channel_bias_fwd,
    [TOPT_K_CHANNEL_BIAS_BWD] = channel_bias_bwd,
    [TOPT_K_GLOBAL_POOL_FWD] = global_pool_fwd,
    [TOPT_K_GLOBAL_POOL_BWD] = global_pool_bwd,
    [TOPT_K_COPY_FWD] = copy_fwd,
    [TOPT_K_COPY_BWD] = copy_bwd,
    [TOPT_K_TOKENS_FWD] = tokens_fwd,
    [TOPT_K_TOKENS_BWD] = tokens_bwd,
    [TOPT_K_ATTENTION_FWD] = attention_fwd,
    [TOPT_K_ATTENTION_BWD] = attention_bwd,
    [TOPT_K_XENT_MAX] = xent_max,
    [TOPT_K_XENT_SUM] = xent_sum,
    [TOPT_K_XENT_LOSS] = xent_loss,
    [TOPT_K_XENT_BWD] = xent_bwd,
    [TOPT_K_ROUTE_FWD] = route_fwd,
    [TOPT_K_ROUTE_BWD] = route_bwd,
    [TOPT_K_DISPATCH_FWD] = dispatch_fwd,
    [TOPT_K_DISPATCH_BWD] = dispatch_bwd,
    [TOPT_K_EXPERTS_UP] = experts_up,
    [TOPT_K_EXPERTS_ACT] = experts_act,
    [TOPT_K_EXPERTS_DOWN] = experts_down,
    [TOPT_K_EXPERTS_BWD_REMAKE] = experts_bwd_remake,
    [TOPT_K_EXPERTS_BWD_DOWN] = experts_bwd_down,
    [TOPT_K_EXPERTS_BWD_A] = experts_bwd_a,
    [TOPT_K_EXPERTS_BWD_ACT] = experts_bwd_act,
    [TOPT_K_EXPERTS_BWD_UP] = experts_bwd_up,
    [TOPT_K_EXPERTS_BWD_X] = experts_bwd_x,
    [TOPT_K_COMBINE_FWD] = combine_fwd,
    [TOPT_K_COMBINE_BWD] = combine_bwd,
    [TOPT_K_VARIABLE_FWD] = variable_fwd,
    [TOPT_K_VARIABLE_BWD] = variable_bwd,
};
