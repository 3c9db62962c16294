/* units.c - units of a model: what FSDP gathers, and activation checkpointing runs again, at
 * once.
 *
 * A unit is a layer, alike others or not.  Where an importer knows no layers, each block that
 * repeats exactly stands in for one.
 *
 * Two neighbouring units are gathered at once, the second one prefetched.  Costs add up over
 * operators, and alike operators cost the same, so that each of them is charged for its share
 * of the two units that hold most:
 *
 *     layer          1     2     3     4          alike operators   4
 *     operators      a     a     b a   b a  <-    of them in the two units    a: 2 of 4, b: 2 of 2
 *
 * Where all of them have the same configuration, the charges of a model are what the two hold. */
#include "model_graph.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the values of an operator's parameters, and of those of gradients, in 16 bits. */
struct held {
    double value, gradient;
};

static struct held held_by(const struct topt_op *op)
{
    double n = topt_op_parameters(op);
    return (struct held){n * (op->attrs->bits ? (double)op->attrs->bits / 8 : 2),
                         op->attrs->frozen ? 0 : 2 * n};
}

/* Each operator's unit is named by the first operator in it. */
static int units_of_layers(struct topt_model *m, int *first)
{
    int n = 0;
    for (int l = 0; l < m->nlayers; l++)
        first[l] = -1;
    for (int i = 0; i < m->nops; i++) {
        int l = m->op[i].layer;
        if (l >= 0 && first[l] < 0) {
            first[l] = i;
            n++;
        }
        m->unit[i] = l < 0 ? -1 : first[l];
    }
    return n;
}

static void units_of_blocks(struct topt_model *m)
{
    const struct topt_blocks *b = m->blocks;
    for (int i = 0; i < m->nops; i++)
        m->unit[i] = b->kind[i] < 0 ? -1 : i - b->position[i];
}

int topt_model_find_units(struct topt_model *m, struct topt_error *err)
{
    int *first = malloc(((size_t)m->nlayers + 1) * sizeof *first);
    m->unit = TOPT_NEW(m->arena, m->nops + 1, int);
    m->share = TOPT_NEW(m->arena, m->nops + 1, struct topt_share);
    if (!first || !m->unit || !m->share) {
        free(first);
        return topt_nomem(err, "the model");
    }
    memset(m->share, 0, ((size_t)m->nops + 1) * sizeof *m->share);
    if (!m->nlayers)
        units_of_blocks(m);
    else if (units_of_layers(m, first) < 2) /* a layer alone is the whole model */
        for (int i = 0; i < m->nops; i++)
            m->unit[i] = -1;
    free(first);
    return 0;
}

/* The unit that is largest together with the one before or after it, and that one, of which
 * it is the one with most gradients; -1: there are none. */
static void find_pair(const struct topt_model *m, const struct held *by, int *ret_one,
                      int *ret_other)
{
    int before = -1;
    double most = -1;
    *ret_one = *ret_other = -1;
    for (int i = 0; i < m->nops; i++) {
        if (m->unit[i] != i)
            continue;
        if (before >= 0) {
            int more = by[i].gradient >= by[before].gradient;
            double all = by[i].value + by[before].value + by[more ? i : before].gradient;
            if (all > most) {
                most = all;
                *ret_one = more ? i : before;
                *ret_other = more ? before : i;
            }
        }
        before = i;
    }
}

int topt_model_find_shares(struct topt_model *m, struct topt_error *err)
{
    struct held *by = calloc((size_t)m->nops + 1, sizeof *by);
    int one, other;
    if (!by)
        return topt_nomem(err, "the model");
    for (int i = 0; i < m->nops; i++)
        if (m->unit[i] >= 0) {
            struct held h = held_by(&m->op[i]);
            by[m->unit[i]].value += h.value;
            by[m->unit[i]].gradient += h.gradient;
        }
    find_pair(m, by, &one, &other);
    free(by);
    for (int i = 0; i < m->nops; i++) { /* the first of alike ones counts for all */
        struct topt_share *s = &m->share[m->alike[i]];
        if (m->unit[i] < 0)
            continue;
        s->of++;
        s->one += m->unit[i] == one;
        s->other += m->unit[i] == other;
    }
    for (int i = 0; i < m->nops; i++)
        m->share[i] = m->share[m->alike[i]];
    return 0;
}

int topt_model_copy_units(struct topt_model *to, const struct topt_model *from,
                          struct topt_error *err)
{
    size_t n = (size_t)from->nops + 1;
    to->unit = TOPT_NEW(to->arena, n, int);
    to->share = TOPT_NEW(to->arena, n, struct topt_share);
    if (!to->unit || !to->share)
        return topt_nomem(err, "the model");
    memcpy(to->unit, from->unit, n * sizeof *to->unit);
    memcpy(to->share, from->share, n * sizeof *to->share);
    return 0;
}
