/* fed.c - samples that each device loads a part of, and that are moved to where they are wanted.
 *
 * A plan may want a sample on several devices: where an operator splits features, or does the
 * same on all.  A program that reads shared files loads it on each of them.  Where samples come
 * from whoever trains, each device is given its part of the batch alone, as in data parallelism,
 * and a way to the layout of the configuration is found as between any two operators: its moves
 * are instructions, with prices. */
#include "fed.h"

/* The batch over as many axes as leave each part something. */
static struct topt_layout data_parallel(const struct topt_mesh *mesh,
                                        const struct topt_shape *shape)
{
    struct topt_layout l = topt_layout_replicated();
    int64_t parts = 1;
    int8_t pos = 0;
    for (int a = 0; a < mesh->naxes; a++) {
        if (parts * mesh->size[a] > shape->dim[0].count)
            continue;
        parts *= mesh->size[a];
        l.at[a] = 0;
        l.pos[a] = pos++;
    }
    return l;
}

static int load_operand(const struct topt_fragments *f, const struct topt_instr *load,
                        int operand)
{
    int op = load->op, wanted = load->value[operand];
    const struct topt_buffer *b = f->sink->get(f->sink, wanted);
    struct topt_shape shape = b->shape;
    struct topt_layout to = b->layout, from = data_parallel(f->mesh, &shape);
    struct topt_buffer part = {.cls = TOPT_CLASS_TRANSIENT,
                               .elem = b->elem,
                               .shape = shape,
                               .layout = from,
                               .op = op,
                               .operand = operand};
    struct topt_instr i = topt_fragment_instr(TOPT_I_KERNEL, op, load->backward);
    int moves = !topt_layout_equal(&from, &to);
    i.kernel = TOPT_K_LOAD;
    i.value[operand] = moves ? topt_fragment_block(f, part) : wanted;
    if (i.value[operand] < 0 || topt_fragment_emit(f, i))
        return -1;
    if (!moves)
        return 0;
    if (topt_fragment_move_into(f, op, load->backward, i.value[operand], &shape, &from,
                                &to, wanted))
        return -1;
    f->sink->release(f->sink, i.value[operand]);
    return 0;
}

int topt_fed_load(const struct topt_fragments *f, const struct topt_instr *load)
{
    for (int x = 0; x < f->model->op[load->op].spec->noperands; x++)
        if (load->value[x] >= 0 && load_operand(f, load, x))
            return -1;
    return 0;
}

static int64_t move_ns(const struct topt_program *p, struct topt_router *router,
                       const struct topt_instr *i)
{
    const struct topt_buffer *b = &p->buffer[i->a];
    if (i->move.kind == TOPT_MOVE_SLICE)
        return 0;
    int64_t bytes = topt_move_bytes(&p->mesh, &b->shape, &i->move,
                                    topt_element_bytes(&p->settings, b->elem));
    return topt_router_time(router, topt_move_collective(i->move.kind), i->axes, bytes)
        .ns;
}

/* Between a LOAD and the next kernel of its operator there are the moves of what it loaded. */
int64_t topt_fed_ns(const struct topt_program *p, struct topt_router *router)
{
    int64_t ns = 0;
    int loads = -1;
    for (int k = p->micro_begin; k < p->micro_end; k++) {
        const struct topt_instr *i = &p->instr[k];
        if (i->kind == TOPT_I_KERNEL)
            loads = i->kernel == TOPT_K_LOAD ? i->op : -1;
        else if (i->kind == TOPT_I_MOVE && i->op == loads)
            ns += move_ns(p, router, i);
    }
    return ns * p->settings.micro_batches;
}
