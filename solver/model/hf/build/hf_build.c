/* hf_build.c - the operators of a transformer that a Hugging Face config describes.
 *
 * Fused projections: the query, key and value projections are one linear whose outputs
 * are counted in key-value heads of (q + 2) * head_dim numbers, q queries to a
 * key-value head, so that splitting them keeps each group together; gate and up are
 * one linear of pairs.  Where something happens to queries or keys before attention
 * they are projected apart. */
#include "hf_build.h"
#include "hf_heads.h"
#include "hf_mixers.h"
#include "hf_parts.h"
#include "model_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- blocks ------------------------------------------------------------------------ */

static int layer_is(const struct hf_builder *b, int what)
{
    return b->a->layer[b->layer] & what;
}

/* Of so many keys that a local layer sees; 0: all. */
static int64_t seen(const struct hf_builder *b, int64_t keys)
{
    return layer_is(b, HF_LOCAL) && keys < b->m->seq ? keys : 0;
}

static int is_turned(const struct hf_builder *b)
{
    return b->a->rope.rope_theta > 0 && b->a->rope.rope_dim && !layer_is(b, HF_UNTURNED);
}

static const struct topt_attrs *angles(const struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    return layer_is(b, HF_LOCAL) && a->local_rope.rope_theta > 0 ? &a->local_rope
                                                                 : &a->rope;
}

static int rotary(struct hf_builder *b, int x, int64_t head, const char *name)
{
    struct topt_attrs attrs = *angles(b);
    attrs.head_dim = head;
    attrs.rope_dim = attrs.rope_dim ? attrs.rope_dim : b->a->rope.rope_dim;
    return is_turned(b) ? topt_hf_add(b, "rotary", x, -1, &attrs, "%s", name) : x;
}

/* Queries or keys normalised: by head with one gain for all or one each, or over all
 * heads. */
static int normed_heads(struct hf_builder *b, int x, const char *name)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = {.head_dim = a->head_dim,
                               .rms = a->rms,
                               .plain = a->each_head_norms || a->untrained_norms,
                               .eps = a->eps,
                               .written = a->wide_gains};
    if (a->head_norms || a->each_head_norms)
        x = topt_hf_add(b, "head_norm", x, -1, &attrs, "%s.norm", name);
    if (a->each_head_norms)
        x = topt_hf_add(b, "gain", x, -1, NULL, "%s.norm.gain", name);
    attrs.head_dim = 0;
    return a->wide_norms ? topt_hf_add(b, "norm", x, -1, &attrs, "%s.norm", name) : x;
}

/* Heads of queries or keys, normalised and rotated where that is so. */
static int prepared(struct hf_builder *b, int x, const char *name)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = {.head_dim = a->head_dim, .rms = a->rms, .eps = a->eps};
    char part[32];
    x = normed_heads(b, x, name);
    snprintf(part, sizeof part, "%s.rotary", name);
    x = rotary(b, x, a->head_dim, part);
    attrs.plain = 1;
    return a->head_norms_after && is_turned(b)
               ? topt_hf_add(b, "head_norm", x, -1, &attrs, "%s.norm", name)
               : x;
}

/* 0: the operator's own. */
static double score_factor(const struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    double usual = 1 / sqrt((double)a->head_dim);
    double factor = a->score_factor > 0 ? a->score_factor : usual;
    if (a->score_by_layer)
        return factor / (double)(b->layer + 1);
    return a->score_factor > 0 ? factor : 0;
}

static struct topt_attrs attend_attrs(const struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    return (struct topt_attrs){.heads = a->heads,
                               .kv_heads = a->kv_heads,
                               .head_dim = a->head_dim,
                               .causal = !a->bidirectional,
                               .written = a->written_scores,
                               .undropped = a->undropped_scores,
                               .window = seen(b, a->window),
                               .chunk = seen(b, a->chunk),
                               .cap = a->score_cap,
                               .factor = a->by_distance,
                               .distance = b->relative < 0 ? 0 : a->distance,
                               .scale = score_factor(b)};
}

/* Scores of queries by positions and of positions by keys (He et al., 2021), each as
 * much arithmetic as those of queries by keys; 'x' comes back as it is. */
static int by_positions(struct hf_builder *b, int x, int q, int k, int other)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs scores = attend_attrs(b), one = {.features_unit = 1},
                      own = {.features_unit = a->head_dim};
    scores.v_head_dim = 1;
    int value = topt_hf_add(b, "slice", k, -1, &one, "position.value");
    int kv = topt_hf_add(b, "concat", k, value, NULL, "position.kv");
    int c2p = topt_hf_add(b, "attention", q, kv, &scores, "query.position");
    if (other != k) {
        value = topt_hf_add(b, "slice", other, -1, &one, "position.other.value");
        kv = topt_hf_add(b, "concat", other, value, NULL, "position.other");
    }
    int p2c = topt_hf_add(b, "attention", q, kv, &scores, "position.key");
    x = topt_hf_add(b, "concat", x, topt_hf_add(b, "add", c2p, p2c, NULL, "positions"),
                    NULL, "by.positions");
    return topt_hf_add(b, "slice", x, -1, &own, "by.content");
}

/* The same of places before and after a query, which one map makes of as many rows each
 * (Yang et al., XLNet, 2019). */
static int by_places(struct hf_builder *b, int x, int y, int q)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs table = {.vocab = a->kv_heads * a->head_dim,
                               .features = a->width,
                               .init_std = a->init_std},
                      heads = {.features = a->kv_heads, .features_unit = a->head_dim};
    int place[2], w = topt_hf_add(b, "variable", -1, -1, &table, "places");
    for (int i = 0; i < 2; i++) {
        place[i] = topt_hf_add(b, "linear", x, w, NULL, "places.map%d", i);
        place[i] = topt_hf_add(b, "regroup", place[i], -1, &heads, "places.heads%d", i);
    }
    return by_positions(b, y, q, place[0], place[1]);
}

/* Does the layer take keys and values of one before? */
static int takes_keys(const struct hf_builder *b)
{
    return b->layer >= b->a->layers - b->a->shared_kv;
}

/* Keys and values of each head side by side; '*ret_k': the keys. */
static int keys_and_values(struct hf_builder *b, int x, int *ret_k)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs plain = {
        .head_dim = a->head_dim, .rms = a->rms, .plain = 1, .eps = a->eps};
    int k = topt_hf_linear(b, x, a->kv_heads, a->head_dim, a->qkv_bias && !a->no_key_bias,
                           "k");
    int64_t width = a->value_dim ? a->value_dim : a->head_dim;
    int v = a->full_keys_are_values && !layer_is(b, HF_LOCAL)
                ? k
                : topt_hf_linear(b, x, a->kv_heads, width, a->qkv_bias, "v");
    *ret_k = prepared(b, k, "k");
    if (a->value_norms)
        v = topt_hf_add(b, "head_norm", v, -1, &plain, "v.norm");
    return topt_hf_add(b, "concat", *ret_k, v, NULL, "kv");
}

