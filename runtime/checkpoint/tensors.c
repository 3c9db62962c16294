/* tensors.c - what training stays with: buffers that the INIT section makes and leaves. */
#include "tensors.h"
#include "memory.h"
#include "packed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void name_of(const struct topt_program *p, int buffer, char *buf, size_t size)
{
    const struct topt_buffer *b = &p->buffer[buffer];
    const struct topt_op *op = &p->model->op[b->op];
    int n = snprintf(buf, size, "%s.%s", op->name, op->spec->operand[b->operand].name);
    if (b->cls == TOPT_CLASS_STATE && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, ".state%d", b->index);
}

static int stays(const struct topt_program *p, int buffer)
{
    const struct topt_buffer *b = &p->buffer[buffer];
    if ((b->cls != TOPT_CLASS_PARAM && b->cls != TOPT_CLASS_STATE) || b->operand < 0)
        return 0;
    int there = 0;
    for (int i = 0; i < p->init_end; i++)
        if (p->instr[i].a == buffer)
            there = p->instr[i].kind == TOPT_I_ALLOC  ? 1
                    : p->instr[i].kind == TOPT_I_FREE ? 0
                                                      : there;
    return there;
}

int topt_stays(const struct topt_program *p, struct topt_stay **ret, int *ret_n,
               struct topt_error *err)
{
    struct topt_stay *all = calloc((size_t)p->nbuffers + 1, sizeof *all);
    int n = 0;
    if (!all)
        return topt_nomem(err, NULL);
    for (int i = 0; i < p->init_end; i++)
        if (p->instr[i].kind == TOPT_I_ALLOC && stays(p, p->instr[i].a)) {
            all[n].buffer = p->instr[i].a;
            name_of(p, all[n].buffer, all[n].name, sizeof all[n].name);
            n++;
        }
    *ret = all;
    *ret_n = n;
    return 0;
}

int topt_stay_is_weight(const struct topt_program *p, int buffer)
{
    const struct topt_buffer *b = &p->buffer[buffer];
    return b->cls == TOPT_CLASS_PARAM ||
           (b->operand >= 0 &&
            p->model->op[b->op].operand[b->operand].role == TOPT_SAVED);
}

struct topt_box topt_stay_box(const struct topt_program *p, int buffer, int rank)
{
    const struct topt_buffer *b = &p->buffer[buffer];
    struct topt_shape shape = topt_buffer_shape(p, buffer);
    struct topt_box box = topt_layout_box(&p->mesh, &shape, &b->layout, rank);
    for (int d = 0; d < shape.ndim; d++) {
        box.off[d] *= shape.dim[d].unit;
        box.len[d] *= shape.dim[d].unit;
    }
    return box;
}

static int same(int ndim, const struct topt_box *a, const struct topt_box *b)
{
    for (int d = 0; d < ndim; d++)
        if (a->off[d] != b->off[d] || a->len[d] != b->len[d])
            return 0;
    return 1;
}

static uint64_t hash(int ndim, const struct topt_box *b)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int d = 0; d < ndim; d++) {
        h = (h ^ (uint64_t)b->off[d]) * 0x100000001b3u;
        h = (h ^ (uint64_t)b->len[d] ^ h >> 32) * 0x100000001b3u;
    }
    return h ^ h >> 32;
}

/* Ranks with one box, found by a table of boxes: as fast with a thousand ranks.  'slot' has
 * 2 ranks + 1 places, 'box' one a rank; 'ret' becomes the first rank with the box. */
static void find_first(int n, int ndim, const struct topt_box *box, int *slot, int *ret)
{
    int slots = 2 * n + 1;
    for (int i = 0; i < slots; i++)
        slot[i] = -1;
    for (int r = 0; r < n; r++) {
        int at = (int)(hash(ndim, &box[r]) % (uint64_t)slots);
        while (slot[at] >= 0 && !same(ndim, &box[slot[at]], &box[r]))
            at = (at + 1) % slots;
        if (slot[at] < 0)
            slot[at] = r;
        ret[r] = slot[at];
    }
}

int topt_stay_writers(const struct topt_program *p, int buffer, int *ret,
                      struct topt_error *err)
{
    int n = p->mesh.devices;
    struct topt_box *box = calloc((size_t)n, sizeof *box);
    int *work = calloc(4 * (size_t)n + 1, sizeof *work);
    int *copies = work, *writer = work + n, *slot = work + 2 * n;
    if (!box || !work) {
        free(box);
        free(work);
        return topt_nomem(err, NULL);
    }
    for (int r = 0; r < n; r++)
        box[r] = topt_stay_box(p, buffer, r);
    find_first(n, p->buffer[buffer].shape.ndim, box, slot, ret);
    for (int r = 0; r < n; r++)
        copies[ret[r]]++;
    for (int r = 0; r < n; r++) /* the turn of each group, counted down as it is met */
        writer[r] = ret[r] == r ? buffer % copies[r] : 0;
    for (int r = 0; r < n; r++)
        if (copies[ret[r]] > 0 && writer[ret[r]]-- == 0) {
            copies[ret[r]] = -1 - r; /* found: rank r */
        }
    for (int r = 0; r < n; r++)
        ret[r] = -1 - copies[ret[r]];
    free(box);
    free(work);
    return 0;
}

struct topt_shape topt_stay_shape(const struct topt_program *p, int buffer)
{
    struct topt_shape s = topt_buffer_shape(p, buffer);
    for (int d = 0; d < s.ndim; d++) {
        s.dim[d].count *= s.dim[d].unit;
        s.dim[d].unit = 1;
    }
    return s;
}

int topt_stay_extents(const struct topt_shape *s, const struct topt_box *b,
                      int64_t ret[TOPT_MAX_RANK])
{
    int skip = s->rows ? 1 : 0;
    int64_t cols = 1;
    for (int d = skip; d < s->ndim; d++)
        ret[d - skip] = b->len[d];
    for (int d = 2; d < s->ndim; d++)
        cols *= b->len[d];
    if (skip)
        ret[0] = cols ? topt_box_elements(s, b) / cols : 0;
    return s->ndim - skip;
}

const char *topt_stay_dtype(const struct topt_program *p, int buffer)
{
    if (p->settings.dtype == TOPT_F64 && !topt_packed_bits(p, buffer))
        return "F64";
    return p->settings.dtype == TOPT_BF16 && p->buffer[buffer].elem == TOPT_ELEM_REAL
               ? "BF16"
               : "F32";
}
