/* topt_arena.h - bump allocation: many small objects, freed together.
 * Thread safety: none; one owner at a time. */
#ifndef TOPT_ARENA_H
#define TOPT_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct topt_arena;

/* 'limit_bytes' 0 means no limit.  NULL when out of memory. */
struct topt_arena *topt_arena_create(size_t limit_bytes);
void topt_arena_destroy(struct topt_arena *a);

/* n * size zeroed bytes aligned for any type; NULL on overflow, past the limit or out of
 * memory (the arena stays as it was).  n or size of 0 gives a valid pointer. */
void *topt_arena_alloc(struct topt_arena *a, size_t n, size_t size);
char *topt_arena_strdup(struct topt_arena *a, const char *s);

size_t topt_arena_bytes(const struct topt_arena *a);      /* handed out now */
size_t topt_arena_peak_bytes(const struct topt_arena *a); /* most ever handed out */

#define TOPT_NEW(a, n, type) ((type *)topt_arena_alloc((a), (size_t)(n), sizeof(type)))

#endif
