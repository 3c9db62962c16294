/* topt_device.h - what a rank computes with: memory, kernels, the optimizer's update.
 *
 * A backend is one table of functions.  The host backend (C and BLAS, f32 and f64) is
 * always built and is the reference; another one is a second table.  Pointers that
 * alloc() returned are the backend's own: the host program reads and writes them
 * through the table only.
 *
 * Local blocks are dense and row-major in elements; a dimension's elements are its
 * counts times its unit.  A block of several tables has them one after the other
 * (struct topt_shape, 'rows').  Blocks may be empty, which every function takes.  Thread
 * safety: a device belongs to one thread at a time. */
#ifndef TOPT_DEVICE_H
#define TOPT_DEVICE_H

#include <stdint.h>

#include "topt_layout.h"
#include "topt_lower.h"
#include "topt_queue.h"

enum { TOPT_DEVICE_ABI = 12, TOPT_MAX_TOGETHER = 4 };

/* An operator that the program brings itself (the row "own"): 'n' positions, of each 'width'
 * numbers of x become 'out' numbers of y, by 'parameters' numbers that all positions share.
 * 'is_double': numbers are double, else float.  Backward writes dx (NULL: nobody wants it) and adds
 * to dw (likewise). */
struct topt_own_call {
    int64_t n, width, out, parameters;
    int is_double;
    const void *x, *w, *dy;
    void *y, *dx, *dw;
};
struct topt_own {
    const char *name; /* of the operator */
    void (*forward)(void *ctx, const struct topt_own_call *c);
    void (*backward)(void *ctx, const struct topt_own_call *c);
    void *ctx;
};

/* One kernel on one rank's local blocks.  NULL where an operand has no value or gradient.
 * Gradients of parameters are added to, gradients of inputs are written.  Numbers are the
 * device's, but for what the row calls wide (statistics, losses) and the gradients of
 * operands in 'wide_grads' (bit o): under bf16 these are f32. */
struct topt_kernel_call {
    const struct topt_op *op;
    enum topt_kernel kernel;
    int64_t off[TOPT_MAX_OPDIMS], len[TOPT_MAX_OPDIMS]; /* local box, in counts */
    struct topt_box box[TOPT_MAX_OPERANDS]; /* of each operand, in its own counts */
    /* In a loop: the count it is at.  Of causal_conv: rows of x that lie before the first. */
    int64_t at;
    /* A scan begins with the state that is first in 'states', which has room for one more,
     * and leaves the state after its last position there. */
    int carries;
    int64_t step, first_sample; /* counted from 0; of the global batch, that of box 0 */
    int64_t micro_batches; /* losses are means over this many times the box's batch, */
    int64_t labels;        /* or, not 0, over so many labels: those below 0 don't count */
    /* Of attention, by sample of the box: the first key that is no padding and the one past the
     * last, as positions; others are not seen.  NULL: all are. */
    const int32_t *filled;
    double dropout; /* of attention: the fraction of its weights that is dropped */
    /* Of the choice of experts: what its balance counts beside the loss; and where forward adds
     * that balance up, 1 a sample whose experts have equal parts, or NULL. */
    double balance, *balanced;
    const struct topt_own *own; /* what an operator of the program's does, or NULL */
    uint64_t seed;
    uint32_t wide_grads;
    void *value[TOPT_MAX_OPERANDS], *grad[TOPT_MAX_OPERANDS];
};

/* Copy 'region' (global counts, inside both boxes) between two local blocks of a
 * tensor. */
struct topt_box_copy {
    const struct topt_shape *shape;
    int element_bytes;
    const void *src;
    void *dst;
    struct topt_box src_box, dst_box, region;
};

/* One step of the optimizer on 'n' elements; 'step' counts from 1.  state[0] and
 * state[1] are the optimizer's own, state[2] the master copy of weights kept in few
 * bits (bf16): it starts as what the parameter is at step 1, and the parameter is
 * rounded from it.  NULL where there is none. */
struct topt_update_call {
    enum topt_optimizer optimizer;
    int64_t n, step;
    double lr,
        weight_decay; /* adamw: weights shrink by lr * weight_decay, beside the rest */
    /* 0: 0.9 (momentum's share, too), 0.999, 1e-8; gradients count times 'scale', 0: 1. */
    double beta1, beta2, eps, scale;
    void *param;
    const void *grad;
    int wide_grad; /* under bf16: the gradient is in f32 */
    void *state[3];
    /* A number whose gradient is exactly zero keeps its value and its state (tables with the
     * attribute "sparse"). */
    int lazy;
    /* Rows of 'cols' numbers, of 'whole_cols' over all ranks: the optimizer may keep one state a
     * row.  'squares', where rows are cut: sums of the squares of the gradient's rows over all
     * ranks, before scaling; else NULL. */
    int64_t cols, whole_cols;
    const void *squares;
    /* NULL: 'grad' is of all 'n' numbers, in 'rows' rows (which a rank without columns has,
     * too).  Else it has the values of 'rows' different rows of the parameter's block: those
     * with the numbers row[k]. */
    const int32_t *row;
    int64_t rows;
};

