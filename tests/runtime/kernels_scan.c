/* kernels_scan.c - the host kernels of recurrences that are computed by chunks, held to
 * finite differences, to each split of small meshes, and to their equations. */
#include "scan_fixtures.h"

/* ---- by the equations ------------------------------------------------------------------ */

enum { HEADS = 4, P = 3, GROUPS = 2, N = 2, ROWS_ALL = BATCH * SEQ };

static double *numbers(int64_t n, uint64_t stream)
{
    double *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = topt_random_normal(stream, (uint64_t)i);
    return x;
}

static double steps_to(double x)
{
    return log(1 + exp(x));
}

/* Output of the operator whose inputs and parameters are given, in their order. */
static double *output_of(const struct fixture *x, double *const in[])
{
    struct topt_model *m = build(x);
    const struct topt_op *op = &m->op[m->nops - 1];
    struct topt_config none = topt_config_none();
    struct topt_mesh one;
    struct whole w = {{0}, {0}, {0}};
    struct fake f;
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->operand[o].role == TOPT_INPUT || op->operand[o].role == TOPT_PARAM)
            w.value[o] = *in++;
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    fake_init(&f, op, &one, &none, &w);
    fake_run(&f, 0);
    double *y = fake_join(&f, op->output, 0);
    fake_fini(&f);
    topt_model_destroy(m);
    return y;
}

/* One head of one sample, position by position. */
static double worst_of_ssd(double *const in[], const double *y, int b, int h)
{
    double state[N][P] = {{0}}, worst = 0, a = -exp(in[3][h]);
    for (int t = 0; t < SEQ; t++) {
        int row = b * SEQ + t;
        const double *x = in[0] + (row * HEADS + h) * P;
        const double *keys = in[2] + (row * GROUPS + h / (HEADS / GROUPS)) * 2 * N;
        double dt = steps_to(in[1][row * HEADS + h] + in[5][h]);
        for (int p = 0; p < P; p++) {
            double made = in[4][h] * x[p];
            for (int n = 0; n < N; n++) {
                state[n][p] = exp(a * dt) * state[n][p] + dt * keys[n] * x[p];
                made += keys[N + n] * state[n][p];
            }
            worst = fmax(worst, fabs(made - y[(row * HEADS + h) * P + p]));
        }
    }
    return worst;
}

static void unit_length(double *x, const double *from, double factor)
{
    double sum = 1e-6;
    for (int n = 0; n < N; n++)
        sum += from[n] * from[n];
    for (int n = 0; n < N; n++)
        x[n] = factor * from[n] / sqrt(sum);
}

static double worst_of_delta(double *const in[], const double *y, int b, int h)
{
    double state[N][P] = {{0}}, worst = 0;
    for (int t = 0; t < SEQ; t++) {
        int row = b * SEQ + t;
        const double *v = in[0] + (row * HEADS + h) * P;
        const double *qk = in[1] + (row * GROUPS + h / (HEADS / GROUPS)) * 2 * N;
        double q[N], k[N], beta = 1 / (1 + exp(-in[2][row * HEADS + h]));
        double decay = exp(-exp(in[4][h]) * steps_to(in[3][row * HEADS + h] + in[5][h]));
        unit_length(q, qk, 1 / sqrt(N));
        unit_length(k, qk + N, 1);
        for (int p = 0; p < P; p++) {
            double there = 0, made = 0;
            for (int n = 0; n < N; n++)
                there += k[n] * (state[n][p] *= decay);
            for (int n = 0; n < N; n++) {
                state[n][p] += k[n] * beta * (v[p] - there);
                made += q[n] * state[n][p];
            }
            worst = fmax(worst, fabs(made - y[(row * HEADS + h) * P + p]));
        }
    }
    return worst;
}

static void check_equations(const struct fixture *x,
                            double (*worst_of)(double *const in[], const double *y, int b,
                                               int h))
{
    int delta = !strcmp(x->kind, "delta_rule");
    double *in[] = {numbers(ROWS_ALL * HEADS * P, 1),
                    numbers(ROWS_ALL * HEADS * 4, 2), /* enough for either */
                    numbers(ROWS_ALL * HEADS * 4, 3),
                    numbers(ROWS_ALL * HEADS, 4),
                    numbers(HEADS, 5),
                    numbers(HEADS, 6)};
    double *y = output_of(x, in), worst = 0;
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            worst = fmax(worst, worst_of(in, y, b, h));
    ok(worst < 1e-13, "%s is its equations (off by %.1e)", delta ? "delta rule" : "ssd",
       worst);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        free(in[i]);
    free(y);
}

int main(void)
{
    static const struct fixture ssd = SSD("", GROUPS, .chunk = 2);
    static const struct fixture delta = DELTA("", GROUPS, .chunk = 2);
    for (size_t i = 0; i < sizeof scan_fixtures / sizeof *scan_fixtures; i++)
        check_operator(&scan_fixtures[i]);
    check_equations(&ssd, worst_of_ssd);
    check_equations(&delta, worst_of_delta);
    return done_testing();
}
