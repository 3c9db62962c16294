/* zoom.h - a band of the frontier searched on a problem of its own.
 * Internal to this folder.  Thread safety: as a band. */
#ifndef TOPT_SEARCH_ZOOM_H
#define TOPT_SEARCH_ZOOM_H

#include "band.h"

/* Search a band that is to be parted on what is left of the problem within it, if that is much
 * less; then the band is done.  0, or -1 with the bander's error. */
int topt_zoom(struct bander *b, struct band *band) TOPT_MUST_CHECK;

#endif
