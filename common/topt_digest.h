/* topt_digest.h - SHA-256 of bytes, and the short ids that documents go by.
 *
 * Documents are named by their content and everybody may send one, so the digest is one
 * that nobody can make two documents share.  It comes from nettle; nothing here knows
 * JSON.  Thread safety: reentrant. */
#ifndef TOPT_DIGEST_H
#define TOPT_DIGEST_H

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOPT_DIGEST_BYTES = 32,
    TOPT_DIGEST_HEX = 65, /* 64 digits and the NUL */
    TOPT_ID = 40, /* an id: a letter, '-', 32 digits and the NUL, with room to spare */
    TOPT_ID_DIGITS = 32, /* the first half of the digest */
};

/* Bytes that come in pieces: begin, add..., then one of the ends. */
struct topt_digest {
    struct sha256_ctx ctx;
};
void topt_digest_begin(struct topt_digest *d);
void topt_digest_add(struct topt_digest *d, const void *data, size_t len);
void topt_digest_end_hex(struct topt_digest *d, char ret[TOPT_DIGEST_HEX]);
/* "m-<32 hex>": 'kind' is the letter (p plan, m model, h hardware). */
void topt_digest_end_id(struct topt_digest *d, char kind, char ret[TOPT_ID]);

/* The same of one piece. */
void topt_sha256(const void *data, size_t len, uint8_t ret[TOPT_DIGEST_BYTES]);
void topt_sha256_hex(const void *data, size_t len, char ret[TOPT_DIGEST_HEX]);
void topt_id(char kind, const void *data, size_t len, char ret[TOPT_ID]);

/* Is 'text' written as ids are: p, m or h, '-', and 16 or more hexadecimal digits?  (Plans
 * had 16 once.)  Nothing that people name may be. */
int topt_is_id(const char *text);

#endif
