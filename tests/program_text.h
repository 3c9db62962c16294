/* program_text.h - a program as lines of text, for golden tests and for messages. */
#ifndef TOPT_TEST_PROGRAM_TEXT_H
#define TOPT_TEST_PROGRAM_TEXT_H

#include "topt_lower.h"
#include "topt_text.h"

static inline void put_layout(struct topt_text *out, const struct topt_mesh *mesh,
                              const struct topt_layout *l)
{
    char name[8];
    for (int a = 0; a < mesh->naxes; a++) {
        topt_text_add(out, "%s%s:", a ? " " : "", topt_mesh_axis_name(mesh, a, name));
        if (l->at[a] >= 0)
            topt_text_add(out, "S%d%s", l->at[a], l->pos[a] ? "'" : "");
        else
            topt_text_add(out, "%s", l->at[a] == TOPT_PARTIAL ? "P" : "R");
    }
}

static inline void put_buffers(struct topt_text *out, const int *buffer, int n, char mark)
{
    for (int i = 0; i < n; i++)
        if (buffer[i] >= 0)
            topt_text_add(out, " %c%d=%d", mark, i, buffer[i]);
}

static inline void put_instr(struct topt_text *out, const struct topt_program *p,
                             const struct topt_instr *i)
{
    static const char *const name[] = {
        "alloc", "free",     "zero",       "init",     "kernel", "move",
        "halo",  "halo_add", "reduce",     "add",      "loss",   "update",
        "norm",  "unpack",   "rows_fetch", "rows_add", "bucket"};
    const char *op = i->op >= 0 ? p->model->op[i->op].name : "-";
    topt_text_add(out, "%-6s %-12s", name[i->kind], op);
    switch (i->kind) {
    case TOPT_I_ALLOC:
        topt_text_add(out, " %d %s %lld [", i->a, topt_class_name(p->buffer[i->a].cls),
                      (long long)p->buffer[i->a].bytes);
        put_layout(out, &p->mesh, &p->buffer[i->a].layout);
        topt_text_add(out, "]");
        break;
    case TOPT_I_KERNEL:
        topt_text_add(out, " %s", topt_kernel_name(i->kernel));
        if (i->at)
            topt_text_add(out, " at %lld", (long long)i->at);
        put_buffers(out, i->value, TOPT_MAX_OPERANDS, 'v');
        put_buffers(out, i->grad, TOPT_MAX_OPERANDS, 'g');
        if (i->joined)
            topt_text_add(out, " joined");
        break;
    case TOPT_I_MOVE:
        topt_text_add(out, " %s %d -> %d axes %#x", topt_move_name(i->move.kind), i->a,
                      i->b, i->axes);
        break;
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
    case TOPT_I_ROWS_FETCH:
    case TOPT_I_ROWS_ADD:
        topt_text_add(out, " %d -> %d axes %#x", i->a, i->b, i->axes);
        break;
    case TOPT_I_BUCKET:
        topt_text_add(out, " %d axes %#x of", i->b, i->axes);
        for (int m = 0; m < p->bucket[i->b].n; m++)
            topt_text_add(out, " %d", p->member[p->bucket[i->b].first + m]);
        break;
    case TOPT_I_REDUCE:
        topt_text_add(out, " %s %d axes %#x", i->is_max ? "max" : "sum", i->a, i->axes);
        break;
    default:
        topt_text_add(out, " %d", i->a);
        if (i->b >= 0)
            topt_text_add(out, " %d", i->b);
    }
    topt_text_add(out, "\n");
}

/* One line an instruction; freed by the caller. */
static inline char *program_text(const struct topt_program *p)
{
    struct topt_text out = {0};
    for (int i = 0; i < p->ninstr; i++) {
        if (i == p->init_end)
            topt_text_add(&out, "-- step\n");
        if (i == p->micro_begin)
            topt_text_add(&out, "-- micro-batch\n");
        if (i == p->micro_end)
            topt_text_add(&out, "-- end of step\n");
        put_instr(&out, p, &p->instr[i]);
    }
    if (out.oom)
        topt_text_fini(&out);
    return out.s;
}

#endif
