/* models.h - tiny models of every kind of operator, and random strategies for them. */
#ifndef TOPT_TEST_MODELS_H
#define TOPT_TEST_MODELS_H

#include <string.h>

#include "factors.h"
#include "random.h"
#include "topt_lower.h"

__attribute__((unused)) static const char test_text[] =
    "the quick brown fox jumps over the lazy dog while a small crowd of numbers, laid "
    "out "
    "over four quiet machines, adds itself up and finds that the sum is always the same.";

struct build {
    struct topt_model *m;
    struct topt_error err;
    int n;
};

/* Add an operator named after its kind and number; gives up on the first failure. */
static int put_all(struct build *b, const char *kind, int n, const int *inputs,
                   struct topt_attrs attrs)
{
    char name[40];
    snprintf(name, sizeof name, "%s%d", kind, b->n++);
    int t = topt_model_add(b->m, kind, name, n, inputs, &attrs, &b->err);
    if (t < 0) {
        printf("Bail out! %s\n", b->err.text);
        abort();
    }
    return t;
}

static int put(struct build *b, const char *kind, int x0, int x1, struct topt_attrs attrs)
{
    return put_all(b, kind, x1 >= 0 ? 2 : x0 >= 0 ? 1 : 0, (int[]){x0, x1}, attrs);
}

#define ATTRS(...) ((struct topt_attrs){__VA_ARGS__})

static struct topt_model *finish(struct build *b)
{
    if (topt_model_finish(b->m, &b->err)) {
        printf("Bail out! %s\n", b->err.text);
        abort();
    }
    return b->m;
}

