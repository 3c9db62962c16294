/* elastic.c - see elastic.h.
 *
 * Slurm chooses among numbers of nodes by itself, from 23.02 on: as many as are free,
 * without waiting.  It knows nothing of efficiency nor of time limits.  So the list holds
 * those shapes alone that use GPUs as well as the job asked, and where the job has a time
 * limit none that would take longer under it: `topt rightsize` lengthens the limit, Slurm
 * does not. */
#include "elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_text.h"

enum { LIST_FROM = 2302, AUTO_MOST = 8 };

void elastic_begin(const struct topt_ask *ask, const struct topt_bounds *bounds,
                   const struct topt_answer *plan, struct elastic_counts *ret,
                   struct topt_elastic *ret_shapes)
{
    *ret = (struct elastic_counts){.down = plan->gpus % 2 ? 0 : plan->gpus / 2,
                                   .up = plan->gpus * 2,
                                   .is_up = 1}; /* then down comes first */
    int n = topt_ask_elastic(ask, ret->list, TOPT_ELASTIC_MOST);
    ret->n = n > 0 ? n : 0;
    if (topt_shape_bound(ask, bounds, &ret->most, NULL))
        ret->most = 0;
    *ret_shapes = (struct topt_elastic){
        .submitted = 0, .by_node = bounds->by_node, .requeues = topt_ask_requeues(ask)};
    const char *efficiency = ask->value[TOPT_ASK_MIN_EFFICIENCY];
    if (efficiency && topt_parse_share(efficiency, &ret_shapes->min_efficiency, NULL))
        ret_shapes->min_efficiency = 0;
    const char *steps = ask->value[TOPT_ASK_STEPS];
    if (steps && topt_parse_int(steps, 1, INT64_MAX, &ret_shapes->steps, NULL))
        ret_shapes->steps = 0;
    elastic_add(plan->nodes, plan->gpus_per_node, plan->time_ns, 0, ret_shapes);
}

static int64_t next_of_list(struct elastic_counts *c, const struct topt_elastic *e)
{
    while (c->at < c->n) {
        int64_t gpus = c->list[c->at++];
        if (gpus != topt_elastic_gpus(&e->shape[e->submitted]))
            return gpus;
    }
    return 0;
}

int64_t elastic_next(struct elastic_counts *c, const struct topt_elastic *e)
{
    if (c->n)
        return next_of_list(c, e);
    if (e->n == AUTO_MOST)
        return 0;
    if (c->most && c->up > c->most)
        c->up = 0;
    c->is_up = c->down ? c->up && !c->is_up : 1;
    return c->is_up ? c->up : c->down;
}

void elastic_tell(struct elastic_counts *c, int found)
{
    if (c->n)
        return;
    if (c->is_up)
        c->up = found ? c->up * 2 : 0;
    else
        c->down = found && c->down % 2 == 0 ? c->down / 2 : 0;
}

int elastic_add(int64_t nodes, int64_t gpus_per_node, int64_t time_ns, int kind,
                struct topt_elastic *e)
{
    if (e->n == TOPT_ELASTIC_MOST || time_ns < 1 ||
        topt_elastic_find(e, nodes, gpus_per_node, kind) >= 0)
        return 0;
    e->shape[e->n++] = (struct topt_elastic_shape){nodes, gpus_per_node, time_ns, kind};
    return 1;
}

int elastic_next_kind(const char **named, const struct topt_elastic *e,
                      char ret[TOPT_ELASTIC_PARTITIONS])
{
    struct topt_text of = {0};
    int found = 0;
    topt_elastic_kinds(e, &of);
    while (of.s && !found && **named) {
        size_t n = strcspn(*named, ",");
        snprintf(ret, TOPT_ELASTIC_PARTITIONS, "%.*s", (int)n, *named);
        found = n > 0 && topt_elastic_kind_in(of.s, ret) < 0;
        *named += n + ((*named)[n] == ',');
    }
    topt_text_fini(&of);
    return found;
}

static double cost_of(const struct topt_elastic_shape *s)
{
    return (double)s->time_ns * (double)topt_elastic_gpus(s);
}

/* Nodes of the shapes among which Slurm may choose; 0 where there is but one. */
static int nodes_of(const struct topt_elastic *e, int has_limit,
                    int64_t ret[TOPT_ELASTIC_MOST])
{
    const struct topt_elastic_shape *own = &e->shape[e->submitted];
    double least = cost_of(own);
    int n = 0;
    for (int i = 0; i < e->n; i++)
        if (!e->shape[i].kind && cost_of(&e->shape[i]) < least)
            least = cost_of(&e->shape[i]);
    for (int i = 0; i < e->n; i++) {
        const struct topt_elastic_shape *s = &e->shape[i];
        int is_larger = topt_elastic_gpus(s) > topt_elastic_gpus(own);
        int is_good = !is_larger ||
                      (e->min_efficiency > 0 && least >= e->min_efficiency * cost_of(s));
        if (!s->kind && s->gpus_per_node == own->gpus_per_node && is_good &&
            !(has_limit && s->time_ns > own->time_ns))
            ret[n++] = s->nodes;
    }
    return n > 1 ? n : 0;
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void elastic_host(const struct topt_elastic *e, const struct topt_host *h, int version,
                  struct topt_host_elastic *ret)
{
    struct topt_text word = {0};
    int64_t nodes[TOPT_ELASTIC_MOST];
    int used = 0;
    *ret = (struct topt_host_elastic){.word = ""};
    if (e->n <= 1)
        return;
    topt_elastic_word(e, &word);
    if (word.s && !word.oom && word.len < sizeof ret->word)
        memcpy(ret->word, word.s, word.len + 1);
    topt_text_fini(&word);
    int n = version >= LIST_FROM ? nodes_of(e, h->isset(h->opt, "time"), nodes) : 0;
    qsort(nodes, (size_t)n, sizeof *nodes, by_number);
    for (int i = 0; i < n && (size_t)used < sizeof ret->nodes; i++)
        used += snprintf(ret->nodes + used, sizeof ret->nodes - (size_t)used, "%s%lld",
                         i ? "," : "", (long long)nodes[i]);
}

char *elastic_list(const struct topt_elastic *e, char *buf, size_t size)
{
    int64_t gpus[TOPT_ELASTIC_MOST];
    int n = 0, used = 0;
    for (int i = 0; i < e->n; i++)
        if (i != e->submitted && !e->shape[i].kind)
            gpus[n++] = topt_elastic_gpus(&e->shape[i]);
    qsort(gpus, (size_t)n, sizeof *gpus, by_number);
    buf[0] = '\0';
    for (int i = 0; i < n && (size_t)used < size; i++)
        used += snprintf(buf + used, size - (size_t)used, "%s%lld",
                         !i           ? ""
                         : i == n - 1 ? " and "
                                      : ", ",
                         (long long)gpus[i]);
    return buf;
}

char *elastic_kinds(const struct topt_elastic *e, char *buf, size_t size)
{
    int used = 0;
    buf[0] = '\0';
    for (int i = 0; i < e->n && (size_t)used < size; i++) {
        const struct topt_elastic_shape *s = &e->shape[i];
        if (s->kind)
            used += snprintf(buf + used, size - (size_t)used, "%s%lld in partition %s",
                             used ? ", " : "", (long long)topt_elastic_gpus(s),
                             e->kind[s->kind]);
    }
    return buf;
}
