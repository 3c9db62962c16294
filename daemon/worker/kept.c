/* kept.c - a small table of things by key, least recently used first out. */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

void *kept_find(struct kept *k, const char *key)
{
    for (int i = 0; i < KEPT_MOST; i++)
        if (k->things[i].key && !strcmp(k->things[i].key, key)) {
            k->things[i].used = ++k->now;
            return k->things[i].thing;
        }
    return NULL;
}

static void drop(const struct kept *k, struct kept_thing *t)
{
    if (t->key)
        k->destroy(t->thing);
    free(t->key);
    *t = (struct kept_thing){0};
}

int kept_add(struct kept *k, const char *key, void *thing)
{
    struct kept_thing *oldest = &k->things[0];
    char *copy = strdup(key);
    if (!copy) {
        k->destroy(thing);
        return -1;
    }
    for (int i = 1; i < KEPT_MOST; i++)
        if (k->things[i].used < oldest->used)
            oldest = &k->things[i];
    drop(k, oldest);
    *oldest = (struct kept_thing){copy, thing, ++k->now};
    return 0;
}

void kept_drop_oldest(struct kept *k)
{
    struct kept_thing *oldest = NULL;
    for (int i = 0; i < KEPT_MOST; i++)
        if (k->things[i].key && (!oldest || k->things[i].used < oldest->used))
            oldest = &k->things[i];
    if (oldest)
        drop(k, oldest);
}

void kept_each(struct kept *k, void (*then)(void *thing, void *ctx), void *ctx)
{
    for (int i = 0; i < KEPT_MOST; i++)
        if (k->things[i].key)
            then(k->things[i].thing, ctx);
}

void kept_fini(struct kept *k)
{
    for (int i = 0; i < KEPT_MOST; i++)
        drop(k, &k->things[i]);
}
