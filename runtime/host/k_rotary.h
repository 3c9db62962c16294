/* k_rotary.h - rotary positions: pairs of a head's numbers are turned by their
 * position. */
#include "real.h"

enum { MOST_PAIRS = 512 };

/* Cosines and sines of a position's angles.  From one position to the next each angle
 * grows by a constant, so they are stepped instead of called (in double: off by n *
 * 1e-16). */
struct turn {
    int64_t pairs;
    double scale;
    double co[MOST_PAIRS], si[MOST_PAIRS], dco[MOST_PAIRS], dsi[MOST_PAIRS];
};

/* Pairs of 'width' numbers. */
static void turn_to(struct turn *t, const struct topt_attrs *a, int64_t width,
                    int64_t position, double sign)
{
    t->pairs = width / 2;
    t->scale = 1;
    for (int64_t j = 0; j < t->pairs; j++) {
        double step = sign * topt_rope_step(a, width, j);
        t->co[j] = cos(step * (double)position);
        t->si[j] = sin(step * (double)position);
        t->dco[j] = cos(step);
        t->dsi[j] = sin(step);
    }
}

static void turn_next(struct turn *t)
{
    for (int64_t j = 0; j < t->pairs; j++) {
        double co = t->co[j] * t->dco[j] - t->si[j] * t->dsi[j];
        t->si[j] = t->si[j] * t->dco[j] + t->co[j] * t->dsi[j];
        t->co[j] = co;
    }
}

static void turn_head(const struct turn *t, real *y, const real *x)
{
    int64_t n = t->pairs;
    for (int64_t j = 0; j < n; j++) {
        double a = t->scale * (double)x[j], b = t->scale * (double)x[n + j];
        y[j] = R(a * t->co[j] - b * t->si[j]);
        y[n + j] = R(a * t->si[j] + b * t->co[j]);
    }
}

/* All heads of all positions, by the angle or, for gradients, back. */
static void turn_all(const struct topt_kernel_call *c, real *y, const real *x,
                     double sign)
{
    enum { X };
    const struct topt_attrs *a = c->op->attrs;
    int64_t batch = y ? extent(c, X, 0) : 0, s = extent(c, X, 1), d = extent(c, X, 2);
    struct turn t;
    for (int64_t b = 0; b < batch; b++) {
        turn_to(&t, a, a->rope_dim, c->off[1], sign);
        t.scale = a->scale > 0 ? a->scale : 1;
        for (int64_t i = 0; i < s; i++, turn_next(&t))
            for (int64_t j = 0; j < d; j += a->head_dim) {
                int64_t at = (b * s + i) * d + j;
                turn_head(&t, y + at, x + at);
                copy(y + at + a->rope_dim, x + at + a->rope_dim,
                     a->head_dim - a->rope_dim);
            }
    }
}

static void rotary_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    turn_all(c, c->value[Y], c->value[X], 1);
}

static void rotary_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    turn_all(c, c->grad[X], c->grad[Y], -1);
}