/* Which blocks of keys each query sees is chosen by narrow heads with norms. */
static int chosen_blocks(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs narrow = {.heads = a->index_heads,
                                .kv_heads = 1,
                                .head_dim = a->index_dim,
                                .v_head_dim = 1,
                                .causal = 1},
                      norm = {.head_dim = a->index_dim, .rms = 1, .eps = a->eps},
                      one = {.features_unit = 1}, mean = {.mean = 1};
    int q = topt_hf_linear(b, x, 1, a->index_heads * a->index_dim, 0, "index.q");
    q = topt_hf_add(b, "head_norm", q, -1, &norm, "index.q.norm");
    int k = topt_hf_linear(b, x, 1, a->index_dim, 0, "index.k");
    k = topt_hf_add(b, "head_norm", k, -1, &norm, "index.k.norm");
    int v = topt_hf_add(b, "slice", k, -1, &one, "index.value");
    int kv = topt_hf_add(b, "concat", k, v, NULL, "index.kv");
    q = topt_hf_add(b, "attention", q, kv, &narrow, "index.scores");
    return topt_hf_add(b, "reduce_features", q, -1, &mean, "index.choice");
}

/* Queries of each group of heads, perhaps by way of few numbers. */
static int queries(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    if (a->query_rank)
        x = topt_hf_norm(b, topt_hf_linear(b, x, a->query_rank, 1, 0, "q_down"),
                         "q_norm");
    return topt_hf_linear(b, x, a->kv_heads, a->heads / a->kv_heads * a->head_dim,
                          a->qkv_bias, "q");
}

static int has_sinks(const struct hf_builder *b)
{
    return b->a->sinks && (b->a->sinks != HF_SINKS_LOCAL || layer_is(b, HF_LOCAL));
}

/* Queries, keys and values apart. */
static int attention_apart(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = attend_attrs(b);
    attrs.v_head_dim = a->value_dim;
    int chosen = a->index_heads && layer_is(b, HF_LOCAL) ? chosen_blocks(b, x) : -1;
    int q = prepared(b, queries(b, x), "q");
    int k = -1, *kept = b->kept ? &b->kept[layer_is(b, HF_LOCAL) ? 0 : 1] : NULL;
    int kv = takes_keys(b) && kept ? *kept : keys_and_values(b, x, &k);
    if (kept)
        *kept = kv;
    struct topt_attrs sinks = {.extra = a->heads / a->kv_heads};
    if (has_sinks(b))
        q = topt_hf_add(b, "beside", q, -1, &sinks, "sinks");
    int y = topt_hf_attend(b, (int[]){q, kv, -1, b->relative}, &attrs);
    if (chosen >= 0)
        return topt_hf_add(b, "weigh", y, chosen, NULL, "index.chosen");
    if (a->places_projected)
        return by_places(b, x, y, q);
    return a->disentangled ? by_positions(b, y, q, k, k) : y;
}

/* Which keys each query sees is chosen by narrow heads of their own, from what queries
 * are made of; as much arithmetic as attention of that size. */
static int chosen_keys(struct hf_builder *b, int q, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs narrow = {.heads = a->index_heads,
                                .kv_heads = 1,
                                .head_dim = a->index_dim,
                                .v_head_dim = 1,
                                .causal = 1};
    struct topt_attrs norm = {.eps = 1e-6}, one = {.features_unit = 1};
    q = topt_hf_linear(b, q, 1, a->index_heads * a->index_dim, 0, "index.q");
    int k = topt_hf_linear(b, x, 1, a->index_dim, 0, "index.k");
    k = topt_hf_add(b, "norm", k, -1, &norm, "index.k.norm");
    int kv =
        topt_hf_add(b, "concat", k, topt_hf_add(b, "slice", k, -1, &one, "index.value"),
                    NULL, "index.kv");
    q = topt_hf_add(b, "attention", q, kv, &narrow, "index.scores");
    int w = topt_hf_linear(b, x, 1, a->index_heads, 0, "index.weights");
    q = topt_hf_add(b, "mul", q, w, NULL, "index.weigh");
    return topt_hf_add(b, "reduce_features",
                       topt_hf_add(b, "regroup", q, -1,
                                   &(struct topt_attrs){.features = a->index_heads},
                                   "index.each"),
                       -1, &(struct topt_attrs){.mean = 1}, "index.choice");
}

/* Keys and values of all heads made of one narrow tensor, the rotated part of the keys
 * shared by all heads (DeepSeek-AI, 2024). */
static int attention_latent(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = attend_attrs(b);
    attrs.v_head_dim = a->value_dim;
    int q = x, bias = a->latent_bias;
    if (a->query_rank)
        q = topt_hf_norm(b, topt_hf_linear(b, x, a->query_rank, 1, bias, "q_down"),
                         "q_norm");
    int chosen = a->index_heads && !layer_is(b, HF_NO_INDEX) ? chosen_keys(b, q, x) : -1;
    q = topt_hf_linear(b, q, a->heads, a->head_dim, 0, "q");
    q = rotary(b, q, a->head_dim, "q.rotary");
    int kv = topt_hf_norm(b, topt_hf_linear(b, x, a->latent_rank, 1, bias, "kv_down"),
                          "kv_norm");
    kv = topt_hf_linear(b, kv, a->heads, a->plain_dim + a->value_dim, 0, "kv");
    int kr = topt_hf_linear(b, x, 1, a->rope.rope_dim, bias, "k_shared");
    kr = rotary(b, kr, a->rope.rope_dim, "k_shared.rotary");
    x = topt_hf_attend(b, (int[]){q, kv, kr, -1}, &attrs);
    return chosen < 0 ? x : topt_hf_add(b, "weigh", x, chosen, NULL, "index.chosen");
}

/* ---- compressed keys (DeepSeek-V4) -------------------------------------------------- */

/* Runs of positions become one: a gated sum of 'units' times as many numbers as are left,
 * by gates of each position of a run. */
