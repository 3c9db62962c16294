/* strategies.c - a list of strategies, each kept as what differs from the one before it.
 *
 * Neighbours on a frontier have nearly everything in common: of a chain of 480 operators,
 * two of 41,815 strategies differ in 11 choices on average.  Written out they take 160
 * MB, which is more than all the search needs.  So a list holds changes, and every so
 * often a strategy whole, from where any other is reached in a bounded number of steps:
 *
 *     key 0     1      2       ...     key k    k+1
 *     whole --> .. --> ..  --> ... --> whole --> ..  -->
 *         changes changes                   changes */
#include "strategies.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_CHANGES = 8, /* times a strategy's width: changes after which one is kept whole */
    BLOCK = 16,      /* choices that are compared at once */
};

int topt_strategies_init(struct strategies *s, size_t width, struct topt_error *err)
{
    *s = (struct strategies){.width = width};
    s->last = malloc((width + 1) * sizeof *s->last);
    return s->last ? 0 : topt_search_nomem(err);
}

void topt_strategies_fini(struct strategies *s)
{
    free(s->change);
    free(s->end);
    free(s->key);
    free(s->whole);
    free(s->last);
    *s = (struct strategies){0};
}

int64_t topt_strategies_bytes(const struct strategies *s)
{
    size_t changes = s->n ? s->end[s->n - 1] : 0;
    return (int64_t)(changes * sizeof *s->change + s->n * sizeof *s->end +
                     s->nkeys * (sizeof *s->key + s->width * sizeof *s->whole));
}

/* Room for one more strategy, and for as many changes as it can have. */
static int make_room(struct strategies *s)
{
    size_t used = s->n ? s->end[s->n - 1] : 0;
    if (TOPT_ROOM(s->end, s->n, s->cap, 64))
        return -1;
    if (used + s->width > s->cap_changes) {
        size_t cap = s->cap_changes + s->cap_changes / 2 + s->width;
        if (TOPT_RESIZE(s->change, cap))
            return -1;
        s->cap_changes = cap;
    }
    return 0;
}

static int add_key(struct strategies *s)
{
    if (s->nkeys == s->cap_keys) {
        size_t cap = s->cap_keys ? 2 * s->cap_keys : 1;
        if (TOPT_RESIZE(s->key, cap) || TOPT_RESIZE(s->whole, cap * s->width + 1))
            return -1;
        s->cap_keys = cap;
    }
    if (s->width)
        memcpy(s->whole + s->nkeys * s->width, s->last, s->width * sizeof *s->last);
    s->key[s->nkeys++] = s->n - 1;
    return 0;
}

static int same_block(const int32_t *a, const int32_t *b)
{
    int32_t differs = 0;
    for (int i = 0; i < BLOCK; i++)
        differs |= a[i] ^ b[i];
    return !differs;
}

/* Write down where 'choice' differs from the last strategy, and make it the last.
 * Returns the end of the changes. */
static size_t write_changes(struct strategies *s, size_t n, const int32_t *choice)
{
    int32_t *last = s->last;
    for (size_t i = 0; i < s->width; i += BLOCK) {
        size_t end = i + BLOCK < s->width ? i + BLOCK : s->width;
        if (end == i + BLOCK && same_block(last + i, choice + i))
            continue;
        for (size_t k = i; k < end; k++) {
            if (last[k] == choice[k])
                continue;
            s->change[n++] = (struct change){(uint32_t)k, choice[k]};
            last[k] = choice[k];
        }
    }
    return n;
}

/* One more strategy is complete, its changes up to 'end'. */
static int count_strategy(struct strategies *s, size_t end, struct topt_error *err)
{
    s->end[s->n++] = end;
    if (s->nkeys && end - s->end[s->key[s->nkeys - 1]] <= KEY_CHANGES * s->width)
        return 0;
    return add_key(s) ? topt_search_nomem(err) : 0;
}

int topt_strategies_add(struct strategies *s, const int32_t *choice,
                        struct topt_error *err)
{
    size_t used = s->n ? s->end[s->n - 1] : 0;
    if (make_room(s))
        return topt_search_nomem(err);
    if (!s->n && s->width)
        memcpy(s->last, choice, s->width * sizeof *choice);
    return count_strategy(s, write_changes(s, used, choice), err);
}

int topt_strategies_add_changes(struct strategies *s, const struct change *change,
                                size_t n, struct topt_error *err)
{
    size_t used = s->end[s->n - 1];
    if (make_room(s))
        return topt_search_nomem(err);
    for (size_t i = 0; i < n; i++) {
        s->change[used++] = change[i];
        s->last[change[i].at] = change[i].value;
    }
    return count_strategy(s, used, err);
}

static void rename_whole(int32_t *choice, const int32_t *const *number, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (number[i])
            choice[i] = number[i][choice[i]];
}

void topt_strategies_rename(struct strategies *s, const int32_t *const *number, size_t n)
{
    if (!s->n)
        return;
    for (size_t i = 0; i < s->end[s->n - 1]; i++) {
        struct change *c = &s->change[i];
        if (c->at < n && number[c->at])
            c->value = number[c->at][c->value];
    }
    for (size_t k = 0; k < s->nkeys; k++)
        rename_whole(s->whole + k * s->width, number, n);
    rename_whole(s->last, number, n);
}

/* ---- reading ----------------------------------------------------------------------- */

int topt_strategy_reader_init(struct strategy_reader *r, const struct strategies *s,
                              struct topt_error *err)
{
    *r =
        (struct strategy_reader){s, malloc((s->width + 1) * sizeof *r->choice), SIZE_MAX};
    return r->choice ? 0 : topt_search_nomem(err);
}

void topt_strategy_reader_fini(struct strategy_reader *r)
{
    free(r->choice);
    r->choice = NULL;
}

/* The last key at or before a strategy. */
static size_t find_key(const struct strategies *s, size_t i)
{
    size_t low = 0, high = s->nkeys;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (s->key[mid] <= i)
            low = mid;
        else
            high = mid;
    }
    return low;
}

const int32_t *topt_strategy_read(struct strategy_reader *r, size_t i)
{
    const struct strategies *s = r->s;
    if (r->at == SIZE_MAX || i < r->at || i > r->at + 1) {
        size_t k = find_key(s, i);
        if (r->at == SIZE_MAX || i < r->at || s->key[k] > r->at) {
            if (s->width)
                memcpy(r->choice, s->whole + k * s->width, s->width * sizeof *r->choice);
            r->at = s->key[k];
        }
    }
    for (size_t k = s->end[r->at]; k < s->end[i]; k++)
        r->choice[s->change[k].at] = s->change[k].value;
    r->at = i;
    return r->choice;
}
