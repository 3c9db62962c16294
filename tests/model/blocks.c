/* Repeated blocks: where they are found in decoders, in an encoder with a decoder, in runs of
 * one operator, and where there are none. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_model.h"

static struct topt_model *import(const char *text)
{
    struct topt_import_options o = {.batch = 2, .seq = 16};
    struct topt_error err = {0};
    struct topt_model *m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    ok(m != NULL, "imported %s", err.text);
    return m;
}

/* Every operator of a block has its place, and the same one in every block. */
static int consistent(const struct topt_model *m, const struct topt_blocks *b)
{
    int inside = 0;
    for (int k = 0; k < b->nkinds; k++)
        for (int i = 0; i < b->of[k].length * b->of[k].count; i++) {
            int op = b->of[k].first + i, like = b->of[k].first + i % b->of[k].length;
            if (b->kind[op] != k || b->block[op] != i / b->of[k].length ||
                b->position[op] != i % b->of[k].length ||
                m->op[op].spec != m->op[like].spec)
                return 0;
            inside++;
        }
    for (int i = 0; i < m->nops; i++)
        inside -= b->kind[i] >= 0;
    return inside == 0;
}

static void expect(struct topt_model *m, const char *what, int kinds, int kind, int first,
                   int length, int count)
{
    struct topt_blocks b;
    if (!ok(m && !topt_model_blocks(m, &b, NULL), "%s: searched", what))
        return;
    is_int(b.nkinds, kinds, "%s: kinds", what);
    if (kind < b.nkinds) {
        is_int(b.of[kind].first, first, "%s: first operator", what);
        is_int(b.of[kind].length, length, "%s: operators a block", what);
        is_int(b.of[kind].count, count, "%s: blocks", what);
    }
    ok(consistent(m, &b), "%s: places agree", what);
    topt_blocks_fini(&b);
}

static int find(const struct topt_model *m, const char *name)
{
    int i = 0;
    while (i < m->nops && strcmp(m->op[i].name, name))
        i++;
    return i;
}

static void test_decoders(void)
{
    struct topt_model *m =
        import("{\"architectures\":[\"GPT2LMHeadModel\"],\"model_type\":\"gpt2\","
               "\"layer_norm_epsilon\":1e-05,\"activation_function\":\"gelu_new\","
               "\"n_ctx\":32,\"n_embd\":16,\"n_head\":2,\"n_layer\":5,\"n_positions\":32,"
               "\"vocab_size\":64}");
    struct topt_blocks b;
    if (m && !topt_model_blocks(m, &b, NULL)) {
        is_int(b.nkinds, 1, "gpt2: one kind");
        is_int(b.of[0].count, 5, "gpt2: five blocks");
        ok(!strcmp(m->op[b.of[0].first].spec->name, "norm"), "gpt2: from the first norm");
        int last = b.of[0].first + b.of[0].length - 1;
        ok(!strcmp(m->op[last].spec->name, "add"), "gpt2: to the second residual");
        ok(consistent(m, &b), "gpt2: places agree");
        topt_blocks_fini(&b);
    }
    topt_model_destroy(m);
    m = import("{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\","
               "\"hidden_act\":\"silu\",\"hidden_size\":16,\"intermediate_size\":24,"
               "\"max_position_embeddings\":64,\"num_attention_heads\":4,"
               "\"num_hidden_layers\":2,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-05,"
               "\"rope_theta\":10000.0,\"tie_word_embeddings\":false,"
               "\"vocab_size\":64}");
    if (m) {
        int end = find(m, "loss");
        expect(m, "llama, two layers", 1, 0, 1, (end - 3) / 2, 2);
    }
    topt_model_destroy(m);
}

static int put(struct topt_model *m, const char *kind, int x, int y, int64_t features)
{
    char name[32];
    int in[2] = {x, y};
    struct topt_attrs a = {.features = features};
    snprintf(name, sizeof name, "%s%d", kind, m->nops);
    return topt_model_add(m, kind, name, (x >= 0) + (y >= 0), in, &a, NULL);
}

static int table(struct topt_model *m)
{
    struct topt_attrs a = {.vocab = 8, .features = 8};
    char name[32];
    snprintf(name, sizeof name, "table%d", m->nops);
    return topt_model_add(m, "embedding", name, 0, NULL, &a, NULL);
}

