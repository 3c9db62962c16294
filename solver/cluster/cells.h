/* cells.h - lines of a table of commas.  Thread safety: reentrant. */
#ifndef TOPT_CLUSTER_CELLS_H
#define TOPT_CLUSTER_CELLS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 16 };

/* The cells of a line, which is cut up: how many. */
static inline int cells_of(char *line, char *cell[CELLS])
{
    int n = 0;
    for (char *at = line; at && n < CELLS; n++) {
        cell[n] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = '\0';
    }
    return n;
}

/* -1 where it is no finite number. */
static inline int cells_number(const char *s, double *ret)
{
    char *end = NULL;
    *ret = strtod(s, &end);
    return end != s && !*end && isfinite(*ret) ? 0 : -1;
}

#endif
