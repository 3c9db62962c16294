/* picture.h - inside the feeds: pictures as bytes of a given size. */
#ifndef TOPT_PICTURE_H
#define TOPT_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

struct topt_picture {
    int64_t width, height;
    int channels;         /* 1: grey, 3: red, green, blue; side by side */
    unsigned char *pixel; /* owned; row by row */
};
/* A PNM file of bytes (P5, P6), or a PNG file that is not interlaced, in 8 bits a channel; what is
 * transparent counts as it is.  INVAL for others, LIMIT beyond 2^28 bytes. */
int topt_picture_read(const void *bytes, size_t len, struct topt_picture *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* The middle of it that has the shape of 'height' rows of 'width', in that size: each pixel
 * is the mean of those that it covers.  'ret': 'channels' (1 or 3) planes, one after the other. */
void topt_picture_fit(const struct topt_picture *p, int channels, int64_t height,
                      int64_t width, unsigned char *ret);

#endif
