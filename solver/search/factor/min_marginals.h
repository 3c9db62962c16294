/* min_marginals.h - what every entry of every table weighs at least, and all that is not
 * in it. Internal to this folder.  Thread safety: each bound has one owner; tables are
 * read. */
#ifndef TOPT_SEARCH_MIN_MARGINALS_H
#define TOPT_SEARCH_MIN_MARGINALS_H

#include "scalar_pass.h"

/* Fill 'least'; TOPT_NOTHING for an entry without points.  -1: CANCELED, where it is to
 * stop, too (topt_search_poll). */
int topt_least_weights(const struct tables *ts, const struct topt_search_options *options,
                       struct scalar_pass *b, struct topt_error *err) TOPT_MUST_CHECK;

/* Fill 'rest', of the entries that are part of a strategy within the allowance; the
 * others get TOPT_NOTHING.  'all': also of the leaves with the costs that operators have
 * of their own.  'root' is the table of the answer.  -1: the same. */
int topt_min_marginals(const struct tables *ts, const struct table *root,
                       const struct topt_search_options *options, struct scalar_pass *b,
                       int all, struct topt_error *err) TOPT_MUST_CHECK;

/* Which entries of A and B the lightest point of an entry is made of (0: no B). */
void topt_least_weight_parts(const struct table *t, int64_t entry,
                             const struct scalar_pass *b, int64_t *ret_a, int64_t *ret_b);
/* The lightest point of a leaf's entry, and what it chooses.  Of a half of an edge, which
 * chooses nothing, a cost that weighs as much as the entry does. */
struct topt_cost topt_least_weight_leaf(const struct table *leaf, int64_t entry,
                                        const struct scalar_pass *b, int32_t *ret_choice);

#endif
