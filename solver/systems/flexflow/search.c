/* search.c - the walk from strategy to strategy. */
#include "ff_data.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A walk is a part of the budget, at least and at most so many proposals. */
enum { BUDGET_PART = 4, FEWEST = 200, A_WALK = 1000 };

double topt_flexflow_accepts(double beta, int64_t more_ns)
{
    return more_ns <= 0 ? 1 : exp(-beta * (double)more_ns);
}

static struct topt_soap roll(const struct topt_flexflow *f, int op, uint64_t *seed)
{
    uint64_t n = (uint64_t)topt_flexflow_choices(f, op);
    return topt_flexflow_choice(f, op, (int64_t)(ff_random(seed) % n));
}

static void copy(const struct topt_flexflow *f, struct topt_soap *to)
{
    for (int i = 0; i < f->nops; i++)
        to[i] = f->op[i].soap;
}

static int put_back(struct topt_flexflow *f, const struct topt_soap *from,
                    struct topt_error *err)
{
    for (int i = 0; i < f->nops; i++)
        if (memcmp(&f->op[i].soap, &from[i], sizeof from[i]) != 0)
            ff_replace(f, i, &from[i]);
    return ff_settle(f, err);
}

static int stopped(const struct topt_flexflow_search *o)
{
    return o->stop && atomic_load(o->stop);
}

/* Stopped, it leaves some as they were, and simulates nothing. */
static int roll_all(struct topt_flexflow *f, const struct topt_flexflow_search *o,
                    uint64_t *seed, struct topt_error *err)
{
    for (int i = 0; i < f->nops; i++) {
        struct topt_soap s = roll(f, i, seed);
        if (stopped(o))
            return 0;
        if (!f->op[i].virtual)
            ff_replace(f, i, &s);
    }
    return ff_settle(f, err);
}

/* One proposal: an operator and one of its configurations, each as likely as any other.  What the
 * busiest device or link is held for may say already that it is not taken. */
static int propose(struct topt_flexflow *f, const struct topt_flexflow_search *o,
                   double beta, uint64_t *seed, int *ret_taken, struct topt_error *err)
{
    int op;
    do
        op = (int)(ff_random(seed) % (uint64_t)f->nops);
    while (f->op[op].virtual);
    struct topt_soap was = f->op[op].soap, next = roll(f, op, seed);
    int64_t before = topt_flexflow_time(f);
    double u = ff_random_real(seed);
    ff_replace(f, op, &next);
    int64_t more = ff_busiest(f, f->nresources) - before;
    if (o->told || u < topt_flexflow_accepts(beta, more)) {
        if (ff_settle(f, err))
            return -1;
        more = topt_flexflow_time(f) - before;
    }
    *ret_taken = u < topt_flexflow_accepts(beta, more);
    if (!*ret_taken)
        ff_undo(f, op, &was, before);
    if (o->told)
        o->told(o->ctx, f, more, *ret_taken);
    return f->oom ? topt_nomem(err, "FlexFlow's tasks") : 0;
}

static int walk(struct topt_flexflow *f, const struct topt_flexflow_search *o,
                uint64_t *seed, struct topt_soap *best, struct topt_flexflow_found *ret,
                struct topt_error *err)
{
    double beta =
        o->beta > 0 ? o->beta : 50 / (double)(ret->start_ns ? ret->start_ns : 1);
    while (ret->tried < o->proposals && !stopped(o)) {
        int taken;
        if (propose(f, o, beta, seed, &taken, err))
            return -1;
        ret->tried++;
        if (topt_flexflow_time(f) < ret->best_ns) {
            ret->best_ns = topt_flexflow_time(f);
            ret->best_at = ret->tried;
            copy(f, best);
        }
    }
    return 0;
}

int topt_flexflow_search(struct topt_flexflow *f, const struct topt_flexflow_search *o,
                         struct topt_flexflow_found *ret, struct topt_error *err)
{
    uint64_t seed = o->seed;
    struct topt_soap *best = calloc((size_t)f->nops + 1, sizeof *best);
    *ret = (struct topt_flexflow_found){.tried = 0};
    if (!best)
        return topt_nomem(err, "FlexFlow's search");
    copy(f, best);
    int rc = o->random_start ? roll_all(f, o, &seed, err) : 0;
    ret->start_ns = ret->best_ns = topt_flexflow_time(f);
    if (!rc && !stopped(o)) {
        copy(f, best);
        rc = walk(f, o, &seed, best, ret, err);
    }
    if (!rc)
        rc = put_back(f, best, err);
    free(best);
    return rc ? -1 : 0;
}

/* From where it is, or from a random strategy. */
static int half(struct topt_flexflow *f, const struct topt_flexflow_search *o, int random,
                struct topt_flexflow_walks *ret, struct topt_error *err)
{
    int64_t tried = 0, best_at = 0, best = INT64_MAX, each = o->proposals / BUDGET_PART;
    each = each < FEWEST ? FEWEST : each > A_WALK ? A_WALK : each;
    for (int first = 1; tried < o->proposals && !stopped(o); first = 0) {
        struct topt_flexflow_found found;
        struct topt_flexflow_search one = *o;
        one.seed = o->seed + ret->seeds++;
        one.proposals = topt_min(each, o->proposals - tried);
        one.random_start = random && first;
        if (topt_flexflow_search(f, &one, &found, err))
            return -1;
        if (first && found.tried)
            *(random ? &ret->random_ns : &ret->data_ns) = found.start_ns;
        if (found.best_ns < best) {
            best = found.best_ns;
            best_at = tried + found.best_at;
        }
        tried += found.tried;
        ret->tried += found.tried;
        if (!o->never_stalls && tried >= o->proposals / BUDGET_PART &&
            best_at < tried / 2)
            break;
    }
    ret->best_ns = topt_min(best, ret->best_ns);
    return 0;
}

int topt_flexflow_walk(struct topt_flexflow *f, const struct topt_flexflow_search *o,
                       struct topt_flexflow_walks *ret, struct topt_error *err)
{
    struct topt_soap *best = calloc((size_t)f->nops + 1, sizeof *best);
    struct topt_flexflow_search part = *o;
    int64_t first = INT64_MAX;
    int rc = best ? 0 : topt_nomem(err, "FlexFlow's search");
    *ret = (struct topt_flexflow_walks){.best_ns = INT64_MAX};
    for (int random = 0; random < 2 && !rc; random++) {
        part.proposals = (o->proposals + !random) / 2;
        rc = half(f, &part, random, ret, err);
        if (!random) {
            first = ret->best_ns;
            copy(f, best);
        }
    }
    if (!rc && first <= ret->best_ns)
        rc = put_back(f, best, err);
    free(best);
    return rc ? -1 : 0;
}
