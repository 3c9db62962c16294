/* feed_table.h - inside the feeds: images in idx files, and tables of numbers (csv). */
#ifndef TOPT_FEED_TABLE_H
#define TOPT_FEED_TABLE_H

#include "topt_runtime.h"

/* Is this the start of an idx file? */
int topt_feed_is_idx(const char *bytes, size_t len);
/* 'path' is that of the images; the labels' is made from it. */
int topt_feed_idx(const char *images, size_t len, const char *path,
                  const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;
/* 'preprocessing' of another table's feed, by which features are scaled; NULL: by their own. */
int topt_feed_csv(const char *text, size_t len, const void *preprocessing,
                  const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;

/* Pictures as bytes, with their classes and these classes' names, each on a line; owned by the
 * feed from then on, also where it fails. */
struct topt_pictures {
    unsigned char *pixel;
    float *answer;
    int64_t rows;
    char *names;
    uint64_t digest;
};
int topt_feed_of_pictures(const struct topt_pictures *p, const struct topt_model *m,
                          uint64_t seed, struct topt_feed *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

#endif
