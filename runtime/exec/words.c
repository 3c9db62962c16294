/* words.c - an instruction of a program in words, for who asks what a run waits for. */
#include "topt_runtime.h"

#include <stdio.h>
#include <string.h>

/* What a buffer holds: "the gradient of 'w' of 'h0.mlp'". */
static void tensor_words(const struct topt_program *p, int buffer, char *buf, size_t size)
{
    static const char *const what[TOPT_CLASS_COUNT] = {
        [TOPT_CLASS_GRAD] = "the gradient of ",
        [TOPT_CLASS_STATE] = "optimizer state of "};
    if (buffer < 0 || buffer >= p->nbuffers) {
        snprintf(buf, size, "nothing");
        return;
    }
    const struct topt_buffer *b = &p->buffer[buffer];
    const struct topt_op *op = b->op >= 0 ? &p->model->op[b->op] : NULL;
    const char *kind = what[b->cls] ? what[b->cls] : "";
    if (!op)
        snprintf(buf, size, "%s buffer %d", topt_class_name(b->cls), buffer);
    else if (b->operand >= 0)
        snprintf(buf, size, "%s'%s' of '%.80s'", kind, op->spec->operand[b->operand].name,
                 op->name);
    else
        snprintf(buf, size, "%s'%.80s'", kind, op->name);
}

void topt_instr_words(const struct topt_program *p, int instr, char *buf, size_t size)
{
    char tensor[160];
    if (instr < 0 || instr >= p->ninstr) {
        snprintf(buf, size, "no instruction");
        return;
    }
    const struct topt_instr *i = &p->instr[instr];
    const char *when = i->backward ? " in backward" : "";
    tensor_words(p, i->a, tensor, sizeof tensor);
    switch (i->kind) {
    case TOPT_I_KERNEL:
        snprintf(buf, size, "%s of '%.80s'", topt_kernel_name(i->kernel),
                 p->model->op[i->op].name);
        break;
    case TOPT_I_MOVE:
        snprintf(buf, size, "the %s of %s%s", topt_move_name(i->move.kind), tensor, when);
        break;
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
        snprintf(buf, size, "the exchange of the edges of %s%s", tensor, when);
        break;
    case TOPT_I_REDUCE:
        snprintf(buf, size, "the all-reduce of %s%s", tensor, when);
        break;
    case TOPT_I_LOSS:
        snprintf(buf, size, "the sum of the loss");
        break;
    case TOPT_I_ROWS_FETCH:
        snprintf(buf, size, "the rows of '%.80s' from their owners",
                 p->model->op[i->op].name);
        break;
    case TOPT_I_ROWS_ADD:
        snprintf(buf, size, "the exchange of gradients' rows of '%.80s'",
                 p->model->op[i->op].name);
        break;
    case TOPT_I_DROP:
        snprintf(buf, size, "dropout of %s%s", tensor, when);
        break;
    case TOPT_I_NORM:
        snprintf(buf, size, "the norm of all gradients");
        break;
    case TOPT_I_BUCKET:
        snprintf(buf, size, "the all-reduce of %s, one of %d gradients together", tensor,
                 p->bucket[i->b].n);
        break;
    case TOPT_I_UPDATE:
        snprintf(buf, size, "the update of %s", tensor);
        break;
    default:
        snprintf(buf, size, "%s", tensor);
    }
}