static int compressed(struct hf_builder *b, int x, int64_t rate, int64_t units,
                      int64_t width, const char *name)
{
    char part[60];
    struct topt_attrs line = {.height = 1, .width = b->m->seq},
                      run = {.kernel_h = 1,
                             .kernel_w = rate,
                             .stride_w = rate,
                             .stride_h = 1,
                             .average = 1},
                      one = {.features_unit = width}, norm = {.rms = 1, .eps = b->a->eps},
                      first = {.features = 1, .features_unit = width},
                      all = {.features = 1, .features_unit = units * width};
    snprintf(part, sizeof part, "%s.in", name);
    int y = topt_hf_linear(b, x, units * width, 1, 0, part);
    snprintf(part, sizeof part, "%s.gate", name);
    int g = topt_hf_linear(b, x, units * width, 1, 0, part);
    y = topt_hf_add(b, "mul", y, g, NULL, "%s.gated", name);
    snprintf(part, sizeof part, "%s.places", name);
    y = topt_hf_unread(b, y, rate * units * width, part);
    if (rate <= b->m->seq) {
        y = topt_hf_add(b, "untokens", y, -1, &line, "%s.line", name);
        y = topt_hf_add(b, "pool", y, -1, &run, "%s.runs", name);
        y = topt_hf_add(b, "tokens", y, -1, NULL, "%s.tokens", name);
    }
    y = topt_hf_add(b, "regroup", y, -1, &all, "%s.all", name);
    y = topt_hf_add(b, "slice", y, -1, &one, "%s.part", name);
    y = topt_hf_add(b, "regroup", y, -1,
                    &(struct topt_attrs){.features = width, .features_unit = 1},
                    "%s.flat", name);
    y = topt_hf_add(b, "norm", y, -1, &norm, "%s.norm", name);
    return topt_hf_add(b, "regroup", y, -1, &first, "%s.whole", name);
}

/* Which compressed keys a query sees, by narrow heads over all of them. */
static int chosen_runs(struct hf_builder *b, int q, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs narrow = {.heads = a->index_heads,
                                .kv_heads = 1,
                                .head_dim = a->index_dim,
                                .v_head_dim = 1},
                      one = {.features_unit = 1}, each = {.features = a->index_heads},
                      mean = {.mean = 1};
    int k = compressed(b, x, a->compressed[1], 2, a->index_dim, "index");
    q = topt_hf_linear(b, q, 1, a->index_heads * a->index_dim, 0, "index.q");
    int v = topt_hf_add(b, "slice", k, -1, &one, "index.value");
    int kv = topt_hf_add(b, "concat", k, v, NULL, "index.kv");
    q = topt_hf_add(b, "attention", q, kv, &narrow, "index.scores");
    int w = topt_hf_linear(b, x, 1, a->index_heads, 0, "index.weights");
    q = topt_hf_add(b, "mul", q, w, NULL, "index.weigh");
    q = topt_hf_add(b, "regroup", q, -1, &each, "index.each");
    return topt_hf_add(b, "reduce_features", q, -1, &mean, "index.choice");
}

/* Outputs of groups of heads each by a map of its own. */
static int grouped_out(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int64_t in = a->heads * a->head_dim / a->out_groups;
    struct topt_attrs groups = {.features = a->out_groups, .features_unit = in},
                      line = {.height = 1, .width = b->m->seq},
                      conv = {.features_unit = a->out_rank,
                              .kernel_h = 1,
                              .kernel_w = 1,
                              .init_std = a->init_std},
                      flat = {.features = a->out_groups * a->out_rank,
                              .features_unit = 1};
    x = topt_hf_add(b, "regroup", x, -1, &groups, "out.groups");
    x = topt_hf_add(b, "untokens", x, -1, &line, "out.line");
    x = topt_hf_add(b, "conv_grouped", x, -1, &conv, "out.each");
    x = topt_hf_add(b, "tokens", x, -1, NULL, "out.tokens");
    return topt_hf_add(b, "regroup", x, -1, &flat, "out.flat");
}

/* As many keys as each query chooses, of all runs. */
static int fewer_runs(struct hf_builder *b, int k, int64_t runs)
{
    const struct hf_arch *a = b->a;
    int64_t each = a->chosen_keys > 0 ? runs / a->chosen_keys : 1;
    struct topt_attrs line = {.height = 1, .width = runs},
                      pool = {.kernel_h = 1,
                              .kernel_w = each,
                              .stride_h = 1,
                              .stride_w = each,
                              .average = 1},
                      flat = {.features = a->head_dim, .features_unit = 1},
                      whole = {.features = 1, .features_unit = a->head_dim};
    if (each < 2)
        return k;
    k = topt_hf_add(b, "regroup", k, -1, &flat, "chosen.flat");
    k = topt_hf_add(b, "untokens", k, -1, &line, "chosen.line");
    k = topt_hf_add(b, "pool", k, -1, &pool, "chosen.runs");
    k = topt_hf_add(b, "tokens", k, -1, NULL, "chosen.tokens");
    return topt_hf_add(b, "regroup", k, -1, &whole, "chosen.whole");
}

/* One key for all heads, which is the value too: of the positions just before, and of runs
 * of all positions. */
static int attention_compressed(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int chooses = layer_is(b, HF_CHOSEN) != 0;
    int64_t rate = layer_is(b, HF_NEAR) ? 0 : a->compressed[chooses],
            runs = b->m->seq / (rate > 0 ? rate : 1);
    struct topt_attrs sinks = {.extra = a->heads},
                      near = {.heads = a->heads,
                              .kv_heads = 1,
                              .head_dim = a->head_dim,
                              .causal = 1,
                              .window = a->window < b->m->seq ? a->window : 0},
                      far = {.heads = a->heads, .kv_heads = 1, .head_dim = a->head_dim},
                      norm = {.rms = 1, .eps = a->eps},
                      whole = {.features = 1, .features_unit = a->head_dim};
    int q =
        topt_hf_norm(b, topt_hf_linear(b, x, a->query_rank, 1, 0, "q_down"), "q_norm");
    int choice = chooses ? chosen_runs(b, q, x) : -1;
    q = topt_hf_linear(b, q, 1, a->heads * a->head_dim, 0, "q");
    q = topt_hf_add(b, "beside", q, -1, &sinks, "sinks");
    int k = topt_hf_linear(b, x, a->head_dim, 1, 0, "kv");
    k = topt_hf_add(b, "norm", k, -1, &norm, "kv.norm");
    k = topt_hf_add(b, "regroup", k, -1, &whole, "kv.whole");
    int kv = topt_hf_add(b, "concat", k, k, NULL, "kv.both");
    int y = topt_hf_add(b, "attention", q, kv, &near, "attend");
    if (rate) {
        k = compressed(b, x, rate, chooses + 1, a->head_dim, "runs");
        k = chooses ? fewer_runs(b, k, runs) : k;
        kv = topt_hf_add(b, "concat", k, k, NULL, "runs.both");
        k = topt_hf_add(b, "attention", q, kv, &far, "runs.attend");
        y = topt_hf_add(b, "add", y, k, NULL, "runs.add");
    }
    y = choice < 0 ? y : topt_hf_add(b, "weigh", y, choice, NULL, "index.chosen");
    return grouped_out(b, y);
}

/* Query, key and value of each head in one tensor.  What multiplies both queries and
 * keys does so twice to their scores. */
