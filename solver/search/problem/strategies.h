/* strategies.h - a list of strategies, each kept as what differs from the one before it.
 * Internal to this folder.  Thread safety: a list has one owner while it grows; readers
 * of a complete one are independent of each other. */
#ifndef TOPT_SEARCH_STRATEGIES_H
#define TOPT_SEARCH_STRATEGIES_H

#include "search_common.h"

/* The choice at one place: configurations by operator, then alternatives by edge. */
struct change {
    uint32_t at;
    int32_t value;
};

struct strategies {
    size_t width, n; /* choices of each; strategies */
    struct change *change;
    size_t *end; /* by strategy: where its changes end; those before it end at its own */
    size_t *key; /* strategies that are also stored whole, the first among them */
    int32_t *whole; /* by key: 'width' choices */
    int32_t *last;  /* the last strategy, whole */
    size_t nkeys, cap, cap_changes, cap_keys;
};

int topt_strategies_init(struct strategies *s, size_t width,
                         struct topt_error *err) TOPT_MUST_CHECK;
void topt_strategies_fini(struct strategies *s);

/* Add one at the end; 'choice' is copied. */
int topt_strategies_add(struct strategies *s, const int32_t *choice,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Add a strategy by its differences from the one before, which there is. */
int topt_strategies_add_changes(struct strategies *s, const struct change *change,
                                size_t n, struct topt_error *err) TOPT_MUST_CHECK;

/* Give the choices at the first 'n' places other numbers, by place and number (NULL: they
 * stay); different ones stay different. */
void topt_strategies_rename(struct strategies *s, const int32_t *const *number, size_t n);

/* Bytes that the strategies take; they depend on nothing else. */
int64_t topt_strategies_bytes(const struct strategies *s);

/* Strategies made whole, one at a time: in order is cheapest, any order is possible. */
struct strategy_reader {
    const struct strategies *s;
    int32_t *choice;
    size_t at; /* the strategy that 'choice' holds; SIZE_MAX: none yet */
};

int topt_strategy_reader_init(struct strategy_reader *r, const struct strategies *s,
                              struct topt_error *err) TOPT_MUST_CHECK;
void topt_strategy_reader_fini(struct strategy_reader *r);
/* The i-th strategy's choices; borrowed until the next call. */
const int32_t *topt_strategy_read(struct strategy_reader *r, size_t i);

#endif
