/* arm.c - what a slice costs along a chain of operators that begins where it is cut.
 *
 * Two slices cost different things at the edges of the operator that they are cut at, and the
 * same everywhere else.  Edge for edge neither may be better throughout: each suits some
 * configurations of the neighbour.  But from a few operators farther on, everything of the
 * chain between being chosen as suits best, the one is hardly ever worse by more than what it
 * saves elsewhere:
 *
 *     slice v  v--a--b--c--        v--a: 3  u--a: 9,   v--a': 5  u--a': 2,   a'--b instead
 *     slice u  u--a--b--c--        of a--b: 1 more;    hence v....b: 3,  u....b: 3
 *
 * So the frontiers of the arm, one for each configuration of its last operator, take the place
 * of the edge where slices are compared (outdo.c). */
#include "arm.h"

#include <stdlib.h>
#include <string.h>

/* ---- where arms lead ---- */

struct arm topt_arm_start(const struct topt_search_problem *p, const char *cut, int edge)
{
    const struct topt_search_edge *e = &p->edge[edge];
    struct arm arm = {.nops = 1};
    arm.op[0] = cut[e->from] ? e->from : e->to;
    arm.edge[0] = edge;
    return arm;
}

/* The edge that leads on; -1: none, or several. */
static int next_edge(const struct topt_search_problem *p, const struct arm *arm)
{
    int last = arm->op[arm->nops - 1], next = -1;
    if (arm->nops == 1)
        return arm->edge[0];
    for (int e = 0; e < p->nedges; e++) {
        const struct topt_search_edge *edge = &p->edge[e];
        if (e == arm->edge[arm->nops - 1] || (edge->from != last && edge->to != last))
            continue;
        if (next >= 0)
            return -1;
        next = e;
    }
    return next;
}

int topt_arm_grow(const struct topt_search_problem *p, const char *cut, struct arm *arm)
{
    int next = arm->nops <= TOPT_ARM_STEPS ? next_edge(p, arm) : -1;
    if (next < 0)
        return 0;
    const struct topt_search_edge *e = &p->edge[next];
    int op = e->from == arm->op[arm->nops - 1] ? e->to : e->from;
    if (cut[op])
        return 0;
    arm->op[arm->nops] = op;
    arm->edge[arm->nops++] = next;
    return 1;
}

/* ---- what they cost ---- */

/* The points of one entry while they are found: a frontier. */
struct found {
    struct topt_cost *at;
    int32_t n, cap;
};

static int add(struct found *f, struct topt_cost c)
{
    int32_t i = f->n, k;
    while (i > 0 && f->at[i - 1].memory > c.memory)
        i--;
    /* Those before i are no heavier, the fastest last. */
    if (i > 0 && f->at[i - 1].time <= c.time)
        return 0;
    if (i > 0 && f->at[i - 1].memory == c.memory)
        i--;
    for (k = i; k < f->n && f->at[k].time >= c.time;)
        k++;
    if (k == i && f->n == f->cap) {
        int32_t cap = f->cap ? 2 * f->cap : 64;
        struct topt_cost *at = realloc(f->at, (size_t)cap * sizeof *at);
        if (!at)
            return -1;
        f->at = at;
        f->cap = cap;
    }
    memmove(f->at + i + 1, f->at + k, (size_t)(f->n - k) * sizeof *f->at);
    f->at[i] = c;
    f->n += i + 1 - k;
    return 0;
}

/* One more step of an arm. */
struct step {
    const struct topt_search_problem *p;
    const struct topt_search_edge *edge;
    int to; /* operators */
    const struct port *before;
    int64_t work, max_work;
    struct found found; /* of the entry at hand */
};

static int sum(struct topt_cost a, struct topt_cost b, struct topt_cost *ret)
{
    return add_overflows(a.memory, b.memory, &ret->memory) ||
           add_overflows(a.time, b.time, &ret->time);
}

/* Configuration 'x' before it, 'y' of the operator that it leads to.  1, 0 or -1 as the port. */
static int add_pair(struct step *s, int x, int y)
{
    const struct topt_search_edge *e = s->edge;
    const struct topt_table *t = e->table;
    int from = e->from_class[e->to == s->to ? x : y];
    int to = e->to_class[e->to == s->to ? y : x];
    const int32_t *entry = t->first + (int64_t)from * t->to_classes + to;
    int32_t begin = s->before->first[x], end = s->before->first[x + 1];
    s->work += (int64_t)(entry[1] - entry[0]) * (end - begin);
    if (s->work > s->max_work)
        return 0;
    for (int32_t k = entry[0]; k < entry[1]; k++)
        for (int32_t i = begin; i < end; i++) {
            struct topt_cost c;
            if (sum(s->before->cost[i], t->alt[k], &c) ||
                sum(c, s->p->op[s->to].cost[y], &c))
                return 0;
            if (add(&s->found, c))
                return -1;
        }
    return 1;
}

/* Points of all entries, in 'all' and counted in 'first'. */
static int find_points(struct step *s, int32_t *first, struct found *all)
{
    for (int y = 0; y < s->p->op[s->to].nconfigs; y++) {
        s->found.n = 0;
        for (int x = 0; x < s->before->n; x++) {
            int rc = add_pair(s, x, y);
            if (rc <= 0)
                return rc;
        }
        int32_t need = all->n + s->found.n;
        if (need > all->cap) {
            struct topt_cost *at = realloc(all->at, 2 * (size_t)need * sizeof *at);
            if (!at)
                return -1;
            all->at = at;
            all->cap = 2 * need;
        }
        if (s->found.n)
            memcpy(all->at + all->n, s->found.at, (size_t)s->found.n * sizeof *all->at);
        first[y + 1] = all->n = need;
    }
    return 1;
}

static int make_port(struct step *s, struct topt_arena *a, struct port *ret)
{
    struct found all = {NULL, 0, 0};
    *ret = (struct port){.n = s->p->op[s->to].nconfigs};
    ret->first = TOPT_NEW(a, ret->n + 1, int32_t);
    ret->gone = TOPT_NEW(a, ret->n, char);
    int rc = ret->first && ret->gone ? find_points(s, ret->first, &all) : -1;
    if (rc > 0) {
        ret->cost = TOPT_NEW(a, all.n, struct topt_cost);
        if (ret->cost && all.n)
            memcpy(ret->cost, all.at, (size_t)all.n * sizeof *all.at);
        rc = ret->cost ? 1 : -1;
    }
    free(all.at);
    free(s->found.at);
    return rc;
}

int topt_arm_port(const struct topt_search_problem *p, const struct arm *arm,
                  const struct port *before, int64_t max_work, struct topt_arena *a,
                  struct port *ret, int64_t *ret_work)
{
    int last = arm->nops - 1;
    struct step s = {.p = p,
                     .edge = &p->edge[arm->edge[last]],
                     .to = arm->op[last],
                     .before = before,
                     .max_work = max_work};
    int rc = make_port(&s, a, ret);
    *ret_work = s.work;
    return rc;
}

int topt_arm_nothing(const struct topt_search_problem *p, const struct arm *arm,
                     struct topt_arena *a, struct port *ret)
{
    int n = p->op[arm->op[0]].nconfigs;
    *ret = (struct port){.n = n};
    ret->first = TOPT_NEW(a, n + 1, int32_t);
    ret->cost = TOPT_NEW(a, n, struct topt_cost);
    ret->gone = TOPT_NEW(a, n, char);
    if (!ret->first || !ret->cost || !ret->gone)
        return -1;
    for (int i = 0; i <= n; i++)
        ret->first[i] = i;
    return 1;
}
