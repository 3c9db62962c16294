/* ops_recurrent.c - rows of the operator table: recurrences over the sequence. */
#include "ops.h"

const struct topt_op_spec topt_ops_recurrent[] = {
    {.name = NULL},
};
