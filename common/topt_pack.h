/* topt_pack.h - bytes made smaller for keeping and sending, and whole again (zlib's format).
 * Thread safety: reentrant. */
#ifndef TOPT_PACK_H
#define TOPT_PACK_H

#include <stddef.h>

#include "topt_error.h"

/* 'data' in gzip's format, for Content-Encoding: gzip; quick rather than small.  '*ret' is owned.
 */
int topt_gzip(const void *data, size_t len, void **ret, size_t *ret_len,
              struct topt_error *err) TOPT_MUST_CHECK;

/* '*ret' is owned, '*ret_len' bytes. */
int topt_pack(const void *data, size_t len, void **ret, size_t *ret_len,
              struct topt_error *err) TOPT_MUST_CHECK;

/* '*ret' is owned and has a NUL behind its '*ret_len' bytes.  INVAL where 'data' is not what
 * topt_pack made, or is more than 'most' bytes when it is whole. */
int topt_unpack(const void *data, size_t len, size_t most, char **ret, size_t *ret_len,
                struct topt_error *err) TOPT_MUST_CHECK;

#endif
