/* answers.h - a stored answer as a reply.  Thread safety: reentrant. */
#ifndef TOPTD_ANSWERS_H
#define TOPTD_ANSWERS_H

#include "server.h"

/* In the form that the request wants: JSON with the plan put back, or lines of KEY=VALUE; 422
 * where nothing fits.  With what jobs say of it, 'c'. */
struct reply answer_reply(const struct request *q, const struct store_answer *a,
                          int is_pinned, const struct correction *c);

#endif
