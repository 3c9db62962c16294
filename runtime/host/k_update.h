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
    real *w = c->param, *m = c->state[0], *v = c->state[1];
    const real *g = c->grad;
    const double scale = c->scale;
    const struct adam a = {
        .beta1 = c->beta1,
        .beta2 = c->beta2,
        .eps = c->eps,
        .rate = c->lr / (1 - pow(c->beta1, (double)c->step)),
        .root = 1 / sqrt(1 - pow(c->beta2, (double)c->step)),
        .stays = c->optimizer == TOPT_ADAMW ? 1 - c->lr * c->weight_decay : 1};
    for (int64_t i = 0; i < c->n; i++) {
        if (c->lazy && g[i] == 0)
            continue;
        double gi = scale * (double)g[i];
        w[i] = R(adam_step(&a, (double)w[i], gi, &m[i], &v[i]));
    }
}

static void momentum(const struct topt_update_call *c)
{
    real *w = c->param, *v = c->state[0];
    const real *g = c->grad;
    real lr = R(c->lr), keep = R(c->beta1), scale = R(c->scale);
    for (int64_t i = 0; i < c->n; i++) {
        if (c->lazy && g[i] == 0)
            continue;
        w[i] = momentum_step(w[i], scale * g[i], lr, keep, &v[i]);
    }
}

static void sgd(const struct topt_update_call *c)
{
    real *w = c->param, lr = R(c->lr * c->scale);
    const real *g = c->grad;
    for (int64_t i = 0; i < c->n; i++)
        w[i] = sgd_step(w[i], g[i], lr);
}

/* A row's state adds up the means of its squared gradients. */
static void row_wise_adagrad(const struct topt_update_call *c)
{
    real *w = c->param, *state = c->state[0];
    const real *g = c->grad, *squares = c->squares;
    int64_t cols = c->cols, rows = cols > 0 ? c->n / cols : c->row ? 1 : c->rows;
    double whole = (double)c->whole_cols;
    for (int64_t r = 0; r < rows; r++) {
        double sum = squares ? (double)squares[r] : 0;
        for (int64_t j = 0; j < cols && !squares; j++)
            sum += (double)g[r * cols + j] * (double)g[r * cols + j];
        double s = (double)state[r];
        double rate = adagrad_rate(&s, sum, whole, c->lr, c->scale, c->eps);
        state[r] = R(s);
        for (int64_t j = 0; j < cols; j++)
            w[r * cols + j] = R((double)w[r * cols + j] - rate * (double)g[r * cols + j]);
    }
}

static void update_all(const struct topt_update_call *c)
{
    if (c->optimizer == TOPT_ROW_WISE_ADAGRAD)
        row_wise_adagrad(c);
    else if (c->optimizer == TOPT_ADAM || c->optimizer == TOPT_ADAMW)
        adam(c);
    else if (c->optimizer == TOPT_MOMENTUM)
        momentum(c);
    else
        sgd(c);
}

static void *row_of(void *base, int64_t row, int64_t cols)
{
    return base ? (real *)base + row * cols : NULL;
}

/* One row after the other, each as a small parameter. */
static void update(const struct topt_update_call *call)
{
    const struct topt_update_call filled = topt_update_filled(call), *c = &filled;
    int64_t per_row = c->optimizer == TOPT_ROW_WISE_ADAGRAD ? 1 : c->cols;
    if (!c->row) {
        update_all(c);
        return;
    }
    for (int64_t k = 0; k < c->rows; k++) {
        int64_t at = c->row[k];
        struct topt_update_call one = *c;
        one.n = c->cols;
        one.param = row_of(c->param, at, c->cols);
        one.grad = (const real *)c->grad + k * c->cols;
        one.state[0] = row_of(c->state[0], at, per_row);
        one.state[1] = row_of(c->state[1], at, c->cols);
        one.squares = c->squares ? (const real *)c->squares + k : NULL;
        update_all(&one);
    }
}
