/* tally.h - fragments added up as a cost, and followed in the bytes that they make alive.  Private
 * to lower/. */
#ifndef TOPT_TALLY_H
#define TOPT_TALLY_H

#include "fragment.h"

enum { TOPT_TALLY_BUFFERS = 128 }; /* of one fragment */

/* The pieces of an operator in a program, each of which the dataflow runs by itself. */
enum topt_live_piece {
    TOPT_LIVE_INIT,
    TOPT_LIVE_FORWARD,
    TOPT_LIVE_AGAIN, /* forward, for backward */
    TOPT_LIVE_BACKWARD,
    TOPT_LIVE_END,
    TOPT_LIVE_COUNT
};
/* The numbers of bytes that are known of an operator's fragments: what a piece rises by at most, at
 * twice its number, and behind it by what it changes what is alive; its output's, and those of the
 * gradients of its inputs. */
enum {
    TOPT_LIVE_OUT = 2 * TOPT_LIVE_COUNT,
    TOPT_LIVE_GRADS,
    TOPT_LIVE_NUMBERS = TOPT_LIVE_GRADS + TOPT_MAX_INPUTS,
    TOPT_LIVE_LANES = 1 + TOPT_PEAK_DEVICES
};

/* How many bytes fragments make alive, whatever is alive around them: so the peak of a program
 * follows from its pieces.  Bytes are followed in lanes: as if each block were the largest one;
 * and, where an operator of the model has windows, on each device. */
struct topt_live {
    int lanes, windows;               /* 'windows': there was one */
    const struct topt_config *config; /* of the operator at hand; NULL for moves */
    int64_t now[TOPT_LIVE_LANES], most[TOPT_LIVE_LANES]; /* since topt_live_begin */
    int64_t number[TOPT_LIVE_NUMBERS][TOPT_LIVE_LANES];
    int64_t bytes[TOPT_TALLY_BUFFERS][TOPT_LIVE_LANES];
};
void topt_live_init(struct topt_live *a, const struct topt_costing *k);
/* A piece begins; it ends; the bytes of a buffer are a number.  Of NULL nothing is followed. */
void topt_live_begin(struct topt_live *a);
void topt_live_end(struct topt_live *a, enum topt_live_piece piece);
void topt_live_put(struct topt_live *a, int number, int buffer);

struct topt_tally {
    struct topt_sink sink; /* first: it is cast to this */
    const struct topt_costing *k;
    struct topt_fragment_cost cost;
    int64_t rounds;        /* micro-batches that do what is written now */
    int64_t times;         /* each instruction counts so often in one of them */
    int along;             /* ... once at each count of this dimension; -1: none */
    enum topt_during part; /* when in a step what is written now is */
    enum topt_async async; /* what moves now */
    /* Communication that computation may hide, by part of the step and by what its time rests on. */
    int64_t async_ns[TOPT_DURING_COUNT][TOPT_BASIS_COUNT];
    int told;    /* a framework's kernels of this pass are priced already */
    int kernels; /* that the host starts for the instruction priced last */
    int64_t
        added_ns; /* of its time, adding gradients of parameters to those of the micro-batches before */
    int64_t live;
    int64_t output_bytes; /* of an operator that is not fused; made inside too */
    int muted;            /* buffers made now are counted elsewhere */
    /* local box of the operator whose kernels are written */
    int64_t len[TOPT_MAX_OPDIMS];
    const struct topt_buffer *named; /* those that instructions name: mostly 'buffer' */
    int nbuffers;
    struct topt_buffer buffer[TOPT_TALLY_BUFFERS];
    uint8_t counted[TOPT_TALLY_BUFFERS];
    struct topt_live *alive; /* NULL: bytes are counted alone */
};

void topt_tally_init(struct topt_tally *t, const struct topt_costing *k);
/* An instruction's time each time it happens, and whether it is the network's. */
struct topt_time topt_tally_price(struct topt_tally *t, const struct topt_instr *i,
                                  int *ret_network);

/* In which the host starts the kernels of the instruction that was priced last, as often as it happens in a
 * micro-batch. */
int64_t topt_tally_host_ns(const struct topt_tally *t);
/* Put the time of copies between host and device, and of the host's optimizer, beside the device's. */
struct topt_host_traffic;
void topt_tally_offload(struct topt_tally *t, const struct topt_host_traffic *h);
struct topt_fragments topt_tally_fragments(struct topt_tally *t, struct topt_error *err);
/* Count the bytes that a framework's kernels keep and hold at once beside ours: 'cls' is
 * where they keep. */
void topt_tally_eager(struct topt_tally *t, int op, enum topt_class cls);

/* Take off the network's time what the operator's own computation hides:
 *
 *     forward, backward   min((1 - s) asynchronous communication, what is computed), over all
 *                         micro-batches
 *     end                 the same of what the last backward computes, as far as that is left
 *
 * with s the share of the device that moving takes (topt_hw_collective_share).  So m
 * of moves beside c of computation take max(m, c + s m).
 *
 * One stream that moves and one that computes need, for operators 1..n in order, with
 * moves m_i before (or after) computations c_i, at most
 *
 *     max over j of (m_1 + .. + m_j + c_j + .. + c_n)  <=  sum of max(m_i, c_i) + min(m_j, c_j)
 *
 * (Johnson 1954, two machines; s m_i is part of c_i here), so that the sum is right up
 * to one operator's share, and it adds up over operators, which a search needs.
 *
 * Under settings.by_schedule all of it is taken off, so that sums are lower bounds: the step's
 * schedule says what is exposed (strategy_total.c). */
void topt_tally_hide(struct topt_tally *t);

/* The sums of an operator (a hub: its producer), weighed as the settings say. */
struct topt_fragment_cost topt_tally_cost(const struct topt_tally *t, int op);

/* The weights of classes: the one place where the papers' accounting differs. */
struct topt_weights {
    int64_t cls[TOPT_CLASS_COUNT], flight, output;
    int64_t copy; /* of a tensor kept in another layout than where it was made */
};
const struct topt_weights *topt_weights_of(const struct topt_settings *s);
/* Is a tensor a table whose gradients gather in the one gradient that all its readers' products accumulate into as they
 * write (Megatron-LM's main_grad), so that between them none is zeroed or summed, and ranks sum it once a step? */
int topt_sums_at_end(const struct topt_costing *k, int tensor);
/* The bytes of a tensor, or its gradient, that are there at once, of 'bytes' in the settings' type: a
 * kernel of the loss may make logits by chunks, and other tensors may be in f32 (rest_f32). */
int64_t topt_held_bytes(const struct topt_costing *k, int tensor, int64_t bytes);
/* Bytes that wait. */
static inline int64_t topt_in_flight(const struct topt_costing *k, int64_t bytes)
{
    return topt_with_allocator(k->settings, bytes * topt_weights_of(k->settings)->flight);
}

#endif
