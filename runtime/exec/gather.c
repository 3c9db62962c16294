/* gather.c - a whole tensor on rank 0, for gradients that people and tests compare. */
#include "memory.h"
#include "host.h"
#include "number.h"
#include "packed.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* This rank's block as doubles; owned by the caller. */
static double *local_block(struct topt_session *s, int buffer, int64_t n,
                           struct topt_error *err)
{
    double *block = calloc((size_t)n + 1, sizeof *block);
    if (block && s->p->buffer[buffer].rows) {
        topt_session_rows_spread(s, buffer, block);
        return block;
    }
    int bits = topt_packed_bits(s->p, buffer);
    void *host =
        topt_scratch(s, bits ? n * (int64_t)sizeof(float) : topt_buffer_bytes(s, buffer));
    if (!block || !host) {
        free(block);
        topt_nomem(err, NULL);
        return NULL;
    }
    if (bits)
        topt_packed_get(s, buffer, host);
    else if (s->dev->ops->read(s->dev, host, s->ptr[buffer], topt_buffer_bytes(s, buffer),
                               err)) {
        free(block);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        block[i] = topt_number_get(topt_buffer_dtype(s, buffer), host, i);
    return block;
}

static int same_box(int ndim, const struct topt_box *a, const struct topt_box *b)
{
    for (int i = 0; i < ndim; i++)
        if (a->off[i] != b->off[i] || a->len[i] != b->len[i])
            return 0;
    return 1;
}

static struct topt_box whole_box(const struct topt_shape *s)
{
    struct topt_box all = {0};
    for (int i = 0; i < s->ndim; i++)
        all.len[i] = s->dim[i].count;
    return all;
}

/* Put a block into the whole; where an earlier rank has the same box, compare instead. */
static void place(const struct topt_session *s, int buffer, int rank, double *block,
                  double *whole, double *seen, double *spread)
{
    struct topt_buffer here = s->p->buffer[buffer], *b = &here;
    here.shape = topt_buffer_shape(s->p, buffer);
    struct topt_box all = whole_box(&b->shape);
    struct topt_box box = topt_layout_box(&s->p->mesh, &b->shape, &b->layout, rank);
    int copy = 0;
    for (int r = 0; r < rank && !copy; r++) {
        struct topt_box other = topt_layout_box(&s->p->mesh, &b->shape, &b->layout, r);
        copy = same_box(b->shape.ndim, &box, &other);
    }
    struct topt_box_copy c = {.shape = &b->shape,
                              .element_bytes = sizeof(double),
                              .src = copy ? whole : block,
                              .dst = copy ? seen : whole,
                              .src_box = copy ? all : box,
                              .dst_box = copy ? box : all,
                              .region = box};
    topt_host_copy_box(&c);
    int64_t n = copy ? topt_box_elements(&b->shape, &box) : 0;
    for (int64_t i = 0; i < n; i++)
        *spread = fmax(*spread, fabs(seen[i] - block[i]));
}

static int collect(struct topt_session *s, int buffer, double *block, double *whole,
                   double *ret_spread, struct topt_error *err)
{
    struct topt_buffer here = s->p->buffer[buffer], *b = &here;
    here.shape = topt_buffer_shape(s->p, buffer);
    int64_t largest = topt_layout_elements(&s->p->mesh, &b->shape, &b->layout);
    double *other = calloc(2 * (size_t)largest + 1, sizeof *other);
    int rc = other ? 0 : topt_nomem(err, NULL);
    if (!rc)
        place(s, buffer, 0, block, whole, other + largest, ret_spread);
    for (int r = 1; r < s->comm->size && !rc; r++) {
        struct topt_box box = topt_layout_box(&s->p->mesh, &b->shape, &b->layout, r);
        int64_t n = topt_box_elements(&b->shape, &box);
        rc = s->comm->ops->receive(s->comm, r, other, n * (int64_t)sizeof *other, err);
        if (!rc)
            place(s, buffer, r, other, whole, other + largest, ret_spread);
    }
    free(other);
    return rc;
}

int topt_session_gather(struct topt_session *s, int buffer, double **ret, int64_t *ret_n,
                        double *ret_spread, struct topt_error *err)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    struct topt_shape shape = topt_buffer_shape(s->p, buffer);
    double *whole = NULL, spread = 0;
    struct topt_box all = whole_box(&shape);
    int64_t total = topt_box_elements(&shape, &all), n;
    int rc = -1;
    if (!s->ptr[buffer] ||
        (b->elem != TOPT_ELEM_REAL && b->elem != TOPT_ELEM_WIDE &&
         !topt_packed_bits(s->p, buffer)) ||
        topt_layout_partial_mask(&b->layout))
        return topt_fail(err, TOPT_ERR_INVAL, "buffer %d can't be gathered", buffer);
    n = topt_buffer_elements(s, buffer);
    double *block = local_block(s, buffer, n, err);
    if (!block)
        return -1;
    if (s->comm->rank) {
        rc = s->comm->ops->send(s->comm, 0, block, n * (int64_t)sizeof *block, err);
    } else {
        whole = calloc((size_t)total, sizeof *whole);
        rc = whole ? collect(s, buffer, block, whole, &spread, err)
                   : topt_nomem(err, NULL);
    }
    free(block);
    if (rc) {
        free(whole);
        return -1;
    }
    *ret = whole;
    *ret_n = total;
    if (ret_spread)
        *ret_spread = spread;
    return 0;
}
