/* variants.h - what is chosen for the whole model on a grid.  Private to plan/. */
#ifndef TOPT_VARIANTS_H
#define TOPT_VARIANTS_H

#include "grid_data.h"

/* The levels of sharding that there are, as bits. */
int topt_variants_levels(const struct topt_grid_search *s);
/* The levels of sharding of sparse tables, beside those of the other parameters. */
int topt_variants_tables(const struct topt_grid_search *s);

/* All variants of a grid. */
int topt_variants_list(struct topt_grid_search *s,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
