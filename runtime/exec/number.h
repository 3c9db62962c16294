/* number.h - numbers of a dtype in the host's memory, read and written as doubles.
 * bf16 is the upper half of an f32, rounded to the nearest, ties to even. */
#ifndef TOPT_NUMBER_H
#define TOPT_NUMBER_H

#include <stdint.h>
#include <string.h>

#include "topt_layout.h"

static inline float topt_from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint16_t topt_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40); /* stays not a number */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline double topt_number_get(enum topt_dtype t, const void *p, int64_t i)
{
    if (t == TOPT_F64)
        return ((const double *)p)[i];
    return (double)(t == TOPT_BF16 ? topt_from_bf16(((const uint16_t *)p)[i])
                                   : ((const float *)p)[i]);
}

static inline void topt_number_put(enum topt_dtype t, void *p, int64_t i, double x)
{
    if (t == TOPT_F64)
        ((double *)p)[i] = x;
    else if (t == TOPT_BF16)
        ((uint16_t *)p)[i] = topt_to_bf16((float)x);
    else
        ((float *)p)[i] = (float)x;
}

#endif
