/* running.c - running statistics of batch norms (Ioffe and Szegedy, 2015): what an evaluation norms
 * by.
 *
 * A program gets two buffers for each batch norm, which stay as an optimizer's states do: so
 * checkpoints have them, under any plan.  A rank has the statistics of its own channels, which all
 * that have the same channels know alike.  A tenth of the way, and a variance over one pixel less,
 * as PyTorch's. */
#include "running.h"
#include "memory.h"
#include "number.h"

#include <stdlib.h>
#include <string.h>

enum { MEAN = 4, VAR }; /* operands of batch_norm */
static const double SHARE = 0.1;

static int is_norm(const struct topt_program *p, const struct topt_instr *i)
{
    return i->kind == TOPT_I_KERNEL && i->kernel == TOPT_K_BN_APPLY &&
           i->value[MEAN] >= 0 && p->buffer[i->value[MEAN]].op == i->op;
}

/* The program's running buffer of an operand; -1: there is none. */
static int running_of(const struct topt_program *p, int op, int operand)
{
    for (int b = p->nbuffers - 1; b >= 0; b--)
        if (p->buffer[b].cls == TOPT_CLASS_STATE && p->buffer[b].op == op &&
            p->buffer[b].operand == operand)
            return b;
    return -1;
}

/* ---- into the program -------------------------------------------------------------- */

static struct topt_instr plain(enum topt_instr_kind kind, int op, int buffer)
{
    struct topt_instr i = topt_fragment_instr(kind, op, 0);
    i.a = buffer;
    return i;
}

/* Room for 'n' buffers and their instructions, of which none is there yet. */
static int make_room(struct topt_program *p, int n, struct topt_error *err)
{
    struct topt_buffer *b = realloc(p->buffer, (size_t)(p->nbuffers + n) * sizeof *b);
    p->buffer = b ? b : p->buffer;
    struct topt_instr *i = realloc(p->instr, (size_t)(p->ninstr + 2 * n) * sizeof *i);
    p->instr = i ? i : p->instr;
    if (!b || !i)
        return topt_nomem(err, "running statistics");
    i += p->init_end;
    memmove(i + 2 * n, i, (size_t)(p->ninstr - p->init_end) * sizeof *i);
    return 0;
}

int topt_program_running(struct topt_program *p, struct topt_error *err)
{
    uint8_t *seen = calloc((size_t)p->model->nops + 1, 1);
    int n = 0;
    for (int i = p->micro_begin; seen && i < p->micro_end; i++)
        if (is_norm(p, &p->instr[i]) && !seen[p->instr[i].op]) {
            seen[p->instr[i].op] = 1;
            n += running_of(p, p->instr[i].op, MEAN) < 0 ? 2 : 0;
        }
    free(seen);
    if (!seen)
        return topt_nomem(err, "running statistics");
    if (!n)
        return 0;
    if (make_room(p, n, err))
        return -1;
    int shift = 2 * n, at = p->init_end;
    p->init_end += shift;
    p->micro_begin += shift;
    p->micro_end += shift;
    p->ninstr += shift;
    for (int i = p->micro_begin; i < p->micro_end; i++)
        for (int o = MEAN; o <= VAR; o++) {
            const struct topt_instr *in = &p->instr[i];
            if (!is_norm(p, in) || running_of(p, in->op, o) >= 0)
                continue;
            struct topt_buffer b = p->buffer[in->value[o]];
            b.cls = TOPT_CLASS_STATE;
            p->instr[at++] = plain(TOPT_I_ALLOC, in->op, p->nbuffers);
            p->instr[at++] = plain(TOPT_I_ZERO, in->op, p->nbuffers);
            p->buffer[p->nbuffers++] = b;
        }
    return 0;
}

/* ---- at work ----------------------------------------------------------------------- */

int topt_running_open(struct topt_session *s, struct topt_error *err)
{
    for (int b = 0; b < s->p->nbuffers; b++) {
        const struct topt_buffer *x = &s->p->buffer[b];
        if (x->cls != TOPT_CLASS_STATE || x->op < 0 || x->operand != VAR ||
            strcmp(s->p->model->op[x->op].spec->name, "batch_norm") != 0 || !s->ptr[b])
            continue;
        int64_t n = topt_buffer_elements(s, b), bytes = topt_buffer_bytes(s, b);
        void *host = topt_scratch(s, bytes);
        if (!host)
            return topt_nomem(err, NULL);
        for (int64_t k = 0; k < n; k++)
            topt_number_put(topt_buffer_dtype(s, b), host, k, 1);
        if (s->dev->ops->write(s->dev, s->ptr[b], host, bytes, err))
            return -1;
    }
    return 0;
}

int64_t topt_running_scratch(const struct topt_session *s, const struct topt_instr *i)
{
    return i->value[MEAN] < 0 ? 0 : 2 * topt_buffer_bytes(s, i->value[MEAN]);
}

/* Of both buffers: '*to' goes 'share' of the way to 'times' what is in '*from'. */
static int approach(struct topt_session *s, int from, int to, double share, double times,
                    struct topt_error *err)
{
    int64_t n = topt_buffer_elements(s, to), bytes = topt_buffer_bytes(s, to);
    enum topt_dtype dtype = topt_buffer_dtype(s, to);
    char *host = topt_scratch(s, 2 * bytes);
    if (!host)
        return topt_nomem(err, NULL);
    if (s->dev->ops->read(s->dev, host, s->ptr[from], bytes, err) ||
        s->dev->ops->read(s->dev, host + bytes, s->ptr[to], bytes, err))
        return -1;
    for (int64_t k = 0; k < n; k++) {
        double old = topt_number_get(dtype, host + bytes, k);
        double new = times *topt_number_get(dtype, host, k);
        topt_number_put(dtype, host, k, old + share * (new - old));
    }
    return s->dev->ops->write(s->dev, s->ptr[to], host, bytes, err);
}

int topt_running_take(struct topt_session *s, const struct topt_instr *i,
                      struct topt_error *err)
{
    for (int o = MEAN; o <= VAR && is_norm(s->p, i); o++) {
        int from = running_of(s->p, i->op, o);
        if (from >= 0 && approach(s, from, i->value[o], 1, 1, err))
            return -1;
    }
    return 0;
}

/* What makes a variance over all pixels of a channel one over all but one. */
static double unbiased(const struct topt_op *op)
{
    double n = 1;
    for (int d = 0; d < op->spec->ndims; d++)
        n *= d == op->spec->operand[MEAN].dim[0] ? 1 : (double)op->count[d];
    return n > 1 ? n / (n - 1) : 1;
}

int topt_running_give(struct topt_session *s, const struct topt_instr *i,
                      struct topt_error *err)
{
    for (int o = MEAN; o <= VAR && is_norm(s->p, i); o++) {
        int to = running_of(s->p, i->op, o);
        double times = o == VAR ? unbiased(&s->p->model->op[i->op]) : 1;
        if (to >= 0 && !i->backward && approach(s, i->value[o], to, SHARE, times, err))
            return -1;
    }
    return 0;
}