__attribute__((unused)) static struct topt_model *build_mlp(void)
{
    struct build b = {.m = topt_model_create("mlp", 8, 6, NULL)};
    int x =
        put(&b, "embedding", -1, -1, ATTRS(.vocab = 30, .features = 12, .init_std = 0.5));
    static const int act[] = {TOPT_ACT_GELU, TOPT_ACT_TANH, TOPT_ACT_SILU};
    for (int i = 0; i < 3; i++) {
        x = put(&b, "linear", x, -1, ATTRS(.features = 16 + 2 * i));
        x = put(&b, "bias", x, -1, ATTRS(0));
        x = put(&b, "unary", x, -1, ATTRS(.activation = act[i]));
    }
    x = put(&b, "linear", x, -1, ATTRS(.features = 30));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* Layer norm, biases, causal attention, gelu, residuals; the table shared with the output. */
__attribute__((unused)) static struct topt_model *build_gpt(void)
{
    enum { D = 12, HEADS = 3, HD = 4 };
    struct build b = {.m = topt_model_create("gpt", 8, 6, NULL)};
    int table =
        put(&b, "variable", -1, -1, ATTRS(.vocab = 30, .features = D, .init_std = 0.3));
    int x = put(&b, "embedding", table, -1, ATTRS(0));
    x = put(&b, "position", x, -1, ATTRS(.init_std = 0.1));
    for (int i = 0; i < 2; i++) {
        int y = put(&b, "norm", x, -1, ATTRS(0));
        y = put(&b, "linear", y, -1, ATTRS(.features = HEADS, .features_unit = 3 * HD));
        y = put(&b, "bias", y, -1, ATTRS(0));
        y = put(&b, "attention", y, -1,
                ATTRS(.heads = HEADS, .kv_heads = HEADS, .head_dim = HD, .causal = 1));
        y = put(&b, "linear", y, -1, ATTRS(.features = D));
        x = put(&b, "add", x, put(&b, "bias", y, -1, ATTRS(0)), ATTRS(0));
        y = put(&b, "norm", x, -1, ATTRS(0));
        y = put(&b, "linear", y, -1, ATTRS(.features = 4 * D));
        y = put(&b, "unary", y, -1, ATTRS(.activation = TOPT_ACT_GELU));
        x = put(&b, "add", x, put(&b, "linear", y, -1, ATTRS(.features = D)), ATTRS(0));
    }
    x = put(&b, "norm", x, -1, ATTRS(0));
    x = put(&b, "linear", x, table, ATTRS(0));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* RMS norm, grouped rotary attention, a gated unit, a gate by mul. */
__attribute__((unused)) static struct topt_model *build_llama(void)
{
    enum { D = 8, HEADS = 4, KV = 2, HD = 4 };
    struct build b = {.m = topt_model_create("llama", 8, 6, NULL)};
    int x =
        put(&b, "embedding", -1, -1, ATTRS(.vocab = 30, .features = D, .init_std = 0.5));
    int y = put(&b, "norm", x, -1, ATTRS(.rms = 1));
    y = put(&b, "linear", y, -1,
            ATTRS(.features = KV, .features_unit = (HEADS / KV + 2) * HD));
    y = put(&b, "attention", y, -1,
            ATTRS(.heads = HEADS, .kv_heads = KV, .head_dim = HD, .causal = 1,
                  .rope_theta = 1000));
    x = put(&b, "add", x, put(&b, "linear", y, -1, ATTRS(.features = D)), ATTRS(0));
    y = put(&b, "norm", x, -1, ATTRS(.rms = 1));
    y = put(&b, "linear", y, -1, ATTRS(.features = 10, .features_unit = 2));
    y = put(&b, "glu", y, -1, ATTRS(.activation = TOPT_ACT_SILU));
    y = put(&b, "linear", y, -1, ATTRS(.features = D));
    int gate = put(&b, "unary", x, -1, ATTRS(.activation = TOPT_ACT_SILU));
    y = put(&b, "mul", y, gate, ATTRS(0));
    x = put(&b, "add", x, y, ATTRS(0));
    x = put(&b, "norm", x, -1, ATTRS(.rms = 1));
    x = put(&b, "linear", x, -1, ATTRS(.features = 30));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* Latent attention: keys and values from a few numbers, the rotated part of keys shared, slow
 * angles scaled, and scores that know how far positions are apart. */
__attribute__((unused)) static struct topt_model *build_latent(void)
{
    enum { D = 12, HEADS = 2, HD = 6, SHARED = 2, VD = 3 };
    struct build b = {.m = topt_model_create("latent", 8, 6, NULL)};
    int x =
        put(&b, "embedding", -1, -1, ATTRS(.vocab = 30, .features = D, .init_std = 0.5));
    int q = put(&b, "linear", x, -1, ATTRS(.features = HEADS, .features_unit = HD));
    q = put(&b, "rotary", q, -1,
            ATTRS(.rope_dim = SHARED, .rope_theta = 100, .rope_factor = 2));
    int kv = put(&b, "linear", x, -1, ATTRS(.features = 5));
    kv = put(&b, "linear", kv, -1,
             ATTRS(.features = HEADS, .features_unit = HD - SHARED + VD));
    int kr = put(&b, "linear", x, -1, ATTRS(.features = 1, .features_unit = SHARED));
    kr = put(&b, "rotary", kr, -1, ATTRS(.rope_theta = 100, .rope_factor = 2));
    int apart = put(&b, "variable", -1, -1,
                    ATTRS(.vocab = 4, .features = HEADS, .init_std = 0.5));
    int input[] = {q, kv, kr, apart};
    int y = put_all(&b, "attention", 4, input,
                    ATTRS(.heads = HEADS, .head_dim = HD, .v_head_dim = VD, .causal = 1,
                          .distance = 5));
    y = put(&b, "linear", y, -1, ATTRS(.features = D));
    x = put(&b, "add", x, y, ATTRS(0));
    x = put(&b, "linear", x, -1, ATTRS(.features = 30));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* Mixers that carry a state: Mamba-2's behind a convolution, a delta rule whose
 * heads share keys, and Mamba's. */
__attribute__((unused)) static struct topt_model *build_scan(void)
{
    enum { D = 12, HEADS = 4 };
    struct build b = {.m = topt_model_create("scan", 8, 6, NULL)};
    struct topt_attrs one = ATTRS(.features = HEADS), chunk = ATTRS(.chunk = 4);
    int x =
        put(&b, "embedding", -1, -1, ATTRS(.vocab = 30, .features = D, .init_std = 3));
    int n = put(&b, "norm", x, -1, ATTRS(.rms = 1));
    int v = put(&b, "linear", n, -1, ATTRS(.features = HEADS, .features_unit = 3));
    v = put(&b, "causal_conv", v, -1, ATTRS(.kernel_w = 4));
    v = put(&b, "unary", v, -1, ATTRS(.activation = TOPT_ACT_SILU));
    int dt = put(&b, "linear", n, -1, one);
    int bc = put(&b, "linear", n, -1, ATTRS(.features = 2, .features_unit = 4));
    v = put_all(&b, "ssd", 3, (int[]){v, dt, bc}, chunk);
    x = put(&b, "add", x, put(&b, "linear", v, -1, ATTRS(.features = D)), ATTRS(0));
    n = put(&b, "norm", x, -1, ATTRS(.rms = 1));
    v = put(&b, "linear", n, -1, ATTRS(.features = HEADS, .features_unit = 3));
    int qk =
        put(&b, "linear", n, -1, ATTRS(.features = 2, .features_unit = 4, .init_std = 1));
    int beta = put(&b, "linear", n, -1, one), gate = put(&b, "linear", n, -1, one);
    v = put_all(&b, "delta_rule", 4, (int[]){v, qk, beta, gate}, chunk);
    x = put(&b, "add", x, put(&b, "linear", v, -1, ATTRS(.features = D)), ATTRS(0));
    n = put(&b, "norm", x, -1, ATTRS(.rms = 1));
    v = put(&b, "linear", n, -1, one);
    dt = put(&b, "linear", n, -1, one);
    int keys = put(&b, "linear", n, -1, ATTRS(.features = 3));
    int queries = put(&b, "linear", n, -1, ATTRS(.features = 3));
    v = put_all(&b, "selective_scan", 4, (int[]){v, dt, keys, queries}, chunk);
    x = put(&b, "add", x, put(&b, "linear", v, -1, ATTRS(.features = D)), ATTRS(0));
    x = put(&b, "norm", x, -1, ATTRS(.rms = 1));
    x = put(&b, "linear", x, -1, ATTRS(.features = 30));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* An LSTM under a GRU; 5 and 6 cells, so that splits are uneven. */
__attribute__((unused)) static struct topt_model *build_lstm(void)
{
    struct build b = {.m = topt_model_create("lstm", 8, 6, NULL)};
    int x =
        put(&b, "embedding", -1, -1, ATTRS(.vocab = 30, .features = 7, .init_std = 2));
    x = put(&b, "linear", x, -1, ATTRS(.features = 5, .features_unit = 4));
    x = put(&b, "bias", x, -1, ATTRS(0));
    x = put(&b, "lstm", x, -1, ATTRS(0));
    x = put(&b, "linear", x, -1, ATTRS(.features = 6, .features_unit = 3));
    x = put(&b, "bias", x, -1, ATTRS(0));
    x = put(&b, "gru", x, -1, ATTRS(0));
    x = put(&b, "linear", x, -1, ATTRS(.features = 30));
    x = put(&b, "bias", x, -1, ATTRS(0));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* Gated experts beside the residual, two of four for each token, some of which find no slot;
 * chosen by sigmoids within one of two groups, or by a softmax. */
__attribute__((unused)) static struct topt_model *build_moe(void)
{
    enum { D = 8, EXPERTS = 4 };
    struct topt_attrs routing = ATTRS(.top_k = 2, .capacity = 1);
    struct topt_attrs grouped =
        ATTRS(.top_k = 2, .capacity = 1, .sigmoid = 1, .corrected = 1, .groups = 2,
              .top_groups = 1, .factor = 2);
    struct build b = {.m = topt_model_create("moe", 8, 6, NULL)};
    int x =
        put(&b, "embedding", -1, -1, ATTRS(.vocab = 30, .features = D, .init_std = 1));
    for (int i = 0; i < 2; i++) {
        int y = put(&b, "norm", x, -1, ATTRS(.rms = 1));
        int g = put(&b, "linear", y, -1, ATTRS(.features = EXPERTS));
        g = put(&b, "route", g, -1, i == 0 ? grouped : routing);
        y = put(&b, "dispatch", y, g, routing);
        y = put(&b, "experts", y, -1,
                ATTRS(.features = 6, .activation = TOPT_ACT_SILU, .gated = i == 0));
        x = put(&b, "add", x, put(&b, "combine", y, g, ATTRS(0)), ATTRS(0));
    }
    x = put(&b, "linear", x, -1, ATTRS(.features = 30));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* Convolution, batch norm and pooling with windows that overlap and some that don't divide,
 * a residual, groups; rows and columns few enough that blocks get smaller than a window. */
__attribute__((unused)) static struct topt_model *build_cnn(void)
{
    struct topt_attrs same =
        ATTRS(.features = 4, .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1,
              .pad_bottom = 1, .pad_right = 1);
    struct build b = {.m = topt_model_create("cnn", 8, 1, NULL)};
    int x = put(&b, "image", -1, -1, ATTRS(.channels = 2, .height = 9, .width = 8));
    x = put(&b, "bias", put(&b, "conv", x, -1, same), -1, ATTRS(0));
    x = put(&b, "batch_norm", x, -1, ATTRS(0));
    x = put(&b, "unary", x, -1, ATTRS(.activation = TOPT_ACT_RELU));
    x = put(
        &b, "pool", x, -1,
        ATTRS(.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_top = 1));
    int y = put(&b, "batch_norm", put(&b, "conv", x, -1, same), -1, ATTRS(0));
    x = put(&b, "add", x, put(&b, "unary", y, -1, ATTRS(.activation = TOPT_ACT_RELU)),
            ATTRS(0));
    x = put(&b, "conv_grouped", x, -1,
            ATTRS(.groups = 4, .features_unit = 2, .kernel_h = 3, .kernel_w = 3,
                  .dilation_w = 2, .pad_left = 2, .pad_right = 2, .pad_bottom = 1));
    x = put(&b, "pool", x, -1,
            ATTRS(.kernel_h = 2, .kernel_w = 2, .average = 1, .ceil = 1));
    x = put(&b, "global_pool", x, -1, ATTRS(0));
    x = put(&b, "bias", put(&b, "linear", x, -1, ATTRS(.features = 6)), -1, ATTRS(0));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* What the other models of features have not: one of each. */
__attribute__((unused)) static struct topt_model *build_mixed(void)
{
    struct build b = {.m = topt_model_create("mixed", 8, 6, NULL)};
    int x =
        put(&b, "embedding", -1, -1, ATTRS(.vocab = 30, .features = 12, .init_std = 1));
    x = put(&b, "position", x, -1, ATTRS(.init_std = 0.1));
    x = put(&b, "dropout", x, -1, ATTRS(.rate = 0.2));
    int y = put(&b, "linear", x, -1, ATTRS(.features = 4, .features_unit = 6));
    y = put(&b, "head_norm", y, -1, ATTRS(.head_dim = 3));
    int low = put(&b, "slice", y, -1, ATTRS(.features_unit = 4));
    int high = put(&b, "slice", y, -1, ATTRS(.offset = 2, .features_unit = 4));
    y = put(&b, "concat", low, high, ATTRS(0));
    y = put(&b, "regroup", y, -1, ATTRS(.features = 8, .features_unit = 4));
    y = put(&b, "linear", y, -1, ATTRS(.features = 12));
    y = put(&b, "softmax", y, -1, ATTRS(0));
    int z = put(&b, "linear", x, -1, ATTRS(.features = 6));
    z = put(&b, "transpose", z, -1, ATTRS(0));
    z = put(&b, "scale", z, -1, ATTRS(.factor = 0.5, .shift = 0.1));
    y = put(&b, "concat_counts", y, z, ATTRS(0));
    y = put(&b, "reverse", y, -1, ATTRS(0));
    y = put(&b, "prepend", y, -1, ATTRS(.init_std = 0.5));
    z = put(&b, "select", y, -1, ATTRS(.offset = 2));
    y = put(&b, "reduce_sequence", y, -1, ATTRS(.mean = 1));
    y = put(&b, "add", y, z, ATTRS(0));
    z = put(&b, "reduce_features", y, -1, ATTRS(.mean = 1));
    z = put(&b, "linear", z, -1, ATTRS(.features = 18));
    y = put(&b, "mul", y, z, ATTRS(0));
    z = put(&b, "linear", y, -1, ATTRS(.features = 1));
    z = put(&b, "scale", z, -1, ATTRS(.factor = 0.5, .shift = 1));
    y = put(&b, "weigh", y, z, ATTRS(0));
    y = put(&b, "linear", y, -1, ATTRS(.features = 10));
    put(&b, "cross_entropy", y, -1, ATTRS(0));
    return finish(&b);
}

/* What the convolutional network has not, on images of odd extents. */
__attribute__((unused)) static struct topt_model *build_images(void)
{
    struct build b = {.m = topt_model_create("images", 8, 1, NULL)};
    int x = put(&b, "image", -1, -1, ATTRS(.channels = 3, .height = 5, .width = 6));
    x = put(&b, "conv", x, -1, ATTRS(.features = 4, .kernel_h = 1, .kernel_w = 1));
    x = put(&b, "lrn", x, -1, ATTRS(.size = 3, .alpha = 0.5));
    int y = put(&b, "unary", x, -1, ATTRS(.activation = TOPT_ACT_GELU));
    x = put(&b, "mul", x, y, ATTRS(0));
    x = put(&b, "dropout", x, -1, ATTRS(.rate = 0.2));
    x = put(&b, "weigh", x, put(&b, "global_pool", x, -1, ATTRS(0)), ATTRS(0));
    x = put(&b, "concat_counts", x, y, ATTRS(0));
    x = put(&b, "regroup", x, -1, ATTRS(.features = 4, .features_unit = 2));
    y = put(&b, "flatten", x, -1, ATTRS(0));
    y = put(&b, "linear", y, -1, ATTRS(.features = 6));
    x = put(&b, "tokens", x, -1, ATTRS(0));
    x = put(&b, "linear", x, -1, ATTRS(.features = 6));
    x = put(&b, "reduce_sequence", x, -1, ATTRS(.mean = 1));
    x = put(&b, "add", x, y, ATTRS(0));
    x = put(&b, "linear", x, -1, ATTRS(.features = 5));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* Norms, gains and slopes of channels and features, images made smaller and larger again. */
__attribute__((unused)) static struct topt_model *build_painter(void)
{
    struct build b = {.m = topt_model_create("painter", 8, 1, NULL)};
    int x = put(&b, "image", -1, -1, ATTRS(.channels = 2, .height = 6, .width = 5));
    x = put(&b, "scale", x, -1, ATTRS(.factor = 0.5, .shift = 0.1));
    x = put(&b, "conv", x, -1,
            ATTRS(.features = 4, .kernel_h = 2, .kernel_w = 1, .stride_h = 2));
    x = put(&b, "group_norm", put(&b, "gain", x, -1, ATTRS(0)), -1, ATTRS(0));
    x = put(&b, "prelu", x, -1, ATTRS(.init_std = 0.3));
    x = put(&b, "shuffle", x, -1, ATTRS(.groups = 2));
    x = put(&b, "regroup", x, -1, ATTRS(.features = 1, .features_unit = 4));
    x = put(&b, "slice", x, -1, ATTRS(.offset = 1, .features_unit = 3));
    x = put(&b, "conv_transpose", x, -1,
            ATTRS(.features = 3, .kernel_h = 3, .kernel_w = 2, .stride_h = 2,
                  .pad_top = 1, .pad_left = 1));
    x = put(&b, "prelu_shared", x, -1, ATTRS(.init_std = 0.3));
    x = put(&b, "resize", x, -1, ATTRS(.height = 9, .width = 6, .linear = 1));
    int y = put(&b, "linear", put(&b, "global_pool", x, -1, ATTRS(0)), -1,
                ATTRS(.features = 3, .features_unit = 6));
    y = put(&b, "batch_norm", y, -1, ATTRS(0));
    y = put(&b, "gain", y, -1, ATTRS(0));
    y = put(&b, "unflatten", y, -1, ATTRS(.height = 3, .width = 2));
    y = put(&b, "resize", y, -1, ATTRS(.height = 9, .width = 6));
    x = put(&b, "tokens", put(&b, "add", x, y, ATTRS(0)), -1, ATTRS(0));
    x = put(&b, "rnn", x, -1, ATTRS(.activation = TOPT_ACT_TANH));
    x = put(&b, "prelu", x, -1, ATTRS(.init_std = 0.3));
    x = put(&b, "prelu_shared", x, -1, ATTRS(.init_std = 0.3));
    x = put(&b, "untokens", x, -1, ATTRS(.height = 9, .width = 6));
    x = put(&b, "linear", put(&b, "global_pool", x, -1, ATTRS(0)), -1,
            ATTRS(.features = 5));
    x = put(&b, "softmax", x, -1, ATTRS(.log = 1));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* A regression over a table. */
__attribute__((unused)) static struct topt_model *build_table(void)
{
    struct build b = {.m = topt_model_create("table", 8, 1, NULL)};
    int x = put(&b, "input", -1, -1, ATTRS(.features = 5, .features_unit = 2));
    x = put(&b, "linear", x, -1, ATTRS(.features = 9));
    x = put(&b, "bias", x, -1, ATTRS(0));
    x = put(&b, "unary", x, -1, ATTRS(.activation = TOPT_ACT_TANH));
    x = put(&b, "linear", x, -1, ATTRS(.features = 3));
    put(&b, "mse", x, -1, ATTRS(0));
    return finish(&b);
}

/* Tables with sparse gradients, one looked up by positions and five in bags, of which the samples
 * of a batch name some rows several times and most never; what is made of the bags and of real
 * numbers meets in products of every two. */
__attribute__((unused)) static struct topt_model *build_recommender(void)
{
    enum { D = 4 };
    struct build b = {.m = topt_model_create("recommender", 8, 2, NULL)};
    int e = put(&b, "embedding", -1, -1,
                ATTRS(.vocab = 50, .features = D, .init_std = 0.5, .sparse = 1));
    struct topt_attrs bags = {
        .tables = {40, 3, 17, 1, 9}, .features = D, .lookups = 3, .init_std = 0.5};
    bags.sparse = 1;
    int bag = put(&b, "embedding_bag", -1, -1, bags);
    int x = put(&b, "input", -1, -1, ATTRS(.features = 3));
    x = put(&b, "linear", x, -1, ATTRS(.features = D));
    x = put(&b, "unary", x, -1, ATTRS(.activation = TOPT_ACT_TANH));
    int y = put(&b, "join_vectors", bag, -1, ATTRS(0));
    y = put(&b, "linear", y, -1, ATTRS(.features = D));
    x = put_all(&b, "interact", 2, (int[]){bag, put(&b, "add", x, e, ATTRS(0))},
                ATTRS(0));
    x = put_all(&b, "concat_counts", 2, (int[]){x, y}, ATTRS(0));
    x = put(&b, "linear", x, -1, ATTRS(.features = 1));
    put(&b, "logistic", x, -1, ATTRS(0));
    return finish(&b);
}

/* An operator of the tests' own, which sessions have to be told of: not among those below. */
__attribute__((unused)) static struct topt_model *build_own(void)
{
    struct build b = {.m = topt_model_create("own", 8, 6, NULL)};
    int x =
        put(&b, "embedding", -1, -1, ATTRS(.vocab = 30, .features = 6, .init_std = 0.5));
    x = put(&b, "own", x, -1,
            ATTRS(.features = 8, .extra = 5, .flops = 40, .init_std = 1));
    x = put(&b, "own", x, -1, ATTRS(.flops = 20));
    x = put(&b, "linear", x, -1, ATTRS(.features = 30));
    put(&b, "cross_entropy", x, -1, ATTRS(0));
    return finish(&b);
}

/* All of them.  'smooth': a little more or less of anything changes the loss by a little. */
__attribute__((unused)) static const struct {
    struct topt_model *(*build)(void);
    int smooth;
} test_models[] = {{build_recommender, 1}, {build_mlp, 1},     {build_gpt, 1},
                   {build_llama, 1},       {build_lstm, 1},    {build_latent, 1},
                   {build_mixed, 1},       {build_cnn, 0},     {build_images, 1},
                   {build_table, 1},       {build_painter, 0}, {build_moe, 0},
                   {build_scan, 1}};

/* ---- random strategies --------------------------------------------------------------------- */

struct dice {
    uint64_t stream, n;
};

static int roll(struct dice *d, int sides)
{
    return (int)(topt_random(d->stream, d->n++) % (uint64_t)sides);
}

static struct topt_config roll_config(struct dice *d, const struct topt_op *op,
                                      const struct topt_mesh *mesh)
{
    struct topt_config c;
    do {
        c = topt_config_none();
        for (int a = 0; a < mesh->naxes; a++)
            c.dim[a] = (int8_t)(roll(d, op->spec->ndims + 1) - 1);
    } while (!topt_config_valid(op, &c, mesh));
    return c;
}

static int roll_dice(void *d, int sides)
{
    return roll(d, sides);
}

/* Every operator, hub and use chooses by itself: most real plans are tamer. */
__attribute__((unused)) static struct topt_strategy *
roll_strategy(struct dice *d, const struct topt_model *m, const struct topt_mesh *mesh)
{
    struct topt_strategy *s = topt_strategy_create(m);
    for (int i = 0; i < m->nops; i++)
        s->config[i] = roll_config(d, &m->op[i], mesh);
    for (int t = 0; t < m->ntensors; t++) {
        s->hub[t].layout = topt_config_none();
        for (int a = 0; a < mesh->naxes; a++)
            s->hub[t].layout.dim[a] = (int8_t)(roll(d, m->tensor[t].ndim + 1) - 1);
        s->hub[t].keep = roll(d, 2);
    }
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++) {
            int t = topt_input_tensor(&m->op[i], k), from = m->tensor[t].producer;
            struct topt_layout l = topt_value_layout(&m->op[from], m->op[from].output,
                                                     &s->config[from], mesh);
            int hub = m->tensor[t].nconsumers > 1;
            int may = hub ? s->hub[t].keep : !topt_layout_partial_mask(&l);
            s->keep[i * TOPT_MAX_INPUTS + k] =
                (uint8_t)(may && roll(d, 2) ? TOPT_KEEP_BEFORE : TOPT_KEEP_AFTER);
        }
    struct topt_settings ours = topt_settings_default();
    if (roll_factors(s, m, mesh, &ours, roll_dice, d) < 0)
        abort();
    return s;
}

#endif