/* The same with its numbers filled in. */
static inline struct topt_update_call topt_update_filled(const struct topt_update_call *c)
{
    struct topt_update_call u = *c;
    u.beta1 = u.beta1 > 0 ? u.beta1 : 0.9;
    u.beta2 = u.beta2 > 0 ? u.beta2 : 0.999;
    u.eps = u.eps > 0 ? u.eps : 1e-8;
    u.scale = u.scale > 0 ? u.scale : 1;
    return u;
}

/* What a device is told of a program before its first step: the calls of its kernels in order,
 * with the addresses that they will have, and whether collectives run beside them. */
struct topt_device_program {
    int ncalls;
    void (*call)(const void *ctx, int i, struct topt_kernel_call *ret);
    const void *ctx;
    int communicates_beside; /* the queue of communication is used */
};

/* A place in a queue; a backend's own. */
struct topt_event;

struct topt_device {
    const struct topt_device_ops *ops;
    enum topt_dtype dtype;
    int real_bytes, state_bytes; /* of an activation, of an optimizer state */
    void *impl;
    /* The communicator's; functions NULL where the device has queues of its own, or nothing is
     * put on that of communication. */
    struct topt_engine engine;
};

struct topt_device_ops {
    const char *name;
    int abi;
    void (*close)(struct topt_device *d);
    int (*alloc)(struct topt_device *d, int64_t bytes, void **ret,
                 struct topt_error *err);
    void (*release)(struct topt_device *d, void *p);
    int (*zero)(struct topt_device *d, void *p, int64_t bytes, struct topt_error *err);
    /* Between the host's memory and the device's. */
    int (*write)(struct topt_device *d, void *dst, const void *host, int64_t bytes,
                 struct topt_error *err);
    int (*read)(struct topt_device *d, void *host, const void *src, int64_t bytes,
                struct topt_error *err);
    int (*copy_box)(struct topt_device *d, const struct topt_box_copy *c,
                    struct topt_error *err);
    /* The same, adding elements of the dtype to what is there. */
    int (*add_box)(struct topt_device *d, const struct topt_box_copy *c,
                   struct topt_error *err);
    /* dst += src: elements of the dtype, or where 'wide' of what statistics are in. */
    int (*add)(struct topt_device *d, void *dst, const void *src, int64_t n, int wide,
               struct topt_error *err);
    int (*kernel)(struct topt_device *d, const struct topt_kernel_call *c,
                  struct topt_error *err);
    int (*update)(struct topt_device *d, const struct topt_update_call *c,
                  struct topt_error *err);
    int (*sync)(
        struct topt_device *d,
        struct topt_error *err); /* all work of the queue of computation is done */
    /* Bytes of the device's own memory that nobody has, and all.  NULL: the host's. */
    int (*memory)(struct topt_device *d, int64_t *ret_free, int64_t *ret_all,
                  struct topt_error *err);
    /* Once before the first step: whatever can be found out, refused or set aside for the
     * program.  A kernel that was not prepared runs as well, and does this then. */
    int (*prepare)(struct topt_device *d, const struct topt_device_program *p,
                   struct topt_error *err);
    /* Events.  record(): the event is where the queue ends now, wherever it was before.
     * wait(): what is put on the queue from now on runs once the work before the event, where it
     * was recorded last, is done; the caller may return before.  They set up nothing, so that
     * steps may call them. */
    int (*event_create)(struct topt_device *d, struct topt_event **ret,
                        struct topt_error *err);
    int (*event_record)(struct topt_device *d, struct topt_event *e, enum topt_queue q,
                        struct topt_error *err);
    int (*event_wait)(struct topt_device *d, struct topt_event *e, enum topt_queue q,
                      struct topt_error *err);
    void (*event_destroy)(struct topt_device *d,
                          struct topt_event *e); /* NULL is taken */
    /* Between instructions: gives time to a queue that does not move by itself.  NULL where all
     * do. */
    int (*advance)(struct topt_device *d, struct topt_error *err);
    /* Of 'n' kernels, at most TOPT_MAX_TOGETHER, each of which the program has joined to the one
     * before it: how many, from the first on, kernels() does in one pass; 1: none.  Both NULL
     * where no kernels are done together. */
    int (*together)(struct topt_device *d, const struct topt_kernel_call *c, int n);
    int (*kernels)(struct topt_device *d, const struct topt_kernel_call *c, int n,
                   struct topt_error *err);
    /* Memory of the host from which and to which write() and read() are fastest.  NULL
     * where any is as good. */
    int (*alloc_host)(struct topt_device *d, int64_t bytes, void **ret,
                      struct topt_error *err);
    void (*release_host)(struct topt_device *d, void *p);
};

/* The CPU.  INVAL where it does not compute in 'dtype' (bf16). */
int topt_device_open_host(enum topt_dtype dtype, struct topt_device *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;
void topt_device_close(struct topt_device *d);

#endif
