/* gradient_clip.c - a program that scales its gradients by the norm of all of them.
 *
 * A program updates each parameter as soon as its gradient is reduced, so that reduced
 * gradients need not all be alive at once.  The norm needs all of them.  So the end of a
 * step is put into another order: first what does not follow from an update, then NORM,
 * then the rest, both as they stood. Buffers tell what follows: an instruction that
 * touches one that a waiting instruction touched waits, too; a buffer that only those use
 * is not allocated before. */
#include "record.h"
#include "topt_lower.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TOUCHED = 5 };

static int touched(const struct topt_instr *i, int ret[MOST_TOUCHED])
{
    const int all[MOST_TOUCHED] = {i->a, i->b, i->c, i->d, i->e};
    int n = 0, most = 1;
    switch (i->kind) {
    case TOPT_I_MOVE:
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
    case TOPT_I_ROWS_FETCH:
    case TOPT_I_ROWS_ADD:
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

static uint8_t *find_waiting(const struct topt_program *p)
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
    if (!marked) {
        free(waits);
        waits = NULL;
    }
    free(marked);
    return waits;
}

static struct topt_instr norm_instr(void)
{
    struct topt_instr i;
    memset(&i, 0xff, sizeof i); /* no buffers, no operator: -1 */
    i.kind = TOPT_I_NORM;
    i.backward = 1;
    i.axes = 0;
    i.is_max = 0;
    i.joined = 0;
    i.at = 0;
    i.kernel = (enum topt_kernel)0;
    memset(&i.move, 0, sizeof i.move);
    return i;
}

int topt_program_clip(struct topt_program *p, struct topt_error *err)
{
    int end = p->ninstr - p->micro_end, n = 0;
    for (int k = p->micro_end; k < p->ninstr; k++)
        if (p->instr[k].kind == TOPT_I_NORM)
            return 0;
    uint8_t *waits = find_waiting(p);
    struct topt_instr *all = malloc(((size_t)p->ninstr + 1) * sizeof *all);
    if (!waits || !all) {
        free(waits);
        free(all);
        return topt_nomem(err, "the order of clipping");
    }
    memcpy(all, p->instr, (size_t)p->micro_end * sizeof *all);
    n = p->micro_end;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < end; k++)
            if (waits[k] == pass)
                all[n++] = p->instr[p->micro_end + k];
        if (!pass)
            all[n++] = norm_instr();
    }
    free(waits);
    free(p->instr);
    p->instr = all;
    p->ninstr = n;
    p->peak_bytes = 0;
    topt_program_find_peak(p);
    return 0;
}

/* All gradients are read once, and eight bytes are added up over all devices. */
int64_t topt_clip_ns(const struct topt_program *p, const struct topt_hw *hw,
                     struct topt_router *router)
{
    int64_t bytes = 0;
    uint32_t axes = (1u << p->mesh.naxes) - 1;
    for (int k = p->micro_end; k < p->ninstr; k++)
        if (p->instr[k].kind == TOPT_I_UPDATE)
            bytes += p->buffer[p->instr[k].b].bytes;
    int64_t ns = topt_hw_compute_ns(hw, p->settings.dtype, TOPT_WORK_ELEMENTWISE, 0,
                                    bytes, p->mesh.devices);
    return p->mesh.devices > 1
               ? ns + topt_router_time(router, TOPT_ALL_REDUCE, axes, 8).ns
               : ns;
}
