/* authenticate.h - who sent a request. Thread safety: any thread; blocks (munged, the
 * user database), so it is the handler threads' to call. */
#ifndef TOPTD_AUTHENTICATE_H
#define TOPTD_AUTHENTICATE_H

#include "server.h"

enum door { DOOR_UNIX, DOOR_TCP, DOOR_PROXY };

/* What there is to tell by.  Strings NULL where they were not sent. */
struct evidence {
    enum door door;
    uid_t uid; /* of the peer of a Unix socket; -1 elsewhere */
    gid_t gid;
    const char *authorization; /* of TCP */
    const char *login;         /* of the proxy's socket */
    int logins;                /* how many there are */
};

/* Fill q->caller: nobody where nothing was shown.  -1 with '*ret' filled where what was
 * shown is false (401), or can't be looked at now (503). */
int authenticate(struct request *q, const struct evidence *e, struct reply *ret);

/* The value of Topt-Answer for a reply to a caller who came by MUNGE; owned, NULL where
 * it can't be made, which is logged. */
char *authenticate_reply(const struct request *q, const struct evidence *e,
                         const struct reply *r);

#endif
