/* alive.h - the sink that follows how many bytes fragments make alive, and nothing else.
 * Private to lower/. */
#ifndef TOPT_ALIVE_H
#define TOPT_ALIVE_H

#include "fragment.h"

/* Bytes are followed in lanes: as if each block were the largest one; and, where an
 * operator of the model has windows, on each device. */
enum { TOPT_ALIVE_LANES = 1 + TOPT_PEAK_DEVICES };

struct topt_alive {
    struct topt_sink sink; /* first: it is cast to this */
    const struct topt_costing *k;
    const struct topt_config *config; /* of the operator at hand */
    int lanes, windows;               /* 'windows': there was one */
    int n, cap;
    struct topt_buffer *buffer;
    int64_t *bytes;                                        /* by buffer and lane */
    int64_t now[TOPT_ALIVE_LANES], most[TOPT_ALIVE_LANES]; /* since topt_alive_mark */
};

struct topt_alive topt_alive(const struct topt_costing *k); /* borrows 'k' */
void topt_alive_fini(struct topt_alive *a);
/* Forget all buffers: what follows is of an operator of this configuration, which may
 * be NULL for moves. */
void topt_alive_start(struct topt_alive *a, const struct topt_config *config);
void topt_alive_mark(struct topt_alive *a);
struct topt_fragments topt_alive_fragments(struct topt_alive *a, struct topt_error *err);

#endif