static int attention_fused(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int64_t unit = (a->heads / a->kv_heads + 2) * a->head_dim;
    struct topt_attrs attrs = is_turned(b) ? *angles(b) : (struct topt_attrs){0};
    double turned = attrs.scale > 0 ? attrs.scale * attrs.scale : 1;
    double usual = 1 / sqrt((double)a->head_dim), factor = score_factor(b);
    attrs.rope_dim = 0;
    attrs.scale =
        attrs.scale > 0 || factor > 0 ? (factor > 0 ? factor : usual) * turned : 0;
    attrs.heads = a->heads;
    attrs.kv_heads = a->kv_heads;
    attrs.head_dim = a->head_dim;
    attrs.causal = !a->bidirectional;
    attrs.undropped = a->undropped_scores;
    x = topt_hf_linear(b, x, a->kv_heads, unit, a->qkv_bias, "qkv");
    return topt_hf_add(b, "attention", x, -1, &attrs, "attention");
}

/* All that the fused operator can't. */
static int is_apart(const struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    return a->apart || (is_turned(b) && a->rope.rope_dim != a->head_dim) ||
           a->head_norms || a->each_head_norms || a->wide_norms || has_sinks(b) ||
           a->disentangled || a->value_dim || a->query_rank || a->places_projected ||
           (a->head_norms_after && is_turned(b)) || a->no_key_bias || a->score_cap > 0 ||
           a->by_distance > 0 || b->relative >= 0 || seen(b, a->window) ||
           seen(b, a->chunk);
}

/* What attention gives times how much of it is let through. */
static int gated(struct hf_builder *b, int x, int y)
{
    const struct hf_arch *a = b->a;
    int64_t unit = a->heads / a->kv_heads * a->head_dim;
    int g = topt_hf_linear(b, x, a->kv_heads, unit, a->qkv_bias, "gate");
    return topt_hf_add(b, "mul", y, topt_hf_unary(b, g, TOPT_ACT_SIGMOID, "gate.sigmoid"),
                       NULL, "gated");
}

/* Each head is let through by a number, which costs what its map does. */
static int gated_heads(struct hf_builder *b, int x, int y)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs mean = {.mean = 1};
    int g = topt_hf_linear(b, x, a->kv_heads, a->heads / a->kv_heads, 0, "gate.heads");
    g = topt_hf_unary(b, g, TOPT_ACT_SIGMOID, "gate.sigmoid");
    g = topt_hf_add(b, "reduce_features", g, -1, &mean, "gate.mean");
    return topt_hf_add(b, "weigh", y, g, NULL, "gated");
}

int topt_hf_attention(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs table = {.vocab = a->buckets, .features = a->heads};
    if (a->relative_each)
        b->relative = topt_hf_add(b, "variable", -1, -1, &table, "relative");
    int y = a->out_groups    ? attention_compressed(b, x)
            : a->latent_rank ? attention_latent(b, x)
            : is_apart(b)    ? attention_apart(b, x)
                             : attention_fused(b, x);
    x = a->gate ? gated(b, x, y) : a->head_gates ? gated_heads(b, x, y) : y;
    if (a->inner_norms)
        x = topt_hf_norm(b, x, "out.norm");
    return topt_hf_linear(b, x, a->width, 1, a->out_bias || a->latent_bias, "out");
}

/* 'part' comes before its operators' names. */
static int dense_mlp(struct hf_builder *b, int x, int64_t inner, const char *part)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = {.activation = a->activation, .written = a->written};
    char name[32];
    int apart = a->gated && a->gates_apart && !*part, in = x;
    const char *first = apart ? "gate" : a->gated ? "gate_up" : "up";
    snprintf(name, sizeof name, "%s%s", part, first);
    x = topt_hf_linear(b, x, inner, a->gated && !apart ? 2 : 1, a->mlp_bias, name);
    x = a->gated && !apart ? topt_hf_add(b, "glu", x, -1, &attrs, "%sglu", part)
                           : topt_hf_add(b, "unary", x, -1, &attrs, "%sactivation", part);
    if (apart)
        x = topt_hf_add(b, "mul", x, topt_hf_linear(b, in, inner, 1, a->mlp_bias, "up"),
                        NULL, "glu");
    for (int i = 0; a->curved && i < 2; i++)
        x = topt_hf_add(b, "prelu_shared", x, -1, NULL, "%scurve%d", part, i);
    snprintf(name, sizeof name, "%sdown.norm", part);
    x = a->inner_norms ? topt_hf_norm(b, x, name) : x;
    snprintf(name, sizeof name, "%sdown", part);
    return topt_hf_linear(b, x, a->width, 1, a->mlp_bias, name);
}

/* Each token times the weight of the one expert that it goes to: the route's weights,
 * of which one is not 0, added up.  Returns weights of 1 for the same choice. */
static int weigh_input(struct hf_builder *b, int logits, int *x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs weights = {
        .top_k = 1, .capacity = a->capacity, .sigmoid = 1, .unnormalized = 1};
    struct topt_attrs ones = {.top_k = 1, .capacity = a->capacity};
    int g = topt_hf_add(b, "route", logits, -1, &weights, "weights");
    g = topt_hf_add(b, "reduce_features", g, -1, NULL, "weight");
    *x = topt_hf_add(b, "weigh", *x, g, NULL, "weigh");
    return topt_hf_add(b, "route", logits, -1, &ones, "route");
}

static int route(struct hf_builder *b, int logits)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs routing = {.top_k = a->top_k,
                                 .capacity = a->capacity,
                                 .unnormalized = a->unnormalized,
                                 .sigmoid = a->sigmoid,
                                 .corrected = a->corrected && !layer_is(b, HF_HASHED),
                                 .groups = a->groups,
                                 .top_groups = a->top_groups,
                                 .factor = a->route_factor};
    return topt_hf_add(b, "route", logits, -1, &routing, "route");
}

/* Tokens to their experts and back, by the weights 'g'. */
static int through_experts(struct hf_builder *b, int x, int g)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs slots = {.top_k = a->top_k, .capacity = a->capacity};
    struct topt_attrs experts = {.features = a->expert_inner,
                                 .activation = a->activation,
                                 .gated = a->gated,
                                 .init_std = a->init_std};
    struct topt_attrs biases = {.extra = a->expert_inner * (a->gated ? 2 : 1) + a->width};
    x = topt_hf_add(b, "dispatch", x, g, &slots, "dispatch");
    x = topt_hf_add(b, "experts", x, -1, &experts, "experts");
    if (a->expert_bias)
        x = topt_hf_add(b, "beside_experts", x, -1, &biases, "experts.bias");
    return topt_hf_add(b, "combine", x, g, NULL, "combine");
}

/* Expert feed-forwards that a router sends each token to, and one that all tokens
 * take. */
