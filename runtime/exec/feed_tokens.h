/* feed_tokens.h - inside the feeds: files of token numbers. */
#ifndef TOPT_FEED_TOKENS_H
#define TOPT_FEED_TOKENS_H

#include "feed_order.h"
#include "topt_runtime.h"

/* Is it a file "*.bin", or a folder that has some? */
int topt_feed_is_tokens(const char *path);
/* 'tokenizer' NULL: 'path' has tokens; else a text, or records (*.jsonl) of texts.  'windows': as
 * of topt_feed_text_as(). */
int topt_feed_tokens(const char *path, const char *tokenizer,
                     const struct topt_windows *windows, const struct topt_model *m,
                     uint64_t seed, struct topt_feed *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
