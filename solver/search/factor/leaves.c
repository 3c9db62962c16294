/* leaves.c - a problem's own costs as factor tables over classes of configurations.
 *
 * An operator's values are the distinct tuples of its configurations' classes on all its
 * edges; configurations that share a tuple are one frontier from the start.  Equal costs
 * are one table, however many operators or edges have them. */
#include "leaves.h"
#include "interning.h"

#include <stdlib.h>
#include <string.h>

/* ---- leaves ------------------------------------------------------------------------ */

/* What is equal has one number: points, costs and values, and what operators' points come of. */
struct interner {
    struct topt_interning of_points, bytes, of_ops;
    struct table **table;         /* by the number of points; NULL: none yet */
    const struct points **points; /* by the number of what they come of, likewise */
};

static int interner_init(struct elimination_plan *p, struct interner *in)
{
    int nops = p->problem->nops;
    struct topt_interning none = {.arena = p->arena};
    *in = (struct interner){none, none, none,
                            TOPT_NEW(p->arena, nops + p->problem->nedges, struct table *),
                            TOPT_NEW(p->arena, nops, const struct points *)};
    return in->table && in->points ? 0 : topt_search_nomem(p->err);
}

/* The leaf of points. */
static struct table *table_of(struct elimination_plan *p, struct interner *in,
                              const struct points *points)
{
    int k = points ? topt_intern(&in->of_points, &points, sizeof points, NULL) : -1;
    if (points && k < 0)
        topt_search_nomem(p->err);
    if (k >= 0 && !in->table[k])
        in->table[k] = topt_tables_leaf(&p->tables, points, p->err);
    return k < 0 ? NULL : in->table[k];
}

static const struct points *make_op_points(struct elimination_plan *p, int op)
{
    int n = p->problem->op[op].nconfigs;
    struct choice *c = malloc(((size_t)n + 1) * sizeof *c);
    if (!c) {
        topt_search_nomem(p->err);
        return NULL;
    }
    size_t kept = 0;
    for (int i = 0; i < n; i++)
        if (p->fixed[op] < 0 || p->fixed[op] == i)
            c[kept++] = (struct choice){p->problem->op[op].cost[i], p->value[op][i], i};
    const struct points *ret =
        topt_points_of_choices(&p->store, c, kept, p->nvalues[op], p->err);
    free(c);
    return ret;
}

/* Operators whose costs and values are equal have the same points. */
static const struct points *op_points(struct elimination_plan *p, struct interner *in,
                                      int op)
{
    const struct topt_search_op *of = &p->problem->op[op];
    size_t n = (size_t)of->nconfigs;
    int from[] = {topt_intern(&in->bytes, of->cost, n * sizeof *of->cost, NULL),
                  topt_intern(&in->bytes, p->value[op], n * sizeof *p->value[op], NULL),
                  p->nvalues[op], p->fixed[op]};
    int k = from[0] < 0 || from[1] < 0
                ? -1
                : topt_intern(&in->of_ops, from, sizeof from, NULL);
    if (k < 0) {
        topt_search_nomem(p->err);
        return NULL;
    }
    if (!in->points[k])
        in->points[k] = make_op_points(p, op);
    return in->points[k];
}

static int add_leaf(struct elimination_plan *p, struct table *t, int nops, const int *op,
                    const struct view *view, struct tree_node node)
{
    struct factor f = {.table = t, .nops = nops, .of = {-1, -1}};
    if (!t)
        return -1;
    f.op = TOPT_NEW(p->arena, nops, int);
    f.view = TOPT_NEW(p->arena, nops, struct view);
    if (!f.op || !f.view)
        return topt_search_nomem(p->err);
    memcpy(f.op, op, (size_t)nops * sizeof *op);
    memcpy(f.view, view, (size_t)nops * sizeof *view);
    node.table = t;
    f.node = topt_elimination_node(p, node);
    return topt_elimination_factor(p, f) < 0 ? -1 : 0;
}

/* Tell apart what an edge does, but of a decided operator: that has one value. */
static int split(struct elimination_plan *p, int op, const int32_t *class_of)
{
    int n = p->problem->op[op].nconfigs;
    struct view view = {p->nvalues[op], p->value[op]};
    if (p->fixed[op] >= 0)
        return 0;
    if (topt_value_classes_split(&p->views, n, &view, class_of, &view))
        return topt_search_nomem(p->err);
    p->nvalues[op] = view.n;
    p->value[op] = view.of;
    return 0;
}

/* The values of every operator: the distinct tuples of classes of its configurations. */
static int find_values(struct elimination_plan *p)
{
    const struct topt_search_problem *g = p->problem;
    p->value = TOPT_NEW(p->arena, g->nops, const int32_t *);
    if (!p->value)
        return topt_search_nomem(p->err);
    for (int i = 0; i < g->nops; i++) {
        struct view view;
        if (topt_value_classes_one(&p->views, g->op[i].nconfigs, &view))
            return topt_search_nomem(p->err);
        p->nvalues[i] = view.n;
        p->value[i] = view.of;
    }
    for (int e = 0; e < g->nedges; e++)
        if (split(p, g->edge[e].from, g->edge[e].from_class) ||
            split(p, g->edge[e].to, g->edge[e].to_class))
            return -1;
    return 0;
}

/* Classes by value, from classes by configuration. */
static int view_of_edge(struct elimination_plan *p, int op, const int32_t *class_of,
                        int nclasses, struct view *ret)
{
    if (p->fixed[op] < 0)
        return topt_value_classes_of_values(&p->views, p->problem->op[op].nconfigs,
                                            p->value[op], p->nvalues[op], class_of,
                                            nclasses, ret)
                   ? topt_search_nomem(p->err)
                   : 0;
    int32_t *of = TOPT_NEW(p->arena, 1, int32_t);
    if (!of)
        return topt_search_nomem(p->err);
    of[0] = class_of[p->fixed[op]];
    *ret = (struct view){nclasses, of};
    return 0;
}

static int add_edge(struct elimination_plan *p, struct interner *in, int number)
{
    const struct topt_search_edge *e = &p->problem->edge[number];
    const struct points *points = topt_points_of_table(&p->store, e->table, p->err);
    struct table *t = table_of(p, in, points);
    struct tree_node node = {-1, -1, -1, number, NULL};
    struct view view[2];
    if (!t || view_of_edge(p, e->from, e->from_class, e->table->from_classes, &view[0]) ||
        view_of_edge(p, e->to, e->to_class, e->table->to_classes, &view[1]))
        return -1;
    return add_leaf(p, t, 2, (int[]){e->from, e->to}, view, node);
}

int topt_elimination_leaves(struct elimination_plan *p)
{
    const struct topt_search_problem *g = p->problem;
    struct interner in;
    if (find_values(p) || interner_init(p, &in))
        return -1;
    for (int i = 0; i < g->nops; i++) {
        struct view view;
        struct tree_node node = {-1, -1, i, -1, NULL};
        struct table *t = table_of(p, &in, op_points(p, &in, i));
        if (topt_value_classes_all(&p->views, p->nvalues[i], &view))
            return topt_search_nomem(p->err);
        if (add_leaf(p, t, 1, &i, &view, node))
            return -1;
        t->rest_wanted = 1;
    }
    for (int i = 0; i < g->nedges; i++)
        if (topt_search_poll(p->options, p->err) || add_edge(p, &in, i))
            return -1;
    return 0;
}
