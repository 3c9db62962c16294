/* reach.c - which slices of a problem have something that no earlier one has.
 *
 *      x=0  |--o--o--o--            two slices differ at their ports (|) alone.  What one can do as well as the
 *      x=1  |--o--o--o--            other there is taken out (outdo.c); and once more from some steps away, by
 *            ---arm-->              arms (arm.c): there the way to a configuration is chosen as suits each
 *
 * Arms become longer as long as several slices are left, and as long as that takes few sums. */
#include "slices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ARMS = 8,  /* more ports are only compared as they are */
    ARM_PART = 32, /* a part of all pairs of configurations: sums for a step of an arm */
    ARM_WORK = 1 << 11,  /* ... and at least so many, in the first slice; */
    ARM_WORK_TIMES = 16, /* so many times more in any other */
};

static int nomem(struct conditioning *c)
{
    return topt_search_nomem(c->err);
}

int topt_slices_by_weight(const void *x, const void *y, void *ctx)
{
    const struct slice *s = ctx;
    double a = s[*(const int *)x].weight, b = s[*(const int *)y].weight;
    if (a < b || a > b)
        return a < b ? -1 : 1;
    return *(const int *)x - *(const int *)y;
}

static double weight_of_port(const struct conditioning *c, const struct port *p)
{
    double least = INFINITY;
    for (int32_t i = 0; i < p->first[p->n]; i++)
        least = fmin(least, c->balance[0] * (double)p->cost[i].memory +
                                c->balance[1] * (double)p->cost[i].time);
    return least;
}

/* The slices that have something that no earlier one has; the others are closed. */
void topt_slices_leave(struct conditioning *c)
{
    for (int i = 0; i < c->nslices; i++) {
        struct slice *s = &c->slice[i];
        s->weight = 0;
        for (int k = 0; k < s->nports; k++)
            s->weight += weight_of_port(c, &s->port[k]);
    }
    qsort_r(c->order, (size_t)c->nslices, sizeof *c->order, topt_slices_by_weight,
            c->slice);
    c->nleft = 0;
    for (int i = 0; i < c->nslices; i++) {
        struct slice *s = &c->slice[c->order[i]];
        int left = 1;
        for (int k = 0; k < c->nleft && left; k++)
            left = topt_outdo(c->slice[c->order[k]].port, s->port, s->nports);
        if (!left) {
            topt_slice_close(s);
            continue;
        }
        c->order[c->nleft++] = c->order[i];
    }
    for (int i = 0; i < c->nleft; i++)
        for (int k = 0; k < c->slice[c->order[i]].nports; k++)
            topt_outdo_drop(&c->slice[c->order[i]].port[k]);
}

/* ---- the same from some steps away ---- */

static int is_in_arms(const struct conditioning *c, int but, int op)
{
    for (int k = 0; k < c->narms; k++)
        for (int i = 1; k != but && i < c->arm[k].nops; i++)
            if (c->arm[k].op[i] == op)
                return 1;
    return 0;
}

/* An arm for each edge at an operator that is cut; none where that makes too many. */
static int find_arms(struct conditioning *c)
{
    int n = 0;
    c->arm = calloc(MAX_ARMS, sizeof *c->arm);
    c->grown = calloc(MAX_ARMS, 1);
    if (!c->arm || !c->grown)
        return nomem(c);
    for (int e = 0; e < c->p->nedges; e++) {
        const struct topt_search_edge *edge = &c->p->edge[e];
        int cuts = (c->cut[edge->from] != 0) + (c->cut[edge->to] != 0);
        if (cuts == 2 || (cuts && n == MAX_ARMS))
            return 0;
        if (cuts)
            c->arm[n++] = topt_arm_start(c->p, c->cut, e);
    }
    c->narms = n;
    return 0;
}

/* A slice's ports by its arms, which have no length yet, after those of what it costs itself. */
static int start_reach(struct conditioning *c, struct slice *s)
{
    int n = c->ncut + c->narms;
    s->reach = TOPT_NEW(s->arena, n, struct port);
    s->gone = TOPT_NEW(s->arena, c->p->nops, char *);
    if (!s->gone)
        return topt_search_nomem(&s->err);
    for (int k = 0; s->reach && k < n; k++) {
        if (k < c->ncut) {
            s->reach[k] = s->port[k];
            s->reach[k].gone = TOPT_NEW(s->arena, s->port[k].n, char);
        } else if (topt_arm_nothing(&s->problem, &c->arm[k - c->ncut], s->arena,
                                    &s->reach[k]) < 0) {
            return topt_search_nomem(&s->err);
        }
        if (!s->reach[k].gone)
            return topt_search_nomem(&s->err);
    }
    return s->reach ? 0 : topt_search_nomem(&s->err);
}

/* What is gone at the end of an arm will be left out of the slices. */
static void note_gone(struct conditioning *c, int k)
{
    const struct arm *arm = &c->arm[k];
    for (int i = 0; i < c->nleft && arm->nops > 1; i++) {
        struct slice *s = &c->slice[c->order[i]];
        char **gone = &s->gone[arm->op[arm->nops - 1]];
        if (!s->reach)
            continue;
        struct port *port = &s->reach[c->ncut + k];
        for (int x = 0; *gone && x < port->n; x++) /* another arm ends there */
            port->gone[x] |= (*gone)[x];
        *gone = port->gone;
    }
}

