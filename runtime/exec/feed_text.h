/* feed_text.h - inside the feeds: text that is read as another one. */
#ifndef TOPT_FEED_TEXT_H
#define TOPT_FEED_TEXT_H

#include "feed_order.h"
#include "topt_runtime.h"

/* As topt_feed_text(), by the preprocessing of another text's feed; NULL: its own.  'windows': its
 * samples, from whose first tokens on a load may read as many. */
int topt_feed_text_as(const char *bytes, size_t len, const void *preprocessing,
                      const struct topt_windows *windows, const struct topt_model *m,
                      uint64_t seed, struct topt_feed *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* Numbers that characters have: those from here on are free. */
int topt_feed_text_numbers(const void *preprocessing);

#endif
