/* lower.h - a whole strategy written into a recorder.  Private to lower/. */
#ifndef TOPT_LOWER_INTO_H
#define TOPT_LOWER_INTO_H

#include "record.h"

/* Into an empty program; what it leaves is the recorder's owner's on failure, too. */
int topt_lower_into(struct topt_recorder *r, const struct topt_strategy *s,
                    struct topt_router *router, struct topt_error *err);

#endif
