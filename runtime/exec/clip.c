/* clip.c - a rank's share of the norm of all gradients. */
#include "clip.h"
#include "memory.h"
#include "number.h"
#include "rows.h"

/* Copies of a block: those at 0 along each axis of them count. */
static int counts(const struct topt_session *s, const struct topt_layout *l)
{
    for (int a = 0; a < s->p->mesh.naxes; a++)
        if (l->at[a] == TOPT_REPLICATE && topt_mesh_coord(&s->p->mesh, s->comm->rank, a))
            return 0;
    return 1;
}

enum { PART = 1 << 16 }; /* numbers that are added up at a time */

int64_t topt_clip_scratch(const struct topt_session *s)
{
    return (int64_t)PART * topt_session_element_bytes(s, TOPT_ELEM_WIDE);
}

int topt_clip_square(struct topt_session *s, int buffer, double *ret,
                     struct topt_error *err)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    int bytes = topt_session_element_bytes(s, b->elem);
    int64_t n = counts(s, &b->layout) ? topt_buffer_elements(s, buffer) : 0;
    enum topt_dtype t = topt_buffer_dtype(s, buffer);
    void *host = topt_scratch(s, (int64_t)PART * bytes);
    if (!host)
        return topt_nomem(err, NULL);
    if (b->rows) {
        *ret += n ? topt_session_rows_square(s, buffer) : 0;
        return 0;
    }
    for (int64_t at = 0; at < n; at += PART) {
        int64_t m = n - at < PART ? n - at : PART;
        double sum = 0;
        if (s->dev->ops->read(s->dev, host, (const char *)s->ptr[buffer] + at * bytes,
                              m * bytes, err))
            return -1;
        for (int64_t i = 0; i < m; i++) {
            double g = topt_number_get(t, host, i);
            sum += g * g;
        }
        *ret += sum;
    }
    return 0;
}