static int expert_mlp(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int read = x, logits = topt_hf_linear(b, x, a->experts, 1, a->expert_bias, "router");
    logits = topt_hf_unread(b, logits, a->zero_experts * (a->width + a->corrected),
                            "router.zero");
    int g = a->weigh_input ? weigh_input(b, logits, &read) : route(b, logits);
    if (a->latent_experts)
        read = topt_hf_linear(b, read, a->latent_experts, 1, a->mlp_bias, "experts.in");
    int y = through_experts(b, read, g);
    if (a->latent_experts)
        y = topt_hf_linear(b, y, a->width, 1, a->mlp_bias, "experts.out");
    if (!a->shared_inner)
        return y;
    int shared = dense_mlp(b, x, a->shared_inner, "shared.");
    if (a->shared_gate) {
        g = topt_hf_linear(b, x, 1, 1, 0, "shared.gate");
        g = topt_hf_unary(b, g, TOPT_ACT_SIGMOID, "shared.sigmoid");
        shared = topt_hf_add(b, "weigh", shared, g, NULL, "shared.weigh");
    }
    return topt_hf_add(b, "add", y, shared, NULL, "add_shared");
}

/* Experts and the dense feed-forward side by side, each between norms of its own; 'x'
 * is the block's sum, which the router sees by a norm too.  Each expert's weights have
 * a factor. */
static int mlp_beside_experts(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int y = dense_mlp(b, topt_hf_norm(b, x, "norm2"), a->inner, "");
    y = topt_hf_norm(b, y, "norm2.dense");
    int g = topt_hf_norm(b, x, "router.norm");
    g = topt_hf_scale(b, g, 1 / sqrt((double)a->width), "router.scale");
    g = route(b, topt_hf_linear(b, g, a->experts, 1, 0, "router"));
    g = topt_hf_add(b, "gain", g, -1, NULL, "route.gain");
    int z = through_experts(b, topt_hf_norm(b, x, "norm2.experts"), g);
    z = topt_hf_norm(b, z, "norm2.experts.after");
    return topt_hf_add(b, "add", y, z, NULL, "add_experts");
}

/* All but what experts do. */
static int dense_half(struct hf_builder *b, int x, int *ret_in)
{
    x = topt_hf_add(b, "add", x, topt_hf_attention(b, topt_hf_norm(b, x, "norm1")), NULL,
                    "add1");
    *ret_in = topt_hf_norm(b, x, "norm2");
    return topt_hf_add(b, "add", x, dense_mlp(b, *ret_in, b->a->inner, ""), NULL, "add2");
}

/* Experts read what the first half's feed-forward does; what they give is added behind the
 * second half. */
static int two_halves(struct hf_builder *b, int x)
{
    char name[48];
    const char *prefix = b->prefix;
    int in, unused;
    snprintf(name, sizeof name, "%sfirst.", prefix);
    b->prefix = name;
    x = dense_half(b, x, &in);
    b->prefix = prefix;
    int y = expert_mlp(b, in);
    snprintf(name, sizeof name, "%ssecond.", prefix);
    b->prefix = name;
    x = dense_half(b, x, &unused);
    b->prefix = prefix;
    return topt_hf_add(b, "add", x, y, NULL, "add_experts");
}

int topt_hf_mlp(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int64_t times = a->wide_where_shared && takes_keys(b) ? 2 : 1;
    if (layer_is(b, HF_MAP_MLP))
        return topt_hf_linear(b, x, a->width, 1, 0, "mlp.map");
    return a->experts && !layer_is(b, HF_DENSE) ? expert_mlp(b, x)
                                                : dense_mlp(b, x, times * a->inner, "");
}

/* The sum, of which what is added may have a factor. */
static int sum(struct hf_builder *b, int x, int y, const char *name)
{
    char factor[32];
    snprintf(factor, sizeof factor, "%s.factor", name);
    if (b->a->residual_factor > 0)
        y = topt_hf_scale(b, y, b->a->residual_factor, factor);
    return topt_hf_sum(b, x, y, name);
}

/* One norm, or one for each of the two. */
static int parallel_block(struct hf_builder *b, int x)
{
    int n1 = topt_hf_norm(b, x, "norm1");
    int n2 = b->a->shared_norm ? n1 : topt_hf_norm(b, x, "norm2");
    int y = topt_hf_attention(b, n1), z = topt_hf_mlp(b, n2);
    y = topt_hf_add(b, "add", y, z, NULL, "add1");
    return topt_hf_add(b, "add", x, y, NULL, "add2");
}

/* Queries of the text, keys and values of what a tower made of an image (of the text where
 * there is none), let through by a number; one more lets the feed-forward through. */
static int attention_across(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    enum { GATES = 2 };
    int64_t queries = a->heads / a->kv_heads * a->head_dim;
    int from = b->encoded >= 0 ? b->encoded : x;
    struct topt_attrs norm = {.head_dim = a->head_dim, .rms = 1, .eps = a->eps},
                      attrs = {.heads = a->heads,
                               .kv_heads = a->kv_heads,
                               .head_dim = a->head_dim};
    int q = topt_hf_linear(b, x, a->kv_heads, queries, 0, "cross.q");
    q = topt_hf_add(b, "head_norm", q, -1, &norm, "cross.q.norm");
    int k = topt_hf_linear(b, from, a->kv_heads, a->head_dim, 0, "cross.k");
    k = topt_hf_add(b, "head_norm", k, -1, &norm, "cross.k.norm");
    int v = topt_hf_linear(b, from, a->kv_heads, a->head_dim, 0, "cross.v");
    int kv = topt_hf_add(b, "concat", k, v, NULL, "cross.kv");
    x = topt_hf_add(b, "attention", q, kv, &attrs, "cross.attend");
    x = topt_hf_linear(b, x, a->width, 1, 0, "out");
    return topt_hf_unread(b, x, GATES, "cross.gates");
}

/* What mixes positions, of the block's input after its norm. */
static int mix(struct hf_builder *b, int x)
{
    if (layer_is(b, HF_ACROSS))
        return attention_across(b, x);
    if (layer_is(b, HF_MIXED))
        return topt_hf_mix(b, x);
    if (layer_is(b, HF_MAP_MIX))
        return topt_hf_linear(b, x, b->a->width, 1, 0, "mix.map");
    int y = topt_hf_attention(b, x);
    return layer_is(b, HF_BOTH)
               ? topt_hf_add(b, "add", y, topt_hf_mix(b, x), NULL, "add_mixer")
               : y;
}

/* Beside attention a map by way of few numbers (LAuReL), and what predicts and corrects the
 * copies of a layer's input (AltUp: Baykal et al., 2023). */
static int with_narrow(struct hf_builder *b, int in, int y)
{
    const struct hf_arch *a = b->a;
    int64_t n = a->copies, w = a->width;
    int z = topt_hf_linear(b, in, a->narrow, 1, 0, "narrow.in");
    z = topt_hf_norm(b, topt_hf_linear(b, z, w, 1, 0, "narrow.out"), "narrow.norm");
    y = topt_hf_add(b, "add", y, z, NULL, "narrow.add");
    return topt_hf_unread(b, y, 2 * w + n * w + n * n + n * n * n, "copies");
}

