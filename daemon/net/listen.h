/* listen.h - listening sockets.  Thread safety: reentrant. */
#ifndef TOPTD_LISTEN_H
#define TOPTD_LISTEN_H

#include "topt_error.h"

/* A listening Unix socket that everybody on the machine may use; its directory is made, a
 * stale socket replaced, a live one refused.  Returns the descriptor, or -1. */
int listen_unix(const char *path, struct topt_error *err) TOPT_MUST_CHECK;

/* "127.0.0.1:8080", "[::1]:0": loopback only, unless 'any'.  '*ret_port' is the port taken. */
int listen_tcp(const char *address, int any, int *ret_port,
               struct topt_error *err) TOPT_MUST_CHECK;

#endif
