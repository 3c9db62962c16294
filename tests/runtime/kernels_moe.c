/* kernels_moe.c - mixtures of experts: slopes and splits of each operator; who gets which slot
 * and what is dropped, worked out by hand. */
#include "moe_fixtures.h"

/* One operator of a sample of four tokens, two experts and one feature. */
static void run_one(const char *kind, const struct topt_attrs *a, int64_t slots,
                    const double *in, const double *g, double *out)
{
    struct fixture x = {"", kind, g ? 2 : 1, 2, 1, .attrs = *a};
    if (g)
        x.shape[0] = slots ? (struct fixture_shape){3, {{1, 1}, {2, slots}, {1, 1}}}
                           : (struct fixture_shape){3, {{1, 1}, {4, 1}, {1, 1}}};
    x.shape[g ? 1 : 0] = (struct fixture_shape){3, {{1, 1}, {4, 1}, {2, 1}}};
    struct topt_model *m = build(&x);
    const struct topt_op *op = &m->op[m->nops - 1];
    struct topt_mesh one;
    struct topt_config none = topt_config_none();
    struct whole w = {{(double *)in, (double *)g}, {NULL}, {NULL}};
    struct fake f;
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    fake_init(&f, op, &one, &none, &w);
    fake_run(&f, 0);
    memcpy(out, f.value[0][op->output], (size_t)fake_volume(op, op->output) * 8);
    fake_fini(&f);
    topt_model_destroy(m);
}

static int same(const double *a, const double *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) < 1e-12))
            return 0;
    return 1;
}

/* Three tokens want the first expert, which has room for two. */
static void check_by_hand(void)
{
    static const double logits[8] = {2, 1, 3, 1, 0, 0, 0, 5};
    static const double routed[8] = {1, 0, 1, 0, 0, 0, 0, 1};
    static const double x[4] = {10, 20, 30, 40};
    static const double slots[4] = {10, 20, 40, 0};
    static const double back[4] = {10, 20, 0, 40};
    struct topt_attrs a = {.top_k = 1, .capacity = 1};
    double g[8], y[4], z[4];
    run_one("route", &a, 0, logits, NULL, g);
    ok(same(g, routed, 8),
       "ties go to the first expert, who drops what he has no room for");
    run_one("dispatch", &a, 0, x, g, y);
    ok(same(y, slots, 4), "slots are filled in order of position, the rest is 0");
    run_one("combine", &(struct topt_attrs){0}, 2, y, g, z);
    ok(same(z, back, 4), "tokens come back to their places, a dropped one is 0");
    a = (struct topt_attrs){.top_k = 2, .capacity = 1, .unnormalized = 1};
    run_one("route", &a, 0, logits, NULL, g);
    ok(fabs(g[0] + g[1] - 1) < 1e-12 && g[4] == 0.5,
       "of all experts the weights add up to 1");
}

/* One token of six experts in three groups.  With the correction the last group has the two
 * largest scores, though the second has the largest; the weights do not know of it. */
static void check_groups(void)
{
    static double logits[6] = {0, 1, 3, -9, 0.5, 0.25};
    static double correction[6] = {0, -1, 0, 0, 0, 1};
    struct fixture x = {"",
                        "route",
                        1,
                        6,
                        1,
                        .attrs = {.top_k = 2,
                                  .capacity = 9,
                                  .sigmoid = 1,
                                  .corrected = 1,
                                  .groups = 3,
                                  .top_groups = 1,
                                  .factor = 2.5},
                        .shape = {{3, {{1, 1}, {1, 1}, {6, 1}}}}};
    struct topt_model *m = build(&x);
    const struct topt_op *op = &m->op[m->nops - 1];
    struct topt_mesh one;
    struct topt_config none = topt_config_none();
    struct whole w = {{logits, NULL, correction}, {NULL}, {NULL}};
    struct fake f;
    double a = 1 / (1 + exp(-0.5)), b = 1 / (1 + exp(-0.25)), sum = a + b;
    double expected[6] = {0, 0, 0, 0, 2.5 * a / sum, 2.5 * b / sum};
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    fake_init(&f, op, &one, &none, &w);
    fake_run(&f, 0);
    ok(same(f.value[0][op->output], expected, 6),
       "the best group by its two best, weights without the correction");
    fake_fini(&f);
    topt_model_destroy(m);
}

static void check_slots(void)
{
    struct topt_attrs a = {.top_k = 2, .capacity = 1.25};
    is_int(topt_expert_slots(&a, 100, 8), 32, "slots are rounded up");
    is_int(topt_expert_slots(&a, 100, 2), 100,
           "nobody has more slots than there are tokens");
    a.capacity = 1e-9;
    is_int(topt_expert_slots(&a, 100, 8), 1, "everybody has a slot");
}