/* Maps to all copies but the first, or from them. */
static int with_copies(struct hf_builder *b, int x, const char *name)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs first = {.features_unit = 1};
    char part[40];
    if (a->copies < 2)
        return x;
    snprintf(part, sizeof part, "%s.one", name);
    int y = topt_hf_linear(b, x, a->width, a->copies - 1, 0, name);
    y = topt_hf_add(b, "slice", y, -1, &first, "%s", part);
    return topt_hf_add(b, "add", x, y, NULL, "%s.add", name);
}

static enum hf_norms norms_of(const struct hf_builder *b)
{
    return b->a->pre_where_mixed && layer_is(b, HF_MIXED) ? HF_PRE : b->a->norms;
}

/* The names of a block's half: of its norms, its gain, its residual sum. */
struct half {
    const char *norm, *after, *scale, *add;
};
static const struct half mixing = {"norm1", "norm1.after", "scale1", "add1"},
                         crossing = {"cross.norm", "cross.norm.after", "cross.scale",
                                     "cross.add"},
                         feeding = {"norm2", "norm2.after", "scale2", "add2"};

static int norm_before(struct hf_builder *b, const struct half *h, int x)
{
    enum hf_norms norms = norms_of(b);
    return norms == HF_POST || norms == HF_AFTER ? x : topt_hf_norm(b, x, h->norm);
}

static int norm_after(struct hf_builder *b, const struct half *h, int y)
{
    enum hf_norms norms = norms_of(b);
    return norms == HF_SANDWICH ? topt_hf_norm(b, y, h->after)
           : norms == HF_AFTER  ? topt_hf_norm(b, y, h->norm)
                                : y;
}

/* The half's input 'x' and what it gave for that. */
static int residual(struct hf_builder *b, const struct half *h, int x, int y)
{
    y = b->a->layer_scale ? topt_hf_add(b, "gain", y, -1, NULL, "%s", h->scale) : y;
    x = sum(b, x, y, h->add);
    return norms_of(b) == HF_POST ? topt_hf_norm(b, x, h->norm) : x;
}

static int mixing_half(struct hf_builder *b, int x)
{
    int bare = !b->layer && b->a->no_first_norm;
    int in = bare ? x : norm_before(b, &mixing, x);
    int y = norm_after(b, &mixing, mix(b, in));
    y = b->a->narrow ? with_narrow(b, in, y) : y;
    y = topt_hf_unread(b, y, b->a->layer_unused, "unused");
    return residual(b, &mixing, x, y);
}

/* What the feed-forward gives times how much of it its input lets through. */
static int received(struct hf_builder *b, int in, int y)
{
    int g = topt_hf_linear(b, in, b->a->width, 1, 0, "receive");
    g = topt_hf_unary(b, g, TOPT_ACT_SIGMOID, "receive.sigmoid");
    return topt_hf_add(b, "mul", y, g, NULL, "received");
}

static int feeding_half(struct hf_builder *b, int x)
{
    int y;
    if (b->a->experts_beside) {
        y = mlp_beside_experts(b, x);
    } else {
        int in = norm_before(b, &feeding, x);
        y = topt_hf_mlp(b, in);
        if (b->a->mlp_gate)
            y = received(b, in, y);
    }
    return residual(b, &feeding, x, norm_after(b, &feeding, y));
}

/* A layer's own part of what was made for all, let through by the sum: in a plan the
 * first part for each. */
static int with_own_input(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs part = {.features_unit = a->own_inputs}; /* so layers are alike */
    int own = topt_hf_add(b, "slice", b->own, -1, &part, "own");
    int y = topt_hf_linear(b, x, 1, a->own_inputs, 0, "own.gate");
    y = topt_hf_unary(b, y, a->activation, "own.activation");
    y = topt_hf_add(b, "mul", y, own, NULL, "own.gated");
    y = topt_hf_norm(b, topt_hf_linear(b, y, a->width, 1, 0, "own.out"), "own.norm");
    return topt_hf_add(b, "add", x, y, NULL, "own.add");
}

/* Queries of the text, keys and values of what the encoder made, all of it. */
static int reading_encoder(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = attend_attrs(b);
    int64_t each = a->heads / a->kv_heads * a->head_dim;
    attrs.causal = 0;
    attrs.window = attrs.chunk = 0;
    int q = topt_hf_linear(b, x, a->kv_heads, each, a->qkv_bias, "cross.q");
    int k =
        topt_hf_linear(b, b->encoded, a->kv_heads, a->head_dim, a->qkv_bias, "cross.k");
    int v =
        topt_hf_linear(b, b->encoded, a->kv_heads, a->head_dim, a->qkv_bias, "cross.v");
    int kv = topt_hf_add(b, "concat", k, v, NULL, "cross.kv");
    x = topt_hf_add(b, "attention", q, kv, &attrs, "cross.attend");
    return topt_hf_linear(b, x, a->width, 1, a->out_bias, "cross.out");
}

static int crossing_half(struct hf_builder *b, int x)
{
    int y = reading_encoder(b, norm_before(b, &crossing, x));
    return residual(b, &crossing, x, norm_after(b, &crossing, y));
}

static int serial_block(struct hf_builder *b, int x)
{
    x = layer_is(b, HF_NO_MIX) ? x : mixing_half(b, x);
    x = b->a->encoder ? crossing_half(b, x) : x;
    x = layer_is(b, HF_NO_MLP) ? x : feeding_half(b, x);
    return b->own >= 0 ? with_own_input(b, x) : x;
}

static int64_t or_else(int64_t own, int64_t usual)
{
    return own ? own : usual;
}

/* With sizes of its own: of heads, which differ in layers that are not local, and those that the
 * layer has where layers differ one by one. */
static int sized_block(struct hf_builder *b, int x)
{
    struct hf_arch sized = *b->a;
    struct hf_builder own = *b;
    const struct hf_layer_sizes *layer = &b->a->sizes[b->layer];
    if (sized.full_head_dim && !layer_is(b, HF_LOCAL)) {
        sized.head_dim = sized.full_head_dim;
        sized.heads = or_else(sized.full_heads, sized.heads);
        sized.kv_heads = sized.full_kv_heads;
    }
    sized.heads = or_else(layer->heads, sized.heads);
    sized.kv_heads = or_else(layer->kv_heads, sized.kv_heads);
    sized.inner = or_else(layer->inner, sized.inner);
    own.a = &sized;
    x = serial_block(&own, x);
    b->failed |= own.failed;
    return x;
}

/* ---- blocks that layers take by turns (Glorioso et al., Zamba2, 2024) ---------------- */

