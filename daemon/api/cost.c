/* cost.c - see cost.h. */
#include "cost.h"

#include <math.h>
#include <string.h>

enum { UNIFORM, CANONICAL, FULL, OTHER, MEMORY = 16 /* searches that count */ };
/* Of a model of some billion parameters, on one number of GPUs. */
static const double first_guess[COST_SPACES] = {0.1, 3, 10, 3};
static const double all_counts = 6, whole_frontier = 4;

static int space_of(const struct topt_query *q)
{
    static const char *const names[] = {"uniform", "canonical", "full"};
    for (int i = 0; i < OTHER; i++)
        if (!strcmp(q->space, names[i]))
            return i;
    return *q->space || !strcmp(q->framework, "topt") ? OTHER : UNIFORM;
}

int cost_is_uniform(const struct topt_query *q)
{
    return space_of(q) == UNIFORM;
}

static int asks_many(const struct topt_query *q)
{
    return q->kind != TOPT_QUERY_FRONTIER && q->ngpus != 1;
}

static int class_of(const struct topt_query *q)
{
    return ((int)q->kind * COST_SPACES + space_of(q)) * 2 + asks_many(q);
}

static double guess(const struct topt_query *q)
{
    return log(first_guess[space_of(q)] * (asks_many(q) ? all_counts : 1) *
               (q->kind == TOPT_QUERY_FRONTIER ? whole_frontier : 1));
}

double cost_expected(const struct costs *c, const struct topt_query *q)
{
    int at = class_of(q);
    return exp(atomic_load(&c->n[at]) ? (double)atomic_load(&c->mean[at]) / 1000
                                      : guess(q));
}

void cost_learn(struct costs *c, const struct topt_query *q, double seconds)
{
    int at = class_of(q);
    int64_t n = atomic_load(&c->n[at]);
    double mean = n ? (double)atomic_load(&c->mean[at]) / 1000 : guess(q);
    n += n < MEMORY;
    mean += (log(seconds > 0.001 ? seconds : 0.001) - mean) / (double)(n + 1);
    atomic_store(&c->mean[at], llround(mean * 1000));
    atomic_store(&c->n[at], n);
}
