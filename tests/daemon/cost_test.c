/* cost_test.c - what searches are expected to take: a guess at first, then what such
 * questions took. */
#include "cost.h"
#include "tap.h"

#include <math.h>
#include <string.h>

static struct topt_query question(const char *space, int gpus)
{
    struct topt_query q = {.kind = TOPT_QUERY_PLAN, .ngpus = gpus > 0, .gpus = {gpus}};
    snprintf(q.space, sizeof q.space, "%s", space);
    return q;
}

int main(void)
{
    static struct costs c;
    struct topt_query one = question("full", 8), all = question("full", 0),
                      uniform = question("uniform", 8),
                      canonical = question("canonical", 8);
    struct topt_query curve = all, frontier = one, default_space = question("", 8);
    curve.kind = TOPT_QUERY_CURVE;
    frontier.kind = TOPT_QUERY_FRONTIER;
    ok(cost_expected(&c, &uniform) < cost_expected(&c, &canonical) &&
           cost_expected(&c, &canonical) < cost_expected(&c, &one),
       "larger spaces take longer");
    ok(cost_expected(&c, &one) < cost_expected(&c, &all) &&
           cost_expected(&c, &one) < cost_expected(&c, &frontier),
       "all numbers take longer than one, whole frontiers than their best point");
    ok(cost_expected(&c, &default_space) == cost_expected(&c, &uniform),
       "what a framework obeys is the uniform space");
    strcpy(default_space.framework, "topt");
    ok(cost_expected(&c, &default_space) > cost_expected(&c, &uniform),
       "but of our own runtime");
    double before = cost_expected(&c, &all), other = cost_expected(&c, &curve);
    cost_learn(&c, &all, 1000);
    ok(cost_expected(&c, &all) > before && cost_expected(&c, &all) < 1000,
       "one that took longer makes the next expected to");
    for (int i = 0; i < 200; i++)
        cost_learn(&c, &all, 1000);
    ok(fabs(cost_expected(&c, &all) - 1000) < 20, "many settle it: %g",
       cost_expected(&c, &all));
    for (int i = 0; i < 200; i++)
        cost_learn(&c, &all, 0);
    ok(cost_expected(&c, &all) < 0.002, "and it follows what changes: %g",
       cost_expected(&c, &all));
    ok(cost_expected(&c, &curve) == other, "other questions are not touched");
    return done_testing();
}
