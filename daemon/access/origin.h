/* origin.h - which web pages may speak to us.
 *
 * A browser sends a page's requests with the user's rights: through an ssh tunnel to the
 * Unix socket, or through the site's proxy.  So a request names a host that is ours,
 * whatever the name resolves to, and one that a page sends names the page of the same
 * host; what changes something must moreover be JSON, which no form of another site can
 * send. Thread safety: reentrant. */
#ifndef TOPTD_ORIGIN_H
#define TOPTD_ORIGIN_H

/* Is that Host a loopback address, "localhost", the address 'local' that the connection
 * came to (may be NULL), or in the list 'names' (may be NULL)?  With any port. */
int origin_host_is_ours(const char *host, const char *names, const char *local);

/* A request's headers; NULL where there is none. */
struct origin {
    const char *host, *origin;
    int writes, is_json; /* not GET or HEAD; Content-Type: application/json */
    int is_unix;         /* where a Host may be missing */
};

/* NULL, or why it is refused, in words; '*ret_header' is the header that is wrong. */
const char *origin_refusal(const struct origin *o, const char *names, const char *local,
                           const char **ret_header);

#endif
