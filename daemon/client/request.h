/* request.h - one request to toptd, over a Unix socket or TCP, with a deadline.
 * Thread safety: none needed; the client has one thread. */
#ifndef TOPT_CLIENT_REQUEST_H
#define TOPT_CLIENT_REQUEST_H

#include <stdint.h>

#include "topt_error.h"
#include "topt_text.h"
#include "topt_trust.h"

struct client_reply {
    long status;
    struct topt_text body; /* owned; "" at least */
    char location[128];
    int retry_after_s; /* 0: not said */
    char *signature;   /* owned; the value of Topt-Answer, or NULL */
};
void client_reply_fini(struct client_reply *r);

struct client_request {
    const char *url;         /* unix:/path or http://host:port */
    const char *method;      /* GET, POST, DELETE */
    const char *path;        /* with its query, encoded */
    const char *body, *type; /* NULL: none */
    size_t body_len;
    const struct topt_trust *trust; /* who may answer */
    long timeout_ms;
    const char
        *doing; /* what a line on a terminal says; NULL or "": asking the planner */
    int64_t
        began_ms; /* of topt_clock_ms: that line says how long it is ago; 0: there is none */
};

/* Any status is a success here; -1 where there was no answer, or it was not the daemon's: on a Unix
 * socket who listens is known by uid, over TCP what is asked and answered is signed by MUNGE. */
int client_ask(const struct client_request *q, struct client_reply *ret,
               struct topt_error *err) TOPT_MUST_CHECK;

/* Add "key=value" to a path, encoded, after '?' or '&'. */
void client_add_query(struct topt_text *path, const char *key, const char *value);

/* Add a part of a path, encoded. */
void client_add_segment(struct topt_text *path, const char *part);

#endif
