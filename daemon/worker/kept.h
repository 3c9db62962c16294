/* kept.h - the last few things that were made, by a key.
 * Thread safety: none. */
#ifndef TOPTD_KEPT_H
#define TOPTD_KEPT_H

#include <stddef.h>
#include <stdint.h>

enum { KEPT_MOST = 4 };

/* Start from {.destroy = ...}; of things that grow, also 'bytes' and 'most'. */
struct kept {
    void (*destroy)(void *thing);
    size_t (*bytes)(const void *thing); /* that it takes */
    size_t most;                        /* bytes of all */
    struct kept_thing {
        char *key;
        void *thing;
        uint64_t used;
    } things[KEPT_MOST];
    uint64_t now;
};

void *kept_find(struct kept *k, const char *key); /* NULL: none */
/* Keep it (taken) in the place of what was used longest ago; 0, or -1 without memory, where it is
 * destroyed. */
int kept_add(struct kept *k, const char *key, void *thing);
/* Drop what takes more than k->most alone, then what was used longest ago, until all is within it. */
void kept_trim(struct kept *k);
void kept_fini(struct kept *k);

#endif
