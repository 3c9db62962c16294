/* padding.h - inside the executor: which positions of samples are padding, for attention. */
#ifndef TOPT_PADDING_H
#define TOPT_PADDING_H

#include "session.h"

/* Room for what the feed says; before kernels are bound. */
int topt_padding_open(struct topt_session *s, struct topt_error *err) TOPT_MUST_CHECK;
/* What is said of the keys of operator 'op', an attention, on this rank; NULL: nothing is. */
const int32_t *topt_padding_of(const struct topt_session *s, int op, int64_t first);
/* Ask the feed about the samples of the micro-batch that comes. */
void topt_padding_fill(struct topt_session *s);

#endif
