/* sha256.h - FIPS 180-4 SHA-256 of one buffer.  Thread safety: reentrant. */
#ifndef TOPTD_SHA256_H
#define TOPTD_SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256(const void *data, size_t len, uint8_t ret[32]);

/* "<prefix>-" and the first 128 bits in hex: the name of a document. */
void digest_id(const char *prefix, const char *text, char ret[40]);

#endif
