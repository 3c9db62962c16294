/* munge.c - credentials of MUNGE, by libmunge. */
#include "topt_munge.h"

#include <munge.h>
#include <stdlib.h>
#include <string.h>

/* munged takes messages of 1 MiB; ours are far shorter. */
enum { MOST_BYTES = 64 << 10 };

int topt_munge_built(void)
{
    return 1;
}

void topt_munge_fini(struct topt_munge_content *c)
{
    free(c->payload);
    *c = (struct topt_munge_content){0};
}

/* Faults of the credential are the sender's, all others are of this machine. */
static int fail(munge_err_t e, munge_ctx_t ctx, const char *doing, struct topt_error *err)
{
    const char *more = ctx ? munge_ctx_strerror(ctx) : NULL;
    switch (e) {
    case EMUNGE_CRED_EXPIRED:
        return topt_fail(err, TOPT_ERR_INVAL,
                         "expired credential (do the clocks of both "
                         "machines agree?)");
    case EMUNGE_CRED_REWOUND:
        return topt_fail(err, TOPT_ERR_INVAL,
                         "credential of the future (do the clocks of "
                         "both machines agree?)");
    case EMUNGE_CRED_REPLAYED:
        return topt_fail(err, TOPT_ERR_INVAL, "replayed credential");
    case EMUNGE_CRED_UNAUTHORIZED:
        return topt_fail(err, TOPT_ERR_INVAL, "credential for another reader");
    case EMUNGE_BAD_CRED:
    case EMUNGE_BAD_VERSION:
    case EMUNGE_BAD_CIPHER:
    case EMUNGE_BAD_MAC:
    case EMUNGE_BAD_ZIP:
    case EMUNGE_BAD_REALM:
    case EMUNGE_BAD_LENGTH:
    case EMUNGE_CRED_INVALID:
        return topt_fail(err, TOPT_ERR_INVAL,
                         "altered credential, or one of another MUNGE key");
    case EMUNGE_NO_MEMORY:
        return topt_nomem(err, "a credential");
    default:
        return topt_fail(err, TOPT_ERR_IO, "MUNGE can't %s a credential: %s", doing,
                         more ? more : munge_strerror(e));
    }
}

static munge_ctx_t make_context(const char *socket, struct topt_error *err)
{
    munge_ctx_t ctx = munge_ctx_create();
    if (!ctx) {
        topt_nomem(err, "a credential");
        return NULL;
    }
    if (socket && munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
        topt_fail(err, TOPT_ERR_INVAL, "'%s' is no socket of munged", socket);
        munge_ctx_destroy(ctx);
        return NULL;
    }
    return ctx;
}

int topt_munge_encode(const char *socket, int64_t reader, int ttl, const char *payload,
                      char **ret, struct topt_error *err)
{
    size_t len = strlen(payload);
    char *made = NULL;
    munge_err_t e = EMUNGE_SUCCESS;
    if (len > MOST_BYTES)
        return topt_fail(err, TOPT_ERR_LIMIT, "a request's line is longer than %d bytes",
                         MOST_BYTES);
    munge_ctx_t ctx = make_context(socket, err);
    if (!ctx)
        return -1;
    if (reader != TOPT_MUNGE_ANY)
        e = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)reader);
    if (e == EMUNGE_SUCCESS)
        e = munge_ctx_set(ctx, MUNGE_OPT_TTL, ttl);
    if (e == EMUNGE_SUCCESS)
        e = munge_encode(&made, ctx, payload, (int)len);
    int rc = e == EMUNGE_SUCCESS ? 0 : fail(e, ctx, "make", err);
    munge_ctx_destroy(ctx);
    if (rc == 0)
        *ret = made;
    else
        free(made);
    return rc;
}

int topt_munge_decode(const char *socket, const char *credential,
                      struct topt_munge_content *ret, struct topt_error *err)
{
    struct topt_munge_content c = {0};
    void *payload = NULL;
    int len = 0;
    if (strlen(credential) > 2 * MOST_BYTES)
        return topt_fail(err, TOPT_ERR_INVAL, "a credential of more than %d bytes",
                         2 * MOST_BYTES);
    if (!*credential)
        return topt_fail(err, TOPT_ERR_INVAL, "an empty credential");
    munge_ctx_t ctx = make_context(socket, err);
    if (!ctx)
        return -1;
    munge_err_t e = munge_decode(credential, ctx, &payload, &len, &c.uid, &c.gid);
    int rc = e == EMUNGE_SUCCESS ? 0 : fail(e, ctx, "read", err);
    if (rc == 0 && munge_ctx_get(ctx, MUNGE_OPT_TTL, &c.ttl) != EMUNGE_SUCCESS)
        rc = topt_fail(err, TOPT_ERR_INVAL, "credential without a lifetime");
    c.payload = payload ? payload : rc == 0 ? calloc(1, 1) : NULL;
    if (rc == 0 && !c.payload)
        rc = topt_nomem(err, "a credential");
    if (rc == 0 && strlen(c.payload) != (size_t)len)
        rc = topt_fail(err, TOPT_ERR_INVAL, "credential that holds a byte of zero");
    munge_ctx_destroy(ctx);
    if (rc == 0)
        *ret = c;
    else
        free(c.payload);
    return rc;
}
