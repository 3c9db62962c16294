/* fragment.h - fragments, the parts of a program that one operator makes, written into a
 * sink.  Private to lower/.
 *
 * A sink that records makes the program (record.h); a sink that adds up makes the cost
 * (tally.h).  A fragment does not know into which it is written. */
#ifndef TOPT_FRAGMENT_H
#define TOPT_FRAGMENT_H

#include "topt_lower.h"

/* A forward pass of an operator, and the fate of the tensors that it saves for backward. */
enum topt_pass {
    TOPT_PASS_KEEP,
    TOPT_PASS_DROP,      /* they are not kept: the operator runs again */
    TOPT_PASS_RECOMPUTE, /* ... and this is that run; data operands are still loaded */
};

struct topt_sink {
    /* Number of the new buffer, or -1 (err filled). */
    int (*alloc)(struct topt_sink *s, const struct topt_buffer *b,
                 struct topt_error *err);
    void (*release)(struct topt_sink *s, int buffer);
    /* The buffer stays until backward (KEPT), or until its block's backward is over (RECOMPUTED). */
    void (*keep)(struct topt_sink *s, int buffer, enum topt_class cls);
    int (*emit)(struct topt_sink *s, const struct topt_instr *i, struct topt_error *err);
    const struct topt_buffer *(*get)(struct topt_sink *s, int buffer);
    /* May be NULL: the sink is given every round of a loop.  Else it is given one round, and
     * told before that all until the next call happens 'times' times, each at one count of
     * the operator's dimension 'd' (-1: of none, and once). */
    void (*repeat)(struct topt_sink *s, int d, int64_t times);
    /* May be NULL.  Moves until the next call are of parameters or of their gradients, which
     * other operators' computation may hide; or of neither (TOPT_ASYNC_NOTHING). */
    void (*async)(struct topt_sink *s, enum topt_async what);
};

struct topt_fragments {
    const struct topt_model *model;
    const struct topt_mesh *mesh;
    const struct topt_settings *settings;
    struct topt_router *router;
    struct topt_sink *sink;
    struct topt_error *err;
    /* NULL: routes between layouts are searched for as they are needed.  Else a move whose
     * route is not known asks the router for it, writes only its result, and sets *open: the
     * fragment's cost is then of no use. */
    int *open;
    int fed; /* each device loads its part of the batch alone (operator.c) */
};

/* The input of a gated activation that is kept in 8 bits for backward; -1: there is none. */
int topt_low_stored(const struct topt_settings *s, const struct topt_op *o);

/* Buffers of one operator, by operand; -1: none.  Kernels use 'value' and 'grad'.  'param' and
 * 'param_grad' are the parts of a parameter that stay on the device; they are the same buffers
 * unless the parameter is sharded over its replicas. */
struct topt_op_buffers {
    int value[TOPT_MAX_OPERANDS], grad[TOPT_MAX_OPERANDS];
    int param[TOPT_MAX_OPERANDS], param_grad[TOPT_MAX_OPERANDS];
    int state[TOPT_MAX_OPERANDS][3];
};
void topt_op_buffers_clear(struct topt_op_buffers *b);

/* One direction of one operator, written under a configuration. */
struct topt_op_writer {
    const struct topt_fragments *f;
    const struct topt_op *o;
    int op, backward;
    const struct topt_config *c;
    struct topt_op_buffers *b;
    int loaded; /* data operands hold this micro-batch's samples */
};
struct topt_op_writer topt_op_writer(const struct topt_fragments *f, int op, int backward,
                                     const struct topt_config *c,
                                     struct topt_op_buffers *b);

struct topt_shape topt_operand_shape(const struct topt_op *op, int operand);
int topt_element_bytes(const struct topt_settings *s, enum topt_element e);
/* The bytes that a buffer of so many elements is charged: rounded up to the granule. */
int64_t topt_charged_bytes(const struct topt_settings *s, enum topt_element e,
                           int64_t elements);

/* Bytes of a buffer on a device; the largest block's where 'device' is -1.  'c' is the
 * configuration of the buffer's operator. */
int64_t topt_bytes_on(const struct topt_model *m, const struct topt_mesh *mesh,
                      const struct topt_settings *s, const struct topt_config *c,
                      const struct topt_buffer *b, int device);
/* The first device has the largest block of everything except windows, which are largest in
 * the middle.  The peak of programs with windows is therefore searched for on each device, up
 * to so many. */
enum { TOPT_PEAK_DEVICES = 64 };

/* Buffer for an operand's value or gradient. */
int topt_fragment_operand(const struct topt_fragments *f, int op, int operand,
                          const struct topt_layout *l, enum topt_class cls);

/* Moves 'src' into the layout 'to'.  '*ret' is 'src' itself if it has that layout, else a new
 * transient buffer.  'src' is not released. */
int topt_fragment_move(const struct topt_fragments *f, int op, int backward, int src,
                       const struct topt_layout *to, int *ret);

/* Moves 'src' into 'dst', a buffer of another layout. */
int topt_fragment_move_into(const struct topt_fragments *f, int op, int backward, int src,
                            int dst);
/* All-reduce 'buffer' in place where it is partial. */
int topt_fragment_all_reduce(const struct topt_fragments *f, int op, int buffer,
                             const struct topt_layout *partial,
                             const struct topt_layout *whole);
/* Allocates a buffer of b.bytes, or if that is 0 of the largest block, rounded up to the
 * granule. */
int topt_fragment_block(const struct topt_fragments *f, struct topt_buffer b);
int topt_fragment_emit(const struct topt_fragments *f, struct topt_instr i);
/* An instruction that names two buffers and nothing else. */
int topt_fragment_emit_on(const struct topt_fragments *f, enum topt_instr_kind kind,
                          int op, int backward, int a, int b);
/* An instruction with a packing buffer of so many bytes, which lives while it runs. */
int topt_fragment_emit_staged(const struct topt_fragments *f, struct topt_instr i,
                              int64_t bytes);
void topt_fragment_release(const struct topt_fragments *f, int buffer);
void topt_fragment_async(const struct topt_fragments *f, enum topt_async what);

#endif