/* A map that a block's layers share, and what the layer has of its own beside it. */
static int turned_linear(struct hf_builder *b, struct hf_shared *of, int x,
                         int64_t features, int64_t unit, int own, const char *name)
{
    char part[40];
    b->shared = of;
    int y = topt_hf_linear(b, x, features, unit, 0, name);
    b->shared = NULL;
    if (!own || !b->a->own_rank)
        return y;
    snprintf(part, sizeof part, "%s.own.in", name);
    x = topt_hf_linear(b, x, b->a->own_rank, 1, 0, part);
    snprintf(part, sizeof part, "%s.own.out", name);
    x = topt_hf_linear(b, x, features, unit, 0, part);
    return topt_hf_add(b, "add", y, x, NULL, "%s.both", name);
}

static int turned_norm(struct hf_builder *b, struct hf_shared *of, int x,
                       const char *name)
{
    b->shared = of;
    x = topt_hf_norm(b, x, name);
    b->shared = NULL;
    return x;
}

/* Of the layer's input and the embeddings side by side; ends with a map of the layer's own. */
static int take_turn(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct hf_shared *of = &b->blocks[b->turns++ % a->shared_blocks];
    struct topt_attrs attrs = attend_attrs(b), glu = {.activation = a->activation},
                      flat = {.features = 2 * a->width, .features_unit = 1};
    int own = a->own_queries;
    int64_t each = a->heads / a->kv_heads * a->head_dim;
    x = topt_hf_add(b, "concat", x, b->encoded, NULL, "turn.both");
    x = topt_hf_add(b, "regroup", x, -1, &flat, "turn.in");
    x = turned_norm(b, of, x, "turn.norm1");
    int q = turned_linear(b, of, x, a->kv_heads, each, own, "q");
    int k = turned_linear(b, of, x, a->kv_heads, a->head_dim, own, "k");
    int v = turned_linear(b, of, x, a->kv_heads, a->head_dim, own, "v");
    q = rotary(b, q, a->head_dim, "q.rotary");
    k = rotary(b, k, a->head_dim, "k.rotary");
    x = topt_hf_add(b, "attention", q, topt_hf_add(b, "concat", k, v, NULL, "kv"), &attrs,
                    "attend");
    x = turned_linear(b, of, x, a->width, 1, 0, "out");
    x = turned_norm(b, of, x, "turn.norm2");
    x = turned_linear(b, of, x, a->inner, 2, 1, "gate_up");
    x = topt_hf_add(b, "glu", x, -1, &glu, "glu");
    x = turned_linear(b, of, x, a->width, 1, 0, "down");
    return topt_hf_linear(b, x, a->width, 1, 0, "turn.out");
}

static int block_of_turns(struct hf_builder *b, int x)
{
    int y = layer_is(b, HF_BOTH)
                ? topt_hf_add(b, "add", x, take_turn(b, x), NULL, "turn.add")
                : x;
    y = topt_hf_mix(b, topt_hf_norm(b, y, "norm1"));
    return topt_hf_add(b, "add", x, y, NULL, "add1");
}

int topt_hf_block(struct hf_builder *b, int x)
{
    if (b->a->shared_blocks)
        return block_of_turns(b, x);
    if (b->a->norms == HF_PARALLEL)
        return parallel_block(b, x);
    if (b->a->two_halves)
        return two_halves(b, x);
    int sized = b->a->sizes_differ || (b->a->full_head_dim && !layer_is(b, HF_LOCAL));
    return sized ? sized_block(b, x) : serial_block(b, x);
}

/* ---- the whole --------------------------------------------------------------------- */

/* What is added to tokens' embeddings, of the same width. */
static int placed(struct hf_builder *b, int x, int64_t width)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs types = {
        .vocab = a->types, .features = width, .init_std = a->init_std};
    struct topt_attrs positions = {.positions = a->positions, .init_std = a->init_std};
    if (a->types)
        x = topt_hf_add(b, "add", x, topt_hf_add(b, "embedding", -1, -1, &types, "types"),
                        NULL, "add_types");
    if (a->positions)
        x = topt_hf_add(b, "position", x, -1, &positions, "position");
    return a->embed_norm ? topt_hf_norm(b, x, "embedding.norm") : x;
}

/* Tokens, their types and positions; 'table' is the tied one's tensor or -1. */
static int embedding(struct hf_builder *b, int table)
{
    const struct hf_arch *a = b->a;
    int64_t width = a->embed_width ? a->embed_width : a->width;
    struct topt_attrs own = {
        .vocab = a->vocab + a->more_vocab, .features = width, .init_std = a->init_std};
    struct topt_attrs relative = {.positions = a->relative_rows};
    int x = topt_hf_add(b, "embedding", table, -1, table < 0 ? &own : NULL, "embedding");
    if (a->embed_factor > 0)
        x = topt_hf_scale(b, x, a->embed_factor, "embedding.scale");
    x = a->embed_inside ? placed(b, x, width) : x;
    if (width != a->width)
        x = topt_hf_linear(b, x, a->width, 1, a->embed_inside, "project_in");
    x = a->embed_inside ? x : placed(b, x, a->width);
    if (a->disentangled) {
        x = topt_hf_add(b, "position", x, -1, &relative, "relative");
        x = a->disentangled > 1 ? topt_hf_norm(b, x, "relative.norm") : x;
    }
    return topt_hf_unread(b, x, a->unused, "unused");
}

int topt_hf_stack(struct hf_builder *b, int x, int64_t n, const char *prefix,
                  int (*block)(struct hf_builder *b, int x))
{
    char name[32];
    for (int64_t i = 0; i < n && !b->failed; i++) {
        snprintf(name, sizeof name, "%sh%d.", prefix, (int)i);
        b->prefix = name;
        b->layer = i;
        topt_hf_next_layer(b);
        x = block(b, x);
    }
    topt_hf_no_layer(b);
    b->prefix = "";
    return x;
}

/* Inputs of all layers: of a table by the token, and of its embedding. */
static int own_inputs(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int64_t all = a->layers * a->own_inputs;
    struct topt_attrs table = {
        .vocab = a->own_vocab, .features = all, .init_std = a->init_std};
    struct topt_attrs by_layer = {.features = a->layers, .features_unit = a->own_inputs};
    struct topt_attrs norm = {.head_dim = a->own_inputs, .rms = 1, .eps = a->eps};
    struct topt_attrs whole = {.features = 1, .features_unit = all};
    int y = topt_hf_add(b, "embedding", -1, -1, &table, "own.embedding");
    y = topt_hf_scale(b, y, sqrt((double)a->own_inputs), "own.scale");
    y = topt_hf_add(b, "regroup", y, -1, &by_layer, "own.layers");
    int z = topt_hf_linear(b, x, a->layers, a->own_inputs, 0, "own.projection");
    z = topt_hf_scale(b, z, 1 / sqrt((double)a->width), "own.projection.scale");
    z = topt_hf_add(b, "head_norm", z, -1, &norm, "own.projection.norm");
    y = topt_hf_scale(b, topt_hf_add(b, "add", y, z, NULL, "own.sum"), sqrt(0.5),
                      "own.sum.scale");
    return topt_hf_add(b, "regroup", y, -1, &whole, "own.all");
}