static void check_refusals(void)
{
    struct topt_error err = {0};
    struct topt_attrs table = {.vocab = 5, .features = 4};
    struct topt_attrs a = {.top_k = 5};
    struct topt_model *m = topt_model_create("test", 2, 3, &err);
    int e = topt_model_add(m, "embedding", "e", 0, NULL, &table, &err);
    ok(topt_model_add(m, "route", "r", 1, &e, &a, &err) < 0 && err.code == TOPT_ERR_INVAL,
       "more experts a token than there are: %s", err.text);
    a.top_k = 2;
    int g = topt_model_add(m, "route", "r2", 1, &e, &a, &err);
    int d = topt_model_add(m, "dispatch", "d", 2, (int[]){e, g}, &a, &err);
    ok(topt_model_add(m, "norm", "n", 1, &d, NULL, &err) < 0 &&
           err.code == TOPT_ERR_INVAL,
       "slots where positions are needed: %s", err.text);
    ok(topt_model_add(m, "experts", "x", 1, &d, NULL, &err) < 0, "no features: %s",
       err.text);
    table.features = 1025;
    int wide = topt_model_add(m, "embedding", "w", 0, NULL, &table, &err);
    ok(topt_model_add(m, "route", "r3", 1, &wide, &a, &err) < 0 &&
           err.code == TOPT_ERR_LIMIT,
       "too many experts: %s", err.text);
    topt_model_destroy(m);
}

/* Samples split before the experts and experts within: one all-to-all, there and back. */
static void check_expert_parallelism(void)
{
    struct fixture x = {"", "dispatch", 2, 4, 1, .attrs = {.top_k = 2}};
    x.shape[0] = (struct fixture_shape){3, {{8, 1}, {6, 1}, {3, 1}}};
    x.shape[1] = (struct fixture_shape){3, {{8, 1}, {6, 1}, {4, 1}}};
    struct topt_attrs a = {.features = 5};
    struct topt_error err = {0};
    struct topt_model *m = build(&x);
    int slots = m->op[m->nops - 1].tensor[2];
    int y = topt_model_add(m, "experts", "experts", 1, &slots, &a, &err);
    const struct topt_op *dispatch = &m->op[m->nops - 2], *experts = &m->op[m->nops - 1];
    struct topt_config by_sample = topt_config_none(), by_expert = topt_config_none();
    struct topt_mesh mesh;
    struct topt_hw *hw = topt_hw_load("lab-cpu", &err);
    if (y < 0 || !hw || topt_mesh_init(&mesh, 1, 4, &err))
        abort();
    for (int i = 0; i < mesh.naxes; i++)
        by_sample.dim[i] = 0, by_expert.dim[i] = 1;
    struct topt_layout from = topt_value_layout(dispatch, 2, &by_sample, &mesh);
    struct topt_layout to = topt_value_layout(experts, 0, &by_expert, &mesh);
    struct topt_shape shape = fake_shape(experts, 0);
    struct topt_router *r = topt_router_create(hw, &mesh);
    const struct topt_path *there, *back;
    if (!r || topt_router_path(r, &shape, 4, &from, &to, &there, &err) ||
        topt_router_path(r, &shape, 4, &to, &from, &back, &err))
        abort();
    ok(there->nmoves == 1 && there->move[0].kind == TOPT_MOVE_ALL_TO_ALL &&
           back->nmoves == 1 && back->move[0].kind == TOPT_MOVE_ALL_TO_ALL,
       "tokens go to their experts and back in one all-to-all each");
    topt_router_destroy(r);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* The choice of experts again, with their balance beside the loss; equal parts give 1. */
static void check_balance(void)
{
    for (size_t i = 0; i < sizeof moe_fixtures / sizeof *moe_fixtures; i++) {
        struct fixture x = moe_fixtures[i];
        char title[128];
        if (strcmp(x.kind, "route") != 0)
            continue;
        snprintf(title, sizeof title, "%s, balanced", x.title);
        x.title = title;
        fake_beside = (struct fake_beside){.balance = 0.7};
        check_operator(&x);
        fake_beside = (struct fake_beside){0};
    }
    const struct fixture x = {
        "", "route", 1, 4, 1, .attrs = {.top_k = 1, .capacity = 4}, .seq = 4};
    struct topt_model *m = build(&x);
    const struct topt_op *op = &m->op[m->nops - 1];
    struct whole w;
    fill(&x, op, &w);
    for (int pass = 0; pass < 2;
         pass++) { /* position s chooses expert s, or all the first */
        for (int64_t k = 0; k < fake_volume(op, 0); k++)
            w.value[0][k] = k % 4 == (pass ? 0 : k / 4 % 4) ? 9 : 0;
        fake_beside = (struct fake_beside){.balance = 1};
        dotted(op, &w);
        double of_sample = fake_beside.balanced / BATCH;
        ok(pass ? of_sample > 3.9 && of_sample < 4 : fabs(of_sample - 1) < 1e-12,
           "%s: a balance of %.6f", pass ? "one of four for all" : "one for each",
           of_sample);
        fake_beside = (struct fake_beside){0};
    }
    drop(&w);
    topt_model_destroy(m);
}

int main(void)
{
    for (size_t i = 0; i < sizeof moe_fixtures / sizeof *moe_fixtures; i++)
        check_operator(&moe_fixtures[i]);
    check_balance();
    check_by_hand();
    check_groups();
    check_slots();
    check_refusals();
    check_expert_parallelism();
    return done_testing();
}
