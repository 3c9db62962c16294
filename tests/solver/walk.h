/* walk.h - a program held against its own rules: buffers live where they are used, layouts
 * agree at each move, and what its collectives take is what its strategy costs. */
#ifndef TOPT_TEST_WALK_H
#define TOPT_TEST_WALK_H

#include <stdlib.h>

#include "move_ns.h"
#include "topt_lower.h"

struct walk {
    const struct topt_program *p;
    char *live;
    int bad;
};

static void touch(struct walk *w, int buffer)
{
    if (buffer >= 0 && !w->live[buffer])
        w->bad++;
}

static void step(struct walk *w, const struct topt_instr *i)
{
    if (i->kind == TOPT_I_ALLOC) {
        w->bad += w->live[i->a];
        w->live[i->a] = 1;
        return;
    }
    touch(w, i->a);
    touch(w, i->b);
    touch(w, i->c);
    touch(w, i->d);
    touch(w, i->e);
    for (int o = 0; o < TOPT_MAX_OPERANDS; o++) {
        touch(w, i->value[o]);
        touch(w, i->grad[o]);
    }
    if (i->kind == TOPT_I_FREE)
        w->live[i->a] = 0;
    if (i->kind == TOPT_I_MOVE && i->a != i->b) {
        w->bad += !topt_layout_equal(&w->p->buffer[i->a].layout, &i->move.from);
        w->bad += !topt_layout_equal(&w->p->buffer[i->b].layout, &i->move.to);
    }
}

static int count_live(const struct walk *w)
{
    int n = 0;
    for (int b = 0; b < w->p->nbuffers; b++)
        n += w->live[b];
    return n;
}

/* Nothing is used before it is made or after it is freed, and no section of a step leaves
 * anything. */
__attribute__((unused)) static int well_formed(const struct topt_program *p)
{
    struct walk w = {p, calloc((size_t)p->nbuffers + 1, 1), 0};
    const int end[] = {p->init_end, p->micro_begin, p->micro_end, p->ninstr};
    int before = 0;
    for (int i = 0, k = 0; k < 4; k++) {
        for (; i < end[k]; i++)
            step(&w, &p->instr[i]);
        if (k == 0)
            before = count_live(&w);
        w.bad += count_live(&w) != before;
    }
    free(w.live);
    return w.bad == 0;
}

/* Operators read and write values in the layout of their configuration. */
__attribute__((unused)) static int layouts_agree(const struct topt_program *p)
{
    for (int k = 0; k < p->ninstr; k++) {
        const struct topt_instr *i = &p->instr[k];
        if (i->kind != TOPT_I_KERNEL)
            continue;
        const struct topt_op *op = &p->model->op[i->op];
        for (int o = 0; o < op->spec->noperands; o++) {
            struct topt_layout v = topt_value_layout(op, o, &p->config[i->op], &p->mesh);
            struct topt_layout g = topt_grad_layout(op, o, &p->config[i->op], &p->mesh);
            if (i->value[o] >= 0 &&
                !topt_layout_equal(&v, &p->buffer[i->value[o]].layout))
                return 0;
            int param = op->operand[o].role == TOPT_PARAM;
            if (i->grad[o] >= 0 && !param &&
                !topt_layout_equal(&g, &p->buffer[i->grad[o]].layout))
                return 0;
        }
    }
    return 1;
}

/* Rows that are exchanged: numbers and values, in rounds of a chunk; who has how many, and the
 * most of any; and the memory that is touched on the way. */
static int64_t rows_of(const struct topt_program *p, const struct topt_hw *hw,
                       const struct topt_instr *i)
{
    struct topt_group g = topt_mesh_group(&p->mesh, i->axes);
    const struct topt_op *op = &p->model->op[i->op];
    const struct topt_config *c = &p->config[i->op];
    int table = topt_table_sparse(op), ids = topt_table_ids(op);
    int64_t n = g.nodes * g.per_node, rounds = (i->rows + i->chunk - 1) / i->chunk;
    struct topt_layout l = topt_value_layout(op, table, c, &p->mesh);
    struct topt_shape s = {.ndim = op->spec->operand[table].ndim};
    memcpy(s.dim, op->operand[table].dim, sizeof s.dim);
    struct topt_box box = topt_layout_box(&p->mesh, &s, &l, 0);
    int64_t values = i->rows * box.len[s.ndim - 1] * topt_dtype_bytes(p->settings.dtype);
    int gathers = i->kind == TOPT_I_ROWS_ADD && c->zero == TOPT_ZERO_SPARSE;
    enum topt_collective k = gathers ? TOPT_ALL_GATHER : TOPT_ALL_TO_ALL;
    int64_t times = gathers ? n : 1, numbers = 4 * i->rows, touched;
    int64_t sorted = p->buffer[i->value[ids]].bytes / 4 * 64;
    if (i->kind == TOPT_I_ROWS_FETCH) {
        touched = 3 * values + p->buffer[i->b].bytes + sorted;
    } else {
        int64_t read = p->buffer[i->a].bytes;
        touched = (read > values ? read : values) + values + 3 * times * values + sorted;
    }
    return topt_hw_collective_ns(hw, TOPT_ALL_TO_ALL, g, 8 * n) +
           topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, 8) +
           rounds *
               topt_hw_collective_ns(hw, k, g, (times * numbers + rounds - 1) / rounds) +
           rounds *
               topt_hw_collective_ns(hw, k, g, (times * values + rounds - 1) / rounds) +
           topt_hw_compute_ns(hw, p->settings.dtype, TOPT_WORK_ELEMENTWISE, 0, touched,
                              p->mesh.devices);
}

/* Nanoseconds of one instruction's collective. */
static int64_t network_of(const struct topt_program *p, const struct topt_hw *hw,
                          const struct topt_instr *i)
{
    struct topt_group g = topt_mesh_group(&p->mesh, i->axes);
    const struct topt_buffer *a = i->a >= 0 ? &p->buffer[i->a] : NULL;
    int bytes = a && a->elem == TOPT_ELEM_INT32  ? 4
                : a && a->elem == TOPT_ELEM_BYTE ? 1
                                                 : topt_dtype_bytes(p->settings.dtype);
    int64_t differ;
    switch (i->kind) {
    case TOPT_I_MOVE:
        return move_ns(hw, &p->mesh, &a->shape, &i->move, bytes);
    case TOPT_I_REDUCE:
        return topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, a->bytes);
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
        differ = a->bytes - p->buffer[i->b].bytes;
        return topt_hw_collective_ns(hw, TOPT_PERMUTE, g, differ < 0 ? -differ : differ);
    case TOPT_I_ROWS_FETCH:
    case TOPT_I_ROWS_ADD:
        return i->axes ? rows_of(p, hw, i) : 0;
    case TOPT_I_LOSS:
        return topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, 8);
    default:
        return 0;
    }
}

/* Of a whole step. */
__attribute__((unused)) static int64_t program_network(const struct topt_program *p,
                                                       const struct topt_hw *hw)
{
    int64_t ns = 0;
    for (int i = p->init_end; i < p->ninstr; i++) {
        int micro = i >= p->micro_begin && i < p->micro_end;
        ns += network_of(p, hw, &p->instr[i]) * (micro ? p->settings.micro_batches : 1);
    }
    return ns;
}

#endif
