/* topt_index.h - numbers of things by their hashes.
 *
 * The owner keeps the things in an array, by number, and compares them: the index says which of
 * them have a hash.  Numbers count from 0 in the order in which things were added.
 * Thread safety: one owner at a time. */
#ifndef TOPT_INDEX_H
#define TOPT_INDEX_H

#include <stdint.h>

/* All zero: an empty one. */
struct topt_index {
    int n, cap;
    struct topt_index_link {
        uint64_t hash;
        int next; /* in its chain; -1: none */
    } * at;
    int *head; /* as many chains as there is room for; -1: empty */
};

/* The number of a thing with that hash, and of another one after it; -1: there is none. */
int topt_index_first(const struct topt_index *x, uint64_t hash);
int topt_index_next(const struct topt_index *x, int i);

/* The number of a new thing; -1 without memory, and the index stays as it was. */
int topt_index_add(struct topt_index *x, uint64_t hash);

void topt_index_fini(struct topt_index *x);

#endif
