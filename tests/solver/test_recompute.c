/* Recomputation where blocks are free, of which the search knows a little less than it
 * costs: what it answers against the true cost, against blocks that choose alike, and
 * against random strategies. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "free.h"
#include "exact.h"
#include "grid.h"
#include "planning.h"
#include "configs.h"
#include "topt_plan.h"
#include "topt_choices.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"

enum { MODELS = TOPT_TEST_SIZE_FROM(60, 12) };

static struct topt_hw *hw;

struct tally {
    int asked, found, faster, uneven, rolled;
    int untrue, heavy, claims, beaten;
    int least, open,
        lighter; /* the least memory; not proven; what was found that needs less than it may */
};

/* Does every block of a kind choose as the first does? */
static int is_even(const struct topt_blocks *b, const struct topt_strategy *s)
{
    for (int i = 0; i < s->nops; i++)
        if (b->kind[i] >= 0 &&
            memcmp(&s->config[i], &s->config[b->of[b->kind[i]].first + b->position[i]],
                   sizeof s->config[i]) != 0)
            return 0;
    return 1;
}

/* What makes nothing again is said to take a little more than it does (problem.h). */
static int is_untrue(const struct topt_problem *p, const struct topt_solution *s,
                     int64_t memory)
{
    return topt_capped_is_exact_for(p, s->strategy) ? s->memory_bytes != memory
                                                    : s->memory_bytes < memory;
}

/* What a problem with recomputation charges, that fits: may not be below the certificate's
 * bound.  -1 for what is neither. */
static int64_t time_within(const struct topt_costing *k, const struct topt_problem *p,
                           int64_t limit, const struct topt_strategy *s)
{
    struct topt_strategy_cost cost;
    if (!topt_capped_is_exact_for(p, s) || topt_cost_strategy(k, s, &cost, NULL) ||
        cost.memory_bytes > limit)
        return -1;
    return cost.time_ns;
}

static void look_at(int64_t ns, const struct topt_certificate *c, struct tally *t)
{
    t->rolled += ns >= 0;
    t->beaten += ns >= 0 && ns < c->bound_ns;
}

/* What operators [first, last] do, with the tensors that they make, changes places. */
static void swap_operators(const struct topt_model *m, struct topt_strategy *a,
                           struct topt_strategy *b, int first, int last)
{
    for (int i = first; i <= last; i++) {
        struct topt_config c = a->config[i];
        int tensor = topt_output_tensor(&m->op[i]);
        struct topt_hub h = a->hub[tensor];
        a->config[i] = b->config[i];
        b->config[i] = c;
        a->hub[tensor] = b->hub[tensor];
        b->hub[tensor] = h;
        for (int x = i * TOPT_MAX_INPUTS; x < (i + 1) * TOPT_MAX_INPUTS; x++) {
            uint8_t keep = a->keep[x];
            a->keep[x] = b->keep[x];
            b->keep[x] = keep;
        }
    }
}

/* No random strategy may be below the bound, nor what is found from the best by doing
 * some operators as that. */
static void roll(const struct topt_costing *k, const struct topt_problem *p,
                 int64_t limit, const struct topt_solutions *found, uint64_t seed,
                 struct tally *t)
{
    struct topt_strategy *best = found->n ? found->at[0].strategy : NULL;
    int64_t least = best ? found->at[0].time_ns : INT64_MAX;
    for (int i = 0; i < 40; i++) {
        struct topt_strategy *s = topt_problem_random(p, &seed);
        if (!s)
            continue;
        look_at(time_within(k, p, limit, s), &found->certificate, t);
        int first = (int)(seed >> 33) % s->nops, last = first + (int)(seed >> 55) % 3;
        last = last < s->nops ? last : s->nops - 1;
        if (best) {
            swap_operators(k->model, best, s, first, last);
            int64_t ns = time_within(k, p, limit, best);
            look_at(ns, &found->certificate, t);
            if (ns < 0 || ns > least)
                swap_operators(k->model, best, s, first, last);
            else
                least = ns;
        }
        topt_strategy_destroy(s);
    }
}

/* What blocks that choose alike do within the limit is a bound of what free ones do. */
static void ask(const struct topt_costing *k, const struct topt_space_options *o,
                const struct topt_solution *alike, int64_t limit, uint64_t seed,
                struct tally *t)
{
    struct topt_search_options so = {
        .threads = 1, .memory_limit = limit, .epsilon = seed % 2 ? 0.01 : 0.0001};
    struct topt_solutions a;
    struct topt_problem *p;
    struct topt_strategy_cost cost;
    if (topt_problem_create(k, o, &p, NULL))
        return;
    t->asked++;
    if (!topt_solve_fastest(p, &so, &a, NULL)) {
        const struct topt_solution *s = a.n ? a.at : NULL;
        t->beaten += alike->time_ns < a.certificate.bound_ns;
        t->found += s != NULL;
        t->untrue +=
            s && (topt_cost_strategy(k, s->strategy, &cost, NULL) ||
                  cost.time_ns != s->time_ns || is_untrue(p, s, cost.memory_bytes));
        t->heavy += s && s->memory_bytes > limit;
        t->claims +=
            s && (double)s->time_ns <=
                     (double)a.certificate.bound_ns * (1 + a.certificate.epsilon) + 2;
        t->faster += s && s->time_ns < alike->time_ns;
        t->uneven += s && !is_even(o->blocks, s->strategy);
        roll(k, p, limit, &a, seed, t); /* changes what was found */
        topt_solutions_fini(&a);
    } else {
        t->untrue++;
    }
    topt_problem_destroy(p);
}

