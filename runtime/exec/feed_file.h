/* feed_file.h - inside the feeds: whole files, and a digest of what was read. */
#ifndef TOPT_FEED_FILE_H
#define TOPT_FEED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

enum { TOPT_FEED_MAX_BYTES = 1 << 30 };

uint64_t topt_feed_digest(const void *bytes, size_t len);

/* A whole file, unpacked where it is compressed. */
char *topt_feed_read(const char *path, size_t *ret_len,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Calls 'f' with each file in turn: that file, or all of a directory in order of name but
 * hidden ones and what is no plain file. */
int topt_feed_each_file(const char *path,
                        int (*f)(void *ctx, const char *path, const char *bytes,
                                 size_t len, struct topt_error *err),
                        void *ctx, struct topt_error *err) TOPT_MUST_CHECK;

#endif
