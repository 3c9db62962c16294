/* buckets.c - gradients that are reduced together (solver/lower/gradient_buckets.c).
 *
 * Members lie one after the other in the arena, each at its alignment; what is between them
 * is 0 on all ranks and stays that.  With overlap, a bucket is begun when backward's last
 * instruction on it is done, in that order on all ranks, and waited for where the program
 * reduces it; between instructions MPI is called, which is when it moves anything. */
#include "buckets.h"
#include "memory.h"

#include <stdlib.h>

struct place {
    struct topt_comm_call call;
    struct topt_comm_request request;
    int on_its_way, done;
};

struct topt_buckets {
    struct place *place; /* by bucket */
    int *order;          /* buckets in the order in which they are begun */
    int begun, ended;
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
    return 0;
}

void topt_buckets_close(struct topt_session *s)
{
    if (!s->buckets)
        return;
    free(s->buckets->place);
    free(s->buckets->order);
    free(s->buckets);
    s->buckets = NULL;
}

static int look_after(struct topt_session *s, struct place *x, int wait,
                      struct topt_error *err)
{
    int done = 0;
    if (s->comm->ops->all_reduce_end(s->comm, &x->request, wait, &done, err))
        return -1;
    x->done = done;
    x->on_its_way = !done;
    return 0;
}

int topt_buckets_behind(struct topt_session *s, int i, struct topt_error *err)
{
    struct topt_buckets *b = s->buckets;
    int n = s->p->nbuckets;
    for (; b->begun < n && s->p->bucket[b->order[b->begun]].ready <= i + 1; b->begun++) {
        struct place *x = &b->place[b->order[b->begun]];
        if (s->comm->ops->all_reduce_begin(s->comm, &x->call, &x->request, err))
            return -1;
        x->on_its_way = 1;
    }
    while (b->ended < b->begun) {
        struct place *x = &b->place[b->order[b->ended]];
        if (x->on_its_way && look_after(s, x, 0, err))
            return -1;
        if (x->on_its_way)
            break;
        b->ended++;
    }
    return 0;
}

int topt_bucket_reduce(struct topt_session *s, int bucket, struct topt_error *err)
{
    struct place *x = &s->buckets->place[bucket];
    int rc = 0;
    if (x->on_its_way)
        rc = look_after(s, x, 1, err);
    else if (!x->done)
        rc = s->comm->ops->all_reduce(s->comm, &x->call, err);
    x->done = 0;
    s->buckets->begun = s->buckets->ended =
        0; /* all were begun: the micro-batch is over */
    return rc;
}
