/* substitution.h - what it costs at most on an edge that one end takes another class.
 * Internal to this folder.  Thread safety: a side is only read once it is made. */
#ifndef TOPT_SEARCH_SUBSTITUTION_H
#define TOPT_SEARCH_SUBSTITUTION_H

#include "search_common.h"

/* Costs beyond it are not compared: a substitution that may cost more is not possible, one that
 * saves more saves that much. */
#define TOPT_SUBSTITUTION_MOST ((int64_t)1 << 57)

/* A substitution's cost over the first 'seen' alternatives: at least what it costs over all.
 * Negative where it saves. */
struct substitution {
    int64_t memory, time;
    /* TOPT_SUBSTITUTION_NEVER: an alternative would have none in its stead; else
     * substitution.c's */
    int32_t seen;
};

#define TOPT_SUBSTITUTION_NEVER (-1)

/* An edge's lists of costs; entry (f, t) is cost[first[f * to_classes + t] .. first[... +
 * 1]). */
struct substitution_lists {
    const uint32_t *first;
    const struct topt_cost *cost;
    int from_classes, to_classes;
};

/* One end of an edge, as its operator sees it. */
struct substitution_side {
    struct substitution_lists lists;
    int64_t own_step, other_step; /* of entries, by class of this end and of the other */
    int nclasses, nother;
    uint32_t *first; /* by class: what it may have on the edge, held[first[v] ..] */
    struct substitution_held {
        int32_t other; /* class of the other end */
        uint32_t at;   /* among the costs */
    } * held;
    struct substitution_rows *rows; /* where they do instead of 'held'; else NULL */
};

/* The end 'is_from' of an edge of which 'used' marks the classes that the other end may
 * take (NULL: all). What it holds is the arena's.  NOMEM. */
int topt_substitution_side(struct substitution_side *s, struct substitution_lists lists,
                           int is_from, const char *used,
                           struct topt_arena *a) TOPT_MUST_CHECK;

/* A substitution of which nothing was looked at yet. */
static inline struct substitution topt_substitution_start(void)
{
    return (struct substitution){-TOPT_SUBSTITUTION_MOST, -TOPT_SUBSTITUTION_MOST, 0};
}

/* Go on with the substitution of class v for w, by one alternative at least, until it is known or
 * costs more than the limits.  Returns how many were looked at; some callers count
 * them. */
int64_t topt_substitution(const struct substitution_side *s, int v, int w,
                          struct topt_cost limit, struct substitution *swap);

/* Was all looked at? */
int topt_substitution_known(const struct substitution_side *s, int v,
                            struct substitution swap);

/* The substitution between two lists of alternatives: each of v's is replaced by one of w's. */
struct substitution topt_substitution_lists(const struct topt_cost *v, int32_t nv,
                                            const struct topt_cost *w, int32_t nw);

#endif
