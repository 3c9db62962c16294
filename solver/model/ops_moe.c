/* ops_moe.c - rows of the operator table: mixtures of experts. */
#include "ops.h"

const struct topt_op_spec topt_ops_moe[] = {
    {.name = NULL},
};
