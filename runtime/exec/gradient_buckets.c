/* gradient_buckets.c - small gradients that are reduced together.
 *
 * At the end of a step each gradient that only waits for its sum over replicas is an all-reduce
 * of its own, and small ones (biases, gains) take as long as it takes to start one.  Those over
 * the same axes and of the same kind of number become one: a bucket, whose gradients lie one
 * after the other (buffer_offsets.c), so that nothing is packed.  It is reduced where the first
 * of them was; all of them are there by then, since backward is over (Li et al., VLDB 2020,
 * whose buckets are filled in the order in which backward makes gradients).
 *
 * From which instruction of the last micro-batch on nothing touches a bucket's gradients any
 * more stands in it: from there on a communicator may reduce it behind what is left of
 * backward. */
#include "topt_runtime.h"

#include <stdlib.h>
#include <string.h>

/* A gradient's own all-reduce, of what stays in memory. */
static int is_gradient(const struct topt_program *p, const struct topt_instr *i)
{
    return i->kind == TOPT_I_MOVE && i->move.kind == TOPT_MOVE_ALL_REDUCE &&
           i->a == i->b && i->c < 0 && p->buffer[i->a].cls == TOPT_CLASS_GRAD &&
           p->buffer[i->a].elem != TOPT_ELEM_BYTE;
}

/* The last bucket that it may be reduced with, or a new one. */
static struct topt_bucket *bucket_for(struct topt_program *p, const struct topt_instr *i,
                                      int64_t bytes)
{
    const struct topt_buffer *g = &p->buffer[i->a];
    for (int k = p->nbuckets - 1; k >= 0; k--) {
        struct topt_bucket *b = &p->bucket[k];
        if (b->axes == i->axes && b->elem == g->elem && b->bytes < bytes &&
            g->bytes < bytes)
            return b;
    }
    struct topt_bucket *b = &p->bucket[p->nbuckets++];
    *b = (struct topt_bucket){.axes = i->axes, .elem = g->elem};
    return b;
}

/* One past the last instruction of a micro-batch that touches any member. */
static int ready_at(const struct topt_program *p, const struct topt_bucket *b)
{
    for (int k = p->micro_end - 1; k >= p->micro_begin; k--) {
        const struct topt_instr *i = &p->instr[k];
        for (int m = 0; m < b->n; m++) {
            int g = p->member[b->first + m], used = i->a == g || i->b == g;
            for (int o = 0; o < TOPT_MAX_OPERANDS && i->kind == TOPT_I_KERNEL; o++)
                used |= i->grad[o] == g;
            if (used)
                return k + 1;
        }
    }
    return p->micro_begin;
}

/* Members of a bucket stand side by side, in the order of their all-reduces. */
static int gather_members(struct topt_program *p, const int *of, struct topt_error *err)
{
    int at = 0;
    p->member = malloc(((size_t)p->nbuffers + 1) * sizeof *p->member);
    if (!p->member)
        return topt_nomem(err, "buckets");
    for (int k = 0; k < p->nbuckets; k++) {
        struct topt_bucket *b = &p->bucket[k];
        b->first = at;
        for (int i = p->micro_end; i < p->ninstr; i++)
            if (of[i - p->micro_end] == k)
                p->member[at++] = p->instr[i].a;
    }
    return 0;
}

/* The first of a bucket's all-reduces becomes that of all, the others go. */
static void replace(struct topt_program *p, const int *of)
{
    int n = p->micro_end;
    for (int i = p->micro_end; i < p->ninstr; i++) {
        struct topt_instr in = p->instr[i];
        int k = of[i - p->micro_end];
        if (k >= 0 && in.a != p->member[p->bucket[k].first])
            continue;
        if (k >= 0) {
            in.kind = TOPT_I_BUCKET;
            in.b = k;
        }
        p->instr[n++] = in;
    }
    p->ninstr = n;
}

int topt_program_bucket(struct topt_program *p, int64_t bytes, struct topt_error *err)
{
    int end = p->ninstr - p->micro_end;
    if (p->bucket || end <= 0)
        return 0;
    int *of = malloc((size_t)end * sizeof *of);
    p->bucket = calloc((size_t)end + 1, sizeof *p->bucket);
    if (!of || !p->bucket) {
        free(of);
        return topt_nomem(err, "buckets");
    }
    for (int k = 0; k < end; k++) {
        const struct topt_instr *i = &p->instr[p->micro_end + k];
        of[k] = -1;
        if (!is_gradient(p, i))
            continue;
        struct topt_bucket *b = bucket_for(p, i, bytes);
        of[k] = (int)(b - p->bucket);
        b->bytes += p->buffer[i->a].bytes;
        b->n++;
    }
    int rc = gather_members(p, of, err);
    if (!rc)
        replace(p, of);
    for (int k = 0; k < p->nbuckets && !rc; k++)
        p->bucket[k].ready = ready_at(p, &p->bucket[k]);
    free(of);
    return rc;
}

/* The time of all buckets' gradients one by one, less the time of the buckets. */
int64_t topt_bucket_saves_ns(const struct topt_program *p, struct topt_router *router)
{
    int64_t saved = 0;
    for (int k = 0; k < p->nbuckets; k++) {
        const struct topt_bucket *b = &p->bucket[k];
        int64_t all = 0;
        for (int m = 0; m < b->n; m++) {
            const struct topt_buffer *g = &p->buffer[p->member[b->first + m]];
            int64_t bytes =
                topt_block_bytes(&p->mesh, &p->settings, &g->shape, &g->layout, g->elem);
            saved += topt_router_time(router, TOPT_ALL_REDUCE, b->axes, bytes).ns;
            all += bytes;
        }
        saved -= topt_router_time(router, TOPT_ALL_REDUCE, b->axes, all).ns;
    }
    return saved;
}