/* A slice's port by an arm that has just become longer. */
static int extend_port(struct conditioning *c, struct slice *s, int k, int64_t max_work)
{
    struct port *port = &s->reach[c->ncut + k], longer;
    int64_t work;
    topt_outdo_drop(port);
    int rc =
        topt_arm_port(&s->problem, &c->arm[k], port, max_work, s->arena, &longer, &work);
    s->work += work;
    if (rc > 0)
        *port = longer;
    return rc;
}

static int64_t arm_work(const struct slice *s)
{
    double part = topt_search_pairs(&s->problem) / ARM_PART;
    return part > ARM_WORK ? (int64_t)part : ARM_WORK;
}

/* Make an arm longer, if that takes few sums in the first slice.  1, 0 or -1. */
static int grow_arm(struct conditioning *c, int k)
{
    struct slice *first = &c->slice[c->order[0]];
    struct arm *arm = &c->arm[k];
    int rc = topt_arm_grow(c->p, c->cut, arm);
    if (!rc)
        return 0;
    /* Two may have their first operator in common, and end there. */
    if (arm->nops > 2 && is_in_arms(c, k, arm->op[arm->nops - 1]))
        rc = 0;
    else
        rc = extend_port(c, first, k, arm->nops > 2 ? arm_work(first) : INT64_MAX);
    if (!rc)
        arm->nops--;
    return rc;
}

/* All arms, as far as that goes.  Returns how many are longer, or -1. */
static int grow_arms(struct conditioning *c)
{
    int n = 0;
    for (int k = 0; k < c->narms; k++) {
        if (c->grown[k] < 0)
            continue;
        note_gone(c, k);
        int rc = grow_arm(c, k);
        if (rc < 0)
            return nomem(c);
        if (!rc && c->arm[k].nops == 1) {
            c->narms = 0; /* nothing is known of that edge */
            return 0;
        }
        c->grown[k] = rc ? 1 : -1;
        n += rc;
    }
    return n;
}

/* The same of any other slice; where that is too much it is not compared any more. */
static int extend_reach(struct conditioning *c, struct slice *s)
{
    int rc = s->reach ? 1 : 0;
    for (int k = 0; k < c->narms && rc > 0; k++)
        if (c->grown[k] > 0)
            rc = extend_port(c, s, k, ARM_WORK_TIMES * arm_work(s));
    if (!rc)
        s->reach = NULL;
    return rc < 0 ? topt_search_nomem(&s->err) : 0;
}

/* Leave out configurations of an operator that is not cut. */
static int drop_configs(struct conditioning *c, struct slice *s, int op, const char *gone)
{
    struct topt_search_op *o = (struct topt_search_op *)&s->problem.op[op];
    int n = 0, before = o->nconfigs;
    int32_t *kept = TOPT_NEW(s->arena, before, int32_t);
    int32_t *config = TOPT_NEW(s->arena, before, int32_t);
    struct topt_cost *cost = TOPT_NEW(s->arena, before, struct topt_cost);
    if (!kept || !config || !cost)
        return nomem(c);
    for (int i = 0; i < before; i++)
        if (!gone[i]) {
            config[n] = s->config[op] ? s->config[op][i] : i;
            cost[n] = o->cost[i];
            kept[n++] = i;
        }
    *o = (struct topt_search_op){o->name, n, cost};
    s->config[op] = config;
    for (int i = 0; i < s->problem.nedges; i++) {
        struct topt_search_edge *e = (struct topt_search_edge *)&s->problem.edge[i];
        if (e->from != op && e->to != op)
            continue;
        const int32_t **of = e->from == op ? &e->from_class : &e->to_class;
        int32_t *class_of = TOPT_NEW(s->arena, n, int32_t);
        if (!class_of)
            return nomem(c);
        for (int k = 0; k < n; k++)
            class_of[k] = (*of)[kept[k]];
        *of = class_of;
    }
    return 0;
}

/* What earlier slices have as well at the ends of the arms. */
static void compare_reach(struct conditioning *c)
{
    int n = c->nleft;
    c->nleft = 0;
    for (int i = 0; i < n; i++) {
        struct slice *s = &c->slice[c->order[i]];
        int left = 1;
        for (int k = 0; k < c->nleft && left && s->reach; k++) {
            const struct port *by = c->slice[c->order[k]].reach;
            left = !by || topt_outdo(by, s->reach, c->ncut + c->narms);
        }
        if (!left)
            topt_slice_close(s);
        else
            c->order[c->nleft++] = c->order[i];
    }
}

static int drop_gone(struct conditioning *c)
{
    for (int k = 0; k < c->narms; k++)
        note_gone(c, k);
    for (int i = 0; i < c->nleft; i++)
        for (int k = 0; k < c->narms && c->slice[c->order[i]].reach; k++)
            topt_outdo_drop(&c->slice[c->order[i]].reach[c->ncut + k]);
    for (int i = 0; i < c->nleft && c->narms; i++) {
        struct slice *s = &c->slice[c->order[i]];
        for (int op = 0; op < c->p->nops; op++)
            if (s->gone[op] &&
                memchr(s->gone[op], 1, (size_t)s->problem.op[op].nconfigs) &&
                drop_configs(c, s, op, s->gone[op]))
                return -1;
    }
    return 0;
}

/* Slices compared by longer and longer arms, as long as several are left. */
int topt_slices_leave_arms(struct conditioning *c)
{
    int grown = 0;
    if (find_arms(c) || (c->narms && topt_slices_do(c, 0, c->nleft, start_reach)))
        return -1;
    while (c->narms && c->nleft > 1 && (grown = grow_arms(c)) > 0) {
        if (topt_slices_do(c, 1, c->nleft, extend_reach))
            return -1;
        compare_reach(c);
    }
    return grown < 0 ? -1 : drop_gone(c);
}
