/* improve.c - see improve.h.
 *
 * The first jobs are taken out of the plan, and the others stay.  A variable is a
 * job in a shape on the nodes of a set from one time on; the times are those at which a plan
 * can change: when anything ends, and when a job that starts then would.  Each job has one
 * variable that is 1, and what those that are 1 take at a time is at most what the set's
 * nodes have free together.  That nodes are single is left out: the solution says order and
 * shapes, by which the jobs are then placed node by node, and a job that doesn't end in time
 * there discards all of it. */
#include "improve.h"

#include <stdlib.h>
#include <string.h>

#include "topt_array.h"
#include "topt_minmax.h"

/* How large the problem may be: so that a solver has it done in seconds. */
enum { MOST_JOBS = 24, MOST_TIMES = 64, MOST_COLUMNS = 6000, RESOURCES = 3 };

struct column {
    size_t job;
    int shape, set;
    int64_t start_s;
};

struct window {
    const struct round *r;
    const struct layout *from;
    size_t job[MOST_JOBS], njobs;
    int64_t time[MOST_TIMES];
    size_t ntimes;
    int64_t *free; /* [time][set][resource] */
    struct column *column;
    struct topt_milp milp;
    size_t room_entries;
};

static int is_in(const struct window *w, size_t job)
{
    for (size_t i = 0; i < w->njobs; i++)
        if (w->job[i] == job)
            return 1;
    return 0;
}

static void choose_jobs(struct window *w)
{
    const struct topt_alloc_problem *p = w->r->p;
    for (size_t i = 0; i < p->njobs && w->njobs < MOST_JOBS; i++)
        if (w->from->spot[i].start_s >= 0)
            w->job[w->njobs++] = i;
}

/* ---- when a plan can change -------------------------------------------------------- */

/* Into the list, which is in order and keeps the first ones. */
static void add_time(struct window *w, int64_t at_s)
{
    size_t i = w->ntimes;
    while (i && w->time[i - 1] > at_s)
        i--;
    if (at_s < w->r->p->now_s || (i && w->time[i - 1] == at_s) || i == MOST_TIMES)
        return;
    if (w->ntimes == MOST_TIMES)
        w->ntimes--;
    memmove(w->time + i + 1, w->time + i, (w->ntimes - i) * sizeof *w->time);
    w->time[i] = at_s;
    w->ntimes++;
}

static void add_times(struct window *w)
{
    const struct topt_alloc_problem *p = w->r->p;
    add_time(w, p->now_s);
    for (size_t i = 0; i < p->nheld; i++)
        add_time(w, p->held[i].to_s);
    for (size_t i = 0; i < p->njobs; i++) {
        add_time(w, w->from->spot[i].start_s);
        add_time(w, topt_allocate_end(&p->job[i], &w->from->spot[i]));
    }
    /* A time that is added behind is looked at, too. */
    for (size_t t = 0; t < w->ntimes; t++)
        for (size_t i = 0; i < w->njobs; i++)
            for (int k = 0; k < p->job[w->job[i]].nshapes; k++)
                if (layout_may(w->r, w->job[i], k))
                    add_time(w, w->time[t] + p->job[w->job[i]].shape[k].run_s);
}

/* ---- what is free ------------------------------------------------------------------ */

static void take(struct window *w, int set, const struct topt_alloc_size *s,
                 int64_t from_s, int64_t to_s, int64_t sign)
{
    for (size_t t = 0; t < w->ntimes; t++) {
        int64_t *at = w->free + (t * (size_t)w->r->nsets + (size_t)set) * RESOURCES;
        if (w->time[t] < from_s || w->time[t] >= to_s)
            continue;
        at[0] += sign * s->gpus;
        at[1] += sign * s->cpus;
        at[2] += sign * s->memory_mib;
    }
}

static int measure(struct window *w)
{
    const struct topt_alloc_problem *p = w->r->p;
    w->free = calloc(w->ntimes * (size_t)w->r->nsets * RESOURCES + 1, sizeof *w->free);
    if (!w->free)
        return -1;
    for (size_t i = 0; i < p->nnodes; i++)
        take(w, p->node[i].set, &p->node[i].has, INT64_MIN, INT64_MAX, 1);
    for (size_t i = 0; i < p->nheld; i++)
        take(w, p->node[p->held[i].node].set, &p->held[i].takes, p->held[i].from_s,
             p->held[i].to_s, -1);
    for (size_t i = 0; i < p->njobs; i++) {
        const struct topt_alloc_spot *spot = &w->from->spot[i];
        const struct topt_alloc_shape *s = &p->job[i].shape[spot->shape];
        for (int64_t k = 0; !is_in(w, i) && spot->start_s >= 0 && k < s->nodes; k++) {
            const struct topt_alloc_node *n =
                &p->node[w->from->node[spot->first + (size_t)k]];
            take(w, n->set, s->is_whole ? &n->has : &s->each, spot->start_s,
                 spot->start_s + s->run_s, -1);
        }
    }
    return 0;
}

/* ---- the problem ------------------------------------------------------------------- */

static int add_entry(struct topt_milp *m, size_t *room, size_t row, int64_t value)
{
    size_t room_row = *room, room_value = *room;
    if (TOPT_ROOM(m->row, m->nentries, room_row, 1024) ||
        TOPT_ROOM(m->value, m->nentries, room_value, 1024))
        return -1;
    *room = room_row;
    m->row[m->nentries] = (int)row;
    m->value[m->nentries++] = value;
    return 0;
}

