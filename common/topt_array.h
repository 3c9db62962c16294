/* topt_array.h - arrays that grow: realloc where a failure leaves the array as it was. */
#ifndef TOPT_ARRAY_H
#define TOPT_ARRAY_H

#include <stdlib.h>
#include <string.h>

/* 'array' is the address of a pointer to objects. */
static inline int topt_resize(void *array, size_t bytes)
{
    void *p;
    memcpy(&p, array, sizeof p);
    p = realloc(p, bytes ? bytes : 1); /* of 0 bytes it frees */
    if (!p)
        return -1;
    memcpy(array, &p, sizeof p);
    return 0;
}

/* Give the array 'p', a pointer, room for 'n' elements; new ones are not set.  -1
 * without memory. */
#define TOPT_RESIZE(p, n) topt_resize(&(p), (size_t)(n) * sizeof *(p))

/* Room for one more than the 'n' elements of the array 'p', which has room for 'cap', a
 * variable: that begins with 'first' and doubles.  -1 without memory.  The arguments are
 * evaluated several times. */
#define TOPT_ROOM(p, n, cap, first)                                                      \
    ((n) < (cap) ? 0                                                                     \
     : TOPT_RESIZE(p, (cap) ? 2 * (cap) : (first))                                       \
         ? -1                                                                            \
         : ((cap) = (cap) ? 2 * (cap) : (first), 0))

#endif
