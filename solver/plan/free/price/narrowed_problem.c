/* narrowed_problem.c - problems with some of the configurations of another one, on the
 * same nodes and edges.
 *
 * Prices of operators are taken over; tables are priced anew, from moves that the whole
 * problem keeps, with what is known of them by now.
 *
 * A strategy of a problem with orbits (problem.c) is one of the full space only where
 * moves cost what they cost between just these layouts: its configurations are listed
 * once more, as they are or with all that they stand for, as a problem of its own. */
#include "price.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

/* Number the classes of a family's choices anew in their order, and pick the ends of these. */
static int pick_classes(const struct side *from, int side, struct family *f)
{
    struct side *to = &f->side[side];
    int *number = malloc(((size_t)from->n + 1) * sizeof *number);
    to->end = malloc(((size_t)f->n + 1) * sizeof *to->end);
    int bad = !number || !to->end;
    for (int i = 0; !bad && i < from->n; i++)
        number[i] = -1;
    for (int i = 0; !bad && i < f->n; i++) {
        int32_t *class = &f->at[i].class[side];
        if (number[*class] < 0) {
            to->end[to->n] = from->end[*class];
            number[*class] = to->n++;
        }
        *class = number[*class];
    }
    free(number);
    return bad ? -1 : 0;
}

/* The configurations of a family up to a level; to be freed even where memory is short, -1. */
static int pick_family(const struct family *f, const uint16_t *level, int last,
                       struct family *ret)
{
    int bad = 0;
    *ret = (struct family){.op = f->op,
                           .tensor = f->tensor,
                           .next = f->next,
                           .among = f->among,
                           .ninputs = f->ninputs,
                           .at = malloc(((size_t)f->n + 1) * sizeof *f->at)};
    if (!ret->at)
        return -1;
    for (int c = 0; c < f->n; c++)
        if (level[c] <= last)
            ret->at[ret->n++] = f->at[c];
    (void)TOPT_RESIZE(ret->at, ret->n + 1);
    for (int i = 0; i < AS_CONSUMER + f->ninputs; i++)
        bad |= pick_classes(&f->side[i], i, ret);
    return bad ? -1 : 0;
}

static int pick_families(const struct topt_problem *p, const uint16_t *level, int last,
                         struct topt_problem *ret)
{
    int bad = 0;
    for (int i = 0; i < p->nfamilies && !bad; i++) {
        const struct family *f = &p->family[i];
        struct family *to = &ret->family[ret->nfamilies++];
        bad = pick_family(f, level + f->first, last, to);
        to->first = ret->nchoices;
        ret->nchoices += to->n;
    }
    return bad;
}

static int copy_graph(const struct topt_problem *p, struct topt_problem *ret)
{
    ret->family = malloc(((size_t)p->nfamilies + 1) * sizeof *ret->family);
    ret->table = malloc(((size_t)p->ntables + 1) * sizeof *ret->table);
    ret->node = malloc(((size_t)p->nnodes + 1) * sizeof *ret->node);
    ret->edge = malloc(((size_t)p->nedges + 1) * sizeof *ret->edge);
    ret->arena = topt_arena_create(0);
    if (!ret->family || !ret->table || !ret->node || !ret->edge || !ret->arena)
        return -1;
    memcpy(ret->node, p->node, (size_t)p->nnodes * sizeof *p->node);
    memcpy(ret->edge, p->edge, (size_t)p->nedges * sizeof *p->edge);
    ret->nnodes = p->nnodes;
    ret->nedges = p->nedges;
    for (int i = 0; i < p->ntables; i++)
        ret->table[ret->ntables++] = (struct edge_table){
            .from = p->table[i].from, .to = p->table[i].to, .input = p->table[i].input};
    return 0;
}

int topt_narrowed_problem(struct topt_problem *p, const uint16_t *level, int last,
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
    int rc = copy_graph(p, part) || pick_families(p, level, last, part)
                 ? topt_nomem(err, "the problem")
                 : 0;
    if (rc || topt_tables_price(part, err) || topt_fold_blocks(part, err)) {
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
