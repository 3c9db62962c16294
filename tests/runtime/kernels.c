/* kernels.c - the host kernels of dense models and attention, and the optimizer's updates. */
#include "dense_fixtures.h"

enum { POINTS = 64 };

/* An activation and its slope at 'n' numbers. */
static int activate(enum topt_dtype dtype, enum topt_activation a, const double *x, int n,
                    double *ret, double *ret_slope)
{
    struct topt_attrs table = {.vocab = 2, .features = n}, attrs = {.activation = (int)a};
    struct topt_model *m = topt_model_create("test", 1, 1, NULL);
    int e = topt_model_add(m, "embedding", "e", 0, NULL, &table, NULL);
    double at[4][POINTS]; /* x, what follows, ones, slopes: in the memory of the type */
    float *f[4] = {(float *)at[0], (float *)at[1], (float *)at[2], (float *)at[3]};
    struct topt_device d;
    if (topt_device_open_host(dtype, &d, NULL) ||
        topt_model_add(m, "unary", "u", 1, &e, &attrs, NULL) < 0)
        abort();
    for (int i = 0; i < n; i++)
        if (dtype == TOPT_F64)
            at[0][i] = x[i], at[2][i] = 1;
        else
            f[0][i] = (float)x[i], f[2][i] = 1;
    struct topt_kernel_call c = {.op = &m->op[1],
                                 .kernel = TOPT_K_UNARY_FWD,
                                 .len = {1, 1, n},
                                 .box = {{{0}, {1, 1, n}}, {{0}, {1, 1, n}}},
                                 .value = {at[0], at[1]},
                                 .grad = {at[3], at[2]}};
    int rc = d.ops->kernel(&d, &c, NULL);
    c.kernel = TOPT_K_UNARY_BWD;
    rc |= d.ops->kernel(&d, &c, NULL);
    for (int i = 0; i < n; i++) {
        ret[i] = dtype == TOPT_F64 ? at[1][i] : (double)f[1][i];
        ret_slope[i] = dtype == TOPT_F64 ? at[3][i] : (double)f[3][i];
    }
    topt_device_close(&d);
    topt_model_destroy(m);
    return rc;
}

/* Activations far from 0: the value and the slope of the line they have become. */
static void check_extremes(enum topt_dtype dtype)
{
    static const double x[] = {-1e30, -1e4, -60, 60, 1e4, 1e30};
    static const enum topt_activation all[] = {TOPT_ACT_RELU, TOPT_ACT_GELU,
                                               TOPT_ACT_SILU, TOPT_ACT_GELU_ERF,
                                               TOPT_ACT_QUICK_GELU};
    enum { N = sizeof x / sizeof *x, ALL = sizeof all / sizeof *all };
    for (int a = 0; a < ALL; a++) {
        double y[N], slope[N], worst = 0;
        int rc = activate(dtype, all[a], x, N, y, slope);
        for (int i = 0; i < N; i++) {
            worst = fmax(worst, fabs(y[i] - (x[i] > 0 ? x[i] : 0)) / fmax(1, fabs(y[i])));
            worst = fmax(worst, fabs(slope[i] - (x[i] > 0)));
        }
        ok(!rc && worst < 1e-6, "%s far out in %s (off by %.1e)",
           topt_activation_name(all[a]), topt_dtype_name(dtype), worst);
    }
}

/* The GELU of a normal distribution, whose f32 goes by a polynomial, beside that of the C library. */
static void check_gelu_erf(void)
{
    enum { ROUNDS = 100 };
    double x[POINTS], y[POINTS], slope[POINTS], worst = 0;
    int rc = 0;
    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < POINTS; i++)
            x[i] = (double)(float)(26.0 * (k + ROUNDS * i) / (ROUNDS * POINTS) - 13);
        rc |= activate(TOPT_F32, TOPT_ACT_GELU_ERF, x, POINTS, y, slope);
        for (int i = 0; i < POINTS; i++) {
            double below = erfc(-x[i] / sqrt(2)) / 2;
            double density = exp(-x[i] * x[i] / 2) / sqrt(2 * acos(-1));
            worst = fmax(worst, fabs(y[i] - x[i] * below) / fmax(1, fabs(x[i])));
            worst = fmax(worst, fabs(slope[i] - (below + x[i] * density)));
        }
    }
    ok(!rc && worst < 3e-7, "the exact gelu in f32 is exact (off by %.1e)", worst);
}

static void check_updates(void)
{
    struct topt_device d;
    if (topt_device_open_host(TOPT_F64, &d, NULL))
        abort();
    double w[2] = {1, -1}, g[2] = {0.5, -0.25}, m[2] = {0}, v[2] = {0};
    struct topt_update_call c = {.optimizer = TOPT_SGD,
                                 .n = 2,
                                 .step = 1,
                                 .lr = 0.1,
                                 .param = w,
                                 .grad = g,
                                 .state = {m, v}};
    int rc = d.ops->update(&d, &c, NULL);
    ok(!rc && fabs(w[0] - 0.95) < 1e-15 && fabs(w[1] + 0.975) < 1e-15, "sgd steps");
    c.optimizer = TOPT_MOMENTUM;
    w[0] = 1;
    rc = d.ops->update(&d, &c, NULL) | d.ops->update(&d, &c, NULL);
    ok(!rc && fabs(w[0] - (1 - 0.1 * (0.5 + 0.95))) < 1e-15, "momentum remembers");
    c.optimizer = TOPT_ADAM;
    w[0] = 1;
    m[0] = v[0] = 0;
    rc = d.ops->update(&d, &c, NULL);
    ok(!rc && fabs(w[0] - 0.9) < 1e-7, "adam's first step is the learning rate");
    c.step = 2;
    rc = d.ops->update(&d, &c, NULL);
    ok(!rc && fabs(w[0] - 0.8) < 1e-7, "and so is the second under a constant gradient");
}

int main(void)
{
    struct topt_device d;
    for (size_t i = 0; i < sizeof dense_fixtures / sizeof *dense_fixtures; i++)
        check_operator(&dense_fixtures[i]);
    check_extremes(TOPT_F32);
    check_extremes(TOPT_F64);
    check_gelu_erf();
    check_updates();
    struct topt_error err = {0};
    ok(topt_device_open_host(TOPT_BF16, &d, &err) && err.code == TOPT_ERR_INVAL,
       "bf16 is refused");
    return done_testing();
}
