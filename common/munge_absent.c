/* munge_absent.c - no credentials, where libmunge was not there when this was built. */
#include "topt_munge.h"

static int fail(struct topt_error *err)
{
    return topt_fail(
        err, TOPT_ERR_USAGE,
        "this topt was built without MUNGE (libmunge-dev), by which machines "
        "know each other's users");
}

int topt_munge_built(void)
{
    return 0;
}

int topt_munge_encode(const char *socket, int64_t reader, int ttl, const char *payload,
                      char **ret, struct topt_error *err)
{
    (void)socket, (void)reader, (void)ttl, (void)payload, (void)ret;
    return fail(err);
}

int topt_munge_decode(const char *socket, const char *credential,
                      struct topt_munge_content *ret, struct topt_error *err)
{
    (void)socket, (void)credential, (void)ret;
    return fail(err);
}

void topt_munge_fini(struct topt_munge_content *c)
{
    (void)c;
}
