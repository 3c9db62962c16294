/* zoom.h - a band of the frontier searched on a problem of its own.
 * Internal to this folder.  Thread safety: as a band. */
#ifndef TOPT_SEARCH_ZOOM_H
#define TOPT_SEARCH_ZOOM_H

#include "band.h"
#include "narrow.h"

struct zoom {
    struct bander *b;
    struct band *band;
    int64_t allowance;
    struct narrowed narrowed; /* what is left of the problem within it */
    struct topt_frontier
        *frontier; /* of that, between the band's ends: set by who searches it */
};

enum { TOPT_ZOOM_TRIES = 2 };

/* Begin with a band that is to be parted; 0 where a problem of its own is not worth while. */
int topt_zoom_begin(struct zoom *z, struct bander *b, struct band *band);
/* The problem of what is left within the allowance.  1, 0 where that is not much less, or -1 with the bander's
 * error. */
int topt_zoom_narrow(struct zoom *z) TOPT_MUST_CHECK;
/* End a try; 'searched' is 1 where the frontier was found, 0 where it can't be, -1 where that failed.  Returns 1 where the
 * band is done, or not to be searched so; 0 where it takes a larger allowance, which is set; or -1. */
int topt_zoom_end(struct zoom *z, int searched) TOPT_MUST_CHECK;

#endif
