/* test_accpar.c - AccPar's tables, its search against all assignments, and its shares. */
#include <math.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "tap.h"
#include "topt_accpar.h"
#include "topt_accpar_row.h"

#define I   TOPT_ACCPAR_BATCH
#define II  TOPT_ACCPAR_INPUT
#define III TOPT_ACCPAR_OUTPUT

static uint64_t state = 20;

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static int same(double a, double b)
{
    return fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b));
}

/* ---- tables ------------------------------------------------------------------------- */

static double between(int from, int to, double a, double f, double e)
{
    return topt_accpar_between((enum topt_accpar_type)from, (enum topt_accpar_type)to, 0,
                               a, a, f, e);
}

static void tables(void)
{
    const double f = 1000, e = 1000 * 7;
    const double half[3][3] = {
        {0, .25 * (f + e), .5 * f}, {.5 * e, .5 * e, 0}, {.25 * (f + e), 0, .5 * f}};
    int good = 1;
    for (int p = 0; p < 3; p++)
        for (int t = 0; t < 3; t++)
            good &= between(p, t, .5, f, e) == half[p][t];
    ok(good, "the 3 x 3 table between layers, with halves");
    ok(between(I, I, .5, f, e) == 0 && between(I, II, .5, f, e) == .25 * (f + e) &&
           between(II, I, .5, f, e) == .5 * e && between(II, II, .5, f, e) == .5 * e,
       "HyPar's four entries are its corner");
    good = 1;
    for (double a = 0.0625; a < 1; a += 0.0625) {
        double b = 1 - a, cross = a * b * (f + e);
        const double want[3][3] = {
            {0, cross, b * f}, {b * e, b * e, 0}, {cross, 0, b * f}};
        for (int p = 0; p < 3; p++)
            for (int t = 0; t < 3; t++)
                good &= same(between(p, t, a, f, e), want[p][t]);
    }
    ok(good, "... and with any share");
    struct topt_accpar_layer conv = {
        .in = 3, .out = 64, .map_in = 100, .map_out = 25, .kernel = 9};
    ok(topt_accpar_within(&conv, 8, I) == 3 * 64 * 9 &&
           topt_accpar_within(&conv, 8, II) == 8 * 64 * 25 &&
           topt_accpar_within(&conv, 8, III) == 8 * 3 * 100,
       "within a layer: A(W), A(F), A(E)");
    ok(topt_accpar_flops(&conv, 8) == 8. * 64 * 25 * (2 * 3 * 9 - 1) +
                                          8. * 3 * 100 * (2 * 64 * 9 - 1) +
                                          3. * 64 * 9 * (2 * 8 * 25 - 1),
       "operations of the three products");
}

/* ---- search ------------------------------------------------------------------------- */

/* A random chain; 'joins': with shortcuts over one or two of its layers, one after another. */
static void random_net(struct topt_accpar_net *net, int n, int joins)
{
    *net = (struct topt_accpar_net){.batch = 1 + below(64), .n = n};
    for (int l = 0; l < n; l++) {
        net->layer[l] = (struct topt_accpar_layer){.conv = below(2),
                                                   .in = 1 + below(300),
                                                   .out = 1 + below(300),
                                                   .map_in = 1 + below(400),
                                                   .map_out = 1 + below(400),
                                                   .kernel = 1 + below(9)};
        if (l)
            net->edge[net->nedges++] = (struct topt_accpar_edge){l - 1, l, 0};
    }
    for (int l = 0; joins && l + 2 < n;) {
        int to = l + 1 + below(n - l - 1);
        net->edge[net->nedges++] = (struct topt_accpar_edge){l, to, 1};
        l = to;
    }
}

static double exhaustive(const struct topt_accpar_net *net,
                         const struct topt_accpar_part *part,
                         const struct topt_accpar_sides *sides,
                         enum topt_accpar_system system)
{
    enum topt_accpar_type type[TOPT_ACCPAR_LAYERS];
    double best = INFINITY;
    int all = 1;
    for (int l = 0; l < net->n; l++)
        all *= 3;
    for (int i = 0; i < all; i++) {
        for (int l = 0, x = i; l < net->n; l++, x /= 3)
            type[l] = (enum topt_accpar_type)(x % 3);
        best = fmin(best, topt_accpar_cost(net, part, sides, system, type));
    }
    return best;
}

