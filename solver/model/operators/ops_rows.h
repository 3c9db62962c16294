/* ops_rows.h - the rows of the operator table: short forms to write them in, and the
 * files that have them.  Private to model/. */
#ifndef TOPT_OPS_ROWS_H
#define TOPT_OPS_ROWS_H

#include "topt_model.h"

#define V(o) (1u << (o))        /* a step touches the value of operand o */
#define G(o) (1u << (16 + (o))) /* ... its gradient */
#define D(d) (1u << (d))        /* dimension d of the operator */
#define A(x) ((topt_attr_set)1 << TOPT_A_##x)

/* clang-format off */
#define KERNEL(k, r, w) \
    {.kind = TOPT_STEP_KERNEL, .kernel = TOPT_K_##k, .reads = (r), .writes = (w)}
#define KERNEL_AS(k, r, w, ...) \
    {.kind = TOPT_STEP_KERNEL, .kernel = TOPT_K_##k, .reads = (r), .writes = (w), __VA_ARGS__}
#define JOINS(k)            (TOPT_K_##k + 1)
#define KERNEL_AT(d, k, r, w)   KERNEL_AS(k, r, w, .loop = 1 + (d))
#define KERNEL_OVER(d, k, r, w) KERNEL_AS(k, r, w, .dims = (d))
#define SUM(o, d)           {.kind = TOPT_STEP_SUM, .operand = (o), .dims = (d)}
#define SUM_AT(at, o, d)    {.kind = TOPT_STEP_SUM, .operand = (o), .dims = (d), .loop = 1 + (at)}
#define MAX(o, d)           {.kind = TOPT_STEP_MAX, .operand = (o), .dims = (d)}
#define HALO(o, w)          {.kind = TOPT_STEP_HALO, .operand = (o), .into = (w)}
#define HALO_ADD(w, o)      {.kind = TOPT_STEP_HALO_ADD, .operand = (w), .into = (o)}
#define MOVE(o, to)         {.kind = TOPT_STEP_MOVE, .operand = (o), .into = (to)}
#define MOVE_AT(at, o, to)  {.kind = TOPT_STEP_MOVE, .operand = (o), .into = (to), .loop = 1 + (at)}

/* An operand: its name, its role, OVER the operator's dimensions that it has, and what is
 * special about it. */
#define OPERAND(n, what, ...) {.name = (n), .role = TOPT_##what, __VA_ARGS__}
#define OVER(...) .ndim = sizeof(int[]){__VA_ARGS__} / sizeof(int), .dim = {__VA_ARGS__}

#define BATCH      {"b", TOPT_SPLIT_BATCH}
#define SEQ        {"s", TOPT_SPLIT_SEQUENCE}
#define FEATURES   {"d", TOPT_SPLIT_FEATURE}
/* Of images; an operand that has the first four dimensions is one. */
#define CHANNELS   {"c", TOPT_SPLIT_FEATURE}
#define IMAGE_ROWS {"h", TOPT_SPLIT_SPATIAL}
#define IMAGE_COLS {"w", TOPT_SPLIT_SPATIAL}
#define IMAGE      OVER(0, 1, 2, 3)
/* clang-format on */

/* Each file of rows ends with one whose name is NULL. */
extern const struct topt_op_spec topt_ops_dense[], topt_ops_attention[], topt_ops_conv[],
    topt_ops_recurrent[], topt_ops_moe[], topt_ops_shape[], topt_ops_channel[],
    topt_ops_resample[], topt_ops_scan[], topt_ops_mixers[], topt_ops_tables[];

#endif
