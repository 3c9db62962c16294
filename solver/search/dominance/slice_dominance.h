/* slice_dominance.h - parts of a slice that an earlier slice makes superfluous.
 * Internal to this folder.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_SLICE_DOMINANCE_H
#define TOPT_SEARCH_SLICE_DOMINANCE_H

#include "search_common.h"

/* Where slices differ: the costs of an operator that has one value in a slice, or an edge at
 * one.  Entries are by what the other end takes; of an operator's own costs there is one. */
struct port {
    int n;
    int32_t *first;         /* n + 1; both belong to the slice */
    struct topt_cost *cost; /* alternatives, entry after entry */
    char *gone;             /* by entry: nobody needs it */
};

/* Mark entries of 's' with which no strategy is needed beside those of 'by'; the ports of both
 * are of the same edges in the same order.  Returns whether strategies may be left. */
int topt_slice_dominance(const struct port *by, const struct port *s, int nports);

/* Take out of a port's alternatives those of the entries that are gone. */
void topt_slice_dominance_drop(struct port *s);

#endif
