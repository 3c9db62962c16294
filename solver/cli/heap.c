/* heap.c - a heap of huge pages.
 *
 * A search of all degrees touches some hundred MiB, a little of each page at a time: on pages of 4 KiB a third of its time is page
 * faults and misses of the translation buffer (docs/BENCHMARKS.md).  So the main arena of glibc is extended at once, which
 * touches nothing, and the kernel is asked to back it by huge pages; where these are turned off, or address space is limited,
 * nothing changes.  What is freed stays, as the process ends with its answer. */
#include "heap.h"

#include <stdlib.h>

#ifdef __GLIBC__

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ROOM = 512 << 20,   /* of address space */
    FURTHER = 16 << 20, /* ... each time that it is not enough */
    MAPPED =
        32 << 20, /* larger blocks are mapped by themselves: the most that glibc takes */
    FIRST = 256 << 10, /* more than a heap has that was used for little */
    HUGE_PAGE = 2 << 20
};

void topt_heap_open(void)
{
    mallopt(M_MMAP_THRESHOLD, MAPPED);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, ROOM);
    void *first = malloc(FIRST);
    uintptr_t from = (uintptr_t)first, until = (uintptr_t)sbrk(0);
    mallopt(M_TOP_PAD, FURTHER);
    free(first);
    from = (from + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    until = until / HUGE_PAGE * HUGE_PAGE;
    /* Else the block does not lie in the arena (a sanitizer has its own allocator), or the arena has no room. */
    if (first && until > from && until - from <= ROOM)
        (void)madvise((void *)from, until - from, MADV_HUGEPAGE);
}

#else

void topt_heap_open(void)
{
}

#endif
