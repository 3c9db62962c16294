/* levels.c - the kernels compiled for wider vectors give the bits of the plain ones. */
#include "host_math.h"
#include "random.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, COLS = 29, N = ROWS * COLS };

static const char *const level_name[] = {"base", "x86-64-v3", "x86-64-v4"};

/* An activation's kernels and one step of the optimizer on the same numbers; 'out' has
 * room for 5 blocks. */
static void compute(const struct topt_host_math *h, enum topt_dtype dtype, int activation,
                    char *out)
{
    struct topt_error err;
    size_t bytes = (size_t)topt_dtype_bytes(dtype) * N;
    struct topt_model *m = topt_model_create("m", 1, ROWS, &err);
    struct topt_attrs a = {.features = COLS, .activation = activation};
    char *x = malloc(bytes), *dy = malloc(bytes);
    int in = topt_model_add(m, "input", "in", 0, NULL, &a, &err);
    if (!x || !dy || in < 0 || topt_model_add(m, "unary", "f", 1, &in, &a, &err) < 0)
        abort();
    for (int i = 0; i < N; i++) {
        double v = 3 * topt_random_normal(1, (uint64_t)i),
               w = topt_random_normal(2, (uint64_t)i);
        if (dtype == TOPT_F64) {
            ((double *)(void *)x)[i] = v;
            ((double *)(void *)dy)[i] = w;
        } else {
            ((float *)(void *)x)[i] = (float)v;
            ((float *)(void *)dy)[i] = (float)w;
        }
    }
    struct topt_kernel_call c = {
        .op = &m->op[1], .value = {x, out}, .grad = {out + bytes, dy}};
    for (int k = 0; k < 2; k++)
        c.box[k] = (struct topt_box){.len = {1, ROWS, COLS}};
    h->kernel[TOPT_K_UNARY_FWD](&c);
    h->kernel[TOPT_K_UNARY_BWD](&c);
    struct topt_update_call u = {.optimizer = TOPT_ADAMW,
                                 .n = N,
                                 .step = 3,
                                 .lr = 0.01,
                                 .weight_decay = 0.1,
                                 .param = out + 2 * bytes,
                                 .grad = dy,
                                 .state = {out + 3 * bytes, out + 4 * bytes}};
    memcpy(u.param, x, bytes);
    memcpy(u.state[0], dy, bytes);
    memset(u.state[1], 0, bytes);
    h->update(&u);
    free(x);
    free(dy);
    topt_model_destroy(m);
}

static void compare(enum topt_dtype dtype, enum topt_host_level l)
{
    static const int activation[] = {TOPT_ACT_RELU, TOPT_ACT_GELU,    TOPT_ACT_SILU,
                                     TOPT_ACT_TANH, TOPT_ACT_SIGMOID, TOPT_ACT_GELU_ERF};
    const struct topt_host_math *h = topt_host_math_at(dtype, l);
    size_t bytes = 5 * (size_t)topt_dtype_bytes(dtype) * N;
    char *want = calloc(1, bytes), *got = calloc(1, bytes);
    int bad = 0;
    for (size_t i = 0; i < sizeof activation / sizeof *activation && h && want && got;
         i++) {
        compute(topt_host_math_at(dtype, TOPT_HOST_BASE), dtype, activation[i], want);
        compute(h, dtype, activation[i], got);
        bad += memcmp(want, got, bytes) != 0;
    }
    ok(want && got && !bad, "%s in %s%s", topt_dtype_name(dtype), level_name[l],
       h ? "" : " # SKIP this processor has it not");
    free(want);
    free(got);
}

static void normals(enum topt_host_level l)
{
    double want[301], got[301], worst = 0;
    const struct topt_host_math *h = topt_host_math_at(TOPT_F64, l);
    if (h) {
        topt_host_math_at(TOPT_F64, TOPT_HOST_BASE)->normal(want, 301, 5, 1000);
        h->normal(got, 301, 5, 1000);
    }
    ok(!h || !memcmp(want, got, sizeof want), "normal numbers in %s", level_name[l]);
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t r = topt_random(9, i);
        double u = ((double)(r >> 32) + 0.5) / 4294967296.0;
        double v = (double)(r & 0xffffffffu) / 4294967296.0;
        double d = fabs(topt_random_normal(9, i) -
                        sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
        worst = d > worst ? d : worst;
    }
    ok(worst < 1e-13, "... as the libraries' functions have them, within %g", worst);
}

int main(void)
{
    for (int l = TOPT_HOST_BASE; l < TOPT_HOST_LEVEL_COUNT; l++) {
        compare(TOPT_F32, (enum topt_host_level)l);
        compare(TOPT_F64, (enum topt_host_level)l);
        normals((enum topt_host_level)l);
    }
    return done_testing();
}
