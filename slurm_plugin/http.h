/* http.h - one POST to toptd, under one deadline.
 *
 * Pure of Slurm.  Thread safety: calls share nothing. */
#ifndef TOPT_HTTP_H
#define TOPT_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_trust.h"

struct topt_http_reply {
    int status;
    char *body; /* owned; NUL-terminated */
    size_t len;
    char *signature;   /* owned; the value of Topt-Answer, or NULL */
    int retry_after_s; /* 0: not said */
};

struct topt_http_request {
    const char *url;    /* unix:/path or http://ADDRESS:PORT; numeric or "localhost" */
    const char *target; /* "/v1/plan?..."; already escaped */
    const void *body;
    size_t len;
    int64_t timeout_ms;    /* for everything together: connect, send and receive */
    int64_t said_ms;       /* of the clock below: when 'waiting' is called */
    void (*waiting)(void); /* once, where the reply isn't there by then; may be NULL */
    const struct topt_trust *trust; /* who may answer */
};

/* Send and wait for the whole reply (at most 192 KiB).  Fails with CANCELED past the
 * deadline, BUSY where it was refused or broken off before an answer, which may pass, IO
 * when there is nobody or it is not the daemon, INVAL for a URL that means nothing. The
 * reply's body is the caller's: topt_http_fini.
 *
 * A Unix socket's listener is known by its uid.  Over TCP the request is signed, anew in each call,
 * and so must be the answer; of one that is not, a 429 or 503 alone comes back, without its body,
 * since asking again later harms nobody. */
int topt_http_post(const struct topt_http_request *q, struct topt_http_reply *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
void topt_http_fini(struct topt_http_reply *reply);

/* Read a reply from the 'len' bytes received so far; 'eof' when no more will come.
 * Returns 1 and fills '*ret' when whole, 0 when more is needed, -1 when it is no HTTP. */
int topt_http_parse(const char *bytes, size_t len, int eof, struct topt_http_reply *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
