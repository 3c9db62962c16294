/* k_normal.h - normal numbers by counter, as topt_random_normal() has them, in a loop that
 * compilers turn into vectors. */
#include "real.h"

static void fill_normal(double *dst, int64_t n, uint64_t stream, uint64_t first)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = topt_random_normal(stream, first + (uint64_t)i);
}
