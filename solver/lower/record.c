/* record.c - the sink that records: a program's buffers and instructions in the order
 * in which fragments write them, and how many bytes that makes alive at once. */
#include "record.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

static int record_emit(struct topt_sink *sink, const struct topt_instr *i,
                       struct topt_error *err)
{
    struct topt_recorder *r = (struct topt_recorder *)sink;
    struct topt_program *p = r->p;
    if (TOPT_ROOM(p->instr, p->ninstr, r->instr_cap, 256))
        return topt_nomem(err, "the program");
    p->instr[p->ninstr++] = *i;
    return 0;
}

static struct topt_instr on_buffer(enum topt_instr_kind kind,
                                   const struct topt_program *p, int buffer)
{
    struct topt_instr i = topt_fragment_instr(kind, p->buffer[buffer].op, 0);
    i.a = buffer;
    return i;
}

static int record_alloc(struct topt_sink *sink, const struct topt_buffer *b,
                        struct topt_error *err)
{
    struct topt_recorder *r = (struct topt_recorder *)sink;
    struct topt_program *p = r->p;
    if (TOPT_ROOM(p->buffer, p->nbuffers, r->buffer_cap, 256))
        return topt_nomem(err, "the program");
    p->buffer[p->nbuffers] = *b;
    struct topt_instr i = on_buffer(TOPT_I_ALLOC, p, p->nbuffers);
    return sink->emit(sink, &i, err) ? -1 : p->nbuffers++;
}

static void record_release(struct topt_sink *sink, int buffer)
{
    struct topt_recorder *r = (struct topt_recorder *)sink;
    struct topt_instr i = on_buffer(TOPT_I_FREE, r->p, buffer);
    if (sink->emit(sink, &i, NULL))
        r->failed = 1;
}

static void record_keep(struct topt_sink *sink, int buffer, enum topt_class cls)
{
    ((struct topt_recorder *)sink)->p->buffer[buffer].cls = cls;
}

static const struct topt_buffer *record_get(struct topt_sink *sink, int buffer)
{
    return &((struct topt_recorder *)sink)->p->buffer[buffer];
}

struct topt_recorder topt_recorder(struct topt_program *p)
{
    return (struct topt_recorder){.sink = {.alloc = record_alloc,
                                           .release = record_release,
                                           .keep = record_keep,
                                           .emit = record_emit,
                                           .get = record_get},
                                  .p = p};
}

struct topt_program *topt_program_create(const struct topt_model *m,
                                         const struct topt_mesh *mesh,
                                         const struct topt_settings *settings,
                                         const struct topt_strategy *s)
{
    struct topt_program *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct topt_program){.model = m, .mesh = *mesh, .settings = *settings};
    p->config = malloc((size_t)m->nops * sizeof *p->config);
    if (!p->config) {
        free(p);
        return NULL;
    }
    memcpy(p->config, s->config, (size_t)m->nops * sizeof *p->config);
    return p;
}

/* The largest sum of live buffers on one device, where it is more than is known. */
static void find_peak_on(struct topt_program *p, int device)
{
    int64_t live[TOPT_CLASS_COUNT] = {0}, total = 0;
    for (int i = 0; i < p->ninstr; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind != TOPT_I_ALLOC && in->kind != TOPT_I_FREE)
            continue;
        const struct topt_buffer *b = &p->buffer[in->a];
        int64_t bytes =
            topt_bytes_on(p->model, &p->mesh, &p->settings, &p->config[b->op], b, device);
        bytes = in->kind == TOPT_I_ALLOC ? bytes : -bytes;
        live[b->cls] += bytes;
        total += bytes;
        if (total > p->peak_bytes) {
            p->peak_bytes = total;
            memcpy(p->class_bytes, live, sizeof live);
        }
    }
}

static int has_windows(const struct topt_program *p)
{
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].window)
            return 1;
    return 0;
}

/* The first device has the largest block of everything but windows, which are largest
 * in the middle, and of states with shares of their own: with those, each device is
 * looked at, or, where they are many, one that has the largest of all. */
void topt_program_find_peak(struct topt_program *p)
{
    p->peak_bytes = 0;
    if (!(has_windows(p) || p->mesh.state_share[0]) ||
        p->mesh.devices > TOPT_PEAK_DEVICES) {
        find_peak_on(p, -1);
        return;
    }
    for (int device = 0; device < p->mesh.devices; device++)
        find_peak_on(p, device);
}

int topt_program_find_loss(const struct topt_program *p)
{
    for (int i = p->micro_begin; i < p->micro_end; i++)
        if (p->instr[i].kind == TOPT_I_KERNEL && p->instr[i].op == p->model->loss &&
            p->instr[i].kernel != TOPT_K_LOAD)
            return i;
    return -1;
}

void topt_program_destroy(struct topt_program *p)
{
    if (!p)
        return;
    free(p->config);
    free(p->bucket);
    free(p->member);
    free(p->buffer);
    free(p->instr);
    free(p->time);
    free(p);
}