static void search(enum topt_accpar_system system, int joins)
{
    int good = 1;
    for (int i = 0; i < 60; i++) {
        struct topt_accpar_net net;
        struct topt_accpar_cut cut;
        struct topt_accpar_part part[TOPT_ACCPAR_LAYERS];
        struct topt_accpar_sides sides = {{1e12 * (1 + below(4)), 1e12 * (1 + below(4))},
                                          {1e9 * (1 + below(20)), 1e9 * (1 + below(20))},
                                          2};
        random_net(&net, 1 + below(7), joins);
        for (int l = 0; l < net.n; l++)
            part[l] = (struct topt_accpar_part){1. / (1 + below(3)), 1. / (1 + below(3)),
                                                1. / (1 + below(3))};
        const struct topt_accpar_part *had = below(2) ? part : NULL;
        if (topt_accpar_cut(&net, had, &sides, system, &cut, NULL))
            good = 0;
        else
            good &= same(cut.cost, exhaustive(&net, had, &sides, system)) &&
                    same(cut.cost, topt_accpar_cost(&net, had, &sides, system, cut.type));
    }
    ok(good, "%s, %s: the cheapest of all 3^L", topt_accpar_system_name(system),
       joins ? "paths that fork and join" : "chains");
}

static void crossing(void)
{
    struct topt_accpar_net net;
    struct topt_accpar_cut cut;
    struct topt_error err = {0};
    struct topt_accpar_sides sides = {{1, 1}, {1, 1}, 2};
    random_net(&net, 4, 0);
    net.edge[net.nedges++] = (struct topt_accpar_edge){0, 2, 1};
    net.edge[net.nedges++] = (struct topt_accpar_edge){1, 3, 1};
    ok(topt_accpar_cut(&net, NULL, &sides, TOPT_ACCPAR_ACCPAR, &cut, &err) &&
           err.code == TOPT_ERR_INVAL,
       "shortcuts that cross are refused");
}

/* ---- shares ------------------------------------------------------------------------- */

static void shares(void)
{
    const double none[2] = {0, 0}, equal[2] = {1e12, 1e12}, tpu[2] = {420e12, 180e12};
    ok(topt_accpar_share(1e15, equal, none) == 0.5, "equal groups take halves");
    ok(fabs(topt_accpar_share(1e15, tpu, none) - 0.7) < 1e-12,
       "by computing alone a TPU v3 takes 420 of 600");
    int good = 1, inside = 0;
    for (int i = 0; i < 1000; i++) {
        double rate[2] = {1 + below(1000), 1 + below(1000)}, flops = 1 + below(100000);
        double exchange[2] = {below(100), below(100)};
        double a = topt_accpar_share(flops, rate, exchange);
        double first = a * flops / rate[0] + exchange[0];
        double second = (1 - a) * flops / rate[1] + exchange[1];
        if (a > 0 && a < 1) {
            inside++;
            good &= fabs(first - second) <= 1e-6 * fmax(first, second);
        } else {
            good &= a > 0 ? first <= second : second <= first;
        }
    }
    ok(good && inside > 500, "both sides end within a millionth of each other");
}

/* ---- arrays ------------------------------------------------------------------------- */

/* Data parallelism exchanges the same at each of seven cuts. */
static void links(void)
{
    struct topt_accpar_boards b = {.count = 2, .flops = 420e12, .bytes_per_second = 2e9};
    struct topt_accpar_net net;
    struct topt_accpar_answer a, own, one;
    if (topt_accpar_net("alexnet", 512, &net, NULL) ||
        topt_accpar_solve(&net, &b, 1, 2, TOPT_ACCPAR_DATA, &a, NULL))
        return;
    b.count = 128;
    int good = !topt_accpar_solve(&net, &b, 1, 2, TOPT_ACCPAR_DATA, &own, NULL);
    b.one_link = 1;
    good &= !topt_accpar_solve(&net, &b, 1, 2, TOPT_ACCPAR_DATA, &one, NULL);
    ok(good && same(own.exchange_seconds, (2 - 1. / 64) * a.exchange_seconds) &&
           same(one.exchange_seconds, 7 * a.exchange_seconds),
       "with one link a group all cuts weigh alike, else the last ones most");
}

static double seconds(const struct topt_accpar_net *net,
                      const struct topt_accpar_boards *boards, int kinds,
                      enum topt_accpar_system system)
{
    struct topt_accpar_answer a;
    return topt_accpar_solve(net, boards, kinds, 2, system, &a, NULL) ? NAN : a.seconds;
}

