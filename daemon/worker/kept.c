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

/* What was used longest ago: an empty place before all, where those count. */
static struct kept_thing *oldest(struct kept *k, int empty_too)
{
    struct kept_thing *ret = NULL;
    for (int i = 0; i < KEPT_MOST; i++) {
        struct kept_thing *t = &k->things[i];
        if ((t->key || empty_too) && (!ret || t->used < ret->used))
            ret = t;
    }
    return ret;
}

int kept_add(struct kept *k, const char *key, void *thing)
{
    struct kept_thing *place = oldest(k, 1);
    char *copy = strdup(key);
    if (!copy) {
        k->destroy(thing);
        return -1;
    }
    drop(k, place);
    *place = (struct kept_thing){copy, thing, ++k->now};
    return 0;
}

void kept_trim(struct kept *k)
{
    size_t sum = 0;
    for (int i = 0; i < KEPT_MOST; i++) {
        struct kept_thing *t = &k->things[i];
        size_t bytes = t->key ? k->bytes(t->thing) : 0;
        if (bytes > k->most)
            drop(k, t);
        else
            sum += bytes;
    }
    while (sum > k->most) {
        struct kept_thing *t = oldest(k, 0);
        sum -= k->bytes(t->thing);
        drop(k, t);
    }
}

void kept_fini(struct kept *k)
{
    for (int i = 0; i < KEPT_MOST; i++)
        drop(k, &k->things[i]);
}
