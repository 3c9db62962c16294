/* k_update.h - element sums, and the optimizers.  States are of the same type as the
 * weights here: f32 with f32, f64 with f64. */
#include "real.h"

static void add_elements(void *dst, const void *src, int64_t n)
{
    real *y = dst;
    const real *x = src;
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void adam(const struct topt_update_call *c)
{
    const double beta1 = c->beta1, beta2 = c->beta2, eps = c->eps, scale = c->scale;
    real *w = c->param, *m = c->state[0], *v = c->state[1];
    const real *g = c->grad;
    double fix1 = 1 - pow(beta1, (double)c->step), fix2 = 1 - pow(beta2, (double)c->step);
    double rate = c->lr / fix1, root = 1 / sqrt(fix2);
    double stays = c->optimizer == TOPT_ADAMW ? 1 - c->lr * c->weight_decay : 1;
    for (int64_t i = 0; i < c->n; i++) {
        double gi = scale * (double)g[i];
        double mi = beta1 * (double)m[i] + (1 - beta1) * gi;
        double vi = beta2 * (double)v[i] + (1 - beta2) * gi * gi;
        m[i] = R(mi);
        v[i] = R(vi);
        w[i] = R((double)w[i] * stays - rate * mi / (sqrt(vi) * root + eps));
    }
}

static void momentum(const struct topt_update_call *c)
{
    real *w = c->param, *v = c->state[0];
    const real *g = c->grad;
    real lr = R(c->lr), keep = R(c->beta1), scale = R(c->scale);
    for (int64_t i = 0; i < c->n; i++) {
        v[i] = keep * v[i] + scale * g[i];
        w[i] -= lr * v[i];
    }
}

static void sgd(const struct topt_update_call *c)
{
    real *w = c->param, lr = R(c->lr * c->scale);
    const real *g = c->grad;
    for (int64_t i = 0; i < c->n; i++)
        w[i] -= lr * g[i];
}

static void update(const struct topt_update_call *call)
{
    const struct topt_update_call filled = topt_update_filled(call), *c = &filled;
    if (c->optimizer == TOPT_ADAM || c->optimizer == TOPT_ADAMW)
        adam(c);
    else if (c->optimizer == TOPT_MOMENTUM)
        momentum(c);
    else
        sgd(c);
}
