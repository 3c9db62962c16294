/* feed_images.h - inside the feeds: image folders. */
#ifndef TOPT_FEED_IMAGES_H
#define TOPT_FEED_IMAGES_H

#include "topt_runtime.h"

/* Are there folders in it, each of a class? */
int topt_feed_is_image_folder(const char *path);
/* 'like': the preprocessing of another such feed, whose classes it has; or NULL. */
int topt_feed_images(const char *dir, const void *like, const struct topt_model *m,
                     uint64_t seed, struct topt_feed *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