/* Where its set has as much free for as long as it runs, a column and its entries. */
static int add_column(struct window *w, size_t place, const struct column *c)
{
    const struct topt_alloc_shape *s = &w->r->p->job[c->job].shape[c->shape];
    const int64_t need[RESOURCES] = {s->nodes * s->each.gpus, s->nodes * s->each.cpus,
                                     s->nodes * s->each.memory_mib};
    struct topt_milp *m = &w->milp;
    size_t before = m->nentries;
    int rc = add_entry(m, &w->room_entries, place, 1);
    for (size_t t = 0; !rc && t < w->ntimes; t++) {
        if (w->time[t] < c->start_s || w->time[t] >= c->start_s + s->run_s)
            continue;
        for (size_t k = 0; !rc && k < RESOURCES; k++) {
            size_t row = (t * (size_t)w->r->nsets + (size_t)c->set) * RESOURCES + k;
            if (need[k] > w->free[row]) {
                m->nentries = before;
                return 0;
            }
            if (need[k])
                rc = add_entry(m, &w->room_entries, w->njobs + row, need[k]);
        }
    }
    if (rc)
        return -1;
    w->column[m->ncols] = *c;
    m->cost[m->ncols++] = c->start_s + s->run_s - w->r->p->now_s;
    m->begin[m->ncols] = m->nentries;
    return 0;
}

/* All that job 'place' of the window may do. */
static int add_columns(struct window *w, size_t place)
{
    size_t i = w->job[place];
    const struct topt_alloc_job *j = &w->r->p->job[i];
    int64_t limit = layout_limit(w->r, i);
    for (int k = 0; k < j->nshapes; k++)
        for (int set = 0; layout_may(w->r, i, k) && set < w->r->nsets; set++)
            for (size_t t = 0; j->shape[k].serves[set] && t < w->ntimes; t++) {
                const struct column c = {i, k, set, w->time[t]};
                if (w->time[t] < j->from_s || w->time[t] > limit - j->shape[k].run_s)
                    continue;
                if (w->milp.ncols == MOST_COLUMNS)
                    return 0;
                if (add_column(w, place, &c))
                    return -1;
            }
    return 0;
}

static int build(struct window *w)
{
    struct topt_milp *m = &w->milp;
    m->nrows = w->njobs + w->ntimes * (size_t)w->r->nsets * RESOURCES;
    m->cost = calloc(MOST_COLUMNS, sizeof *m->cost);
    m->begin = calloc(MOST_COLUMNS + 1, sizeof *m->begin);
    w->column = calloc(MOST_COLUMNS, sizeof *w->column);
    m->most = calloc(m->nrows, sizeof *m->most);
    m->is_equal = calloc(m->nrows, 1);
    if (!m->cost || !m->begin || !w->column || !m->most || !m->is_equal)
        return -1;
    for (size_t i = 0; i < w->njobs; i++)
        m->most[i] = m->is_equal[i] = 1;
    memcpy(m->most + w->njobs, w->free, (m->nrows - w->njobs) * sizeof *m->most);
    for (size_t i = 0; i < w->njobs; i++)
        if (add_columns(w, i))
            return -1;
    return 0;
}

/* ---- from a solution to a plan ----------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
    const struct column *x = a, *y = b;
    return x->start_s != y->start_s
               ? (x->start_s > y->start_s) - (x->start_s < y->start_s)
               : (x->job > y->job) - (x->job < y->job);
}

/* The jobs of the window in the order of their starts, each in its shape: 1, 0 where one
 * doesn't end in time, or -1. */
static int place_all(struct window *w, size_t n, struct layout *ret)
{
    const struct topt_alloc_problem *p = w->r->p;
    struct timeline *t = layout_timeline(w->r);
    int good = 1;
    qsort(w->column, n, sizeof *w->column, by_start);
    layout_copy(w->r, w->from, ret);
    for (size_t i = 0; good && i < p->njobs; i++)
        if (!is_in(w, i))
            layout_move(w->r, ret, i, t, -1);
    for (size_t i = 0; good && i < n; i++) {
        const struct column *c = &w->column[i];
        good = layout_place(w->r, ret, c->job, t, c->shape, layout_limit(w->r, c->job));
        if (good)
            layout_move(w->r, ret, c->job, t, -1);
    }
    return timeline_failed(t) ? -1 : good;
}

static int solve(struct window *w, const struct topt_alloc_solver *solver,
                 struct layout *ret)
{
    unsigned char *is_one = calloc(w->milp.ncols + 1, 1);
    size_t n = 0;
    if (!is_one)
        return -1;
    int rc = solver->solve(solver->context, &w->milp, is_one, NULL);
    for (size_t i = 0; !rc && i < w->milp.ncols; i++)
        if (is_one[i])
            w->column[n++] = w->column[i];
    free(is_one);
    if (rc || n != w->njobs)
        return 0;
    rc = place_all(w, n, ret);
    return rc > 0 && layout_settle(w->r, ret) ? -1 : rc;
}

int improve(const struct round *r, const struct topt_alloc_solver *solver,
            const struct layout *from, struct layout *ret)
{
    struct window w = {.r = r, .from = from};
    choose_jobs(&w);
    add_times(&w);
    int rc = measure(&w) || build(&w) ? -1 : 0;
    if (!rc)
        rc = solve(&w, solver, ret);
    topt_milp_fini(&w.milp);
    free(w.free);
    free(w.column);
    return rc;
}
