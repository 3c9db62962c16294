/* sparse_product.h - sparse tables multiplied row by row, by threads.
 * Internal to this folder.  Thread safety: one owner, who lends it a pool. */
#ifndef TOPT_SEARCH_SPARSE_PRODUCT_H
#define TOPT_SEARCH_SPARSE_PRODUCT_H

#include "table.h"
#include "topt_pool.h"

struct maker;

struct product {
    struct topt_pool *pool; /* NULL: no threads */
    int nworkers;
    struct worker_rows *worker;
    struct topt_error *err;
};

int topt_sparse_product_init(struct product *p, struct topt_pool *pool,
                             struct topt_error *err) TOPT_MUST_CHECK;
void topt_sparse_product_fini(struct product *p);

/* Is a step the product of two tables over an operator that nothing else sees, each with
 * one other operator of its own? */
int topt_sparse_product_is(const struct step *s);

/* Make such a table's points, behind those that the maker has.  The answer does not
 * depend on the threads. 0; 1 where it is more than the maker's budget or mean, and entries are
 * missing; -1, and the merge says what failed. */
int topt_sparse_product_make(struct product *p, struct maker *k, const struct table *t);

#endif
