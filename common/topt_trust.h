/* topt_trust.h - whom a client takes for toptd.
 *
 * A site's toptd runs as root, or as the user "topt" where the machine has one, or as who
 * is named (TOPT_DAEMON_UID, a word of plugstack.conf): a name or a number.  Who listens
 * on a Unix socket may also be the asker, whose own daemon it is. Thread safety: reads
 * the environment and the user database; plain values. */
#ifndef TOPT_TRUST_H
#define TOPT_TRUST_H

#include <stdint.h>
#include <sys/types.h>

#include "topt_error.h"

struct topt_trust {
    int64_t uid;        /* who was named; -1: nobody was */
    int64_t usual;      /* the user "topt", or -1 */
    const char *socket; /* of munged, of $TOPT_MUNGE_SOCKET; NULL: where it usually is */
};

/* 'name' NULL or "": $TOPT_DAEMON_UID counts, and where that says nothing, who is usual.
 * USAGE where there is no such user. */
int topt_trust_read(const char *name, struct topt_trust *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* May 'uid' sign answers? */
int topt_trust_uid(const struct topt_trust *t, uid_t uid);

/* Is who listens at the other end of a connected Unix socket trusted?  -1: no, and who it is. */
int topt_trust_peer(const struct topt_trust *t, int fd,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