static void arrays(void)
{
    const struct topt_accpar_boards boards[2] = {{"v2", 128, 180e12, 1e9, 0, 0, 0},
                                                 {"v3", 128, 420e12, 2e9, 0, 0, 0}};
    const char *const *names = topt_accpar_nets();
    int good = 1, parameters = 0;
    for (int i = 0; names[i]; i++) {
        struct topt_accpar_net net;
        struct topt_accpar_answer a;
        if (topt_accpar_net(names[i], 512, &net, NULL)) {
            good = 0;
            break;
        }
        double weights = 0;
        for (int l = 0; l < net.n; l++)
            weights += topt_accpar_within(&net.layer[l], 1, I);
        parameters += (int)(weights / 1e6 + 0.5);
        good &= topt_accpar_solve(&net, boards, 2, 2, TOPT_ACCPAR_ACCPAR, &a, NULL) == 0;
        good &= same(a.seconds, a.compute_seconds + a.exchange_seconds);
        good &= a.levels == 8;
        /* A kind cut in two kinds of itself is the array of both. */
        struct topt_accpar_boards two[2] = {boards[1], boards[1]}, one = boards[1];
        two[0].count = two[1].count = 64;
        for (int s = 0; s < TOPT_ACCPAR_SYSTEMS; s++)
            good &= same(seconds(&net, two, 2, (enum topt_accpar_system)s),
                         seconds(&net, &one, 1, (enum topt_accpar_system)s));
    }
    ok(good, "arrays of eight networks add up, and kinds that are alike are one");
    /* 61.1, 132.9, 133.0, 138.4, 143.7, 11.7, 21.8 and 25.6 millions, biases and norms aside */
    is_int(parameters, 61 + 133 + 133 + 138 + 144 + 12 + 22 + 26,
           "networks have the parameters that are published");
    struct topt_error err = {0};
    struct topt_accpar_net net;
    ok(topt_accpar_net("lenet", 1, &net, &err) && err.code == TOPT_ERR_NOTFOUND,
       "other names are refused");
    struct topt_accpar_boards odd = {"v3", 12, 420e12, 2e9, 0, 0, 0};
    struct topt_accpar_answer a;
    ok(!topt_accpar_net("alexnet", 1, &net, &err) &&
           topt_accpar_solve(&net, &odd, 1, 2, TOPT_ACCPAR_HYPAR, &a, &err) &&
           err.code == TOPT_ERR_INVAL,
       "arrays that can't be halved are refused");
}

/* ---- rows of comparisons ------------------------------------------------------------- */

/* Operators with parameters that the system says nothing of; -1: it has no plan. */
static int left_open(const struct topt_system *system, const struct topt_model *m,
                     const struct topt_hw *hw)
{
    struct topt_request r;
    struct topt_chosen chosen;
    int open = 0;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.gpus = 4;
    if (system->choices(system, &r, &chosen, NULL))
        return -1;
    for (int i = 0; i < m->nops && chosen.pins; i++) {
        const struct topt_op *o = &m->op[i];
        char pin[128];
        snprintf(pin, sizeof pin, ";%s=", o->name);
        int said = strstr(chosen.pins, pin) != NULL ||
                   !strncmp(chosen.pins, pin + 1, strlen(pin + 1));
        open += topt_op_parameters(o) > 0 && !said;
    }
    open = chosen.pins ? open : -1;
    free(chosen.pins);
    free(chosen.why);
    return open;
}

static void every_weight(void)
{
    struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", NULL);
    static const char *const papers[] = {"paper:dlrm",      "paper:words",
                                         "paper:rnn",       "paper:nmt",
                                         "paper:inception", "paper:transformer-s"};
    struct topt_model *m[] = {build_mlp(), build_gpt(), build_lstm(), build_moe(), NULL,
                              NULL,        NULL,        NULL,         NULL,        NULL};
    int open = 0, planned = 0;
    enum { MODELS = sizeof m / sizeof *m, PAPERS = sizeof papers / sizeof *papers };
    for (int i = 0; i < MODELS; i++) {
        if (!m[i])
            m[i] = topt_model_load(papers[i - (MODELS - PAPERS)], NULL, NULL);
        int a = left_open(&topt_accpar_row, m[i], hw),
            b = left_open(&topt_hypar_row, m[i], hw);
        planned += a >= 0 && b >= 0;
        open += a + b;
        topt_model_destroy(m[i]);
    }
    topt_hw_destroy(hw);
    is_int(planned, MODELS, "tables, experts, recurrent layers and convolutions are cut");
    is_int(open, 0, "and no weight is left to another search");
}

int main(void)
{
    tables();
    for (int joins = 0; joins < 2; joins++) {
        search(TOPT_ACCPAR_HYPAR, joins);
        search(TOPT_ACCPAR_ACCPAR, joins);
        search(TOPT_ACCPAR_BY_FLOPS, joins);
    }
    crossing();
    shares();
    links();
    arrays();
    every_weight();
    return done_testing();
}
