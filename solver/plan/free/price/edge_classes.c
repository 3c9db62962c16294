/* edge_classes.c - the ends of edges that a family has, numbered by what differs.
 *
 * An edge costs what it does by the layouts of the tensor there and what is live beside
 * it, not by the configuration as such, of which there are many more.  So a table of an
 * edge is between classes of ends. */
#include "edge_classes.h"
#include "topt_array.h"
#include "topt_hash.h"

#include <stdlib.h>
#include <string.h>

static int same_end(const struct topt_edge_end *a, const struct topt_edge_end *b)
{
    return topt_layout_equal(&a->value, &b->value) &&
           topt_layout_equal(&a->grad, &b->grad) && a->hub == b->hub &&
           a->hub_keep == b->hub_keep && a->recompute == b->recompute &&
           a->needed == b->needed && a->others_bytes == b->others_bytes &&
           a->op_bytes == b->op_bytes && a->out_bytes == b->out_bytes;
}

static int32_t *slot_of(const struct classes *c, const struct topt_edge_end *e)
{
    int64_t rest[] = {e->hub,          e->hub_keep, e->recompute, e->needed,
                      e->others_bytes, e->op_bytes, e->out_bytes};
    uint64_t h = topt_hash(&e->value, sizeof e->value, 1);
    h = topt_hash(&e->grad, sizeof e->grad, h);
    uint32_t mask = (uint32_t)(2 * c->cap - 1),
             at = (uint32_t)topt_hash(rest, sizeof rest, h) & mask;
    while (c->slot[at] >= 0 && !same_end(&(*c->end)[c->slot[at]], e))
        at = (at + 1) & mask;
    return &c->slot[at];
}

static int classes_grow(struct classes *c)
{
    int cap = c->cap ? 2 * c->cap : 32;
    if (TOPT_RESIZE(*c->end, cap) || TOPT_RESIZE(c->slot, 2 * cap))
        return -1;
    c->cap = cap;
    memset(c->slot, 0xff, 2 * (size_t)cap * sizeof *c->slot);
    for (int i = 0; i < *c->n; i++)
        *slot_of(c, &(*c->end)[i]) = i;
    return 0;
}

int32_t topt_class_of(struct classes *c, const struct topt_edge_end *e)
{
    if (*c->n == c->cap && classes_grow(c))
        return -1;
    int32_t *slot = slot_of(c, e);
    if (*slot < 0) {
        *slot = (*c->n)++;
        (*c->end)[*slot] = *e;
    }
    return *slot;
}

void topt_classes_fini(struct classes *c)
{
    free(c->slot);
    c->slot = NULL;
}
