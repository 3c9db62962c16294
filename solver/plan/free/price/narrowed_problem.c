/* narrowed_problem.c - problems with some of the configurations of another one, on the
 * same nodes and edges.
 *
 * Prices of operators are taken over; tables are priced anew, from moves that the whole
 * problem keeps, with what is known of them by now.
 *
 * A strategy of a problem with orbits (orbit_count.c) is one of the full space only where
 * moves cost what they cost between just these layouts: its configurations are listed
 * once more, as they are or with all that they stand for, as a problem of its own. */
#include "narrowed_problem.h"
#include "block_folding.h"
#include "edge_table.h"
#include "problem_data.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>

/* The items of 'from' whose numbers are listed; NULL where memory is short. */
static void *pick(const void *from, size_t size, const int *list, int n)
{
    char *to = malloc(((size_t)n + 1) * size);
    for (int i = 0; to && i < n; i++)
        memcpy(to + (size_t)i * size, (const char *)from + (size_t)list[i] * size, size);
    return to;
}

/* Classes of the configurations listed, numbered anew in their order, and the ends of
 * these. */
static int pick_classes(const int32_t *class, const struct topt_edge_end *end,
                        int nclasses, const int *list, int n, int *ret_n,
                        int32_t **ret_class, struct topt_edge_end **ret_end)
{
    int *number = malloc(((size_t)nclasses + 1) * sizeof *number);
    *ret_class = malloc(((size_t)n + 1) * sizeof **ret_class);
    *ret_end = malloc(((size_t)n + 1) * sizeof **ret_end);
    int bad = !number || !*ret_class || !*ret_end;
    *ret_n = 0;
    for (int i = 0; !bad && i < nclasses; i++)
        number[i] = -1;
    for (int i = 0; !bad && i < n; i++) {
        int old = class[list[i]];
        if (number[old] < 0) {
            (*ret_end)[*ret_n] = end[old];
            number[old] = (*ret_n)++;
        }
        (*ret_class)[i] = number[old];
    }
    free(number);
    return bad ? -1 : 0;
}

/* The configurations listed of a family; to be freed even where memory is short, -1. */
static int pick_family(const struct family *f, const int *list, int n, struct family *ret)
{
    *ret = (struct family){.op = f->op,
                           .tensor = f->tensor,
                           .next = f->next,
                           .among = f->among,
                           .n = n,
                           .ninputs = f->ninputs};
    ret->config = pick(f->config, sizeof *f->config, list, n);
    ret->hub_keep = pick(f->hub_keep, sizeof *f->hub_keep, list, n);
    ret->cost = pick(f->cost, sizeof *f->cost, list, n);
    ret->recomputed = pick(f->recomputed, sizeof *f->recomputed, list, n);
    ret->transient = pick(f->transient, sizeof *f->transient, list, n);
    ret->waiting = pick(f->waiting, sizeof *f->waiting, list, n);
    int bad = !ret->config || !ret->hub_keep || !ret->cost || !ret->recomputed ||
              !ret->transient || !ret->waiting;
    bad |= pick_classes(f->from_class, f->from_end, f->nfrom, list, n, &ret->nfrom,
                        &ret->from_class, &ret->from_end);
    for (int k = 0; k < f->ninputs; k++)
        bad |= pick_classes(f->to_class[k], f->to_end[k], f->nto[k], list, n,
                            &ret->nto[k], &ret->to_class[k], &ret->to_end[k]);
    return bad ? -1 : 0;
}

static int pick_families(const struct topt_problem *p, uint8_t *const *keep,
                         struct topt_problem *ret)
{
    int bad = 0;
    for (int i = 0; i < p->nfamilies && !bad; i++) {
        const struct family *f = &p->family[i];
        int *list = malloc(((size_t)f->n + 1) * sizeof *list), n = 0;
        if (!list)
            return -1;
        for (int c = 0; c < f->n; c++)
            if (keep[i][c])
                list[n++] = c;
        bad = pick_family(f, list, n, &ret->family[ret->nfamilies++]);
        free(list);
    }
    return bad;
}

static int copy_graph(const struct topt_problem *p, struct topt_problem *ret)
{
    ret->family = malloc(((size_t)p->nfamilies + 1) * sizeof *ret->family);
    ret->table = malloc(((size_t)p->ntables + 1) * sizeof *ret->table);
    ret->node = malloc(((size_t)p->nnodes + 1) * sizeof *ret->node);
    ret->edge = malloc(((size_t)p->nedges + 1) * sizeof *ret->edge);
    ret->names = topt_arena_create(0);
    if (!ret->family || !ret->table || !ret->node || !ret->edge || !ret->names)
        return -1;
    memcpy(ret->node, p->node, (size_t)p->nnodes * sizeof *p->node);
    memcpy(ret->edge, p->edge, (size_t)p->nedges * sizeof *p->edge);
    ret->nnodes = p->nnodes;
    ret->nedges = p->nedges;
    return 0;
}

static int price_tables(const struct topt_problem *p, struct topt_problem *ret,
                        struct topt_error *err)
{
    for (int i = 0; i < p->ntables; i++) {
        struct edge_table *e = &ret->table[ret->ntables++];
        *e = (struct edge_table){
            .from = p->table[i].from, .to = p->table[i].to, .input = p->table[i].input};
        if (topt_table_price(ret, e, err))
            return -1;
    }
    return 0;
}

int topt_narrowed_problem(struct topt_problem *p, uint8_t *const *keep,
                          struct topt_problem **ret, struct topt_error *err)
{
    struct topt_problem *part = calloc(1, sizeof *part);
    if (!part)
        return topt_nomem(err, "the problem");
    part->k = p->k;
    part->options = p->options;
    part->spans = p->spans;
    part->may_recompute = p->may_recompute;
    part->reread = p->reread;
    part->paying = p->paying;
    part->byte_bounds = p->byte_bounds;
    part->symmetry_bounds = p->symmetry_bounds;
    part->by_orbits = topt_orbits_few(p->k.mesh);
    part->of = p->of ? p->of : p;
    int rc = copy_graph(p, part) || pick_families(p, keep, part)
                 ? topt_nomem(err, "the problem")
                 : 0;
    if (rc || price_tables(p, part, err) || topt_fold_blocks(part, err)) {
        topt_problem_destroy(part);
        return -1;
    }
    *ret = part;
    return 0;
}

int topt_problem_of_orbits(const struct topt_problem *p, int every, int bounds,
                           struct topt_problem **ret, struct topt_error *err)
{
    struct topt_space_options o = p->options;
    o.orbits = 0;
    o.lazy_entries = bounds;
    o.among = p;
    o.every = every;
    int rc = topt_problem_create(&p->k, &o, ret, err);
    if (!rc)
        (*ret)->options.among = NULL; /* the caller's */
    return rc;
}
