/* buffer_offsets.c - where each buffer of a program lies in one block of memory.
 *
 * A buffer is alive from its ALLOC to its FREE; two that are alive at once may not overlap.
 * What stays to the end lies first, one after the other.  The rest is placed in some order, each at
 * the lowest place that is free of all that were placed and live while it does.  Orders that are
 * tried (Pisarchyk and Lee 2020): the largest first, the earliest first, and first what is alive
 * where most is.  Then what lies on top of the best is placed first instead, again and again, until
 * the block is as small as what is alive at once or enough was tried.  To find the smallest block
 * is NP-hard. */
#include "topt_runtime.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORK = 200000000, MOST_TRIES = 3000, RAISED = 100, AGAIN = 20 };

struct span {
    int buffer, from, to; /* alive in the instructions from..to */
    int64_t bytes, offset;
    int64_t beside; /* most bytes alive at once while it is */
};

struct attempt {
    struct span *span, *best; /* in the order of placing; where all lie as well as ever */
    const struct span **by;
    int n;
    int64_t least, bytes; /* what no block is smaller than; what 'best' takes */
};

static int larger_first(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->from - y->from;
}

static int earlier_first(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return x->from - y->from;
}

static int fullest_first(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->beside != y->beside)
        return x->beside < y->beside ? 1 : -1;
    return larger_first(a, b);
}

/* The lowest place for span 'i', after those before it in 'span' are placed.  'by' are
 * these in order of their places, 'n' of them. */
static int64_t lowest(const struct span *x, const struct span *const *by, int n)
{
    int64_t at = 0;
    for (int k = 0; k < n; k++) {
        const struct span *y = by[k];
        if (y->to < x->from || x->to < y->from)
            continue;
        if (y->offset >= at + x->bytes)
            break;
        if (y->offset + y->bytes > at)
            at = y->offset + y->bytes;
    }
    return at;
}

/* Places all in the order in which they are, and remembers it where it is better. */
static void place(struct attempt *a)
{
    int64_t end = 0;
    for (int i = 0; i < a->n; i++) {
        struct span *x = &a->span[i];
        x->offset = lowest(x, a->by, i);
        int k = i;
        for (; k && a->by[k - 1]->offset > x->offset; k--)
            a->by[k] = a->by[k - 1];
        a->by[k] = x;
        end = x->offset + x->bytes > end ? x->offset + x->bytes : end;
    }
    if (end < a->bytes) {
        a->bytes = end;
        memcpy(a->best, a->span, (size_t)a->n * sizeof *a->best);
    }
}

/* The buffer that ends the block is placed earlier: before all others, or where 'k' draws. */
static void raise_top(struct attempt *a, int k)
{
    uint64_t draw = ((uint64_t)k + 1) * 0x9e3779b97f4a7c15u >> 33;
    int top = 0;
    for (int i = 0; i < a->n; i++)
        if (a->span[i].offset + a->span[i].bytes >
            a->span[top].offset + a->span[top].bytes)
            top = i;
    struct span x = a->span[top];
    int to = k > RAISED && k % 2 ? (int)(draw % ((uint64_t)top + 1)) : 0;
    memmove(a->span + to + 1, a->span + to, (size_t)(top - to) * sizeof x);
    a->span[to] = x;
}

static void try_all(struct attempt *a)
{
    static int (*const order[])(const void *, const void *) = {
        larger_first, earlier_first, fullest_first};
    int tries = a->n ? MOST_WORK / a->n / a->n : 0;
    a->bytes = INT64_MAX;
    for (int k = 0; k < 3 && a->bytes > a->least; k++) {
        qsort(a->span, (size_t)a->n, sizeof *a->span, order[k]);
        place(a);
    }
    for (int k = 0; k < tries && k < MOST_TRIES && a->bytes > a->least; k++) {
        if (k == 0 || (k >= RAISED && k % AGAIN == 0))
            memcpy(a->span, a->best, (size_t)a->n * sizeof *a->span);
        raise_top(a, k);
        place(a);
    }
}

/* The buffers that are alive beside each, and the most of all. */
static int find_beside(struct attempt *a, int ninstr, struct topt_error *err)
{
    int64_t *live = calloc((size_t)ninstr + 1, sizeof *live);
    if (!live)
        return topt_nomem(err, "the arena");
    for (int i = 0; i < a->n; i++) {
        live[a->span[i].from] += a->span[i].bytes;
        live[a->span[i].to] -= a->span[i].bytes;
    }
    for (int k = 1; k < ninstr; k++)
        live[k] += live[k - 1];
    for (int i = 0; i < a->n; i++) {
        struct span *x = &a->span[i];
        for (int k = x->from; k < x->to; k++)
            x->beside = live[k] > x->beside ? live[k] : x->beside;
        a->least = x->beside > a->least ? x->beside : a->least;
    }
    free(live);
    return 0;
}

enum { PLACED = -2 };

static void stays_at(struct span *x, int64_t *ret_offset, int64_t *ret_stay)
{
    ret_offset[x->buffer] = *ret_stay;
    *ret_stay += x->bytes;
    x->to = PLACED;
}

/* Spans of what is freed, behind what stays, gradients of a bucket side by side; returns
 * how many, and what stays takes. */
static int find_spans(const struct topt_program *p, int64_t align, struct span *span,
                      int *at, int64_t *ret_offset, int64_t *ret_stay)
{
    int n = 0;
    *ret_stay = 0;
    for (int k = 0; k < p->ninstr; k++) {
        const struct topt_instr *i = &p->instr[k];
        if (i->kind == TOPT_I_ALLOC) {
            at[i->a] = n;
            int64_t bytes = (p->buffer[i->a].bytes + align - 1) / align * align;
            span[n++] = (struct span){i->a, k, -1, bytes, 0, 0};
        } else if (i->kind == TOPT_I_FREE && at[i->a] >= 0) {
            span[at[i->a]].to = k;
        }
    }
    int left = 0;
    for (int b = 0; b < p->nbuckets; b++)
        for (int m = p->bucket[b].first; m < p->bucket[b].first + p->bucket[b].n; m++)
            stays_at(&span[at[p->member[m]]], ret_offset, ret_stay);
    for (int i = 0; i < n; i++) {
        if (span[i].to >= 0)
            span[left++] = span[i];
        else if (span[i].to != PLACED)
            stays_at(&span[i], ret_offset, ret_stay);
    }
    return left;
}

int topt_program_offsets(const struct topt_program *p, int64_t align, int64_t *ret_offset,
                         int64_t *ret_bytes, struct topt_error *err)
{
    size_t room = (size_t)p->nbuffers + 1;
    struct attempt a = {.span = calloc(room, sizeof *a.span),
                        .best = calloc(room, sizeof *a.best),
                        .by = calloc(room, sizeof *a.by)};
    int *at = malloc(room * sizeof *at);
    int rc = a.span && a.best && a.by && at ? 0 : topt_nomem(err, "the arena");
    int64_t stay = 0;
    if (!rc) {
        memset(at, 0xff, room * sizeof *at);
        a.n = find_spans(p, align, a.span, at, ret_offset, &stay);
        rc = find_beside(&a, p->ninstr, err);
    }
    if (!rc) {
        try_all(&a);
        for (int i = 0; i < a.n; i++)
            ret_offset[a.best[i].buffer] = stay + a.best[i].offset;
        *ret_bytes = stay + (a.n ? a.bytes : 0);
    }
    free(a.span);
    free(a.best);
    free(a.by);
    free(at);
    return rc;
}
