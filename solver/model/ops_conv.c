/* ops_conv.c - rows of the operator table: convolution, pooling, batch norm: images are [batch, channels, height, width]. */
#include "ops.h"

const struct topt_op_spec topt_ops_conv[] = {
    {.name = NULL},
};
