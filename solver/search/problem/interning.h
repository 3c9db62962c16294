/* interning.h - numbers for equal bytes.
 * Internal to this part.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_INTERNING_H
#define TOPT_SEARCH_INTERNING_H

#include "topt_arena.h"

/* An interning begins with its arena alone, which holds all that is kept. */
struct topt_interning {
    struct topt_arena *arena; /* borrowed */
    struct interned **bucket;
    size_t nbuckets;
    int n; /* distinct bytes so far */
};

/* The number of these bytes: from 0, in the order in which they were first seen.  '*ret', if
 * 'ret' is not NULL: the one copy of them, aligned for any type.  -1: memory. */
int topt_intern(struct topt_interning *in, const void *bytes, size_t len,
                const void **ret);

#endif
