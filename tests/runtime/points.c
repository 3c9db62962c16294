/* points.c - a profile's points: where another one is due, and that it ends. */
#include "points.h"
#include "tap.h"

/* Five times the time from 1000 bytes on, as where an algorithm switches. */
static double stepped(double at)
{
    return at < 1000 ? 100 : 500;
}

static void a_step(void)
{
    struct topt_points p = {.n = 0};
    for (int64_t at = 16; at <= 65536; at *= 4)
        topt_points_add(&p, at, stepped((double)at));
    int before = p.n, added = 0;
    for (int64_t at; (at = topt_points_next(&p, 0.15)) && added < 20; added++)
        ok(topt_points_add(&p, at, stepped((double)at)), "another at %lld",
           (long long)at);
    ok(added > 2 && p.n == before + added, "%d more", added);
    double below = 0, above = 0;
    for (int i = 0; i < p.n; i++) {
        ok(i == 0 || p.at[i] > p.at[i - 1], "in order: %lld", (long long)p.at[i]);
        if (p.at[i] < 1000)
            below = (double)p.at[i];
        else if (above == 0)
            above = (double)p.at[i];
    }
    ok(above / below < 1.5 * 1.5, "the step is between %g and %g", below, above);
    ok(!topt_points_add(&p, p.at[1], 7), "a size that is there already");
}

static void a_line(void)
{
    struct topt_points p = {.n = 0};
    for (int64_t at = 16; at <= 65536; at *= 4)
        topt_points_add(&p, at, 300 + (double)at);
    is_int(topt_points_next(&p, 0.01), 0, "a straight line needs no more");
    p.ns[3] *= 1.1;
    ok(topt_points_next(&p, 0.05) > p.at[1] && topt_points_next(&p, 0.05) < p.at[5],
       "one that is off it by a tenth does");
    is_int(topt_points_next(&p, 0.5), 0, "but not where that is tolerated");
}

static void full(void)
{
    struct topt_points p = {.n = 0};
    for (int64_t i = 0; i < TOPT_MOST_POINTS; i++)
        topt_points_add(&p, 1000 * (TOPT_MOST_POINTS - i), (double)i);
    is_int(p.n, TOPT_MOST_POINTS, "as many as there is room for");
    ok(!topt_points_add(&p, 1, 1) && p.at[0] == 1000, "and no more");
}

int main(void)
{
    a_step();
    a_line();
    full();
    return done_testing();
}