static struct topt_model *finish(struct topt_model *m, int x)
{
    x = put(m, "linear", x, -1, 8);
    x = put(m, "cross_entropy", x, -1, 0);
    if (!ok(x >= 0 && !topt_model_finish(m, NULL), "a model of %d operators", m->nops)) {
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}

/* Four encoder blocks; three decoder blocks that all read what the encoder gives. */
static void test_two_kinds(void)
{
    struct topt_model *m = topt_model_create("two", 2, 4, NULL);
    int x = table(m), seen;
    for (int i = 0; i < 4; i++)
        x = put(m, "add", x, put(m, "norm", put(m, "linear", x, -1, 8), -1, 0), 0);
    seen = put(m, "norm", x, -1, 0);
    int y = table(m);
    int first = m->nops;
    for (int i = 0; i < 3; i++) {
        int h = put(m, "norm", y, -1, 0);
        y = put(m, "add", y, put(m, "mul", put(m, "bias", h, -1, 0), seen, 0), 0);
    }
    m = finish(m, y);
    expect(m, "encoder and decoder", 2, 0, 1, 3, 4);
    expect(m, "encoder and decoder", 2, 1, first, 4, 3);
    topt_model_destroy(m);
}

/* The first block reads operators that are not next to it. */
static void test_loose_head(void)
{
    struct topt_model *m = topt_model_create("loose", 2, 4, NULL);
    int x = table(m), other = table(m);
    int y = put(m, "mul", x, other, 0);
    x = put(m, "add", y, x, 0);
    y = other;
    int first = m->nops;
    for (int i = 0; i < 3; i++) {
        int h = put(m, "linear", y, -1, 8);
        h = put(m, "bias", h, -1, 0);
        y = put(m, "add", h, y, 0);
    }
    m = finish(m, put(m, "mul", x, y, 0));
    expect(m, "a first block that reads elsewhere", 2, 0, first, 3, 3);
    topt_model_destroy(m);
}

static void test_none_and_single(void)
{
    struct topt_model *m = topt_model_create("none", 2, 4, NULL);
    int x = table(m);
    for (int i = 0; i < 4; i++)
        x = put(m, "linear", x, -1, 9 + i);
    m = finish(m, x);
    expect(m, "all different", 0, 0, 0, 0, 0);
    topt_model_destroy(m);
    m = topt_model_create("single", 2, 4, NULL);
    x = table(m);
    for (int i = 0; i < 6; i++)
        x = put(m, "linear", x, -1, 8);
    x = put(m, "norm", x, -1, 0);
    m = finish(m, x);
    expect(m, "blocks of one operator", 1, 0, 1, 1, 6);
    topt_model_destroy(m);
    /* what reads two blocks back is no block that reads the one before */
    m = topt_model_create("skip", 2, 4, NULL);
    int before = table(m);
    x = put(m, "linear", before, -1, 8);
    for (int i = 0; i < 5; i++) {
        int next = put(m, "add", x, before, 0);
        before = x;
        x = next;
    }
    m = finish(m, x);
    struct topt_blocks b;
    if (m && !topt_model_blocks(m, &b, NULL)) {
        int good = 1;
        for (int k = 0; k < b.nkinds; k++)
            good &= b.of[k].length != 1;
        ok(good, "an operator that reads two back is no block by itself");
        topt_blocks_fini(&b);
    }
    topt_model_destroy(m);
}

/* Comparing each operator with all kinds before it took minutes. */
static void test_many_kinds(void)
{
    enum { MANY = 100000 };
    struct topt_model *m = topt_model_create("many", 2, 4, NULL);
    int x = table(m), good = 1;
    for (int i = 0; i < MANY; i++)
        x = put(m, "linear", x, -1, 8 + i % (MANY / 2));
    m = finish(m, x);
    /* the first of each half reads another width */
    for (int i = 1; m && i < MANY; i++)
        good &= m->alike[1 + i] == (i > MANY / 2 ? 1 + i - MANY / 2 : 1 + i);
    ok(m && good, "%d operators of %d kinds: the second of each is as the first", MANY,
       MANY / 2);
    topt_model_destroy(m);
}

int main(void)
{
    test_many_kinds();
    test_decoders();
    test_two_kinds();
    test_loose_head();
    test_none_and_single();
    return done_testing();
}
