/* value_classes.c - which of operators' values are distinguished, each partition once.
 *
 * Views are remembered by the addresses of what they were made of: arrays of classes are
 * the problem's or other views', and stay as they are. */
#include "value_classes.h"
#include "topt_hash.h"
#include "topt_index.h"

#include <stdlib.h>
#include <string.h>

enum kind { NOWHERE, ONE, ALL, SPLIT, OF_VALUES };

struct view_slot {
    enum kind kind;
    int n;
    const int32_t *a, *b;
    struct view view;
};

void topt_value_classes_init(struct views *v, struct topt_arena *arena)
{
    *v = (struct views){.arena = arena};
}

void topt_value_classes_fini(struct views *v)
{
    free(v->slot);
    *v = (struct views){0};
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* Where it is, or would stand. */
static struct view_slot *find(const struct views *v, const struct view_slot *x)
{
    uint64_t h = mix(mix(mix((uint64_t)x->kind, (uint64_t)x->n), (uintptr_t)x->a),
                     (uintptr_t)x->b);
    size_t i = (size_t)h & (v->cap - 1);
    for (;; i = (i + 1) & (v->cap - 1)) {
        struct view_slot *s = &v->slot[i];
        if (s->kind == NOWHERE ||
            (s->kind == x->kind && s->n == x->n && s->a == x->a && s->b == x->b))
            return s;
    }
}

static int make_room(struct views *v)
{
    struct views more = {.cap = v->cap ? 2 * v->cap : 256};
    if (2 * v->n < v->cap)
        return 0;
    more.slot = calloc(more.cap, sizeof *more.slot);
    if (!more.slot)
        return -1;
    for (size_t i = 0; i < v->cap; i++)
        if (v->slot[i].kind != NOWHERE)
            *find(&more, &v->slot[i]) = v->slot[i];
    free(v->slot);
    v->slot = more.slot;
    v->cap = more.cap;
    return 0;
}

/* Is that known?  1, and its view; 0: an array of 'n' classes is to be filled and kept;
 * or -1. */
static int look_up(struct views *v, const struct view_slot *key, int n, int32_t **array,
                   struct view *ret)
{
    if (make_room(v))
        return -1;
    const struct view_slot *s = find(v, key);
    *ret = s->view;
    if (s->kind != NOWHERE)
        return 1;
    *array = TOPT_NEW(v->arena, n, int32_t);
    return *array ? 0 : -1;
}

static int keep(struct views *v, struct view_slot key, struct view view, struct view *ret)
{
    *ret = key.view = view;
    *find(v, &key) = key;
    v->n++;
    return 0;
}

int topt_value_classes_one(struct views *v, int n, struct view *ret)
{
    struct view_slot key = {.kind = ONE, .n = n};
    int32_t *of;
    int known = look_up(v, &key, n, &of, ret);
    return known ? (known < 0 ? -1 : 0) : keep(v, key, (struct view){n > 0, of}, ret);
}

int topt_value_classes_all(struct views *v, int n, struct view *ret)
{
    struct view_slot key = {.kind = ALL, .n = n};
    int32_t *of;
    int known = look_up(v, &key, n, &of, ret);
    if (known)
        return known < 0 ? -1 : 0;
    for (int i = 0; i < n; i++)
        of[i] = i;
    return keep(v, key, (struct view){n, of}, ret);
}

/* A class for each pair (class so far, class), whose hash no other pair has. */
int topt_refine(int32_t *id, int n, const int32_t *by)
{
    struct topt_index index = {0};
    int bad = 0;
    for (int i = 0; i < n && !bad; i++) {
        uint64_t pair = topt_mix((uint64_t)(uint32_t)id[i] << 32 | (uint32_t)by[i]);
        int k = topt_index_first(&index, pair);
        id[i] = k < 0 ? topt_index_add(&index, pair) : k;
        bad = id[i] < 0;
    }
    n = bad ? -1 : index.n;
    topt_index_fini(&index);
    return n;
}

int topt_value_classes_split(struct views *v, int n, const struct view *view,
                             const int32_t *by, struct view *ret)
{
    struct view_slot key = {.kind = SPLIT, .n = n, .a = view->of, .b = by};
    int32_t *of;
    int known = look_up(v, &key, n, &of, ret);
    if (known)
        return known < 0 ? -1 : 0;
    memcpy(of, key.a, (size_t)n * sizeof *of);
    int count = topt_refine(of, n, by);
    return count < 0 ? -1 : keep(v, key, (struct view){count, of}, ret);
}

int topt_value_classes_of_values(struct views *v, int n, const int32_t *value,
                                 int nvalues, const int32_t *class_of, int classes,
                                 struct view *ret)
{
    struct view_slot key = {.kind = OF_VALUES, .n = n, .a = value, .b = class_of};
    int32_t *of;
    int known = look_up(v, &key, nvalues, &of, ret);
    ret->n = classes; /* of which there may be more than are seen */
    if (known)
        return known < 0 ? -1 : 0;
    for (int c = 0; c < n; c++)
        of[value[c]] = class_of[c];
    return keep(v, key, (struct view){classes, of}, ret);
}
