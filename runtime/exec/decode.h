/* decode.h - a text that grows, on one rank: each position is computed once.
 *
 * Of a causal model's operators few look at older positions: attention at their keys and
 * values, a convolution at its last inputs, a scan (Mamba, the gated delta rule) at its
 * state.  A token's experts look at that token.  So these are kept, and all else is computed for the new positions alone, by the
 * kernels that training runs. */
#ifndef TOPT_DECODE_H
#define TOPT_DECODE_H

#include "topt_runtime.h"

struct topt_decode;

/* Can the session's program be run so?  One sample, and operators that keep what they need of
 * older positions, or look at none: no gated recurrences, and no experts with fewer slots
 * than the model has positions, of which later tokens may find none. */
int topt_decode_can(const struct topt_session *s);
/* Borrows the session, which is to have its weights; INVAL where topt_decode_can() says
 * no.  Memory: keys and values of all positions, last inputs and states, and all else of as many
 * positions as are added at once. */
int topt_decode_open(struct topt_session *s, struct topt_decode **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_decode_close(struct topt_decode *d);
/* 'n' tokens more, at least one; what the model says of the token after the last of them,
 * a number for each of 'classes'. LIMIT where they are more than the model's positions. */
int topt_decode_more(struct topt_decode *d, const int32_t *id, int64_t n, double *ret,
                     int64_t classes, struct topt_error *err) TOPT_MUST_CHECK;

#endif
