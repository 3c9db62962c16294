/* arena.c - chunks of memory handed out by bumping a pointer.
 *
 *     chunk -> older chunk -> ... -> NULL
 *     [ used | free ]
 *
 * A request that does not fit opens a chunk of its own size or of CHUNK bytes, whichever is
 * more.  Under AddressSanitizer what was not handed out is poisoned. */
#include "topt_arena.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n)   ((void)0)
#define UNPOISON(p, n) ((void)0)
#endif

enum { CHUNK = 64 * 1024, ALIGN = 16 };

struct chunk {
    struct chunk *older;
    size_t size, used;
    _Alignas(ALIGN) unsigned char data[];
};

struct topt_arena {
    struct chunk *top;
    size_t limit, total, peak;
};

struct topt_arena *topt_arena_create(size_t limit_bytes)
{
    struct topt_arena *a = calloc(1, sizeof *a);
    if (a)
        a->limit = limit_bytes;
    return a;
}

static void pop_chunk(struct topt_arena *a)
{
    struct chunk *c = a->top;
    a->top = c->older;
    UNPOISON(c->data, c->size);
    free(c);
}

void topt_arena_destroy(struct topt_arena *a)
{
    if (!a)
        return;
    while (a->top)
        pop_chunk(a);
    free(a);
}

static int push_chunk(struct topt_arena *a, size_t need)
{
    size_t size = need > CHUNK ? need : CHUNK;
    struct chunk *c = malloc(sizeof *c + size);
    if (!c)
        return -1;
    c->older = a->top;
    c->size = size;
    c->used = 0;
    POISON(c->data, size);
    a->top = c;
    return 0;
}

void *topt_arena_alloc(struct topt_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) ||
        bytes > SIZE_MAX - ALIGN - sizeof(struct chunk))
        return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes == 0)
        bytes = ALIGN;
    if (a->limit && (bytes > a->limit || a->total > a->limit - bytes))
        return NULL;
    if ((!a->top || a->top->size - a->top->used < bytes) && push_chunk(a, bytes))
        return NULL;
    void *p = a->top->data + a->top->used;
    UNPOISON(p, bytes);
    memset(p, 0, bytes);
    a->top->used += bytes;
    a->total += bytes;
    if (a->total > a->peak)
        a->peak = a->total;
    return p;
}

char *topt_arena_strdup(struct topt_arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = topt_arena_alloc(a, n, 1);
    if (p)
        memcpy(p, s, n);
    return p;
}

size_t topt_arena_bytes(const struct topt_arena *a)
{
    return a->total;
}

size_t topt_arena_peak_bytes(const struct topt_arena *a)
{
    return a->peak;
}
