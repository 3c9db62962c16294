/* kept.h - the last few things that were made, by a key.
 * Thread safety: none. */
#ifndef TOPTD_KEPT_H
#define TOPTD_KEPT_H

#include <stdint.h>

enum { KEPT_MOST = 4 };

/* Start from {.destroy = ...}. */
struct kept {
    void (*destroy)(void *thing);
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
/* Drop what was used longest ago; nothing where nothing is kept. */
void kept_drop_oldest(struct kept *k);
void kept_each(struct kept *k, void (*then)(void *thing, void *ctx), void *ctx);
void kept_fini(struct kept *k);

#endif
