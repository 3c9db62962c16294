/* test_baselines.c - a smaller space never beats a larger one.
 *
 * Random models, towers that read another's end among them, on random clusters: whatever a system
 * finds in its part of a space, the whole space has as good; and the full space has what the
 * canonical one has, where tables are too large to be exact, too.
 *
 * `solver_baselines real` asks the same of architectures that people train (label slow): in
 * `full` on 8 GPUs and in `canonical` on 16, ours is never slower than a system's plan within the
 * memory that this plan takes; and who looks at time alone takes just what the right end of our
 * frontier does. */
#include <stdlib.h>
#include <string.h>

#include "points.h"
#include "random_hw.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"
#include "topt_plan.h"

enum { ROUNDS = TOPT_TEST_SIZE_FROM(24, 3) };

static const char *const systems[] = {"data-parallel",       "optcnn",
                                      "right-end",           "tofu",
                                      "mesh-tensorflow",     "mesh-tensorflow-reshape",
                                      "mesh-tensorflow-tied"};
enum { SYSTEMS = sizeof systems / sizeof *systems };

static const char *words(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* ---- random models ------------------------------------------------------------------ */

/* One tower, and another that reads its end in every block. */
static struct topt_model *two_towers(uint64_t seed)
{
    struct topt_model *m =
        topt_model_create("towers", 4, 1 + random_below(&seed, 3), NULL);
    int width = 4 + random_below(&seed, 9);
    struct topt_attrs a = {.vocab = 8, .features = width};
    int x = topt_model_add(m, "embedding", "first", 0, NULL, &a, NULL);
    for (int i = 0, steps = 1 + random_below(&seed, 2); i < steps; i++)
        x = random_step(m, &seed, x, -1, width);
    int end = x;
    x = topt_model_add(m, "embedding", "second", 0, NULL, &a, NULL);
    for (int b = 0; b < 2; b++) {
        char name[16];
        int two[2] = {x, end};
        snprintf(name, sizeof name, "reads%d", b);
        x = topt_model_add(m, "add", name, 2, two, NULL, NULL);
        x = random_step(m, &seed, x, -1, width);
    }
    x = topt_model_add(m, "linear", "head", 1, &x, &(struct topt_attrs){.features = 8},
                       NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    if (x < 0 || topt_model_finish(m, NULL)) {
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}

static struct topt_model *model_of(uint64_t seed)
{
    switch (seed % 3) {
    case 0:
        return two_towers(seed);
    case 1:
        return block_model(seed, 2, 1 + (int)(seed / 3 % 2));
    default:
        return random_model(seed, 1 + (int)(seed / 3 % 4));
    }
}

static struct topt_hw *cluster_of(uint64_t seed)
{
    static const int sizes[][2] = {{2, 2}, {1, 4}, {2, 3}, {2, 4}};
    const int *size = sizes[random_below(&seed, 4)];
    struct made_up c = {.nodes = size[0], .per_node = size[1], .cluster_ns = 5000};
    c.cluster_mb = 10 + random_below(&seed, 500);
    c.node_ns = random_below(&seed, 2000);
    c.node_mb = 100 + random_below(&seed, 5000);
    return made_up_cluster(&c);
}

static int nsystems_with_points;

/* Ours searches what the system may: sharding is part of tofu's. */
static int nothing_beats(struct topt_request *r)
{
    int good = 1;
    r->factors = TOPT_FACTOR_ZERO;
    json_t *ours = frontier(r, "ft");
    for (int i = 0; i < SYSTEMS; i++) {
        json_t *theirs = frontier(r, systems[i]);
        nsystems_with_points += npoints(theirs) > 0;
        if (!covers(ours, theirs)) {
            printf("# %s beats ft\n", systems[i]);
            good = 0;
        }
        json_decref(theirs);
    }
    json_decref(ours);
    return good;
}

/* What the full space decides by heuristic the canonical one may know better. */
static int full_has_canonical(struct topt_request *r, int *decided)
{
    r->factors = TOPT_FACTOR_ZERO;
    r->space = TOPT_SPACE_FULL;
    json_t *full = frontier(r, "ft");
    r->space = TOPT_SPACE_CANONICAL;
    json_t *canonical = frontier(r, "ft");
    *decided += json_object_get(full, "heuristic") != NULL;
    int good = npoints(full) > 0 && covers(full, canonical);
    json_decref(full);
    json_decref(canonical);
    return good;
}

static void test_random(void)
{
    int beaten = 0, lost = 0, decided = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct topt_request r;
        topt_request_init(&r);
        r.settings.granule_bytes = 1;
        r.model = model_of(seed);
        r.hw = cluster_of(seed * 104729);
        r.gpus = (int64_t)topt_hw_max_nodes(r.hw) * topt_hw_gpus_per_node(r.hw);
        r.space = seed % 2 ? TOPT_SPACE_FULL : TOPT_SPACE_CANONICAL;
        if (seed % 4 >= 2)
            r.settings.accounting =
                seed % 8 >= 6 ? TOPT_ACCOUNTING_PAPER_REUSE : TOPT_ACCOUNTING_PAPER;
        if (!nothing_beats(&r)) {
            printf("# seed %llu\n", (unsigned long long)seed);
            beaten++;
        }
        r.max_entries = 1 + (int64_t)(seed * 7919 % 60);
        lost += !full_has_canonical(&r, &decided);
        topt_model_destroy((struct topt_model *)r.model);
        topt_hw_destroy((struct topt_hw *)r.hw);
    }
    is_int(beaten, 0, "%d random models: no system beats ft in its own space", ROUNDS);
    ok(nsystems_with_points >= ROUNDS * SYSTEMS / 2, "most of them have plans (%d of %d)",
       nsystems_with_points, ROUNDS * SYSTEMS);
    is_int(lost, 0, "the full space has what the canonical one has");
    ok(decided > 0, "where tables are small, too (%d of %d by heuristic)", decided,
       ROUNDS);
}

/* ---- architectures ------------------------------------------------------------------ */

#define TEXT(type, rest) "{\"model_type\":\"" type "\"," rest "}"
#define WIDTHS                                                                           \
    "\"hidden_size\":1024,\"intermediate_size\":4096,\"num_hidden_layers\":2,"           \
    "\"num_attention_heads\":16,\"vocab_size\":32000"
#define T5                                                                               \
    "\"d_model\":1024,\"d_kv\":64,\"d_ff\":4096,\"num_layers\":2,"                       \
    "\"num_decoder_layers\":2,\"num_heads\":16,\"vocab_size\":32128,"                    \
    "\"feed_forward_proj\":\"relu\",\"is_encoder_decoder\":true"
#define BART                                                                             \
    "\"d_model\":1024,\"encoder_layers\":2,\"decoder_layers\":2,"                        \
    "\"encoder_attention_heads\":16,\"decoder_attention_heads\":16,"                     \
    "\"encoder_ffn_dim\":4096,\"decoder_ffn_dim\":4096,\"vocab_size\":50264,"            \
    "\"max_position_embeddings\":1024,\"activation_function\":\"gelu\","                 \
    "\"is_encoder_decoder\":true"

static const struct {
    const char *name, *text; /* NULL: a paper's */
} architectures[] = {
    {"paper:rnn", NULL},
    {"paper:vgg16", NULL},
    {"paper:transformer-s", NULL},
    {"gpt2",
     TEXT("gpt2", "\"n_embd\":1024,\"n_layer\":2,\"n_head\":16,\"n_positions\":1024,"
                  "\"vocab_size\":50257")},
    {"llama", TEXT("llama", WIDTHS ",\"num_key_value_heads\":4")},
    {"mistral", TEXT("mistral", WIDTHS ",\"num_key_value_heads\":8")},
    {"mixtral",
     TEXT("mixtral", WIDTHS ",\"num_key_value_heads\":8,\"num_local_experts\":8,"
                            "\"num_experts_per_tok\":2")},
    {"qwen2", TEXT("qwen2", WIDTHS ",\"num_key_value_heads\":16")},
    {"qwen3", TEXT("qwen3", WIDTHS ",\"num_key_value_heads\":8,\"head_dim\":64")},
    {"gemma2", TEXT("gemma2", WIDTHS ",\"num_key_value_heads\":8,\"head_dim\":64")},
    {"phi", TEXT("phi", WIDTHS)},
    {"gpt_neox", TEXT("gpt_neox", WIDTHS)},
    {"falcon", TEXT("falcon", WIDTHS ",\"multi_query\":true")},
    {"bert",
     TEXT("bert", WIDTHS ",\"max_position_embeddings\":512,\"type_vocab_size\":2")},
    {"roberta",
     TEXT("roberta", WIDTHS ",\"max_position_embeddings\":514,\"type_vocab_size\":1")},
    {"t5", TEXT("t5", T5)},
    {"mt5", TEXT("mt5", T5)},
    {"bart", TEXT("bart", BART)},
    {"mbart", TEXT("mbart", BART)},
    {"pegasus", TEXT("pegasus", BART)},
    {"m2m_100", TEXT("m2m_100", BART)},
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

static struct topt_model *load(int i)
{
    struct topt_import_options o = {.batch = 32, .seq = 256};
    struct topt_error err = {0};
    const char *text = architectures[i].text;
    struct topt_model *m =
        text ? topt_model_import(text, strlen(text), architectures[i].name, &o, &err)
             : topt_model_load(architectures[i].name, NULL, &err);
    if (!m)
        printf("# %s: %s\n", architectures[i].name, err.text);
    return m;
}

/* How long ours takes within so much memory; 0: nothing fits. */
static int64_t ours_within(const struct topt_request *r, int64_t bytes)
{
    struct topt_request own = *r;
    struct topt_error err = {0};
    json_t *answer = NULL;
    own.mode = TOPT_MINI_TIME;
    own.memory_limit = bytes;
    int64_t ns = topt_plan(&own, &answer, &err) ||
                         !json_is_true(json_object_get(answer, "feasible"))
                     ? 0
                     : whole(answer, "time_ns");
    json_decref(answer);
    return ns;
}

/* Systems that do what ours does, but less of it. */
static int is_inside(const json_t *row)
{
    return strcmp(words(row, "algorithm"), "ft") &&
           strcmp(words(row, "algorithm"), "horovod");
}

static void test_architecture(int i, struct topt_request *r)
{
    json_t *doc = NULL, *row;
    struct topt_error err = {0};
    size_t k;
    int beaten = 0, plans = 0;
    if (!r->model || topt_plan_compare(r, NULL, &doc, &err)) {
        ok(0, "%s: %s", architectures[i].name, err.text);
        return;
    }
    json_array_foreach(json_object_get(doc, "systems"), k, row)
    {
        if (!json_object_get(row, "time_ns") || !is_inside(row))
            continue;
        int64_t ns = ours_within(r, whole(row, "memory_bytes"));
        int right = !strcmp(words(row, "algorithm"), "right-end");
        plans++;
        if (!ns || ns > whole(row, "time_ns") || (right && ns < whole(row, "time_ns"))) {
            printf("# %s: %lld ns in %lld bytes, ours %lld\n", words(row, "algorithm"),
                   (long long)whole(row, "time_ns"),
                   (long long)whole(row, "memory_bytes"), (long long)ns);
            beaten++;
        }
        if (json_is_true(json_object_get(row, "feasible")) &&
            json_real_value(json_object_get(row, "ratio")) < 1)
            beaten++;
    }
    ok(!beaten && plans >= 4, "%s on %d GPUs in %s: none of %d plans beats ours",
       architectures[i].name, (int)r->gpus, topt_space_name(r->space), plans);
    json_decref(doc);
}

/* T5 on 16 GPUs has too many choices in the full space to be searched exactly. */
static void test_decided(const struct topt_hw *hw)
{
    static const char t5[] =
        TEXT("t5", "\"d_model\":512,\"d_kv\":64,\"d_ff\":2048,\"num_layers\":6,"
                   "\"num_decoder_layers\":6,\"num_heads\":8,\"vocab_size\":32128,"
                   "\"feed_forward_proj\":\"relu\",\"is_encoder_decoder\":true");
    static const struct {
        const char *algorithm;
        enum topt_space space;
    } of[] = {{NULL, TOPT_SPACE_FULL},
              {NULL, TOPT_SPACE_CANONICAL},
              {"optcnn", TOPT_SPACE_CANONICAL},
              {"optcnn", TOPT_SPACE_FULL}};
    struct topt_import_options o = {.batch = 32, .seq = 256};
    struct topt_error err = {0};
    struct topt_request r;
    int64_t ns[4] = {0};
    topt_request_init(&r);
    struct topt_model *m = topt_model_import(t5, strlen(t5), "t5", &o, &err);
    r.model = m;
    r.hw = hw;
    r.gpus = 16;
    for (int i = 0; i < 4 && m; i++) {
        r.algorithm = of[i].algorithm;
        r.space = of[i].space;
        ns[i] = ours_within(&r, 0);
    }
    ok(ns[0] > 0 && ns[0] <= ns[1] && ns[0] <= ns[2] && ns[0] <= ns[3],
       "T5 on 16 GPUs in full: %lld ns, in canonical %lld, OptCNN %lld and %lld %s",
       (long long)ns[0], (long long)ns[1], (long long)ns[2], (long long)ns[3], err.text);
    topt_model_destroy(m);
}

static void test_architectures(void)
{
    struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", NULL);
    for (int i = 0; i < ARCHITECTURES; i++) {
        struct topt_model *m = load(i);
        for (int wide = 0; wide < 2; wide++) {
            struct topt_request r;
            topt_request_init(&r);
            r.model = m;
            r.hw = hw;
            r.gpus = wide ? 16 : 8;
            r.counts = TOPT_COUNTS_WHOLE;
            r.space = wide ? TOPT_SPACE_CANONICAL : TOPT_SPACE_FULL;
            test_architecture(i, &r);
        }
        topt_model_destroy(m);
    }
    test_decided(hw);
    topt_hw_destroy(hw);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "real"))
        test_architectures();
    else
        test_random();
    return done_testing();
}
