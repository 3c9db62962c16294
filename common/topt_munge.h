/* topt_munge.h - credentials of MUNGE: bytes that say which uid of the cluster made them.
 *
 * Every call asks the machine's munged over its Unix socket and blocks until it has answered, in
 * usual 0.1 ms; libmunge gives up after some seconds where munged does not.
 * Thread safety: any thread; calls share nothing. */
#ifndef TOPT_MUNGE_H
#define TOPT_MUNGE_H

#include <stdint.h>
#include <sys/types.h>

#include "topt_error.h"

/* Was libmunge there when this was built?  Where it was not, the calls below fail with USAGE. */
int topt_munge_built(void);

enum { TOPT_MUNGE_ANY = -1 /* any uid may decode it */ };

/* A credential that holds 'payload' for 'ttl' seconds, which only 'reader' (a uid) may decode.
 * 'socket' NULL: where munged usually listens.  '*ret' is owned.  Fails with IO where munged does
 * not answer. */
int topt_munge_encode(const char *socket, int64_t reader, int ttl, const char *payload,
                      char **ret, struct topt_error *err) TOPT_MUST_CHECK;

struct topt_munge_content {
    char *payload; /* owned; NUL-terminated, "" at least */
    uid_t uid;     /* of the process that made it */
    gid_t gid;
    int ttl; /* seconds */
};

/* Decode; once only, since munged remembers those that it has decoded.  Fails with INVAL where the
 * credential is none, was altered, replayed, has expired, is of the future or for another uid, and
 * says which; with IO where munged does not answer. */
int topt_munge_decode(const char *socket, const char *credential,
                      struct topt_munge_content *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
void topt_munge_fini(struct topt_munge_content *c);

#endif
