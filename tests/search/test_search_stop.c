/* Searches stopped at any moment: what is found costs what it says, and of the true
 * frontier it misses no more than it claims, which is nothing where a search was stopped
 * before it had anything.  When exactly a stop comes depends on the machine; what has to
 * hold does not. */
#include "../bench/instances.h"
#include "frontiers.h"
#include "search_common.h"
#include "sizes.h"
#include "tap.h"

#include <math.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static const struct instance_spec specs[] = {
    {.shape = "chain", .costs = "split", .size = 60, .configs = 6, .range = 5000},
    {.shape = "forkjoin", .size = 18, .configs = 6, .range = 5000},
    {.shape = "residual", .size = 6, .configs = 6, .range = 5000, .alike = 1},
    {.shape = "star", .size = 200, .configs = 6, .range = 50},
    {.shape = "branches", .size = 40, .configs = 6, .range = 200},
    {.shape = "comb", .size = 60, .configs = 6, .range = 2000},
};

enum { SPECS = sizeof specs / sizeof specs[0], MOMENTS = TOPT_TEST_SIZE_FROM(16, 4) };

static atomic_bool stop;

static void on_alarm(int number)
{
    (void)number;
    atomic_store(&stop, 1);
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void stop_after(int64_t us)
{
    struct itimerval timer = {
        .it_value = {.tv_sec = us / 1000000, .tv_usec = us % 1000000 + (us < 1)}};
    atomic_store(&stop, 0);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static int honest(const struct topt_search_problem *p, const struct topt_frontier *f,
                  const struct topt_frontier *all, int fastest)
{
    if (!f->npoints || !witnesses_hold(p, f) || (f->exact && f->epsilon > 0))
        return 0;
    return !isfinite(f->epsilon) || covers(f, all, fastest ? all->npoints - 1 : 0);
}

struct tally {
    int wrong, stopped, proven;
};

static void check_moments(const struct topt_search_problem *p,
                          struct topt_search_options o, const struct topt_frontier *all,
                          int64_t whole, struct tally *t)
{
    o.stop = &stop;
    for (int i = 0; i < MOMENTS; i++) {
        struct topt_frontier *f = NULL;
        stop_after(whole * i / MOMENTS);
        if (topt_search(p, &o, &f, NULL)) {
            t->wrong++;
            continue;
        }
        int none = !f->npoints && !isfinite(f->epsilon);
        t->wrong += none ? f->exact || !stop : !honest(p, f, all, o.fastest);
        t->stopped += !f->exact;
        t->proven += !f->exact && isfinite(f->epsilon);
        topt_frontier_destroy(f);
    }
    stop_after(1000000000);
}

static void check(const struct instance_spec *spec, struct tally *t)
{
    struct instance *made = instance_make(spec);
    if (!made)
        abort();
    const struct topt_search_problem *p = instance_problem(made);
    const struct topt_search_options ways[] = {
        {.threads = 1}, {.threads = 2}, {.fastest = 1}, {.epsilon = 0.01}};
    struct topt_frontier *all = NULL;
    int64_t start = now_us();
    if (topt_search(p, NULL, &all, NULL))
        abort();
    int64_t whole = now_us() - start;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        check_moments(p, ways[i], all, whole, t);
    topt_frontier_destroy(all);
    instance_free(made);
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    int stopped = 0, proven = 0;
    for (int i = 0; i < SPECS; i++) {
        struct tally t = {0};
        check(&specs[i], &t);
        is_int(t.wrong, 0, "%s: %d of %d searches stopped, %d of which prove something",
               specs[i].shape, t.stopped, MOMENTS * 4, t.proven);
        stopped += t.stopped;
        proven += t.proven;
    }
    ok(stopped > 0 && proven > 0,
       "%d searches stopped in the midst, %d of them prove something", stopped, proven);
    return done_testing();
}
