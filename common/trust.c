/* trust.c - whom a client takes for toptd. */
#include "topt_trust.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topt_text.h"

enum { RECORD_BYTES = 16 << 10 };

/* 1 found, 0 there is no such user. */
static int look_up(const char *name, uid_t *ret)
{
    struct passwd user, *found = NULL;
    char *buf = malloc(RECORD_BYTES);
    int rc = buf ? getpwnam_r(name, &user, buf, RECORD_BYTES, &found) : ENOMEM;
    if (rc == 0 && found)
        *ret = user.pw_uid;
    free(buf);
    return rc == 0 && found;
}

/* The uid of a name or number; USAGE where there is none. */
static int user_id(const char *name, uid_t *ret, struct topt_error *err)
{
    int64_t number;
    if (isdigit((unsigned char)*name)) {
        if (topt_parse_int(name, 0, UINT32_MAX - 1, &number, err) < 0)
            return topt_fail(err, TOPT_ERR_USAGE, "'%.40s' is no uid", name);
        *ret = (uid_t)number;
        return 0;
    }
    return look_up(name, ret)
               ? 0
               : topt_fail(err, TOPT_ERR_USAGE, "this machine has no user '%.40s'", name);
}

int topt_trust_read(const char *name, struct topt_trust *ret, struct topt_error *err)
{
    uid_t uid = 0;
    const char *socket = getenv("TOPT_MUNGE_SOCKET");
    *ret = (struct topt_trust){-1, -1, socket && *socket ? socket : NULL};
    if (!name || !*name)
        name = getenv("TOPT_DAEMON_UID");
    if (!name || !*name) {
        ret->usual = look_up("topt", &uid) ? (int64_t)uid : -1;
        return 0;
    }
    if (user_id(name, &uid, err) < 0)
        return topt_wrap(err, "the daemon's user");
    ret->uid = uid;
    return 0;
}

int topt_trust_uid(const struct topt_trust *t, uid_t uid)
{
    if (t->uid >= 0)
        return uid == (uid_t)t->uid;
    return uid == 0 || (t->usual >= 0 && uid == (uid_t)t->usual);
}

int topt_trust_peer(const struct topt_trust *t, int fd, struct topt_error *err)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
        return topt_fail(err, TOPT_ERR_IO, "who listens can't be told: %s",
                         strerror(errno));
    if (peer.uid == 0 || peer.uid == geteuid() || topt_trust_uid(t, peer.uid))
        return 0;
    return topt_fail(
        err, TOPT_ERR_IO,
        "who listens there is uid %u: neither root, nor you, nor the daemon's "
        "user (TOPT_DAEMON_UID)",
        (unsigned)peer.uid);
}
