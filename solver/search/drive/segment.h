/* segment.h - one part of the frontier, between two of its points. Internal to this
 * folder.  Thread safety: a segment and a scalarizer have one owner at a time. */
#ifndef TOPT_SEARCH_SEGMENT_H
#define TOPT_SEARCH_SEGMENT_H

#include "scalarization.h"

enum segment_state {
    SEGMENT_OPEN,  /* to be searched */
    SEGMENT_SPLIT, /* 'middle' parts it in two */
    SEGMENT_DONE,
};

/* A segment of the frontier: the strategies that may lie between two that nothing dominates.
 * No strategy in it is heavier or slower than the corner, and none that is not known weighs
 * less than or as much as 'explored'. */
struct segment {
    enum segment_state state;
    int depth;
    struct topt_cost left, right, corner;
    /* of what is wanted at all: an end that is slower stands for nothing */
    int64_t slowest;
    struct found_strategy middle;   /* its choices are owned */
    int64_t time, memory, explored; /* the weighted sum: see struct scalar_pass */
    int64_t reached; /* 'explored' as its share of the work ran out; 0: it did not */
    struct topt_cost *found; /* sorted */
    int nfound;
    struct strategies strategies; /* of 'found' */
    double left_out; /* how much slower those are that stand for points left out */
    /* Counts. */
    /* parts: segments that it was searched in, if not one */
    int64_t work, points, bytes, parts;
    int max_frontier;
};

/* Search an open segment: it is split or done, or still open where its share of the work ran
 * out.  With 'stop' set, it is done as it is. */
int topt_segment_search(struct scalarizer *b, struct segment *segment,
                        int stop) TOPT_MUST_CHECK;

/* The search was stopped before a segment was split or done: it is done as it is. */
int topt_segment_leave(struct scalarizer *b, struct segment *segment) TOPT_MUST_CHECK;

/* Everything in the corner at once, without a weighted sum: for costs too large for
 * one. */
int topt_segment_plain(struct scalarizer *b, struct segment *segment) TOPT_MUST_CHECK;

/* The weight, by bound 0, of the heaviest strategy of an open segment that may be missed
 * when only 'point' and the points known before are kept. */
int64_t topt_segment_needed(const struct scalarizer *b, const struct segment *segment,
                            const struct topt_cost *point, int n);

/* How much slower than the truth the segment's answer may be: 0 exact. */
double topt_segment_gap(const struct segment *segment,
                        const struct topt_search_options *options,
                        struct incumbent_costs known);

void topt_segment_fini(struct segment *segment);

#endif
