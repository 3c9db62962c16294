/* band.h - one part of the frontier, between two of its points.
 * Internal to this folder.  Thread safety: a band and a bander have one owner at a time. */
#ifndef TOPT_BAND_H
#define TOPT_BAND_H

#include "eliminate.h"
#include "make.h"
#include "strategies.h"

/* A strategy: configurations by operator, then alternatives by edge. */
struct found {
    struct topt_cost cost;
    int32_t *choice;
};

enum band_state {
    BAND_OPEN,  /* to be searched */
    BAND_SPLIT, /* 'middle' parts it in two */
    BAND_DONE,
};

/* What may be between two strategies that nothing beats.  No strategy in it is heavier or
 * slower than the corner, and none that is not known weighs less than or as much as
 * 'explored'. */
struct band {
    enum band_state state;
    int depth;
    struct topt_cost left, right, corner;
    int64_t
        slowest; /* of what is wanted at all: an end that is slower stands for nothing */
    struct found middle;            /* its choices are owned */
    int64_t time, memory, explored; /* the weighing: see struct bound */
    struct topt_cost *found;        /* sorted */
    int nfound;
    struct strategies strategies; /* of 'found' */
    double left_out; /* how much slower those are that stand for points left out */
    /* Counts. */
    int64_t work, points, bytes,
        parts; /* parts: bands that it was searched in, if not one */
    int max_frontier;
};

/* Costs that are had already, as a frontier; what they beat is not looked for. */
struct known_costs {
    const struct topt_cost *at;
    int n;
};

/* What a thread needs to search bands. */
struct bander {
    const struct plan *plan;
    const struct topt_search_options *options;
    struct known_costs known;
    struct topt_error *err;
    struct topt_cost most; /* of any strategy, at most */
    struct bound bound[TOPT_MAX_BOUNDS];
    struct maker maker;
    int64_t *stack;      /* for walks: places and what they stand at */
    uint32_t *base;      /* by place: the point that 'choice' has there */
    int32_t *choice;     /* the strategy that was unrolled last */
    int64_t work_budget; /* of a band that can't be split; 0: none */
};

int topt_bander_init(struct bander *b, const struct plan *plan,
                     const struct topt_search_options *options, struct topt_cost most,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_bander_fini(struct bander *b);
int64_t topt_bander_bytes(const struct plan *plan);

/* The lightest strategy by a weighing, with choices to be freed; 'ret->choice' is NULL where
 * there is no strategy at all. */
int topt_band_lightest(struct bander *b, int64_t time, int64_t memory,
                       struct found *ret) TOPT_MUST_CHECK;

/* The same in parts: weigh by about that ratio, into bound 0; then the lightest by that. */
int topt_band_weigh(struct bander *b, int64_t time, int64_t memory,
                    struct topt_cost corner) TOPT_MUST_CHECK;
int topt_band_walk(struct bander *b, struct found *ret) TOPT_MUST_CHECK;

/* Search an open band: it is split or done.  With 'stop' set, it is done as it is. */
int topt_band_search(struct bander *b, struct band *band, int stop) TOPT_MUST_CHECK;

/* The search was stopped before a band was split or done: it is done as it is. */
int topt_band_leave(struct bander *b, struct band *band) TOPT_MUST_CHECK;

/* Everything in the corner at once, without a weighing: for costs too large for one. */
int topt_band_plain(struct bander *b, struct band *band) TOPT_MUST_CHECK;

/* What the heaviest strategy weighs that may be missed in an open band, by bound 0, when only
 * 'point' and what was known before are had. */
int64_t topt_band_needed(const struct bander *b, const struct band *band,
                         const struct topt_cost *point, int n);

/* How much slower than the truth the band's answer may be: 0 exact. */
double topt_band_gap(const struct band *band, const struct topt_search_options *options,
                     struct known_costs known);

void topt_band_fini(struct band *band);

#endif
