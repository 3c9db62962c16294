/* gradient_clip.c - a program that scales its gradients by the norm of all of them.
 *
 * A program updates each parameter as soon as its gradient is reduced, so that reduced
 * gradients need not all be alive at once.  The norm needs all of them.  So the end of a
 * step is put into another order: first what does not follow from an update, then NORM,
 * then the rest, both as they stood. Buffers tell what follows: an instruction that
 * touches one that a waiting instruction touched waits, too; a buffer that only those use
 * is not allocated before. */
#include "topt_runtime.h"

#include <stdlib.h>
#include <string.h>

/* No kernel runs in a step's end: an instruction there names its buffers in these. */
enum { BUFFERS = 5 };
static int touched(const struct topt_instr *i, int k)
{
    return (const int[BUFFERS]){i->a, i->b, i->c, i->d, i->e}[k];
}

/* The next instruction that uses a buffer; -1: none. */
static int next_use(const struct topt_program *p, int from, int buffer)
{
    for (int i = from; i < p->ninstr; i++)
        for (int k = 0; k < BUFFERS; k++)
            if (touched(&p->instr[i], k) == buffer)
                return i;
    return -1;
}

/* By instruction of the step's end; 'marked' by buffer, 0. */
static void find_waiting(const struct topt_program *p, uint8_t *waits, uint8_t *marked)
{
    const struct topt_instr *end = &p->instr[p->micro_end];
    int n = p->ninstr - p->micro_end;
    for (int k = 0; k < n; k++) {
        waits[k] = end[k].kind == TOPT_I_UPDATE;
        for (int j = 0; j < BUFFERS; j++)
            waits[k] |= touched(&end[k], j) >= 0 && marked[touched(&end[k], j)];
        for (int j = 0; j < BUFFERS && waits[k]; j++)
            if (touched(&end[k], j) >= 0)
                marked[touched(&end[k], j)] = 1;
    }
    for (int k = n - 1; k >= 0; k--) {
        if (end[k].kind != TOPT_I_ALLOC && end[k].kind != TOPT_I_ZERO)
            continue;
        int next = next_use(p, p->micro_end + k + 1, end[k].a);
        waits[k] |= next >= 0 && waits[next - p->micro_end];
    }
}

int topt_program_clip(struct topt_program *p, struct topt_error *err)
{
    int end = p->ninstr - p->micro_end, n = p->micro_end;
    for (int k = p->micro_end; k < p->ninstr; k++)
        if (p->instr[k].kind == TOPT_I_NORM)
            return 0;
    uint8_t *waits = calloc((size_t)end + (size_t)p->nbuffers + 1, 1);
    struct topt_instr *all = malloc(((size_t)p->ninstr + 1) * sizeof *all);
    if (!waits || !all) {
        free(waits);
        free(all);
        return topt_nomem(err, "the order of clipping");
    }
    find_waiting(p, waits, waits + end);
    memcpy(all, p->instr, (size_t)n * sizeof *all);
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < end; k++)
            if (waits[k] == pass)
                all[n++] = p->instr[p->micro_end + k];
        if (!pass)
            all[n++] = topt_fragment_instr(TOPT_I_NORM, -1, 1);
    }
    free(waits);
    free(p->instr);
    p->instr = all;
    p->ninstr = n;
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
