/* clip.c - clipping by the norm of all gradients.
 *
 * A program updates each parameter as soon as its gradient is reduced, so that reduced
 * gradients need not all be alive at once.  The norm needs all of them.  So the end of a
 * step is run in two passes over the same instructions: first what does not follow from an
 * update, in order, then the rest, in order.  Buffers tell what follows: an instruction that
 * touches one that a waiting instruction touched waits, too; a buffer that only those use is
 * not allocated before. */
#include "clip.h"
#include "memory.h"
#include "number.h"

#include <stdlib.h>

enum { MOST_TOUCHED = 5 };

static int touched(const struct topt_instr *i, int ret[MOST_TOUCHED])
{
    const int all[MOST_TOUCHED] = {i->a, i->b, i->c, i->d, i->e};
    int n = 0, most = 1;
    switch (i->kind) {
    case TOPT_I_MOVE:
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
        most = 3;
        break;
    case TOPT_I_ADD:
    case TOPT_I_UNPACK:
        most = 2;
        break;
    case TOPT_I_UPDATE:
        most = MOST_TOUCHED;
        break;
    default:
        break;
    }
    for (int k = 0; k < most; k++)
        if (all[k] >= 0)
            ret[n++] = all[k];
    return n;
}

/* The next instruction that uses a buffer; -1: none. */
static int next_use(const struct topt_program *p, int from, int buffer)
{
    int t[MOST_TOUCHED];
    for (int i = from; i < p->ninstr; i++)
        for (int k = touched(&p->instr[i], t) - 1; k >= 0; k--)
            if (t[k] == buffer)
                return i;
    return -1;
}

uint8_t *topt_clip_waits(const struct topt_program *p)
{
    int n = p->ninstr - p->micro_end, t[MOST_TOUCHED];
    uint8_t *waits = calloc((size_t)n + 1, 1);
    uint8_t *marked = calloc((size_t)p->nbuffers + 1, 1);
    for (int k = 0; k < n && waits && marked; k++) {
        const struct topt_instr *i = &p->instr[p->micro_end + k];
        int uses = touched(i, t);
        waits[k] = i->kind == TOPT_I_UPDATE;
        for (int j = 0; j < uses; j++)
            waits[k] |= marked[t[j]];
        for (int j = 0; j < uses && waits[k]; j++)
            marked[t[j]] = 1;
    }
    for (int k = n - 1; k >= 0 && waits && marked; k--) {
        const struct topt_instr *i = &p->instr[p->micro_end + k];
        if (i->kind != TOPT_I_ALLOC && i->kind != TOPT_I_ZERO)
            continue;
        int next = next_use(p, p->micro_end + k + 1, i->a);
        waits[k] |= next >= 0 && waits[next - p->micro_end];
    }
    free(marked);
    return waits;
}

int64_t topt_clip_bytes(const struct topt_program *p)
{
    uint8_t *waits = topt_clip_waits(p);
    int64_t bytes = 0;
    for (int k = 0; k < p->ninstr - p->micro_end && waits; k++) {
        const struct topt_instr *i = &p->instr[p->micro_end + k];
        if (waits[k] && i->kind == TOPT_I_FREE)
            bytes += p->buffer[i->a].bytes;
    }
    free(waits);
    return bytes;
}

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
    return (int64_t)PART * topt_session_element_bytes(s, TOPT_ELEM_REAL);
}

int topt_clip_square(struct topt_session *s, int buffer, double *ret,
                     struct topt_error *err)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    int bytes = topt_session_element_bytes(s, b->elem);
    int64_t n = counts(s, &b->layout) ? topt_buffer_elements(s, buffer) : 0;
    enum topt_dtype t = bytes == 8 ? TOPT_F64 : bytes == 2 ? TOPT_BF16 : TOPT_F32;
    void *host = topt_scratch(s, (int64_t)PART * bytes);
    if (!host)
        return topt_nomem(err, NULL);
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
