/* flow.h - what a program computes, without its numbers: each buffer holds a word that follows
 * from how it was made.  Two programs whose kernels read the same words compute the same. */
#ifndef TOPT_TEST_FLOW_H
#define TOPT_TEST_FLOW_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topt_lower.h"

static uint64_t flow_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static const struct topt_step *flow_step(const struct topt_program *p,
                                         const struct topt_instr *i)
{
    const struct topt_op_spec *spec = p->model->op[i->op].spec;
    for (int back = 0; back < 2; back++)
        for (int k = 0; k < TOPT_MAX_STEPS; k++) {
            const struct topt_step *s = back ? &spec->backward[k] : &spec->forward[k];
            if (s->kind == TOPT_STEP_KERNEL && s->kernel == i->kernel)
                return s;
        }
    return NULL;
}

static int flow_buffer(const struct topt_instr *i, int bit)
{
    return bit < 16 ? i->value[bit % 16] : i->grad[bit % 16];
}

/* Writes the words of what a kernel makes; returns that of what it read. */
static uint64_t flow_kernel(const struct topt_program *p, const struct topt_instr *i,
                            uint64_t *word)
{
    const struct topt_step *s = flow_step(p, i);
    const struct topt_op *op = &p->model->op[i->op];
    uint64_t read = flow_mix((uint64_t)i->op + 1, (uint64_t)i->kernel), same = 0;
    uint64_t made[32];
    read = flow_mix(read, (uint64_t)i->at);
    for (int b = 0; b < 32; b++) {
        int buffer = flow_buffer(i, b);
        if (buffer < 0 || !(s->reads >> b & 1))
            continue;
        read = flow_mix(flow_mix(read, (uint64_t)b), word[buffer]);
        if (s->onto >> b & 1)
            same = word[buffer];
    }
    for (int b = 0; b < 32; b++) {
        int buffer = flow_buffer(i, b);
        made[b] = flow_mix(read, 1000 + (uint64_t)b);
        if (buffer >= 0 && b >= 16 && op->operand[b - 16].role == TOPT_PARAM)
            made[b] = flow_mix(made[b], word[buffer]); /* added to what is there */
        else if (s->same)
            made[b] = same;
    }
    for (int b = 0; b < 32; b++)
        if (flow_buffer(i, b) >= 0 && s->writes >> b & 1)
            word[flow_buffer(i, b)] = made[b];
    return read;
}

static uint64_t flow_other(const struct topt_instr *i, uint64_t *word)
{
    uint64_t a = i->a >= 0 ? word[i->a] : 0, b = i->b >= 0 ? word[i->b] : 0;
    uint64_t h = flow_mix(flow_mix((uint64_t)i->kind + 77, i->axes), a);
    switch (i->kind) {
    case TOPT_I_MOVE:
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
        word[i->b] = flow_mix(h, (uint64_t)i->move.kind);
        break;
    case TOPT_I_ADD:
    case TOPT_I_ROWS_ADD:
    case TOPT_I_ROWS_FETCH:
        word[i->b] = flow_mix(h, b);
        break;
    case TOPT_I_UPDATE:
        word[i->a] = flow_mix(h, b);
        break;
    case TOPT_I_LOSS:
        break;
    default: /* of one buffer */
        word[i->a] = i->kind == TOPT_I_ZERO ? 5 : flow_mix(h, (uint64_t)i->is_max);
    }
    return flow_mix(h, b);
}

/* One word for all that the instructions of a step read, in their order. */
static uint64_t flow_of(const struct topt_program *p)
{
    uint64_t *word = calloc((size_t)p->nbuffers + 1, sizeof *word), all = 1;
    for (int k = 0; k < p->ninstr && word; k++) {
        const struct topt_instr *i = &p->instr[k];
        if (i->kind == TOPT_I_ALLOC)
            word[i->a] = 0xdead; /* whatever was there */
        else if (i->kind == TOPT_I_FREE)
            word[i->a] = 0xf4ee;
        else if (i->kind == TOPT_I_KERNEL)
            all = flow_mix(all, flow_kernel(p, i, word));
        else
            all = flow_mix(all, flow_other(i, word));
    }
    free(word);
    return all;
}

#endif
