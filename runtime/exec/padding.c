/* padding.c - which positions of samples are padding: attention looks at no others.
 *
 * A sample is a function of (seed, step, place), and so is where its text begins and ends: each
 * rank asks its feed about the micro-batch, and nothing is sent.  An attention's keys are what
 * an encoder reads beside a decoder, or what the rest reads: that follows from where they come
 * from in the graph. */
#include "padding.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int topt_padding_open(struct topt_session *s, struct topt_error *err)
{
    s->filled = calloc(4 * (size_t)s->p->model->batch, sizeof *s->filled);
    return s->filled ? 0 : topt_nomem(err, NULL);
}

/* Does the operator read what an encoder reads? Its first inputs lead to where they come from. */
static int reads_encoder(const struct topt_model *m, int op)
{
    for (int left = m->nops; left > 0; left--) {
        const struct topt_op *o = &m->op[op];
        if (!strncmp(o->name, "encoder.", 8))
            return 1;
        if (!o->ninputs)
            break;
        op = topt_input_producer(m, o, 0);
    }
    return 0;
}

const int32_t *topt_padding_of(const struct topt_session *s, int op, int64_t first)
{
    enum { BATCH, KEYS = 3, Q = 0, KV };
    const struct topt_model *m = s->p->model;
    const struct topt_op *o = &m->op[op];
    if (strcmp(o->spec->name, "attention") != 0 || o->count[BATCH] != m->batch ||
        o->count[KEYS] != m->seq)
        return NULL;
    int keys = o->tensor[o->operand[KV].present ? KV : Q];
    int encoder = reads_encoder(m, m->tensor[keys].producer);
    return s->filled + 2 * (encoder * m->batch + first);
}

void topt_padding_fill(struct topt_session *s)
{
    int64_t batch = s->p->model->batch;
    for (int encoder = 0; encoder < 2; encoder++)
        for (int64_t b = 0; b < batch; b++) {
            int32_t *of = s->filled + 2 * (encoder * batch + b);
            of[0] = 0;
            of[1] = INT32_MAX;
            if (s->feed->filled)
                s->feed->filled(s->feed->ctx, encoder, s->step, s->micro * batch + b, of);
        }
}
