/* kernels.c - the host kernels of dense models and attention, and the optimizer's updates. */
#include "dense_fixtures.h"

/* Activations far from 0: the value and the slope of the line they have become. */
static void check_extremes(enum topt_dtype dtype)
{
    static const double x[] = {-1e30, -1e4, -60, 60, 1e4, 1e30};
    enum { N = sizeof x / sizeof *x };
    struct topt_attrs table = {.vocab = 2, .features = N};
    struct topt_device d;
    if (topt_device_open_host(dtype, &d, NULL))
        abort();
    for (int a = TOPT_ACT_RELU; a <= TOPT_ACT_SILU; a++) {
        struct topt_attrs attrs = {.activation = a};
        struct topt_model *m = topt_model_create("test", 1, 1, NULL);
        int e = topt_model_add(m, "embedding", "e", 0, NULL, &table, NULL);
        if (topt_model_add(m, "unary", "u", 1, &e, &attrs, NULL) < 0)
            abort();
        double in[N], out[N], ones[N], slope[N], worst = 0;
        float *f[4] = {(float *)in, (float *)out, (float *)ones, (float *)slope};
        for (int i = 0; i < N; i++) {
            in[i] = ones[i] = 0;
            if (dtype == TOPT_F64)
                in[i] = x[i], ones[i] = 1;
        }
        for (int i = 0; i < N && dtype == TOPT_F32; i++)
            f[0][i] = (float)x[i], f[2][i] = 1;
        struct topt_kernel_call c = {.op = &m->op[1],
                                     .kernel = TOPT_K_UNARY_FWD,
                                     .len = {1, 1, N},
                                     .box = {{{0}, {1, 1, N}}, {{0}, {1, 1, N}}},
                                     .value = {in, out},
                                     .grad = {slope, ones}};
        int rc = d.ops->kernel(&d, &c, NULL);
        c.kernel = TOPT_K_UNARY_BWD;
        rc |= d.ops->kernel(&d, &c, NULL);
        for (int i = 0; i < N; i++) {
            double y = dtype == TOPT_F64 ? out[i] : (double)f[1][i];
            double s = dtype == TOPT_F64 ? slope[i] : (double)f[3][i];
            worst = fmax(worst, fabs(y - (x[i] > 0 ? x[i] : 0)) / fmax(1, fabs(y)));
            worst = fmax(worst, fabs(s - (x[i] > 0)));
        }
        ok(!rc && worst < 1e-6, "activation %d far out in %s (off by %.1e)", a,
           topt_dtype_name(dtype), worst);
        topt_model_destroy(m);
    }
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
    check_updates();
    struct topt_error err = {0};
    ok(topt_device_open_host(TOPT_BF16, &d, &err) && err.code == TOPT_ERR_INVAL,
       "bf16 is refused");
    return done_testing();
}
