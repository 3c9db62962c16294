/* band.h - how far predictions may be off, by what they rest on.  See band.c. */
#ifndef TOPT_BAND_H
#define TOPT_BAND_H

#include "topt_hw.h"

/* What the time of a collective or a kernel rests on, its band, and the measurement that narrows it:
 * "by a rate from data sheets or assumed (-5 to +27 %): topt profile on one node". */
const char *topt_basis_words(const struct topt_band *bands, enum topt_basis b,
                             int network, char buf[160]);

double topt_band_width(struct topt_band band); /* both sides */

/* The ends of a time by its parts, and of a framework's memory by its states, its allocator's share and
 * all of it. */
void topt_band_time_ends(const struct topt_band *bands, const int64_t *basis_ns,
                         int64_t *ret_low, int64_t *ret_high);
void topt_band_memory_ends(int64_t states, int64_t share, int64_t all, int64_t *ret_low,
                           int64_t *ret_high);

struct topt_band topt_band_of_time(enum topt_basis b);

#endif
