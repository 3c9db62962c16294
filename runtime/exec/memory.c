/* memory.c - a rank's buffers: local sizes from the layout, places in one block of memory that is
 * taken before the first step, and a count of what is alive.
 *
 * The count is kept as buffers come and go and rounded up to the plan's granule, so that its
 * high-water mark can be held against the plan's peak_bytes. */
#include "memory.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

int topt_packed_bits(const struct topt_program *p, int buffer)
{
    const struct topt_buffer *b = &p->buffer[buffer];
    int is_param = b->cls == TOPT_CLASS_PARAM && b->operand >= 0;
    return is_param && b->elem == TOPT_ELEM_BYTE ? (int)p->model->op[b->op].attrs->bits
                                                 : 0;
}

struct topt_shape topt_buffer_shape(const struct topt_program *p, int buffer)
{
    const struct topt_buffer *b = &p->buffer[buffer];
    struct topt_shape s = b->shape;
    if (topt_packed_bits(p, buffer))
        memcpy(s.dim, p->model->op[b->op].operand[b->operand].dim, sizeof s.dim);
    return s;
}

struct topt_box topt_buffer_box(const struct topt_session *s, int buffer)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    if (b->window)
        return topt_operand_box(&s->p->model->op[b->op], b->operand, &s->p->config[b->op],
                                &s->p->mesh, s->comm->rank);
    struct topt_shape shape = topt_buffer_shape(s->p, buffer);
    return topt_layout_box(&s->p->mesh, &shape, &b->layout, s->comm->rank);
}

int64_t topt_buffer_elements(const struct topt_session *s, int buffer)
{
    struct topt_box box = topt_buffer_box(s, buffer);
    struct topt_shape shape = topt_buffer_shape(s->p, buffer);
    return topt_box_elements(&shape, &box);
}

int topt_session_element_bytes(const struct topt_session *s, enum topt_element e)
{
    switch (e) {
    case TOPT_ELEM_REAL:
        return s->dev->real_bytes;
    case TOPT_ELEM_STATE:
        return s->dev->state_bytes;
    case TOPT_ELEM_WIDE:
        return s->dev->real_bytes == 8 ? 8 : 4;
    case TOPT_ELEM_INT32:
        return 4;
    default:
        return 1;
    }
}

enum topt_dtype topt_buffer_dtype(const struct topt_session *s, int buffer)
{
    int bytes = topt_session_element_bytes(s, s->p->buffer[buffer].elem);
    return bytes == 8 ? TOPT_F64 : bytes == 2 ? TOPT_BF16 : TOPT_F32;
}

int64_t topt_buffer_bytes(const struct topt_session *s, int buffer)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    if (b->shape.ndim == 0 || b->rows || topt_packed_bits(s->p, buffer))
        return b->bytes;
    return topt_buffer_elements(s, buffer) * topt_session_element_bytes(s, b->elem);
}

int topt_buffer_alloc(struct topt_session *s, int buffer, struct topt_error *err)
{
    struct topt_meter *m = &s->meter;
    int64_t bytes = topt_buffer_bytes(s, buffer);
    if (s->ptr[buffer])
        return topt_fail(err, TOPT_ERR_INTERNAL, "buffer %d is allocated twice", buffer);
    if (bytes > s->p->buffer[buffer].bytes)
        return topt_fail(err, TOPT_ERR_INTERNAL, "buffer %d is larger than its place",
                         buffer);
    s->ptr[buffer] = (char *)s->arena + s->offset[buffer];
    s->bytes[buffer] = (bytes + m->granule - 1) / m->granule * m->granule;
    m->live += s->bytes[buffer];
    if (m->live > m->peak)
        m->peak = m->live;
    return 0;
}

void topt_buffer_free(struct topt_session *s, int buffer)
{
    if (!s->ptr[buffer])
        return;
    s->ptr[buffer] = NULL;
    s->meter.live -= s->bytes[buffer];
}

/* Vectors of a CPU; what GPU libraries take for granted. */
static int64_t align_of(const struct topt_device *d)
{
    return strcmp(d->ops->name, "host") ? 256 : 64;
}

/* A device that has its own memory tells what nobody has, before all is taken at once. */
static int check_free(const struct topt_session *s, struct topt_error *err)
{
    char need[32], have[32], of[32];
    int64_t unused, all;
    if (!s->dev->ops->memory)
        return 0;
    if (s->dev->ops->memory(s->dev, &unused, &all, err))
        return -1;
    if (s->arena_bytes <= unused)
        return 0;
    return topt_fail(
        err, TOPT_ERR_NOMEM,
        "the plan takes %s of the device's memory, of which %s of %s are free; "
        "plan for more devices, or with --memory",
        topt_show_bytes(s->arena_bytes, need, sizeof need),
        topt_show_bytes(unused, have, sizeof have), topt_show_bytes(all, of, sizeof of));
}

int topt_arena_open(struct topt_session *s, struct topt_error *err)
{
    s->offset = calloc((size_t)s->p->nbuffers + 1, sizeof *s->offset);
    if (!s->offset)
        return topt_nomem(err, "the arena");
    return topt_program_offsets(s->p, align_of(s->dev), s->offset, &s->arena_bytes,
                                err) ||
                   check_free(s, err) ||
                   s->dev->ops->alloc(s->dev, s->arena_bytes, &s->arena, err)
               ? -1
               : 0;
}

void topt_arena_close(struct topt_session *s)
{
    if (s->arena)
        s->dev->ops->release(s->dev, s->arena);
    free(s->offset);
    s->arena = NULL;
    s->offset = NULL;
}

void *topt_scratch(struct topt_session *s, int64_t bytes)
{
    if (bytes > s->scratch_bytes || !s->scratch) {
        void *p = realloc(s->scratch, (size_t)(bytes > 0 ? bytes : 1));
        if (!p)
            return NULL;
        s->scratch = p;
        s->scratch_bytes = bytes;
    }
    return s->scratch;
}