/* Of any strategy that a problem with recomputation charges: does it need less than nothing does?
 */
static void look_at_memory(const struct topt_costing *k, const struct topt_problem *p,
                           const struct topt_strategy *s, int64_t bound, struct tally *t)
{
    struct topt_strategy_cost cost;
    t->lighter += topt_capped_is_exact_for(p, s) &&
                  !topt_cost_strategy(k, s, &cost, NULL) && cost.memory_bytes < bound;
}

/* Nothing needs less memory than is said. */
static void ask_least(const struct topt_costing *k, const struct topt_space_options *o,
                      const struct topt_solution *alike, uint64_t seed, struct tally *t)
{
    struct topt_search_options any = {.threads = 1};
    struct topt_solutions a;
    struct topt_problem *p;
    if (topt_problem_create(k, o, &p, NULL))
        return;
    if (!topt_solve_least(p, &any, 0, &a, NULL)) {
        int64_t found = a.n ? a.at[0].memory_bytes : INT64_MAX;
        int64_t bound =
            a.certificate.bound_bytes < found ? a.certificate.bound_bytes : found;
        t->least += a.n;
        t->open += bound < found;
        look_at_memory(k, p, alike->strategy, bound, t);
        for (int i = 0; i < 40; i++) {
            struct topt_strategy *s = topt_problem_random(p, &seed);
            if (s)
                look_at_memory(k, p, s, bound, t);
            topt_strategy_destroy(s);
        }
        topt_solutions_fini(&a);
    }
    topt_problem_destroy(p);
}

static void ask_all(const struct topt_costing *k, struct topt_space_options *o,
                    uint64_t seed, struct tally *t)
{
    struct topt_search_options any = {.threads = 1};
    struct topt_solutions all;
    struct topt_problem *p;
    o->alike = 1;
    if (topt_problem_create(k, o, &p, NULL))
        return;
    if (!topt_solve_frontier(p, &any, &all, NULL)) {
        o->alike = 0;
        o->lazy_entries = seed % 3 ? 0 : 1 + (int)(seed * 7 % 900);
        if (all.n)
            ask_least(k, o, &all.at[0], seed, t);
        for (int i = 0; i < all.n; i += 1 + all.n / 6) {
            int64_t next =
                i + 1 < all.n ? all.at[i + 1].memory_bytes - 1 : all.at[i].memory_bytes;
            ask(k, o, &all.at[i], i % 2 ? next : all.at[i].memory_bytes, seed + 31, t);
        }
        topt_solutions_fini(&all);
    }
    topt_problem_destroy(p);
}

static void test_model(uint64_t seed, struct tally *t)
{
    struct topt_request r;
    struct topt_planning micros;
    struct topt_grid_search s;
    struct topt_costing costing;
    topt_request_init(&r);
    struct topt_model *m = block_model(seed, 3 + (int)(seed % 3), 1 + (int)(seed % 4));
    r.model = m;
    r.hw = hw;
    r.space = seed % 2 ? TOPT_SPACE_FULL : TOPT_SPACE_CANONICAL;
    r.settings.granule_bytes = 1;
    r.factors = 0;
    if (m && !topt_planning_init(&micros, &r, NULL)) {
        if (!topt_grid_open(&s, &micros, 1 + (int)(seed % 2), 2, TOPT_GOAL_FASTEST,
                            NULL) &&
            !topt_grid_costing(&s, &s.degrees[0], &costing, NULL)) {
            struct topt_space_options o = {.space = r.space,
                                           .zero = seed % 2 ? 15 : 1,
                                           .blocks = m->blocks,
                                           .recompute = TOPT_RECOMPUTE_FREE};
            ask_all(&costing, &o, seed, t);
        }
        topt_grid_close(&s);
        topt_planning_fini(&micros);
    }
    topt_model_destroy(m);
}

int main(void)
{
    struct tally t = {0};
    hw = topt_hw_load("v100-dgx1-2x8", NULL);
    if (!hw)
        return 1;
    for (uint64_t seed = 1; seed <= MODELS; seed++)
        test_model(seed, &t);
    ok(t.asked > 5 * MODELS / 3 && t.found == t.asked, "%d questions, %d with an answer",
       t.asked, t.found);
    is_int(t.untrue, 0, "each costs what it is said to");
    is_int(t.heavy, 0, "and fits");
    is_int(t.claims, t.found, "and is as near to the bound as is claimed");
    is_int(t.beaten, 0, "which none of %d random strategies is below, nor blocks alike",
           t.rolled);
    ok(t.least > MODELS / 3 && t.open > 0,
       "%d have a least memory, %d of which is not proven", t.least, t.open);
    is_int(t.lighter, 0, "and nothing needs less than is said");
    ok(t.faster > MODELS / 12 && t.uneven > MODELS / 12,
       "%d are faster than blocks alike, %d not even", t.faster, t.uneven);
    topt_hw_destroy(hw);
    return done_testing();
}
