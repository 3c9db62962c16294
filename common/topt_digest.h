/* topt_digest.h - SHA-256 as text.  Thread safety: reentrant. */
#ifndef TOPT_DIGEST_H
#define TOPT_DIGEST_H

#include <stddef.h>

enum { TOPT_SHA256_HEX = 65 /* 64 digits and a NUL */ };

/* FIPS 180-4 SHA-256 of 'len' bytes, in lower-case hex. */
void topt_sha256(const void *data, size_t len, char ret_hex[TOPT_SHA256_HEX]);

#endif
