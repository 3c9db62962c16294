/* admit.h - how much of the server one peer may hold: connections and bytes of bodies.
 *
 * A peer is a user on a Unix socket, an address on TCP.  A connection on which no whole request
 * has come yet is unknown; from the first request on it is known, and counted for the user who
 * sent it.  The last connections of the server are kept for questions of submission.
 *
 * Thread safety: any thread; one leaf lock. */
#ifndef TOPTD_ADMIT_H
#define TOPTD_ADMIT_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

struct admit;
struct admit_peer;

struct admit_config {
    int connections;        /* of all peers */
    int reserved;           /* the last so many take questions of submission only */
    int known, unknown;     /* of one peer */
    int64_t bodies;         /* bytes of all bodies that are being received or worked on */
    int64_t bodies_of_peer; /* of one peer */
};

/* What a connection holds; start from {0}. */
struct admit_share {
    struct admit_peer *peer;
    int known;
    int64_t bytes;
};

enum admit_verdict {
    ADMIT,
    ADMIT_TOO_MANY, /* of this peer: it may try again later */
    ADMIT_NO_ROOM   /* in the server */
};

int admit_create(const struct admit_config *config, struct admit **ret,
                 struct topt_error *err) TOPT_MUST_CHECK;
void admit_destroy(struct admit *a); /* after every share was closed */

/* A connection was opened by a peer of that name ("uid 1000", "10.0.0.7").  ADMIT_TOO_MANY where
 * it has as many unknown connections as it may: the caller closes one of them.  ADMIT_NO_ROOM
 * where nothing can be opened; then the share stays empty. */
enum admit_verdict admit_open(struct admit *a, const char *peer, struct admit_share *ret);

/* A request has come whole, up to its body, from a user of that name. */
enum admit_verdict admit_request(struct admit *a, struct admit_share *s, const char *user,
                                 int is_submission);

/* 'n' more bytes of a body are kept; they are given back with admit_forget_body. */
enum admit_verdict admit_body(struct admit *a, struct admit_share *s, int64_t n);
void admit_forget_body(struct admit *a, struct admit_share *s);

void admit_close(struct admit *a, struct admit_share *s);

/* Connections that are open. */
int admit_count(struct admit *a);

#endif
