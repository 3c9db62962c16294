/* feed_text.h - inside the feeds: text that is read as another one. */
#ifndef TOPT_FEED_TEXT_H
#define TOPT_FEED_TEXT_H

#include "topt_runtime.h"

/* As topt_feed_text(), by the preprocessing of another text's feed; NULL: its own.  'window':
 * tokens that a sample is made of, from which on a load may read as many. */
int topt_feed_text_as(const char *bytes, size_t len, const void *preprocessing,
                      int64_t window, const struct topt_model *m, uint64_t seed,
                      struct topt_feed *ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Numbers that characters have: those from here on are free. */
int topt_feed_text_numbers(const void *preprocessing);

#endif
