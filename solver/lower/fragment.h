/* fragment.h - the pieces a program is made of, written into a sink.  Private to
 * lower/.
 *
 * A sink that records makes the program; a sink that adds up makes the cost.
 * Fragments never know which one they write to. */
#ifndef TOPT_FRAGMENT_H
#define TOPT_FRAGMENT_H

#include "topt_lower.h"

/* The fate of tensors that forward saves for backward. */
enum topt_pass {
    TOPT_PASS_KEEP,
    TOPT_PASS_DROP,      /* nothing is kept: it is run again */
    TOPT_PASS_RECOMPUTE, /* ... which is now; data is still there */
};

struct topt_sink {
    /* Number of the new buffer, or -1 (err filled). */
    int (*alloc)(struct topt_sink *s, const struct topt_buffer *b,
                 struct topt_error *err);
    void (*release)(struct topt_sink *s, int buffer);
    /* Stays until backward, or till the end of a block's (KEPT, RECOMPUTED). */
    void (*keep)(struct topt_sink *s, int buffer, enum topt_class cls);
    int (*emit)(struct topt_sink *s, const struct topt_instr *i, struct topt_error *err);
    const struct topt_buffer *(*get)(struct topt_sink *s, int buffer);
    /* May be NULL.  A sink that adds up is told that what follows happens 'times'
     * times, each at one count of the operator's dimension 'd', until told again (-1,
     * once); one that records is given every round of a loop. */
    void (*repeat)(struct topt_sink *s, int d, int64_t times);
    /* May be NULL.  Moves from now on are of parameters or of their gradients, which
     * other operators' computation may hide, until told TOPT_ASYNC_NOTHING. */
    void (*async)(struct topt_sink *s, enum topt_async what);
};

struct topt_fragments {
    const struct topt_model *model;
    const struct topt_mesh *mesh;
    const struct topt_settings *settings;
    struct topt_router *router;
    struct topt_sink *sink;
    struct topt_error *err;
    /* NULL: ways between layouts are found where they are needed.  Else a move whose
     * way is not known is asked for, writes its result alone, and sets this: what was
     * written means nothing. */
    int *open;
    int fed; /* each device loads its part of the batch alone (operator.c) */
};

/* The operand that a gated activation reads, where it is kept in 8 bits for backward; -1: none. */
int topt_low_stored(const struct topt_settings *s, const struct topt_op *o);

/* Buffers of one operator, by operand number; -1 where there is none.  'value' and
 * 'grad' are what its kernels see; 'param' and 'param_grad' what stays of a parameter,
 * which is the same where nothing is sharded over its replicas. */
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
    int loaded; /* data operands have this micro-batch's samples */
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
/* The first device has the largest block of everything but windows, which are largest
 * in the middle: of programs with those the peak is looked for on each device, up to
 * so many. */
enum { TOPT_PEAK_DEVICES = 64 };

/* Buffer for an operand's value or gradient. */
int topt_fragment_operand(const struct topt_fragments *f, int op, int operand,
                          const struct topt_layout *l, enum topt_class cls);

/* Bring 'src' into the layout 'to'; '*ret' is 'src' itself where it is there, else a new
 * transient buffer.  'src' is not released. */
int topt_fragment_move(const struct topt_fragments *f, int op, int backward, int src,
                       const struct topt_layout *to, int *ret);

/* Move into 'dst', a buffer of another layout. */
int topt_fragment_move_into(const struct topt_fragments *f, int op, int backward, int src,
                            int dst);
/* All-reduce 'buffer' in place where it is partial. */
int topt_fragment_all_reduce(const struct topt_fragments *f, int op, int buffer,
                             const struct topt_layout *partial,
                             const struct topt_layout *whole);
/* A buffer of b.bytes, or where that is 0 of the largest block; rounded up to the
 * granule. */
int topt_fragment_block(const struct topt_fragments *f, struct topt_buffer b);
int topt_fragment_emit(const struct topt_fragments *f, struct topt_instr i);
/* An instruction that is all said by its buffers. */
int topt_fragment_emit_on(const struct topt_fragments *f, enum topt_instr_kind kind,
                          int op, int backward, int a, int b);
/* An instruction with packing space of so many bytes, which is there as long as it takes. */
int topt_fragment_emit_staged(const struct topt_fragments *f, struct topt_instr i,
                              int64_t bytes);
void topt_fragment_release(const struct topt_fragments *f, int buffer);
void topt_fragment_async(const struct topt_fragments *f, enum topt_async what);

/* With what a caching allocator holds beside what comes and goes; the operands are far
 * from where that could overflow (topt_model.h limits a tensor). */
static inline int64_t topt_with_allocator(const struct topt_settings *s, int64_t bytes)
{
    return bytes + bytes / 1000 * s->allocator_permille;
}

#endif
