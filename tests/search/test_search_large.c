/* Problems of many operators: hubs with many consumers, many components, long chains.  They are
 * planned and searched in about linear time (a plan that looks at all operators for each takes
 * minutes here, which the test's time limit ends) on a stack that does not grow with them; and
 * where an operator has so many factors that they are multiplied by groups, the frontier is that
 * of the plain steps. */
#include "../bench/instances.h"
#include "frontiers.h"
#include "sizes.h"
#include "tap.h"

#include <pthread.h>

static const char *const shapes[] = {"star",  "isolated", "comb",
                                     "chain", "branches", "parallel"};

enum { NSHAPES = sizeof shapes / sizeof shapes[0], STACK = 256 << 10 };

/* Operators: so many that what is not linear is seen, by the optimised build at the latest. */
enum { MANY = TOPT_TEST_SIZE_FROM(20000, 4000) };

/* ---- many ---- */

struct large {
    const struct topt_search_problem *p;
    struct topt_search_options o;
    int good, points;
};

static void *search(void *ctx)
{
    struct large *l = ctx;
    struct topt_frontier *f = NULL;
    l->good =
        !topt_search(l->p, &l->o, &f, NULL) && f->npoints > 0 && witnesses_hold(l->p, f);
    l->points = f ? f->npoints : 0;
    topt_frontier_destroy(f);
    return NULL;
}

static void on_small_stack(struct large *l)
{
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, STACK) ||
        pthread_create(&thread, &attr, search, l) || pthread_join(thread, NULL))
        abort();
    pthread_attr_destroy(&attr);
}

static void check_many(const char *shape, int fastest)
{
    struct instance *in = instance_make(
        &(struct instance_spec){.shape = shape, .size = MANY, .configs = 4});
    if (!in)
        abort();
    struct large l = {.p = instance_problem(in),
                      .o = {.epsilon = 10, .fastest = fastest}};
    on_small_stack(&l);
    ok(l.good, "%s of %d operators, %s: %d points", shape, l.p->nops,
       fastest ? "the fastest" : "a frontier", l.points);
    instance_free(in);
}

/* ---- some hundreds, exactly ---- */

/* The fastest within a limit, by the plan of the whole, is on the frontier. */
static int fastest_is_there(const struct topt_search_problem *p,
                            const struct topt_frontier *all)
{
    struct topt_search_options o = {.fastest = 1,
                                    .memory_limit = all->cost[all->npoints / 2].memory};
    struct topt_frontier *f = NULL;
    int good = !topt_search(p, &o, &f, NULL) && f->npoints == 1 && witnesses_hold(p, f) &&
               f->cost[0].time == all->cost[all->npoints / 2].time;
    topt_frontier_destroy(f);
    return good;
}

static void check_exactly(const char *shape, int configs)
{
    struct instance *in = instance_make(&(struct instance_spec){
        .shape = shape, .size = 300, .configs = configs, .range = 2, .seed = 7});
    struct topt_search_options plain = {.algorithm = "ft-plain"};
    struct topt_frontier *want = NULL, *got = NULL;
    if (!in)
        abort();
    const struct topt_search_problem *p = instance_problem(in);
    int good = !topt_search(p, &plain, &want, NULL) && !topt_search(p, NULL, &got, NULL);
    ok(good && got->exact && same_costs(want, got) && witnesses_hold(p, got) &&
           fastest_is_there(p, got),
       "%s of 300, %d configurations: the %d points of the plain steps", shape, configs,
       good ? got->npoints : 0);
    topt_frontier_destroy(want);
    topt_frontier_destroy(got);
    instance_free(in);
}

int main(void)
{
    for (int i = 0; i < NSHAPES; i++) {
        check_exactly(shapes[i], 3);
        check_exactly(shapes[i], 1);
    }
    for (int i = 0; i < NSHAPES; i++) {
        check_many(shapes[i], 0);
        check_many(shapes[i], 1);
    }
    return done_testing();
}
