/* Configurations that differ by which of some like axes they give to what, against each
 * other: they cost the same, to the last nanosecond and byte, whatever the operator. */
#include <string.h>

#include "random_model.h"
#include "tap.h"
#include "topt_lower.h"

enum { TRIES = 24 };

static const int shapes[][2] = {{1, 8}, {2, 4}, {4, 4}, {2, 6}, {3, 4}, {9, 4}};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

struct tally {
    int pairs, differ, failed;
};

static struct topt_config random_config(const struct topt_mesh *m,
                                        const struct topt_op *o, uint64_t *seed)
{
    struct topt_config c = topt_config_none();
    for (int a = 0; a < m->naxes; a++)
        c.dim[a] = (int8_t)(random_below(seed, o->spec->ndims + 1) - 1);
    c.zero = (uint8_t)random_below(seed, TOPT_ZERO_LEVELS);
    c.recompute = (uint8_t)random_below(seed, 2);
    return c;
}

/* Like axes change places. */
static struct topt_config shuffled(const struct topt_mesh *m, struct topt_config c,
                                   uint64_t *seed)
{
    for (int a = m->naxes - 1; a > 0; a--) {
        int b = random_below(seed, a + 1);
        int8_t dim = c.dim[a];
        if (!topt_mesh_alike(m, a, b))
            continue;
        c.dim[a] = c.dim[b];
        c.dim[b] = dim;
    }
    return c;
}

static void compare(const struct topt_costing *k, int op, uint64_t *seed, struct tally *t)
{
    const struct topt_op *o = &k->model->op[op];
    struct topt_config a = random_config(k->mesh, o, seed),
                       b = shuffled(k->mesh, a, seed);
    struct topt_fragment_cost x, y;
    if (!memcmp(&a, &b, sizeof a) || !topt_config_valid(o, &a, k->mesh))
        return;
    if (!topt_config_valid(o, &b, k->mesh) || topt_cost_op(k, op, &a, &x, NULL) ||
        topt_cost_op(k, op, &b, &y, NULL)) {
        t->failed++;
        return;
    }
    t->pairs++;
    t->differ += memcmp(&x, &y, sizeof x) != 0;
}

static void compare_model(const struct topt_model *m, const struct topt_hw *hw,
                          uint64_t seed, struct tally *t)
{
    struct topt_settings s = topt_settings_default();
    const int *shape = shapes[seed % NSHAPES];
    struct topt_mesh mesh;
    s.dtype = seed % 2 ? TOPT_BF16 : TOPT_F32;
    s.granule_bytes = seed % 3 ? 64 : 1;
    s.overlap = seed % 5 ? TOPT_OVERLAP_NONE : TOPT_OVERLAP_FSDP;
    if (topt_mesh_init(&mesh, shape[0], shape[1], NULL)) {
        t->failed++;
        return;
    }
    struct topt_costing k = {m, hw, &mesh, &s, topt_router_create(hw, &mesh), NULL};
    t->failed += !k.router;
    for (int op = 0; k.router && op < m->nops; op++)
        for (int i = 0; m->alike[op] == op && i < TRIES; i++)
            compare(&k, op, &seed, t);
    topt_router_destroy(k.router);
}

static void test_papers(const struct topt_hw *hw)
{
    static const char *const names[] = {"paper:rnn", "paper:transformer",
                                        "paper:wideresnet"};
    for (int i = 0; i < 3; i++) {
        struct topt_import_options o = {.batch = 96};
        struct topt_model *m = topt_model_load(names[i], &o, NULL);
        struct tally t = {0};
        for (uint64_t seed = 1; m && seed <= NSHAPES; seed++)
            compare_model(m, hw, seed, &t);
        ok(m && t.pairs > 100 && !t.differ && !t.failed,
           "%s: of %d pairs %d differ, %d failed", names[i], t.pairs, t.differ, t.failed);
        topt_model_destroy(m);
    }
}

static void test_random(const struct topt_hw *hw)
{
    struct tally t = {0};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct topt_model *m = random_model(seed, 5);
        if (m)
            compare_model(m, hw, seed, &t);
        topt_model_destroy(m);
    }
    ok(t.pairs > 100 && !t.differ && !t.failed,
       "random models: of %d pairs %d differ, %d failed", t.pairs, t.differ, t.failed);
}

int main(void)
{
    struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", NULL);
    if (hw) {
        test_papers(hw);
        test_random(hw);
    }
    topt_hw_destroy(hw);
    return done_testing();
}
