/* warm.h - answers given lately, ready to be sent again to the same user for the same bytes.
 *
 * An entry is found by the digest of everything that decides the reply: who asks, method,
 * target, what forms are accepted, and the body.  It holds a finished response, so a hit
 * costs two digests and one look-up: no parsing, no SQL, no other thread.  An entry of
 * another epoch (hardware, owners, documents or what jobs measured have changed since) is
 * not found, nor one that is an hour old, so that the store sees now and then what is in
 * use; the least recently used go first.
 *
 * Thread safety: any thread; one leaf lock. */
#ifndef TOPTD_WARM_H
#define TOPTD_WARM_H

#include <microhttpd.h>
#include <stdint.h>

#include "server.h"

struct warm;

struct warm_key {
    uint8_t digest[32];
};

int warm_create(int64_t bytes, struct warm **ret, struct topt_error *err) TOPT_MUST_CHECK;
void warm_destroy(struct warm *w);

void warm_key(const struct request *q, struct warm_key *ret);

/* Queue the response that is kept under 'key'.  1, or 0 where there is none. */
int warm_send(struct warm *w, const struct warm_key *key, unsigned long long epoch,
              struct MHD_Connection *mc, int *ret_status);

/* Keep a response of 'bytes' bytes, whose reference is taken.  'epoch' is what epoch_of
 * was before the reply was made. */
void warm_keep(struct warm *w, const struct warm_key *key, unsigned long long epoch,
               struct MHD_Response *takes, int status, size_t bytes);

#endif
