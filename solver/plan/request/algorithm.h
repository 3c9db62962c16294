/* algorithm.h - the table of other systems' searches.  Private to plan/. */
#ifndef TOPT_ALGORITHM_H
#define TOPT_ALGORITHM_H

#include "free.h"

struct topt_algorithm {
    const char *name;
    const char *searches;   /* how it finds its plan */
    const char *leaves_out; /* what of the space it does not look at; NULL: nothing */
    const struct topt_restriction *restriction; /* NULL: none */
    int factors; /* bits of enum topt_factor that it may search */
    int always;  /* ... and those that it does search even where not asked for */
    int zero;    /* levels of enum topt_zero it knows, as bits; 0: all */
    int tables; /* what of sparse tables it knows beside: TOPT_ZERO_SPARSE, _OWNER as bits; it is
                      compared where there are some */
    int one_mesh;  /* one device mesh for all operators: a variant for each */
    int alike;     /* blocks of a kind choose alike unless the request frees them */
    int time_only; /* it takes the fastest, which fits or not */
    int fused;     /* gradients are all-reduced in buckets, beside backward */
};

/* The row of other systems, or NULL: a search of solver/search, or unknown. */
const struct topt_algorithm *topt_algorithm_find(const char *name);

const struct topt_algorithm *topt_algorithm_at(int i); /* NULL past the end */

/* The name of the search of solver/search that does it; NULL: the default, as for every other
 * system. */
const char *topt_algorithm_solver_name(const char *name);

/* INVAL with all names where there is none such: a search (topt_search.h), or another
 * system's.  NULL is ft. */
int topt_algorithm_check(const char *name, struct topt_error *err) TOPT_MUST_CHECK;

#endif
