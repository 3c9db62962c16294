/* packed.h - inside the runtime: frozen parameters that rest in 4 or 8 bits.  See packed.c. */
#ifndef TOPT_PACKED_H
#define TOPT_PACKED_H

#include "session.h"

/* This rank's numbers into a packed buffer, and back as they are then; 'x' has as many as the buffer's box. */
void topt_packed_put(struct topt_session *s, int buffer, const float *x);
void topt_packed_get(const struct topt_session *s, int buffer, float *ret);
/* An UNPACK instruction. */
int topt_session_unpack(struct topt_session *s, const struct topt_instr *i,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* Can all that the program has in few bits be had so here? */
int topt_packed_check(const struct topt_program *p, const struct topt_device *device,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
