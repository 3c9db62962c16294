/* tariff.h - what moves cost between the layouts of one tensor.  Private to layout/.
 *
 * Sources that are alike but for the layout they begin with have one tariff.  Blocks of as many
 * bytes share a row of times. */
#ifndef TOPT_TARIFF_H
#define TOPT_TARIFF_H

#include "atlas.h"
#include "times.h"

/* What a way costs is one number, a key: nanoseconds, then moves (a slice of each group is one) in the
 * last bits.  Nothing is farther than FAR, which is more than three months. */
enum { TOPT_KEY_BITS = 8 };
#define TOPT_KEY_FAR ((int64_t)1 << 61)

static inline int topt_key_moves(int64_t key)
{
    return (int)(key & ((1 << TOPT_KEY_BITS) - 1));
}

static inline int64_t topt_key_sum(int64_t a, int64_t b)
{
    return a + b < TOPT_KEY_FAR ? a + b : TOPT_KEY_FAR;
}

struct topt_tariff;
struct topt_tariff *
topt_tariff_create(struct topt_times *times); /* which the caller keeps */
void topt_tariff_destroy(struct topt_tariff *t);
/* Is it that of a source, wherever that begins? */
int topt_tariff_is(const struct topt_tariff *t, const struct topt_way_source *source);
/* It is of none: its atlas goes. */
void topt_tariff_end(struct topt_tariff *t);
/* From now on that of a source, between the layouts of 'atlas', which moves are listed in. */
void topt_tariff_begin(struct topt_tariff *t, const struct topt_way_source *source,
                       struct topt_atlas *atlas);
/* Moves from a layout, with a key for each class in topt_tariff_keys(): of each of its moves, or NONE where
 * there are none for this source.  Where memory is short there are none, and topt_tariff_failed(). */
struct topt_atlas_moves topt_tariff_moves(struct topt_tariff *t, int32_t spot);
/* By class, where moves were asked for; until more are. */
const int64_t *topt_tariff_keys(const struct topt_tariff *t);
/* The row of blocks of a shape (sets by dimension), and in '*ret_whole' the dimensions whose parts are
 * equal, as bits; then the key of a move along 'groups' that sends such blocks, or gathers them. */
int32_t topt_tariff_row(struct topt_tariff *t, uint64_t shape, uint32_t *ret_whole);
int64_t topt_tariff_row_key(struct topt_tariff *t, int32_t row, enum topt_move_kind kind,
                            uint32_t groups);
int topt_tariff_failed(const struct topt_tariff *t);

#endif
