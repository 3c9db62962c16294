/* topt_minmax.h - the smaller and the larger of two integers. */
#ifndef TOPT_MINMAX_H
#define TOPT_MINMAX_H

#include <stdint.h>

static inline int64_t topt_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t topt_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
