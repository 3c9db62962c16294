/* weigher.h - what this folder asks of a weigher beside topt_weigher.h.
 * Internal to this folder.  Thread safety: as there. */
#ifndef TOPT_WEIGHER_H_INTERNAL
#define TOPT_WEIGHER_H_INTERNAL

#include "topt_weigher.h"

/* Are all strategies so light that memory, or time, alone is weighed to the last digit? */
int topt_weigher_light(const struct topt_weigher *w);

/* From here on pairs of configurations are looked at, too.  '*ret_at' (by edge, freed by the caller): where the
 * marks of its table's entries begin, among those of all tables that edges have; -1 for an edge that is
 * weighed end by end, of which nothing is known.  Returns how many marks there are, or -1 (memory). */
int64_t topt_weigher_pairs(struct topt_weigher *w, int64_t **ret_at,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* After topt_weigher_within: add the entries that are part of a strategy within the corner to a set of marks (bits.h); those
 * of edges that are alike together.  Returns how many. */
int64_t topt_weigher_mark(const struct topt_weigher *w, uint64_t *mark);

/* The lightest strategy's configurations by operator, then alternatives by edge: freed by the caller;
 * NULL where there is none, or (in a relaxed graph) where edges forbid it.  '*ret' is what it costs. */
int topt_weigher_strategy(struct topt_weigher *w, int32_t **ret_choice,
                          struct topt_cost *ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
