/* encode.h - replies made smaller for clients that take gzip.  Thread safety: reentrant. */
#ifndef TOPTD_ENCODE_H
#define TOPTD_ENCODE_H

#include "server.h"

/* Does an Accept-Encoding (NULL: not sent) take gzip? */
int encode_takes_gzip(const char *accept);

/* Compress a reply that is worth it, where the client takes that.  Without memory it stays
 * as it is. */
void encode_reply(const struct request *q, struct reply *r);

#endif
