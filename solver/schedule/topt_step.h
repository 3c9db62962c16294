/* topt_step.h - a step of training by units: the tasks of its schedule, from the time and the
 * bytes that each unit takes.
 *
 * A unit is what a system gathers at once: a layer, or what stands outside of layers.  In each
 * micro-batch the units go forward, then backward in reverse order; the end of a step reduces
 * gradients that were added up, and updates parameters. */
#ifndef TOPT_STEP_H
#define TOPT_STEP_H

#include "topt_schedule.h"

enum topt_during {
    TOPT_DURING_BEGIN, /* once, before all micro-batches */
    TOPT_DURING_FORWARD,
    TOPT_DURING_BACKWARD,
    TOPT_DURING_END, /* ... and after them */
    TOPT_DURING_COUNT
};

/* The times of a unit in one part of a step, in all micro-batches together, that add up:
 *     compute_ns    computing; of it weights_ns for the gradients of parameters, for which nothing waits, and
 *                   added_ns for adding these to what micro-batches before made of them
 *     waited_ns     communication that computing waits for; of it exchange_ns for tokens that go to experts, or back
 *     gather_ns     asynchronous: its parameters come before it computes
 *     reduce_ns     ... and its gradients go after that
 *     host_ns       the host starts its kernels, beside the device
 * and asynchronous copies of what rests on the host:
 *     fetch_ns      parameters from there, before they are gathered; at the end of a step, updated ones
 *     put_ns        gradients to there, after their reduction
 *     save_ns       activations: forward to there, backward from there
 *     update_ns     at the end of a step, the host's own optimizer */
#define TOPT_PART_TIMES(X)                                                               \
    X(compute_ns)                                                                        \
    X(weights_ns)                                                                        \
    X(added_ns)                                                                          \
    X(waited_ns)                                                                         \
    X(exchange_ns)                                                                       \
    X(gather_ns) X(reduce_ns) X(host_ns) X(fetch_ns) X(put_ns) X(save_ns) X(update_ns)
#define TOPT_PART_MEMBER(name) int64_t name;
struct topt_part_time {
    TOPT_PART_TIMES(TOPT_PART_MEMBER)
    int64_t asks; /* not 0: first the host waits for the device, which tells it sizes */
    /* of backward's waited_ns, the part before it computes, not after */
    int64_t ahead_ns;
    /* bits of enum topt_link */
    uint8_t waited_links, gather_links, reduce_links, exchange_links;
};
struct topt_piece_time {
    int unit; /* pieces of one unit stand side by side */
    /* Activations of a group's pieces go to the host and come back together: back when backward begins the group behind.
     * Unless it is negative, forward waits before a group for the copies of the group before the last. */
    int group;
    struct topt_part_time at[TOPT_DURING_COUNT];
};

/* Adds the times of another piece of the same unit. */
void topt_piece_time_add(struct topt_piece_time *sum, const struct topt_piece_time *more);

/* The bytes of a piece in one micro-batch, beside those that a device holds throughout. */
struct topt_piece_bytes {
    int layer;    /* pieces of one layer are recomputed together; -1: in none */
    int outside;  /* of all layers: its parameters stay gathered until backward is over */
    int64_t kept; /* from its forward to its backward */
    int64_t saved;      /* ... of which these are on the host meanwhile */
    int64_t recomputed; /* from the beginning of its layer's backward to its own */
    int64_t work[2];    /* more while it goes forward, and backward */
    int64_t waiting[2]; /* ... of tensors for operators further on */
    int64_t gathered;   /* its parameters, whole, in each pass */
    int64_t whole;      /* ... from its forward to its backward */
    int64_t made;       /* its gradients as backward makes them, until their reduction */
    int64_t reduced;    /* ... their copy during the reduction */
    int64_t gradient;   /* ... and the rank's part of them, until the step is over */
};

/* The components of a step's bytes. */
enum topt_held {
    TOPT_HELD_KEPT,
    TOPT_HELD_RECOMPUTED,
    TOPT_HELD_WORK,
    TOPT_HELD_WAITING,
    TOPT_HELD_BUFFERS, /* gathered parameters, and gradients before they are reduced */
    TOPT_HELD_GRADIENT,
    TOPT_HELD_COUNT
};

/* A step of 'n' pieces in the order of forward, each with its time and (NULL: none) its bytes. */
struct topt_training_step {
    const struct topt_piece_time *time;
    const struct topt_piece_bytes *bytes;
    int n;
    int64_t micro_batches;
};

/* Runs a step as a schedule of one owner, which this fills anew: its time, of which the device waits '*ret_late_ns' for
 * the host, and the bytes, by component, at the moment when they are most (untouched without bytes).
 *
 * The host starts the kernels of one piece after the other and does not wait for the device.  The device
 * begins a piece no earlier than the host has started all kernels of the pieces before.
 *
 * A unit's parameters are gathered while the one before it is at work (FSDP's prefetch: Zhao et
 * al. 2023); backward waits for the reductions of two units before, whose gradients it overwrites.
 * The buffers are those of PyTorch's FSDP2 (torch/distributed/fsdp/_fully_shard, v2.14): a layer's
 * parameters and the next one's are there at once; the last layer's stay for its backward; a layer's
 * gradients are copied for their reduction when its backward is over, and the copy lives through the
 * next layer's backward; parameters outside of layers stay gathered, and their gradients are
 * reduced after all others.
 *
 * Activations that a layer keeps on the host are copied there after its forward pass, and come back during the backward
 * pass of the layer behind it.  Forward waits for the copies of the layer before the last, so that no more of them stay
 * on the device.  The host's optimizer needs the norm of all gradients: it begins when all are there, and works piece by
 * piece. */
int topt_step_run(struct topt_schedule *s, const struct topt_training_step *step,
                  int64_t *ret_ns, int64_t *ret_late_ns,
                  int64_t ret_bytes[TOPT_HELD_COUNT],
                  struct topt_error *err) TOPT_MUST_CHECK;

/* Pieces in the order of forward, and what each takes in one micro-batch. */
struct topt_pass_pieces {
    const struct topt_piece_time *time;
    int n;
};
/* The time of a forward pass beside a backward pass of another micro-batch.  One stream computes, first come, first served.
 * Tokens that go to experts, or come back, move beside it and take 'share' of the device; other communication holds the
 * stream up.  Nothing is gathered or reduced meanwhile.  's' is filled anew. */
int topt_step_pair(struct topt_schedule *s, struct topt_pass_pieces forward,
                   struct topt_pass_pieces backward, double share, int64_t *ret_ns,
                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
