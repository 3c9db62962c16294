/* memory.h - a rank's buffers, and how many bytes of them are alive.  Inside the
 * executor. */
#ifndef TOPT_MEMORY_H
#define TOPT_MEMORY_H

#include "session.h"

/* Bits of a number of a parameter's buffer that rests in few of them (packed.h); 0: it does not. */
int topt_packed_bits(const struct topt_program *p, int buffer);
/* The whole of what a buffer has numbers of: where they rest in few bits, of them, not of the bytes. */
struct topt_shape topt_buffer_shape(const struct topt_program *p, int buffer);
/* Local box, elements and bytes of one of the program's buffers on this rank. */
struct topt_box topt_buffer_box(const struct topt_session *s, int buffer);
int64_t topt_buffer_elements(const struct topt_session *s, int buffer);
int topt_session_element_bytes(const struct topt_session *s, enum topt_element e);
/* What its numbers are; REAL, STATE and WIDE alone. */
enum topt_dtype topt_buffer_dtype(const struct topt_session *s, int buffer);
int64_t topt_buffer_bytes(const struct topt_session *s, int buffer);
/* Room for all buffers. */
int topt_arena_open(struct topt_session *s, struct topt_error *err) TOPT_MUST_CHECK;
void topt_arena_close(struct topt_session *s);
int topt_buffer_alloc(struct topt_session *s, int buffer,
                      struct topt_error *err) TOPT_MUST_CHECK;
void topt_buffer_free(struct topt_session *s, int buffer);

/* At least 'bytes' of host memory, valid until the next call.  NULL: out of memory. */
void *topt_scratch(struct topt_session *s, int64_t bytes);

#endif
