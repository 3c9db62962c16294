/* credential.c - what credentials of requests and answers hold, and that it is what was sent. */
#include "topt_credential.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topt_digest.h"
#include "topt_munge.h"
#include "topt_text.h"

/* A line breaks fields, so no field may hold one: a method and a target can't (they stand in a
 * request line), digests and numbers don't. */
static int request_payload(const struct topt_asked *q, struct topt_text *ret,
                           struct topt_error *err)
{
    char digest[TOPT_DIGEST_HEX];
    if (strpbrk(q->method, " \r\n") || strpbrk(q->target, " \r\n"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a request's line with blanks in its target");
    topt_sha256_hex(q->len ? q->body : "", q->len, digest);
    topt_text_add(ret, "topt-request/1\n%s\n%s\n%s\n", q->method, q->target, digest);
    return ret->oom ? topt_nomem(err, "a credential") : 0;
}

static int answer_payload(const char *authorization, const struct topt_answered *a,
                          struct topt_text *ret, struct topt_error *err)
{
    char request[TOPT_DIGEST_HEX], digest[TOPT_DIGEST_HEX];
    topt_sha256_hex(authorization, strlen(authorization), request);
    topt_sha256_hex(a->len ? a->body : "", a->len, digest);
    topt_text_add(ret, "topt-answer/1\n%s\n%d\n%s\n", request, a->status, digest);
    return ret->oom ? topt_nomem(err, "a credential") : 0;
}

/* The value of a header: the scheme and a credential of 'payload'.  Takes the payload. */
static int sign(const char *socket, int64_t reader, struct topt_text *payload, char **ret,
                struct topt_error *err)
{
    struct topt_text value = {0};
    char *credential = NULL;
    int rc = topt_munge_encode(socket, reader, TOPT_CREDENTIAL_TTL, payload->s,
                               &credential, err);
    topt_text_fini(payload);
    if (rc < 0)
        return -1;
    topt_text_add(&value, TOPT_CREDENTIAL_SCHEME "%s", credential);
    free(credential);
    if (value.oom) {
        topt_text_fini(&value);
        return topt_nomem(err, "a credential");
    }
    *ret = value.s;
    return 0;
}

/* Decode a header's value, which must hold just 'payload'.  Takes the payload. */
static int check(const char *socket, const char *value, struct topt_text *payload,
                 const char *what, struct topt_munge_content *ret, struct topt_error *err)
{
    static const char scheme[] = TOPT_CREDENTIAL_SCHEME;
    int rc = 0;
    if (strncasecmp(value, scheme, sizeof scheme - 1))
        rc = topt_fail(err, TOPT_ERR_INVAL, "no credential of MUNGE");
    else
        rc = topt_munge_decode(socket, value + sizeof scheme - 1, ret, err);
    if (rc == 0 && ret->ttl > TOPT_CREDENTIAL_TTL)
        rc = topt_fail(err, TOPT_ERR_INVAL, "credential that lives longer than %d s",
                       TOPT_CREDENTIAL_TTL);
    if (rc == 0 && strcmp(ret->payload, payload->s))
        rc = topt_fail(err, TOPT_ERR_INVAL, "credential of another %s", what);
    topt_text_fini(payload);
    if (rc < 0)
        topt_munge_fini(ret);
    return rc;
}

int topt_credential_ask(const struct topt_trust *trust, const struct topt_asked *q,
                        char **ret, struct topt_error *err)
{
    struct topt_text payload = {0};
    if (request_payload(q, &payload, err) < 0) {
        topt_text_fini(&payload);
        return -1;
    }
    return sign(trust->socket, trust->uid, &payload, ret, err); /* -1: any */
}

int topt_credential_asker(const char *socket, const char *authorization,
                          const struct topt_asked *q, uid_t *ret_uid, gid_t *ret_gid,
                          struct topt_error *err)
{
    struct topt_text payload = {0};
    struct topt_munge_content c = {0};
    if (request_payload(q, &payload, err) < 0) {
        topt_text_fini(&payload);
        return -1;
    }
    if (check(socket, authorization, &payload, "request", &c, err) < 0)
        return -1;
    *ret_uid = c.uid;
    *ret_gid = c.gid;
    topt_munge_fini(&c);
    return 0;
}

int topt_credential_answer(const char *socket, uid_t asker, const char *authorization,
                           const struct topt_answered *a, char **ret,
                           struct topt_error *err)
{
    struct topt_text payload = {0};
    if (answer_payload(authorization, a, &payload, err) < 0) {
        topt_text_fini(&payload);
        return -1;
    }
    return sign(socket, asker, &payload, ret, err);
}

/* Is 'signature' of the daemon's user, and over just this? */
static int check_signature(const struct topt_trust *trust, const char *signature,
                           const char *authorization, const struct topt_answered *a,
                           struct topt_error *err)
{
    struct topt_text payload = {0};
    struct topt_munge_content c = {0};
    if (answer_payload(authorization, a, &payload, err) < 0) {
        topt_text_fini(&payload);
        return -1;
    }
    if (check(trust->socket, signature, &payload, "answer", &c, err) < 0)
        return -1;
    uid_t uid = c.uid;
    topt_munge_fini(&c);
    if (topt_trust_uid(trust, uid))
        return 0;
    return topt_fail(err, TOPT_ERR_INVAL,
                     "signed by uid %u, who is not the daemon's user (TOPT_DAEMON_UID)",
                     (unsigned)uid);
}

int topt_credential_check_answer(const struct topt_trust *trust, const char *url,
                                 const char *signature, const char *authorization,
                                 const struct topt_answered *a, struct topt_error *err)
{
    struct topt_error why = {0};
    if (signature) {
        if (check_signature(trust, signature, authorization, a, &why) == 0)
            return 0;
        return topt_fail(err, TOPT_ERR_IO, "the answer of %.80s is not believed: %s", url,
                         why.text);
    }
    if (a->status == 401)
        return topt_fail(
            err, TOPT_ERR_IO,
            "%.80s does not know who asks (401): do both machines have the same "
            "MUNGE key, and do their clocks agree?",
            url);
    topt_fail(err, TOPT_ERR_IO, "the answer of %.80s (%d) is not signed: not believed",
              url, a->status);
    return a->status == 429 || a->status == 503 ? 1 : -1;
}
