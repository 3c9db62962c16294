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

/* The time that a unit takes in one part of a step, in all micro-batches together; links as bits of
 * enum topt_link. */
/* Those that add up:
 * compute_ns; weights_ns, of it gradients of parameters, which nothing waits for; added_ns, of it adding these to what
 * the micro-batches before made of them;
 * waited_ns, communication that computing waits for; exchange_ns, of it tokens that go to experts, or back;
 * asynchronous: gather_ns, its parameters come before it computes, and reduce_ns, its gradients go after that;
 * host_ns, in which the host starts its kernels, beside the device;
 * what rests on the host, by asynchronous copies: fetch_ns of parameters from there, before they are gathered, put_ns
 * of gradients to there, after their reduction, save_ns, forward of what backward reads to there, backward of that from
 * there; at the end gradients go, the host's own optimizer works (update_ns), and new parameters come. */
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
    /* of waited_ns, what backward waits before it computes, not after */
    int64_t ahead_ns;
    uint8_t waited_links, gather_links, reduce_links, exchange_links;
};
struct topt_piece_time {
    int unit; /* pieces of one stand side by side */
    /* What backward reads of pieces of one goes to the host and comes back together: back when backward begins the group
     * before; forward waits for the copies of the group before the last, unless it is negative. */
    int group;
    struct topt_part_time at[TOPT_DURING_COUNT];
};

/* Add what another piece of the same unit takes. */
void topt_piece_time_add(struct topt_piece_time *sum, const struct topt_piece_time *more);

/* The bytes of a piece in one micro-batch, beside those that a device always holds. */
struct topt_piece_bytes {
    int layer;     /* pieces of one layer are recomputed at once; -1: in none */
    int outside;   /* of layers: its parameters stay gathered until backward is over */
    int64_t kept;  /* from its forward to its backward */
    int64_t saved; /* ... of which what is copied to the host meanwhile */
    int64_t recomputed; /* from the beginning of its layer's backward to its own */
    int64_t work[2];    /* more while it goes forward, and backward */
    int64_t waiting[2]; /* ... for operators further on */
    int64_t gathered;   /* its parameters, whole, in each pass */
    int64_t whole;      /* ... from its forward to its backward */
    int64_t made;       /* its gradients as backward makes them, until they are reduced */
    int64_t reduced;    /* ... and as they are reduced */
    int64_t gradient;   /* the rank's part of these, until the step is over */
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

/* The time of a step by a schedule of one owner, which this fills anew, of which the device waited
 * '*ret_late_ns' for the host, and its bytes when they are most, by component (untouched without bytes).
 *
 * The host starts the kernels of one piece after those of another and never waits for the device, which
 * begins a piece no earlier than when all kernels of the pieces before have been started.  So the step
 * takes the larger of both, by runs of kernels: where the device is behind, it never waits.
 *
 * A unit's parameters are gathered while the one before it is at work (FSDP's prefetch: Zhao et
 * al. 2023); backward waits for the reductions of two units before, whose gradients it overwrites.
 * The buffers are those of PyTorch's FSDP2 (torch/distributed/fsdp/_fully_shard, v2.14): a layer's
 * parameters and the next one's are there at once; the last layer's stay for its backward; a layer's
 * gradients are copied for their reduction when its backward is over, and the copy lives through the
 * next layer's backward; parameters outside of layers stay gathered, and their gradients are
 * reduced after all others.
 *
 * What a layer keeps on the host is copied there when the layer went forward, and comes back while backward is at
 * the layer behind it; so that no more waits on the device, forward waits for the copies of two layers before.  The
 * host's optimizer begins when all gradients are there, whose norm it needs, and works piece by piece. */
int topt_step_run(struct topt_schedule *s, const struct topt_training_step *step,
                  int64_t *ret_ns, int64_t *ret_late_ns,
                  int64_t ret_bytes[TOPT_HELD_COUNT],
                  struct topt_error *err) TOPT_MUST_CHECK;

/* Pieces in the order of forward, and what each takes in one micro-batch. */
struct topt_pass_pieces {
    const struct topt_piece_time *time;
    int n;
};
/* The time in which some go forward and others, with another micro-batch, go backward.  One stream computes,
 * first come, first served; tokens that go to experts, or come back, move beside it and take 'share' of the
 * device; other communication keeps the stream.  's' is filled anew.  Nothing is gathered or reduced
 * meanwhile. */
int topt_step_pair(struct topt_schedule *s, struct topt_pass_pieces forward,
                   struct topt_pass_pieces backward, double share, int64_t *ret_ns,
                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
