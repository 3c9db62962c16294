/* heap.c - tasks that are to be looked at, by ready time. */
#include "ff_data.h"
#include "topt_array.h"

#include <stdlib.h>

static int before(const struct ff_entry *a, const struct ff_entry *b)
{
    return a->ready != b->ready ? a->ready < b->ready : a->key < b->key;
}

int ff_push(struct topt_flexflow *f, struct ff_entry e)
{
    if (TOPT_ROOM(f->heap, f->nheap, f->heap_cap, 1024)) {
        f->oom = 1;
        return -1;
    }
    int i = f->nheap++;
    while (i > 0 && before(&e, &f->heap[(i - 1) / 2])) {
        f->heap[i] = f->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    f->heap[i] = e;
    return 0;
}

int ff_pop(struct topt_flexflow *f, struct ff_entry *ret)
{
    if (!f->nheap)
        return 0;
    *ret = f->heap[0];
    struct ff_entry e = f->heap[--f->nheap];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= f->nheap)
            break;
        if (child + 1 < f->nheap && before(&f->heap[child + 1], &f->heap[child]))
            child++;
        if (!before(&f->heap[child], &e))
            break;
        f->heap[i] = f->heap[child];
        i = child;
    }
    f->heap[i] = e;
    return 1;
}
