/* comm_staged.c - collectives between devices by way of the hosts' memory.
 *
 * Two buffers of the host, grown on demand, in memory that the device copies fastest.
 * bf16 is added up in f32, since hosts' communicators have no sum of it. */
#include "comm_staged.h"
#include "number.h"

#include <stdlib.h>

struct room {
    void *p;
    int64_t bytes;
};

struct staged {
    struct topt_comm *host;
    struct topt_device *device;
    struct room out, in;
};

static void room_free(struct staged *s, struct room *r)
{
    if (s->device->ops->release_host && r->p)
        s->device->ops->release_host(s->device, r->p);
    else
        free(r->p);
    *r = (struct room){.p = NULL};
}

static int room_grow(struct staged *s, struct room *r, int64_t bytes,
                     struct topt_error *err)
{
    if (r->p && bytes <= r->bytes)
        return 0;
    room_free(s, r);
    if (s->device->ops->alloc_host) {
        if (s->device->ops->alloc_host(s->device, bytes, &r->p, err))
            return -1;
    } else {
        r->p = malloc((size_t)bytes + 1);
    }
    if (!r->p)
        return topt_nomem(err, "a message");
    r->bytes = bytes;
    return 0;
}

/* The host's communicator knows the mesh that this one was bound to last. */
static struct topt_comm *host_of(struct topt_comm *c)
{
    struct staged *s = c->impl;
    return s->host;
}

static int bind_host(struct topt_comm *c, struct topt_error *err)
{
    return topt_comm_bind(host_of(c), &c->mesh, err);
}

static void staged_forget(struct topt_comm *c)
{
    host_of(c)->ops->forget(host_of(c));
}

static void staged_destroy(struct topt_comm *c)
{
    struct staged *s = c->impl;
    room_free(s, &s->out);
    room_free(s, &s->in);
    free(s);
}

static int staged_group(struct topt_comm *c, uint32_t axes, struct topt_comm_group *ret,
                        struct topt_error *err)
{
    return bind_host(c, err) || host_of(c)->ops->group(host_of(c), axes, ret, err) ? -1
                                                                                   : 0;
}

/* From the device; widened from the end of the room to its start, so in place. */
static int fetch(struct staged *s, const struct topt_comm_call *k, int64_t n, int widen,
                 struct topt_error *err)
{
    int64_t bytes = n * topt_comm_number_bytes(k->number);
    char *to = s->out.p;
    if (widen)
        to += n * 2;
    if (s->device->ops->read(s->device, to, k->src, bytes, err))
        return -1;
    for (int64_t i = 0; i < n && widen; i++)
        topt_number_put(TOPT_F32, s->out.p, i, topt_number_get(TOPT_BF16, to, i));
    return 0;
}

static int deliver(struct staged *s, const struct topt_comm_call *k, int64_t n,
                   int narrow, struct topt_error *err)
{
    for (int64_t i = 0; i < n && narrow; i++)
        topt_number_put(TOPT_BF16, s->in.p, i, topt_number_get(TOPT_F32, s->in.p, i));
    return s->device->ops->write(s->device, k->dst, s->in.p,
                                 n * topt_comm_number_bytes(k->number), err);
}

typedef int collective(struct topt_comm *c, const struct topt_comm_call *k,
                       struct topt_error *err);

static int pass(struct topt_comm *c, const struct topt_comm_call *k, int64_t out,
                int64_t in, int adds, collective *run, struct topt_error *err)
{
    struct staged *s = c->impl;
    int wide = adds && k->number == TOPT_COMM_BF16;
    int bytes = wide ? 4 : topt_comm_number_bytes(k->number);
    if (room_grow(s, &s->out, out * bytes, err) ||
        room_grow(s, &s->in, in * bytes, err) || fetch(s, k, out, wide, err))
        return -1;
    struct topt_comm_call host = *k;
    host.src = s->out.p;
    host.dst = s->in.p;
    if (wide)
        host.number = TOPT_COMM_F32;
    return run(s->host, &host, err) || deliver(s, k, in, wide, err) ? -1 : 0;
}

