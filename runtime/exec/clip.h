/* clip.h - gradients that are scaled by the norm of all of them.  Inside the executor. */
#ifndef TOPT_CLIP_H
#define TOPT_CLIP_H

#include "session.h"

/* Sum of squares of a gradient, this rank's share of it: of what several ranks hold one
 * counts. */
int topt_clip_square(struct topt_session *s, int buffer, double *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Host memory that this takes (topt_scratch). */
int64_t topt_clip_scratch(const struct topt_session *s);

#endif
