/* memory.c - a rank's buffers: local sizes from the layout, and a count of what is alive.
 *
 * The count is kept from the allocations as they are made and rounded up to the plan's
 * granule, so that its high-water mark can be held against the plan's peak_bytes. */
#include "memory.h"

#include <stdlib.h>

struct topt_box topt_buffer_box(const struct topt_session *s, int buffer)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    if (b->window)
        return topt_operand_box(&s->p->model->op[b->op], b->operand, &s->p->config[b->op],
                                &s->p->mesh, s->comm->rank);
    return topt_layout_box(&s->p->mesh, &b->shape, &b->layout, s->comm->rank);
}

int64_t topt_buffer_elements(const struct topt_session *s, int buffer)
{
    struct topt_box box = topt_buffer_box(s, buffer);
    return topt_box_elements(&s->p->buffer[buffer].shape, &box);
}

int topt_session_element_bytes(const struct topt_session *s, enum topt_element e)
{
    switch (e) {
    case TOPT_ELEM_REAL:
        return s->dev->real_bytes;
    case TOPT_ELEM_STATE:
        return s->dev->state_bytes;
    case TOPT_ELEM_INT32:
        return 4;
    default:
        return 1;
    }
}

int64_t topt_buffer_bytes(const struct topt_session *s, int buffer)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    if (b->shape.ndim == 0)
        return b->bytes;
    return topt_buffer_elements(s, buffer) * topt_session_element_bytes(s, b->elem);
}

int topt_buffer_alloc(struct topt_session *s, int buffer, struct topt_error *err)
{
    struct topt_meter *m = &s->meter;
    int64_t bytes = topt_buffer_bytes(s, buffer);
    if (s->ptr[buffer])
        return topt_fail(err, TOPT_ERR_INTERNAL, "buffer %d is allocated twice", buffer);
    if (s->dev->ops->alloc(s->dev, bytes, &s->ptr[buffer], err))
        return -1;
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
    s->dev->ops->release(s->dev, s->ptr[buffer]);
    s->ptr[buffer] = NULL;
    s->meter.live -= s->bytes[buffer];
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
