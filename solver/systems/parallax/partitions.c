/* partitions.c - into how many partitions a sparse variable is cut.
 *
 * A step takes theta0 + theta1 / P + theta2 P: what does not depend on P, what partitions do in
 * parallel, and what each adds.  That is convex, so a few samples by doubling and halving have
 * the least one between them; the fit is that of least squares. */
#include "topt_parallax.h"

#include <math.h>

static int sample(struct topt_parallax_fit *f, topt_parallax_measure *measure, void *ctx,
                  int partitions, struct topt_error *err)
{
    double seconds = measure(ctx, partitions);
    if (!(seconds > 0) || f->n == TOPT_PARALLAX_SAMPLES)
        return topt_fail(err, TOPT_ERR_INVAL, "no time of a step with %d partitions",
                         partitions);
    f->partitions[f->n] = partitions;
    f->seconds[f->n++] = seconds;
    return 0;
}

/* Doubles or halves until a step gets slower. */
static int walk(struct topt_parallax_fit *f, topt_parallax_measure *measure, void *ctx,
                int start, int up, int least, int most, struct topt_error *err)
{
    double before = f->seconds[0];
    int p = start;
    for (;;) {
        if (up ? p > most / 2 : p / 2 < least || p < 2)
            return 0;
        p = up ? p * 2 : p / 2;
        if (sample(f, measure, ctx, p, err))
            return -1;
        if (f->seconds[f->n - 1] > before)
            return 0;
        before = f->seconds[f->n - 1];
    }
}

/* The normal equations, by elimination with pivots.  0 where samples don't determine them. */
static int least_squares(struct topt_parallax_fit *f)
{
    double a[3][4] = {{0}};
    for (int i = 0; i < f->n; i++) {
        double x[3] = {1, 1. / f->partitions[i], f->partitions[i]};
        for (int r = 0; r < 3; r++) {
            for (int c = 0; c < 3; c++)
                a[r][c] += x[r] * x[c];
            a[r][3] += x[r] * f->seconds[i];
        }
    }
    for (int k = 0; k < 3; k++) {
        int best = k;
        for (int r = k + 1; r < 3; r++)
            if (fabs(a[r][k]) > fabs(a[best][k]))
                best = r;
        for (int c = 0; c < 4; c++) {
            double t = a[k][c];
            a[k][c] = a[best][c];
            a[best][c] = t;
        }
        if (fabs(a[k][k]) < 1e-12)
            return 0;
        for (int r = 0; r < 3; r++) {
            double factor = r == k ? 0 : a[r][k] / a[k][k];
            for (int c = k; c < 4; c++)
                a[r][c] -= factor * a[k][c];
        }
    }
    for (int k = 0; k < 3; k++)
        f->theta[k] = a[k][3] / a[k][k];
    return 1;
}

static int best_sample(const struct topt_parallax_fit *f)
{
    int best = 0;
    for (int i = 1; i < f->n; i++)
        if (f->seconds[i] < f->seconds[best])
            best = i;
    return f->partitions[best];
}

static int least_of_fit(const struct topt_parallax_fit *f)
{
    int low = f->partitions[0], high = low, best = low;
    double least = INFINITY;
    for (int i = 1; i < f->n; i++) {
        low = f->partitions[i] < low ? f->partitions[i] : low;
        high = f->partitions[i] > high ? f->partitions[i] : high;
    }
    for (int p = low; p <= high; p++) {
        double t = f->theta[0] + f->theta[1] / p + f->theta[2] * p;
        if (t < least) {
            least = t;
            best = p;
        }
    }
    return best;
}

int topt_parallax_partitions(topt_parallax_measure *measure, void *ctx, int start,
                             int least, int most, struct topt_parallax_fit *ret,
                             struct topt_error *err)
{
    *ret = (struct topt_parallax_fit){.n = 0};
    if (start < 1 || least < 1 || start < least || start > most)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "samples begin with %d partitions, of %d to %d", start, least,
                         most);
    if (sample(ret, measure, ctx, start, err) ||
        walk(ret, measure, ctx, start, 1, least, most, err) ||
        walk(ret, measure, ctx, start, 0, least, most, err))
        return -1;
    ret->chosen =
        ret->n >= 3 && least_squares(ret) ? least_of_fit(ret) : best_sample(ret);
    return 0;
}
