/* buckets.c - gradients that are reduced together (gradient_buckets.c).
 *
 * Members lie one after the other in the arena, each at its alignment; what is between them
 * is 0 on all ranks and stays that.  With overlap, a bucket is put on the device's queue of
 * communication once backward's last instruction on it is issued, in that order on all ranks,
 * and waited for where the program reduces it. */
#include "buckets.h"
#include "memory.h"

#include <stdlib.h>

struct place {
    struct topt_comm_call call;
    struct topt_event *reduced; /* NULL without overlap */
    int begun;
};

struct topt_buckets {
    struct place *place; /* by bucket */
    int *order;          /* buckets in the order in which they are begun */
    int begun;
    struct topt_event *computed; /* what the next one waits for */
};

/* By the instruction after which each may begin: an insertion sort, since buckets are few. */
static void sort_by_ready(const struct topt_program *p, int *order)
{
    for (int i = 0; i < p->nbuckets; i++) {
        int k = i;
        for (; k && p->bucket[order[k - 1]].ready > p->bucket[i].ready; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

static enum topt_comm_number number_of(const struct topt_session *s, enum topt_element e)
{
    int bytes = topt_session_element_bytes(s, e);
    return bytes == 8 ? TOPT_COMM_F64 : bytes == 2 ? TOPT_COMM_BF16 : TOPT_COMM_F32;
}

static int place_bucket(struct topt_session *s, int k, struct topt_error *err)
{
    const struct topt_program *p = s->p;
    const struct topt_bucket *b = &p->bucket[k];
    int first = p->member[b->first], last = p->member[b->first + b->n - 1];
    int64_t end = s->offset[last] + p->buffer[last].bytes;
    int64_t bytes = end - s->offset[first];
    char *at = (char *)s->arena + s->offset[first];
    s->buckets->place[k].call =
        (struct topt_comm_call){.axes = b->axes,
                                .number = number_of(s, b->elem),
                                .reduce = TOPT_COMM_SUM,
                                .src = at,
                                .dst = at,
                                .n = bytes / topt_session_element_bytes(s, b->elem)};
    return s->dev->ops->zero(s->dev, at, bytes, err);
}

static int create_events(struct topt_session *s, struct topt_error *err)
{
    const struct topt_device_ops *o = s->dev->ops;
    if (o->event_create(s->dev, &s->buckets->computed, err))
        return -1;
    for (int k = 0; k < s->p->nbuckets; k++)
        if (o->event_create(s->dev, &s->buckets->place[k].reduced, err))
            return -1;
    return 0;
}

int topt_buckets_open(struct topt_session *s, struct topt_error *err)
{
    size_t n = (size_t)s->p->nbuckets;
    struct topt_buckets *b = s->buckets = calloc(1, sizeof *b);
    if (!b)
        return topt_nomem(err, "buckets");
    b->place = calloc(n + 1, sizeof *b->place);
    b->order = calloc(n + 1, sizeof *b->order);
    if (!b->place || !b->order)
        return topt_nomem(err, "buckets");
    sort_by_ready(s->p, b->order);
    for (int k = 0; k < s->p->nbuckets; k++)
        if (place_bucket(s, k, err))
            return -1;
    return s->overlaps ? create_events(s, err) : 0;
}

void topt_buckets_close(struct topt_session *s)
{
    struct topt_buckets *b = s->buckets;
    if (!b)
        return;
    for (int k = 0; s->overlaps && b->place && k < s->p->nbuckets; k++)
        s->dev->ops->event_destroy(s->dev, b->place[k].reduced);
    if (s->overlaps)
        s->dev->ops->event_destroy(s->dev, b->computed);
    free(b->place);
    free(b->order);
    free(b);
    s->buckets = NULL;
}

static int begin(struct topt_session *s, struct place *x, struct topt_error *err)
{
    const struct topt_device_ops *o = s->dev->ops;
    struct topt_event *computed = s->buckets->computed;
    struct topt_comm_call beside = x->call;
    beside.queue = TOPT_QUEUE_COMMUNICATION;
    if (o->event_record(s->dev, computed, TOPT_QUEUE_COMPUTE, err) ||
        o->event_wait(s->dev, computed, TOPT_QUEUE_COMMUNICATION, err) ||
        s->comm->ops->all_reduce(s->comm, &beside, err) ||
        o->event_record(s->dev, x->reduced, TOPT_QUEUE_COMMUNICATION, err))
        return -1;
    x->begun = 1;
    return 0;
}

int topt_buckets_behind(struct topt_session *s, int i, struct topt_error *err)
{
    struct topt_buckets *b = s->buckets;
    int n = s->p->nbuckets;
    for (; b->begun < n && s->p->bucket[b->order[b->begun]].ready <= i + 1; b->begun++)
        if (begin(s, &b->place[b->order[b->begun]], err))
            return -1;
    return s->dev->ops->advance ? s->dev->ops->advance(s->dev, err) : 0;
}

int topt_bucket_reduce(struct topt_session *s, int bucket, struct topt_error *err)
{
    struct place *x = &s->buckets->place[bucket];
    int begun = x->begun;
    x->begun = s->buckets->begun = 0; /* all were begun: the micro-batch is over */
    return begun ? s->dev->ops->event_wait(s->dev, x->reduced, TOPT_QUEUE_COMPUTE, err)
                 : s->comm->ops->all_reduce(s->comm, &x->call, err);
}
