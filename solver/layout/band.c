/* band.c - how far predictions may be off: shares of each part of a time and of a memory, to both
 * sides.
 *
 * The shares are those by which published runs were missed, of the groups that may decide constants
 * alone: tests/bench/bands.py finds those with the least mean interval score, times a stretch that holds
 * enough of groups that they were found without, and writes them between the two marks; each share has a
 * least one, which is assumed.  MEASURED and INTERPOLATED are of our own profiler, whose profiles say
 * their own. */
#include "band.h"

#include <stdio.h>

static const struct topt_band of_time[TOPT_BASIS_COUNT] = {
    [TOPT_BASIS_MEASURED] = {0.05, 0.05},
    [TOPT_BASIS_INTERPOLATED] = {0.10, 0.10},
    /* bands.py: time */
    [TOPT_BASIS_SCALED] = {0.22, 0.40},
    [TOPT_BASIS_PUBLISHED] = {0.07, 0.18},
    [TOPT_BASIS_ANALYTIC] = {0.15, 0.24},
    /* bands.py: end */
};

/* The parts of a memory that differ in how well they are known: parameters, gradients and states of the
 * optimizer; activations, buffers and work; an allocator's share. */
enum { TOPT_BAND_STATES, TOPT_BAND_REST, TOPT_BAND_ALLOCATOR, TOPT_BAND_PARTS };

static const struct topt_band of_memory[TOPT_BAND_PARTS] = {
    /* bands.py: memory */
    [TOPT_BAND_STATES] = {0.15, 0.07},
    [TOPT_BAND_REST] = {0.02, 0.02},
    [TOPT_BAND_ALLOCATOR] = {0.57, 2.54},
    /* bands.py: end */
};

static const struct {
    const char *words, *kernel, *network; /* the measurement of either */
} rests[TOPT_BASIS_COUNT] = {
    [TOPT_BASIS_MEASURED] = {"measured", "nothing", "nothing"},
    [TOPT_BASIS_INTERPOLATED] = {"between measured sizes", "topt report on a run of it",
                                 "more sizes of its curve"},
    [TOPT_BASIS_SCALED] = {"scaled from the curve of another group", "topt profile",
                           "topt profile, or nccl-tests, on as many nodes"},
    [TOPT_BASIS_PUBLISHED] = {"by rates published for such a device",
                              "topt profile on one node", "topt profile"},
    [TOPT_BASIS_ANALYTIC] = {"by a rate from data sheets or assumed",
                             "topt profile on one node",
                             "topt profile, or nccl-tests, on as many nodes"}};

const char *topt_basis_words(const struct topt_band *bands, enum topt_basis b,
                             int network, char buf[160])
{
    snprintf(buf, 160, "%s (-%.0f to +%.0f %%): %s", rests[b].words, 100 * bands[b].below,
             100 * bands[b].above, network ? rests[b].network : rests[b].kernel);
    return buf;
}

double topt_band_width(struct topt_band band)
{
    return band.below + band.above;
}

static void widen(struct topt_band band, int64_t part, double *low, double *high)
{
    *low += (double)part * (1 - band.below);
    *high += (double)part * (1 + band.above);
}

void topt_band_time_ends(const struct topt_band *bands, const int64_t *basis_ns,
                         int64_t *ret_low, int64_t *ret_high)
{
    double low = 0, high = 0;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++)
        widen(bands[b], basis_ns[b], &low, &high);
    *ret_low = (int64_t)low;
    *ret_high = (int64_t)high;
}

void topt_band_memory_ends(int64_t states, int64_t share, int64_t all, int64_t *ret_low,
                           int64_t *ret_high)
{
    double low = 0, high = 0;
    widen(of_memory[TOPT_BAND_STATES], states, &low, &high);
    widen(of_memory[TOPT_BAND_REST], all - states - share, &low, &high);
    widen(of_memory[TOPT_BAND_ALLOCATOR], share, &low, &high);
    *ret_low = (int64_t)low;
    *ret_high = (int64_t)high;
}

struct topt_band topt_band_of_time(enum topt_basis b)
{
    return of_time[b];
}
