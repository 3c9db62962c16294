/* swap.h - what it costs at most on an edge that one end takes another class.
 * Internal to this folder.  Thread safety: each side has one owner. */
#ifndef TOPT_SEARCH_SWAP_H
#define TOPT_SEARCH_SWAP_H

#include "search_impl.h"

/* Costs beyond it are not compared: a swap that may cost more is not possible, one that saves
 * more saves that much. */
#define TOPT_SWAP_MOST ((int64_t)1 << 57)

/* A swap's cost over the first 'seen' places of the other end: at least what it costs over
 * all.  Negative where it saves. */
struct swap {
    int64_t memory, time;
    int32_t seen; /* TOPT_SWAP_NEVER: a pair would not be allowed */
};

#define TOPT_SWAP_NEVER (-1)

/* One end of an edge, as its operator sees it. */
struct swap_side {
    const struct topt_table *table;
    int nclasses, nother; /* of this end and of the other */
    int is_from;
    char *used;          /* by class of the other end: may it be taken? */
    uint64_t used_as;    /* a hash of it */
    int *place, nplaces; /* classes of the other end that may be taken */
    int *start;          /* by class: the place where it costs least is looked at first */
    struct swap *swap;   /* of class v for w: by v * nclasses + w */
};

/* Edge 'edge' of 'p' from its end 'is_from'; 'alive' (NULL: all) marks the configurations
 * that the other end may take.  Everything is the arena's.  NOMEM. */
int topt_swap_side(struct swap_side *s, const struct topt_search_problem *p, int edge,
                   int is_from, const char *alive, struct topt_arena *a) TOPT_MUST_CHECK;
/* Room for its swaps, which the arena has to have, too. */
int topt_swap_prepare(struct swap_side *s, struct topt_arena *a) TOPT_MUST_CHECK;
int64_t topt_swap_bytes(const struct swap_side *s);
int topt_swap_same_side(const struct swap_side *a, const struct swap_side *b);

/* The swap of class v for w, looked at in one place at least, and from there on until it is
 * known or costs more than the limits.  Counts places. */
struct swap topt_swap(struct swap_side *s, int v, int w, struct topt_cost limit,
                      int64_t *work);
static inline int topt_swap_known(const struct swap_side *s, struct swap swap)
{
    return swap.seen == s->nplaces;
}

/* The same between two lists of alternatives: each of v's has one of w's in its stead. */
struct swap topt_swap_lists(const struct topt_cost *v, int32_t nv,
                            const struct topt_cost *w, int32_t nw);

#endif