static int64_t total(const int64_t *counts, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

static int staged_all_reduce(struct topt_comm *c, const struct topt_comm_call *k,
                             struct topt_error *err)
{
    return bind_host(c, err) ||
                   pass(c, k, k->n, k->n, 1, host_of(c)->ops->all_reduce, err)
               ? -1
               : 0;
}

static int staged_reduce_scatter(struct topt_comm *c, const struct topt_comm_call *k,
                                 struct topt_error *err)
{
    struct topt_comm_group g;
    if (staged_group(c, k->axes, &g, err))
        return -1;
    return pass(c, k, total(k->counts, g.size), k->counts[g.me], 1,
                host_of(c)->ops->reduce_scatter, err);
}

static int staged_all_gather(struct topt_comm *c, const struct topt_comm_call *k,
                             struct topt_error *err)
{
    struct topt_comm_group g;
    if (staged_group(c, k->axes, &g, err))
        return -1;
    return pass(c, k, k->counts[g.me], total(k->counts, g.size), 0,
                host_of(c)->ops->all_gather, err);
}

static int staged_all_to_all(struct topt_comm *c, const struct topt_comm_call *k,
                             struct topt_error *err)
{
    struct topt_comm_group g;
    if (staged_group(c, k->axes, &g, err))
        return -1;
    return pass(c, k, total(k->counts, g.size), total(k->to_counts, g.size), 0,
                host_of(c)->ops->all_to_all, err);
}

/* What is in the hosts' memory anyway. */
static int staged_broadcast(struct topt_comm *c, void *data, int64_t bytes,
                            struct topt_error *err)
{
    return host_of(c)->ops->broadcast(host_of(c), data, bytes, err);
}

static int staged_send(struct topt_comm *c, int to, const void *data, int64_t bytes,
                       struct topt_error *err)
{
    return host_of(c)->ops->send(host_of(c), to, data, bytes, err);
}

static int staged_receive(struct topt_comm *c, int from, void *data, int64_t bytes,
                          struct topt_error *err)
{
    return host_of(c)->ops->receive(host_of(c), from, data, bytes, err);
}

static int staged_sum(struct topt_comm *c, double *values, int n, struct topt_error *err)
{
    return host_of(c)->ops->sum(host_of(c), values, n, err);
}

static int staged_max(struct topt_comm *c, double *values, int n, struct topt_error *err)
{
    return host_of(c)->ops->max(host_of(c), values, n, err);
}

static void staged_abort(struct topt_comm *c, int status)
{
    host_of(c)->ops->abort(host_of(c), status);
}

int topt_comm_staged(struct topt_comm *host, struct topt_device *d,
                     struct topt_comm **ret, struct topt_error *err)
{
    static const struct topt_comm_ops ops = {
        .name = "staged",
        .destroy = staged_destroy,
        .forget = staged_forget,
        .group = staged_group,
        .all_reduce = staged_all_reduce,
        .reduce_scatter = staged_reduce_scatter,
        .all_gather = staged_all_gather,
        .all_to_all = staged_all_to_all,
        .broadcast = staged_broadcast,
        .send = staged_send,
        .receive = staged_receive,
        .sum = staged_sum,
        .max = staged_max,
        .abort = staged_abort,
    };
    struct topt_comm *c = calloc(1, sizeof *c);
    struct staged *s = calloc(1, sizeof *s);
    if (!c || !s) {
        free(c);
        free(s);
        return topt_nomem(err, NULL);
    }
    *s = (struct staged){.host = host, .device = d};
    *c = (struct topt_comm){.ops = &ops,
                            .rank = host->rank,
                            .size = host->size,
                            .mesh = host->mesh,
                            .impl = s};
    *ret = c;
    return 0;
}
