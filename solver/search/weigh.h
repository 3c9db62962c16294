/* weigh.h - what every entry of every table weighs at least, and all that is not in it.
 * Internal to this folder.  Thread safety: each bound has one owner; tables are read. */
#ifndef TOPT_WEIGH_H
#define TOPT_WEIGH_H

#include "table.h"

/* More than anything weighs, and two of them still fit. */
#define TOPT_NOTHING ((((int64_t)1 << 61) - 1) * 2 + 1)
#define TOPT_FLAT_NOTHING                                                                \
    0x1p60 /* as a double: more than anything that is light weighs */
/* Up to this, doubles count exactly, even two together. */
#define TOPT_LIGHT ((int64_t)1 << 52)
/* Weights are so small that whatever a strategy may weigh is below this. */
#define TOPT_HEAVY ((int64_t)1 << 60)

/* A weighing of costs.  Arrays are by entry; no array is had before topt_bound_init. */
struct bound {
    int64_t time, memory; /* a point weighs time * its time + memory * its memory */
    int light;            /* no strategy weighs more than TOPT_LIGHT: doubles will do */
    int64_t allowance;    /* heavier strategies are not looked for */
    int64_t *least;       /* the lightest point */
    int64_t *rest;        /* the lightest of all that is not in the table */
    double *flat;         /* as 'least', of tables that are read row by row */
    double *row;          /* room for one row */
    double *room;         /* for one product */
};

int topt_bound_init(struct bound *b, const struct tables *ts,
                    struct topt_error *err) TOPT_MUST_CHECK;
void topt_bound_fini(struct bound *b);

static inline int64_t topt_weigh(const struct bound *b, struct topt_cost c)
{
    return b->time * c.time + b->memory * c.memory;
}

/* Fill 'least'; TOPT_NOTHING for an entry without points.  -1: CANCELED, where it is to stop, too
 * (topt_search_poll). */
int topt_weigh_least(const struct tables *ts, const struct topt_search_options *options,
                     struct bound *b, struct topt_error *err) TOPT_MUST_CHECK;

/* Fill 'rest', of the entries that are part of a strategy within the allowance; the others
 * get TOPT_NOTHING.  'root' is the table of the answer.  -1: the same. */
int topt_weigh_rest(const struct tables *ts, const struct table *root,
                    const struct topt_search_options *options, struct bound *b,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* The same of the costs that operators have of their own, too. */
int topt_weigh_all_rest(const struct tables *ts, const struct table *root,
                        const struct topt_search_options *options, struct bound *b,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Which entries of A and B the lightest point of an entry is made of (0: no B). */
void topt_weigh_down(const struct table *t, int64_t entry, const struct bound *b,
                     int64_t *ret_a, int64_t *ret_b);
/* The lightest point of a leaf's entry, and what it chooses.  Of a half of an edge, which chooses nothing,
 * a cost that weighs as much as the entry does. */
struct topt_cost topt_weigh_leaf(const struct table *leaf, int64_t entry,
                                 const struct bound *b, int32_t *ret_choice);

#endif
