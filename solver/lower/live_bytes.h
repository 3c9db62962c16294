/* live_bytes.h - the sink that follows how many bytes fragments make alive, and nothing else.
 * Private to lower/. */
#ifndef TOPT_LIVE_BYTES_H
#define TOPT_LIVE_BYTES_H

#include "fragment.h"

/* Bytes are followed in lanes: as if each block were the largest one; and, where an
 * operator of the model has windows, on each device. */
enum { TOPT_LIVE_LANES = 1 + TOPT_PEAK_DEVICES };

struct topt_live_bytes {
    struct topt_sink sink; /* first: it is cast to this */
    const struct topt_costing *k;
    const struct topt_config *config; /* of the operator at hand */
    int lanes, windows;               /* 'windows': there was one */
    int n, cap;
    struct topt_buffer *buffer;
    int64_t *bytes;                                      /* by buffer and lane */
    int64_t now[TOPT_LIVE_LANES], most[TOPT_LIVE_LANES]; /* since topt_live_bytes_mark */
};

struct topt_live_bytes topt_live_bytes(const struct topt_costing *k); /* borrows 'k' */
void topt_live_bytes_fini(struct topt_live_bytes *a);
/* Forget all buffers: what follows is of an operator of this configuration, which may
 * be NULL for moves. */
void topt_live_bytes_start(struct topt_live_bytes *a, const struct topt_config *config);
void topt_live_bytes_mark(struct topt_live_bytes *a);
struct topt_fragments topt_live_bytes_fragments(struct topt_live_bytes *a,
                                                struct topt_error *err);

#endif
