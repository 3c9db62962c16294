/* make_points.h - the tables of a search, made once: the points of every entry within
 * bounds. Internal to this folder.  Thread safety: each maker has one owner; tables are
 * read. */
#ifndef TOPT_SEARCH_MAKE_POINTS_H
#define TOPT_SEARCH_MAKE_POINTS_H

#include "pareto_merge.h"
#include "min_marginals.h"

/* Points of all entries stand in the merge's output, entry after entry. */
struct maker {
    const struct tables *tables;
    struct merge merge;
    uint32_t *first, *count; /* by entry; those of leaves are not used */
    size_t cap_entries;      /* that these have room for */
    struct topt_cost most;   /* heavier or slower strategies are not looked for */
    int nbounds;
    const struct scalar_pass *bound[TOPT_MAX_BOUNDS];
    int max_frontier;
    int64_t budget; /* points to look at; 0: any number */
    double mean;    /* points of an entry, about, that are too many; 0: any number */
};

/* The points of a table's entry (by its number among all). */
static inline struct run topt_entry_points(const struct maker *k, const struct table *t,
                                           int64_t entry)
{
    if (t->leaf) {
        const uint32_t *first = &t->first[entry - t->first_entry];
        return (struct run){t->cost + first[0], first[1] - first[0], first[0], entry};
    }
    return (struct run){k->merge.cost + k->first[entry], k->count[entry], k->first[entry],
                        entry};
}

int topt_maker_init(struct maker *k, const struct tables *ts,
                    const struct topt_search_options *options,
                    struct topt_error *err) TOPT_MUST_CHECK;
void topt_maker_fini(struct maker *k);

/* Give back memory that no points stand in. */
void topt_maker_trim(struct maker *k);

enum topt_made { TOPT_MADE, TOPT_MADE_TOO_MUCH, TOPT_MADE_STOPPED, TOPT_MADE_FAILED };

/* Make all tables, under the bounds of the maker: every strategy within them, or one that
 * is no heavier and no slower, is a point of the last one.  TOO_MUCH: more than 'budget'
 * points were looked at (0: any number).  STOPPED: the caller wants an answer now.
 * FAILED: 'err' says why.  Both are polled before every table. */
enum topt_made topt_make(struct maker *k, int64_t budget,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Make the points of a plan that still grows, without bounds: start, then make the tables
 * from number 'from' on, those before it being made.  'budget' counts from the start. */
int topt_make_start(struct maker *k, struct topt_error *err) TOPT_MUST_CHECK;
enum topt_made topt_make_more(struct maker *k, size_t from, int64_t budget,
                              struct topt_error *err) TOPT_MUST_CHECK;

/* Make the next table, 'to', of the points of 'from' that are marked, by their number in
 * it. */
int topt_make_part(struct maker *k, const struct table *from, const char *marked,
                   struct table *to, struct topt_error *err) TOPT_MUST_CHECK;

#endif
