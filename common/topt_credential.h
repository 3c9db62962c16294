/* topt_credential.h - who asks toptd over TCP, and that it was toptd who answered.
 *
 *     client                                              toptd
 *       | Authorization: MUNGE <credential of the asker>    |
 *       |    over method, target, digest of the body  ----> | decoded once: uid, or 401
 *       | <---- Topt-Answer: MUNGE <credential of toptd>    |
 *       |    over the request's credential, status, digest of the answer's body
 *
 * Both live 60 s and are decoded at most once.  A request's is for the daemon's uid alone where the
 * client was told which that is, an answer's for the asker's.  What is sent is not secret: it is
 * signed, not encrypted.
 * Thread safety: any thread; calls share nothing and block (topt_munge.h). */
#ifndef TOPT_CREDENTIAL_H
#define TOPT_CREDENTIAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "topt_error.h"
#include "topt_trust.h"

#define TOPT_CREDENTIAL_SCHEME "MUNGE " /* before the credential, in both headers */
#define TOPT_ANSWER_HEADER     "Topt-Answer"

enum { TOPT_CREDENTIAL_TTL = 60 /* seconds */ };

/* What is asked: all borrowed. */
struct topt_asked {
    const char *method, *target; /* as in the request line: with the query, encoded */
    const void *body;
    size_t len;
};

/* What is answered: the body as it is sent (of HEAD: none). */
struct topt_answered {
    int status;
    const void *body;
    size_t len;
};

/* The value of Authorization, owned; only the daemon's user may read it where 'trust' names one.
 * Made anew for every try, also of the same question. */
int topt_credential_ask(const struct topt_trust *trust, const struct topt_asked *q,
                        char **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Who made the value of Authorization for just this request.  INVAL: nobody did, which is a 401;
 * IO: munged does not answer.  'socket': of munged, or NULL. */
int topt_credential_asker(const char *socket, const char *authorization,
                          const struct topt_asked *q, uid_t *ret_uid, gid_t *ret_gid,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* The value of Topt-Answer, owned: for 'asker' alone, to the request with that Authorization. */
int topt_credential_answer(const char *socket, uid_t asker, const char *authorization,
                           const struct topt_answered *a, char **ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* Was this answered by the daemon, to this request?  'signature': the value of
 * Topt-Answer, or NULL; 'url' is for the error.  0, or -1: IO, and what is not to be
 * believed is not to be shown.  1 of a 429 or 503 that nobody signed: not believed either,
 * but asking again later harms nobody. */
int topt_credential_check_answer(const struct topt_trust *trust, const char *url,
                                 const char *signature, const char *authorization,
                                 const struct topt_answered *a,
                                 struct topt_error *err) TOPT_MUST_CHECK;

#endif
