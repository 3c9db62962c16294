/* memo.c - what was found out about the variants of one problem's grids, held in order. */
#include "memo.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

struct topt_memo *topt_memo_create(void)
{
    return calloc(1, sizeof(struct topt_memo));
}

static void points_fini(struct topt_memo_points *p)
{
    for (int i = 0; i < p->n; i++) {
        topt_strategy_destroy(p->at[i].strategy);
        json_decref(p->at[i].checked);
    }
    free(p->at);
}

static void entry_destroy(struct topt_memo_entry *v)
{
    points_fini(&v->fastest);
    points_fini(&v->below);
    points_fini(&v->lightest);
    points_fini(&v->frontier);
    points_fini(&v->whole);
    free(v->staged);
    free(v->floor.unit);
    topt_strategy_destroy(v->sole);
    free(v);
}

void topt_memo_destroy(struct topt_memo *m)
{
    if (!m)
        return;
    topt_memo_destroy(m->lora);
    for (int i = 0; i < m->n; i++) {
        for (int k = 0; k < m->at[i]->n; k++)
            entry_destroy(m->at[i]->at[k]);
        free(m->at[i]->at);
        free(m->at[i]);
    }
    free(m->at);
    free(m);
}

struct topt_memo *topt_memo_lora(struct topt_memo *m)
{
    if (!m->lora)
        m->lora = topt_memo_create();
    return m->lora;
}

size_t topt_memo_bytes(const struct topt_memo *m)
{
    return m->bytes + (m->lora ? topt_memo_bytes(m->lora) : 0);
}

int64_t topt_memo_searches(const struct topt_memo *m)
{
    return m->searches + (m->lora ? topt_memo_searches(m->lora) : 0);
}

static struct topt_memo_grid *find_grid(struct topt_memo *m, int nodes, int per_node)
{
    int at = 0;
    while (at < m->n && (m->at[at]->nodes < nodes ||
                         (m->at[at]->nodes == nodes && m->at[at]->per_node < per_node)))
        at++;
    if (at < m->n && m->at[at]->nodes == nodes && m->at[at]->per_node == per_node)
        return m->at[at];
    struct topt_memo_grid *g = calloc(1, sizeof *g);
    if (!g || TOPT_RESIZE(m->at, m->n + 1)) {
        free(g);
        return NULL;
    }
    *g = (struct topt_memo_grid){.nodes = nodes, .per_node = per_node};
    memmove(m->at + at + 1, m->at + at, (size_t)(m->n - at) * sizeof(*m->at));
    m->at[at] = g;
    m->n++;
    return g;
}

struct topt_memo_entry *topt_memo_entry(struct topt_memo *m, int nodes, int per_node,
                                        const struct topt_degrees *v)
{
    struct topt_memo_grid *g = find_grid(m, nodes, per_node);
    if (!g)
        return NULL;
    int lo = 0, hi = g->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (topt_degrees_order(&g->at[mid]->degrees, v) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < g->n && !topt_degrees_order(&g->at[lo]->degrees, v))
        return g->at[lo];
    struct topt_memo_entry *made = calloc(1, sizeof *made);
    if (!made || TOPT_ROOM(g->at, g->n, g->cap, 16)) {
        free(made);
        return NULL;
    }
    made->degrees = *v;
    memmove(g->at + lo + 1, g->at + lo, (size_t)(g->n - lo) * sizeof *g->at);
    g->at[lo] = made;
    g->n++;
    m->bytes += sizeof *made;
    return made;
}

static size_t strategy_bytes(const struct topt_strategy *x)
{
    return sizeof *x + (size_t)x->ntensors * sizeof *x->hub +
           (size_t)x->nops * (sizeof *x->config + TOPT_MAX_INPUTS);
}

void topt_memo_keep_sole(struct topt_memo *m, struct topt_memo_entry *x,
                         struct topt_strategy *sole)
{
    x->sole = sole;
    m->bytes += sole ? strategy_bytes(sole) : 0;
}

const struct topt_strategy *topt_memo_sole(struct topt_memo *m, int nodes, int per_node,
                                           const struct topt_degrees *v)
{
    const struct topt_memo_grid *g = find_grid(m, nodes, per_node);
    for (int i = 0; g && i < g->n; i++) {
        struct topt_degrees like = *v;
        like.micro_batches = g->at[i]->degrees.micro_batches;
        if (g->at[i]->sole && !topt_degrees_order(&g->at[i]->degrees, &like))
            return g->at[i]->sole;
    }
    return NULL;
}

int topt_memo_take(struct topt_memo *m, struct topt_solutions *found,
                   struct topt_memo_points *ret)
{
    if (!found->certificate.exact || found->stopped)
        return 1;
    struct topt_memo_point *at = calloc((size_t)found->n + 1, sizeof *at);
    if (!at)
        return -1;
    for (int i = 0; i < found->n; i++) {
        struct topt_solution *f = &found->at[i];
        at[i] = (struct topt_memo_point){f->memory_bytes, f->time_ns, -1, -1,
                                         f->strategy,     NULL};
        m->bytes += sizeof *at + strategy_bytes(f->strategy);
    }
    *ret = (struct topt_memo_points){
        .known = 1, .work = found->certificate.stats, .n = found->n, .at = at};
    found->n = 0; /* strategies are the memo's now */
    return 0;
}
