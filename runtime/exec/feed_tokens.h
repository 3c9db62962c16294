/* feed_tokens.h - inside the feeds: files of token numbers. */
#ifndef TOPT_FEED_TOKENS_H
#define TOPT_FEED_TOKENS_H

#include "topt_runtime.h"

/* Is it a file "*.bin", or a folder that has some? */
int topt_feed_is_tokens(const char *path);
int topt_feed_tokens(const char *path, const struct topt_model *m, uint64_t seed,
                     struct topt_feed *ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
