/* live_bytes.c - the sink that follows how many bytes fragments make alive.
 *
 * A piece of a program changes what is alive by a number of bytes, and on the way
 * there rises by some: whatever is alive around it.  So the peak of a program follows
 * from its pieces. */
#include "live_bytes.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

static int grow(struct topt_live_bytes *a)
{
    int cap = a->cap ? 2 * a->cap : 64;
    if (TOPT_RESIZE(a->buffer, cap) ||
        TOPT_RESIZE(a->bytes, (size_t)cap * (size_t)a->lanes))
        return -1;
    a->cap = cap;
    return 0;
}

static int alive_alloc(struct topt_sink *sink, const struct topt_buffer *b,
                       struct topt_error *err)
{
    struct topt_live_bytes *a = (struct topt_live_bytes *)sink;
    if (a->n == a->cap && grow(a))
        return topt_nomem(err, "a program's peak");
    int64_t *bytes = &a->bytes[(size_t)a->n * (size_t)a->lanes];
    a->buffer[a->n] = *b;
    a->windows |= b->window;
    for (int i = 0; i < a->lanes; i++) {
        bytes[i] =
            topt_bytes_on(a->k->model, a->k->mesh, a->k->settings, a->config, b, i - 1);
        a->now[i] += bytes[i];
        a->most[i] = a->now[i] > a->most[i] ? a->now[i] : a->most[i];
    }
    return a->n++;
}

static void alive_release(struct topt_sink *sink, int buffer)
{
    struct topt_live_bytes *a = (struct topt_live_bytes *)sink;
    for (int i = 0; i < a->lanes; i++)
        a->now[i] -= a->bytes[(size_t)buffer * (size_t)a->lanes + (size_t)i];
}

static void alive_keep(struct topt_sink *sink, int buffer, enum topt_class cls)
{
    ((struct topt_live_bytes *)sink)->buffer[buffer].cls = cls;
}

static int alive_emit(struct topt_sink *sink, const struct topt_instr *i,
                      struct topt_error *err)
{
    (void)sink;
    (void)i;
    (void)err;
    return 0;
}

static const struct topt_buffer *alive_get(struct topt_sink *sink, int buffer)
{
    return &((struct topt_live_bytes *)sink)->buffer[buffer];
}

static int has_windows(const struct topt_model *m)
{
    for (int i = 0; i < m->nops; i++)
        for (int x = 0; x < m->op[i].spec->noperands; x++)
            if (m->op[i].spec->operand[x].window_of)
                return 1;
    return 0;
}

struct topt_live_bytes topt_live_bytes(const struct topt_costing *k)
{
    int each = has_windows(k->model) && k->mesh->devices <= TOPT_PEAK_DEVICES;
    return (struct topt_live_bytes){.sink = {.alloc = alive_alloc,
                                             .release = alive_release,
                                             .keep = alive_keep,
                                             .emit = alive_emit,
                                             .get = alive_get},
                                    .k = k,
                                    .lanes = each ? 1 + k->mesh->devices : 1};
}

void topt_live_bytes_fini(struct topt_live_bytes *a)
{
    free(a->buffer);
    free(a->bytes);
}

void topt_live_bytes_start(struct topt_live_bytes *a, const struct topt_config *config)
{
    a->config = config;
    a->n = a->windows = 0;
    topt_live_bytes_mark(a);
}

void topt_live_bytes_mark(struct topt_live_bytes *a)
{
    memset(a->now, 0, sizeof a->now);
    memset(a->most, 0, sizeof a->most);
}

struct topt_fragments topt_live_bytes_fragments(struct topt_live_bytes *a,
                                                struct topt_error *err)
{
    const struct topt_costing *k = a->k;
    return (struct topt_fragments){k->model, k->mesh, k->settings, k->router,
                                   &a->sink, err,     NULL,        0};
}
