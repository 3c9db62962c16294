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

#endif