/* ---- multi-token prediction ---------------------------------------------------------- */

/* Is it a stack of blocks over the embeddings of tokens alone, with a language model's head of one map?  Others have no
 * published modules that predict further tokens. */
static int may_predict_further(const struct hf_arch *a)
{
    int beside = a->tower || a->audio_tower || a->own_inputs || a->shared_blocks ||
                 a->layer_groups || a->shared_kv || a->copies > 1,
        more = a->positions || a->types || a->embed_width || a->embed_inside ||
               a->embed_norm || a->disentangled || a->more_vocab || a->buckets;
    return a->head == HF_LANGUAGE && !beside && !more && !a->head_bias &&
           !a->head_transform;
}

static void further_prefix(struct hf_builder *b, char name[32], int64_t i)
{
    snprintf(name, 32, "mtp%d.", (int)i);
    b->prefix = name;
}

/* One module reads what the one before it gave (the first, the model's last norm) and the next token's embedding. */
static int further_token(struct hf_builder *b, int x, int table)
{
    const struct hf_arch *a = b->a;
    int e = topt_hf_add(b, "embedding", table, -1, NULL, "embedding");
    if (a->embed_factor > 0)
        e = topt_hf_scale(b, e, a->embed_factor, "embedding.scale");
    b->layer = a->layers - 1; /* of its kind */
    topt_hf_next_layer(b);
    e = topt_hf_norm(b, e, "enorm");
    x = topt_hf_add(b, "concat", e, topt_hf_norm(b, x, "hnorm"), NULL, "both");
    x = topt_hf_block(b, topt_hf_linear(b, x, a->width, 1, 0, "mtp"));
    x = topt_hf_norm(b, x, "norm");
    topt_hf_no_layer(b);
    return x;
}

/* Modules that predict further tokens (DeepSeek-V3 Technical Report, 2024, section 2.2), as Megatron-LM builds them
 * (core/transformer/multi_token_prediction.py at d98e8a6), and all heads, of which the model's own is the last.  The
 * embedding and the head are those of the model.  Megatron-LM splits the projection's columns over tensor parallel ranks;
 * here each rank has all of it and its own positions, which is as much work. */
static void predict_further(struct hf_builder *b, int x, int table)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs head = {
        .vocab = a->vocab, .features = a->width, .init_std = a->init_std};
    int further[TOPT_MAX_MTP];
    char name[32];
    x = a->no_final_norm ? x : topt_hf_norm(b, x, "norm");
    for (int64_t i = 0; i < a->mtp; i++) {
        further_prefix(b, name, i);
        further[i] = further_token(b, i ? further[i - 1] : x, table);
    }
    b->prefix = "";
    if (!a->tied)
        table = topt_hf_add(b, "variable", -1, -1, &head, "lm_head.table");
    for (int64_t i = 0; i < a->mtp; i++) {
        further_prefix(b, name, i);
        topt_hf_language_head(b, further[i], table);
    }
    b->prefix = "";
    topt_hf_language_head(b, x, table);
}

/* ---- one stack of blocks over tokens ---------------------------------------------------- */

static void build_stack(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs tied = {.vocab = a->vocab,
                              .features = a->embed_width ? a->embed_width : a->width,
                              .init_std = a->init_std};
    struct topt_attrs relative = {.vocab = a->buckets, .features = a->heads};
    int further = a->mtp && may_predict_further(a);
    int table =
        a->tied || further ? topt_hf_add(b, "variable", -1, -1, &tied, "wte") : -1;
    if (a->buckets)
        b->relative = topt_hf_add(b, "variable", -1, -1, &relative, "relative");
    int x = embedding(b, table), kept[2] = {-1, -1};
    b->kept = a->shared_kv ? kept : NULL;
    b->shared = a->layer_groups ? calloc(1, sizeof *b->shared) : NULL;
    x = a->tower && a->add_image_tokens ? a->add_image_tokens(b, x) : x;
    x = a->audio_tower && a->add_audio_tokens ? a->add_audio_tokens(b, x) : x;
    if (a->own_inputs)
        b->own = own_inputs(b, x);
    if (a->shared_blocks) {
        b->encoded = x;
        b->blocks = calloc((size_t)a->shared_blocks, sizeof *b->blocks);
        b->failed |= !b->blocks;
    }
    x = with_copies(b, x, "copies.in");
    x = topt_hf_stack(b, x, a->layers, "", topt_hf_block);
    x = with_copies(b, x, "copies.out");
    topt_hf_free_shared(b->shared);
    b->shared = NULL;
    for (int64_t i = 0; b->blocks && i < a->shared_blocks; i++)
        topt_hf_free_shared(b->blocks[i].next);
    free(b->blocks);
    b->blocks = NULL;
    if (further)
        predict_further(b, x, table);
    else
        topt_hf_head(b, x, table);
    b->kept = NULL;
}

static int64_t usual_seq(const struct hf_arch *a)
{
    int64_t most = a->usual_seq ? a->usual_seq : TOPT_DEFAULT_SEQ;
    return a->context < most ? a->context : most;
}

/* What is not as in the model that the config means. */
static int tell(struct topt_model *m, const struct hf_arch *a, struct topt_error *err)
{
    int inexact = a->inexact_why && m->seq > a->inexact_above;
    const char *why = a->not_run ? a->not_run : inexact ? a->inexact_why : NULL;
    if (a->note[0] && topt_model_note(m, a->note, err))
        return -1;
    return why ? topt_model_plan_only(m, why, err) : 0;
}

struct topt_model *topt_hf_build_arch(const struct hf_arch *a, const char *name,
                                      void (*build)(struct hf_builder *b),
                                      const struct topt_import_options *o,
                                      struct topt_error *err)
{
    int64_t batch = o && o->batch ? o->batch : TOPT_DEFAULT_BATCH;
    int64_t seq = o && o->seq ? o->seq : usual_seq(a);
    if (seq > a->context) {
        topt_fail(err, TOPT_ERR_INVAL, "seq %lld is above the model's %s %lld",
                  (long long)seq, a->context_key, (long long)a->context);
        return NULL;
    }
    struct topt_model *m = topt_model_create(name, batch, seq, err);
    if (!m)
        return NULL;
    struct hf_builder b = {.m = m,
                           .a = a,
                           .prefix = "",
                           .relative = -1,
                           .own = -1,
                           .encoded = -1,
                           .err = err};
    (build ? build : build_stack)(&b);
    if (b.failed || tell(m, a, err) || topt_model_finish(m, err)) {
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}
