/* certificate.h - what is claimed of an answer that many searches gave together.  Private to
 * plan/. */
#ifndef TOPT_CERTIFICATE_H
#define TOPT_CERTIFICATE_H

#include "topt_search.h"

/* The claims of a search about its answer. */
struct topt_certificate {
    int exact;
    double epsilon; /* achieved, of times (topt_search.h); infinite: nothing is proven */
    /* Where only the fastest was wanted: no strategy within the limits is faster,
     * INT64_MAX where none fits. */
    int64_t bound_ns;
    /* Where the least memory was wanted: no strategy needs less, INT64_MAX where that is
     * what was found.  (Of blocks that choose freely what is recomputed is searched by
     * its mean, and what was found may need more.) */
    int64_t bound_bytes;
    /* By operator, then by tensor (its hub): was it decided by heuristic?  NULL: none. */
    uint8_t *decided;
    int nnodes;
    struct topt_search_stats stats;
};

struct topt_certificate
topt_certificate_exact(void); /* of a search that has nothing to look at */

/* Merge the claims of two answers; takes nothing of 'from'. */
int topt_certificate_merge(struct topt_certificate *into,
                           const struct topt_certificate *from,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Where only the fastest was wanted and takes 'best_ns': how far it may be from the
 * truth. */
double topt_certificate_epsilon(const struct topt_certificate *c, int64_t best_ns);

/* Reduce a certificate to the claim that a strategy has the least memory, or to none where
 * operators were decided by heuristic. */
void topt_certificate_of_least(struct topt_certificate *c);

void topt_certificate_fini(struct topt_certificate *c);

#endif
