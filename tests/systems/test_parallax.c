/* test_parallax.c - Parallax: bytes of every message against the paper's table 3, local
 * aggregation, and the number of partitions from samples. */
#include <math.h>
#include <string.h>

#include "tap.h"
#include "topt_parallax.h"

static int same(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

/* Of every machine the same, sent and received. */
static double simulated(const struct topt_parallax_step *s, enum topt_parallax_way way)
{
    struct topt_parallax_traffic t;
    if (topt_parallax_simulate(s, way, &t, NULL))
        return NAN;
    for (int m = 1; m < s->machines; m++)
        if (t.sent[m] + t.received[m] != t.sent[0] + t.received[0])
            return NAN;
    return (double)(t.sent[0] + t.received[0]);
}

static void table3(void)
{
    const int64_t w = 8 * 9 * 25 * 7;
    int dense = 1, sparse = 1, ratio = 1, equal = 1, one = 1;
    for (int n = 2; n <= 8; n *= 2)
        for (int m = n; m <= 3 * n; m += n)
            for (int part = 1; part <= 25; part += 4) {
                double alpha = part / 25.;
                struct topt_parallax_step s = {
                    .machines = n, .workers = 1, .variables = m, .bytes = w};
                s.touched = w;
                double ps = simulated(&s, TOPT_PARALLAX_SERVER);
                double ar = simulated(&s, TOPT_PARALLAX_RING);
                dense &=
                    ps == 4. * (double)w * m * (n - 1) / n && ps == ar &&
                    same(ps,
                         topt_parallax_bytes(TOPT_PARALLAX_SERVER, n, m, (double)w, 1)) &&
                    same(ar, topt_parallax_bytes(TOPT_PARALLAX_RING, n, m, (double)w, 1));
                s.touched = w / 25 * part;
                double few = simulated(&s, TOPT_PARALLAX_SERVER);
                double all = simulated(&s, TOPT_PARALLAX_ALL_GATHER);
                sparse &= same(few, topt_parallax_bytes(TOPT_PARALLAX_SERVER, n, m,
                                                        (double)w, alpha)) &&
                          same(all, topt_parallax_bytes(TOPT_PARALLAX_ALL_GATHER, n, m,
                                                        (double)w, alpha));
                ratio &= 2 * all == n * few;
                equal &= part < 25 || few == ps;
            }
    for (int n = 2; n <= 8; n *= 2) {
        struct topt_parallax_step s = {n, 1, 1, w, w, 0, 0};
        struct topt_parallax_traffic t;
        one &= !topt_parallax_simulate(&s, TOPT_PARALLAX_SERVER, &t, NULL) &&
               t.sent[0] + t.received[0] == 2 * w * (n - 1) &&
               t.sent[1] + t.received[1] == 2 * w;
    }
    ok(dense, "dense: servers and a ring take 4 w m (N-1)/N of every machine");
    ok(sparse, "sparse: servers take alpha of it, gathering 2 alpha w m (N-1)");
    ok(ratio, "... which is N/2 of the servers'");
    ok(equal, "at alpha = 1 sparse servers are dense ones");
    ok(one, "one variable takes 2 w (N-1) of the machine that has it");
}

static void aggregation(void)
{
    int pushes = 1;
    for (int workers = 1; workers <= 8; workers++)
        for (int aggregate = 0; aggregate < 2; aggregate++) {
            struct topt_parallax_step s = {4, workers, 1, 1000, 100, aggregate, 300};
            struct topt_parallax_traffic t;
            pushes &= !topt_parallax_simulate(&s, TOPT_PARALLAX_SERVER, &t, NULL);
            pushes &= t.remote_pushes[0] == 0;
            for (int m = 1; m < 4; m++)
                pushes &= t.remote_pushes[m] == (aggregate ? 1 : workers);
        }
    ok(pushes, "who adds up first pushes once a machine instead of once a worker");
    /* Rows are touched with chances of their own; alpha is their mean. */
    int most = 1, reached = 1;
    for (int trial = 1; trial <= 50; trial++)
        for (int workers = 1; workers <= 8; workers++) {
            double alpha = 0, together = 0;
            for (int r = 0; r < 100; r++) {
                double p = (double)((r * r * trial + 31 * r + trial) % 101) / 100;
                p = p > 1 ? 1 : p;
                alpha += p / 100;
                together += (1 - pow(1 - p, workers)) / 100;
            }
            most &= together <= topt_parallax_together(alpha, workers) + 1e-12;
            reached &= same(1 - pow(1 - trial / 64., workers),
                            topt_parallax_together(trial / 64., workers));
        }
    ok(most, "rows touched together are at most 1 - (1 - alpha)^G of all");
    ok(reached, "... which is reached where all rows are alike");
}

static void refused(void)
{
    struct topt_parallax_traffic t;
    struct topt_error err = {0};
    struct topt_parallax_step odd = {8, 1, 1, 12, 12, 0, 0};
    struct topt_parallax_step more = {8, 1, 1, 16, 17, 0, 0};
    ok(topt_parallax_simulate(&odd, TOPT_PARALLAX_RING, &t, &err) &&
           strstr(err.text, "8 equal pieces"),
       "%s", err.text);
    ok(topt_parallax_simulate(&more, TOPT_PARALLAX_SERVER, &t, &err) &&
           err.code == TOPT_ERR_INVAL,
       "nobody touches more than there is");
}

/* ---- partitions --------------------------------------------------------------------- */

/* Thousands of words a second with 8, 16 .. 256 partitions: the paper's table 2. */
struct rows {
    double words[6];
};

static double of_row(void *ctx, int partitions)
{
    const struct rows *r = ctx;
    for (int i = 0; i < 6; i++)
        if (partitions == 8 << i)
            return 1 / r->words[i];
    return -1;
}

/* Between two rows by the logarithm of the partitions. */
static double interpolated(const struct rows *r, int partitions)
{
    double at = log2(partitions / 8.);
    int i = at >= 5 ? 4 : (int)at;
    return r->words[i] + (r->words[i + 1] - r->words[i]) * (at - i);
}

static void table2(void)
{
    struct rows lm = {{50.5, 78.6, 96.5, 96.1, 98.9, 93.2}};
    struct rows nmt = {{90.7, 97.0, 96.5, 101.6, 98.5, 100.0}};
    struct topt_parallax_fit f, g;
    int found = !topt_parallax_partitions(of_row, &lm, 8, 8, 256, &f, NULL) &&
                !topt_parallax_partitions(of_row, &nmt, 8, 8, 256, &g, NULL);
    if (!ok(found, "table 2 is sampled"))
        return;
    ok(interpolated(&lm, f.chosen) >= 0.95 * 98.9 && f.chosen == 43 && f.n == 4,
       "LM: %d partitions by %d samples, within 5 %% of the best row", f.chosen, f.n);
    /* The square root of theta1 / theta2 is 21.498: 22 is better than 21 by a millionth. */
    ok(interpolated(&nmt, g.chosen) >= 0.95 * 101.6 && g.chosen == 22 && g.n == 3,
       "NMT: %d partitions by %d samples, within 5 %% of the best row", g.chosen, g.n);
}

struct curve {
    double theta[3];
};

static double of_curve(void *ctx, int partitions)
{
    const struct curve *c = ctx;
    return c->theta[0] + c->theta[1] / partitions + c->theta[2] * partitions;
}

static void convex(void)
{
    int near = 1, few = 1, ends = 1;
    for (int i = 0; i < 400; i++) {
        /* The least is at 1 to 256 partitions. */
        double at = pow(2, (i % 80) / 10.), theta2 = 0.001 * (1 + i / 80);
        struct curve c = {{0.3, theta2 * at * at, theta2}};
        struct topt_parallax_fit f;
        double best = INFINITY;
        for (int p = 1; p <= 1024; p++)
            best = fmin(best, of_curve(&c, p));
        if (topt_parallax_partitions(of_curve, &c, 8, 1, 1024, &f, NULL))
            near = 0;
        near &= of_curve(&c, f.chosen) <= 1.05 * best;
        few &= f.n <= 8 && (at < 4 || at > 32 || f.n <= 5);
        ends &= f.n < 3 || fabs(f.theta[2] - theta2) < 1e-6;
    }
    ok(near, "of a convex curve the choice is within 5 %% of the best of all");
    ok(few, "... by five samples where the best is near the number of machines");
    ok(ends, "... and the fit is the curve");
    struct curve rising = {{1, 0, 1}};
    struct topt_parallax_fit f;
    int sampled = !topt_parallax_partitions(of_curve, &rising, 8, 8, 64, &f, NULL);
    ok(sampled && f.n == 2 && f.chosen == 8, "two samples: the better one");
    struct topt_error err = {0};
    ok(topt_parallax_partitions(of_curve, &rising, 4, 8, 64, &f, &err) &&
           err.code == TOPT_ERR_INVAL,
       "no sample below what memory allows");
}

int main(void)
{
    table3();
    aggregation();
    refused();
    table2();
    convex();
    ok(topt_parallax_dense_pays(0.6, 1, 2) && !topt_parallax_dense_pays(0.4, 1, 2),
       "a ring pays where alpha is above the ratio of rates");
    return done_testing();
}
