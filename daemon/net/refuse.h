/* refuse.h - what is refused before any handler sees it.  Thread safety: reentrant. */
#ifndef TOPTD_REFUSE_H
#define TOPTD_REFUSE_H

#include <microhttpd.h>

#include "server.h"

/* The value of a header, or NULL. */
const char *refuse_header(struct MHD_Connection *mc, const char *name);

/* Is 'value' "type" or "type; ..."? */
int refuse_is_type(const char *value, const char *type);

/* 1 with '*ret' filled where a request may not be answered as it is: from a foreign host or a web
 * page of another origin, in a form or an encoding that is not read, with broken parameters.
 * 'local' is the address that a TCP client came to, NULL for a Unix socket. */
int refuse_request(const struct request *q, struct MHD_Connection *mc, const char *local,
                   struct reply *ret);

/* 1 with '*ret' filled where the announced length alone is too much. */
int refuse_length(const struct request *q, struct MHD_Connection *mc, struct reply *ret);
struct reply refuse_too_long(const struct request *q);

#endif
