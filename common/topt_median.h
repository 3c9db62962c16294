/* topt_median.h - numbers in rising order, and the median.  Thread safety: reentrant. */
#ifndef TOPT_MEDIAN_H
#define TOPT_MEDIAN_H

#include <stdlib.h>

static inline int topt_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void topt_sort_doubles(double *x, size_t n)
{
    qsort(x, n, sizeof *x, topt_by_value);
}

/* Sorts the numbers; of an even number of them the upper one of both in the middle.  0 of none. */
static inline double topt_median(double *x, size_t n)
{
    topt_sort_doubles(x, n);
    return n ? x[n / 2] : 0;
}

#endif
