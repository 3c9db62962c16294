/* hf_mixers.c - what stands in a Hugging Face model where others have attention: state
 * space models, linear attention, short convolutions.
 *
 * A projection that a checkpoint has as one is several here, so that heads can be split:
 * its numbers are the same. */
#include "hf_mixers.h"
#include "hf_parts.h"

#include <stdio.h>

/* Each feature by itself over the last positions, and its activation. */
static int convolved(struct hf_builder *b, int x, int activated, const char *name)
{
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs attrs = {.kernel_w = m->kernel, .plain = !m->kernel_bias};
    x = topt_hf_add(b, "causal_conv", x, -1, &attrs, "%s", name);
    char act[40];
    snprintf(act, sizeof act, "%s.activation", name);
    return activated ? topt_hf_unary(b, x, TOPT_ACT_SILU, act) : x;
}

static int gated_by(struct hf_builder *b, int y, int z, int activation)
{
    z = topt_hf_unary(b, z, activation, "mixer.gate");
    return topt_hf_add(b, "mul", y, z, NULL, "mixer.gated");
}

/* A norm by mean square whatever the model's others are. */
static int normed(struct hf_builder *b, int x, const char *name)
{
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs attrs = {
        .rms = 1, .eps = m->eps > 0 ? m->eps : b->a->eps, .plain = m->plain_norms};
    return topt_hf_add(b, "norm", x, -1, &attrs, "%s", name);
}

/* The same of each group of heads by itself. */
static int normed_groups(struct hf_builder *b, int x)
{
    const struct hf_mixer *m = &b->a->mixer;
    int64_t each = m->heads / m->norm_groups * m->head_dim;
    struct topt_attrs groups = {.features = m->norm_groups, .features_unit = each};
    struct topt_attrs norm = {.head_dim = each, .rms = 1, .plain = 1, .eps = b->a->eps};
    x = topt_hf_add(b, "regroup", x, -1, &groups, "mixer.groups");
    x = topt_hf_add(b, "head_norm", x, -1, &norm, "mixer.norm");
    return topt_hf_add(b, "gain", x, -1, NULL, "mixer.norm.gain");
}

/* The last projection. */
static int last(struct hf_builder *b, int x, int bias)
{
    return topt_hf_linear(b, x, b->a->width, 1, bias, "mixer.out");
}

/* Positions of a chunk: results do not depend on it, and operators take so many. */
static int64_t chunk_of(const struct hf_mixer *m)
{
    enum { MOST = 1024 };
    return m->chunk < MOST ? m->chunk : MOST;
}

/* Mamba-2 (Dao and Gu, 2024): states of heads, whose keys and queries groups share. */
static int mamba2(struct hf_builder *b, int x)
{
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs ssd = {
        .chunk = chunk_of(m), .alpha = m->least_step, .beta = m->most_step};
    int z = topt_hf_linear(b, x, m->heads, m->head_dim, m->bias, "in.z");
    int v = topt_hf_linear(b, x, m->heads, m->head_dim, m->bias, "in.x");
    int shared = topt_hf_linear(b, x, m->groups, 2 * m->state, m->bias, "in.bc");
    int step = topt_hf_linear(b, x, m->heads, 1, m->bias, "in.dt");
    v = convolved(b, v, 1, "conv.x");
    shared = convolved(b, shared, 1, "conv.bc");
    v = topt_hf_add_all(b, "ssd", (int[]){v, step, shared, -1}, &ssd, "scan");
    v = gated_by(b, v, z, TOPT_ACT_SILU);
    if (m->norm)
        v = m->norm_groups > 1 ? normed_groups(b, v) : normed(b, v, "mixer.norm");
    return last(b, v, m->out_bias);
}

/* A narrow part of what the convolution gives, with a norm. */
static int narrow_part(struct hf_builder *b, int x, int64_t width, const char *name)
{
    struct topt_attrs norm = {.head_dim = width, .rms = 1, .eps = b->a->eps};
    x = topt_hf_linear(b, x, 1, width, 0, name);
    return topt_hf_add(b, "head_norm", x, -1, &norm, "%s.norm", name);
}

/* PLaMo 2: heads as in Mamba-2; steps, keys and queries as in Mamba, with norms. */
static int plamo(struct hf_builder *b, int x)
{
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs ssd = {.chunk = chunk_of(m)};
    int z = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "in.z");
    int v = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "in.x");
    v = convolved(b, v, 1, "conv.x");
    int step =
        topt_hf_linear(b, narrow_part(b, v, m->rank, "x.dt"), m->heads, 1, 0, "dt");
    int keys = narrow_part(b, v, m->state, "x.b"),
        queries = narrow_part(b, v, m->state, "x.c");
    int shared = topt_hf_add(b, "concat", keys, queries, NULL, "x.bc");
    v = topt_hf_add_all(b, "ssd", (int[]){v, step, shared, -1}, &ssd, "scan");
    return last(b, gated_by(b, v, z, TOPT_ACT_SILU), 0);
}

/* Mamba (Gu and Dao, 2023): a state of each feature, steps by a narrow projection. */
static int mamba(struct hf_builder *b, int x)
{
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs scan = {.chunk = chunk_of(m)};
    int z = topt_hf_linear(b, x, m->heads, 1, m->bias, "in.z");
    int v = topt_hf_linear(b, x, m->heads, 1, m->bias, "in.x");
    v = convolved(b, v, 1, "conv.x");
    int step = topt_hf_linear(b, v, m->rank, 1, 0, "x.dt");
    int keys = topt_hf_linear(b, v, m->state, 1, 0, "x.b");
    int queries = topt_hf_linear(b, v, m->state, 1, 0, "x.c");
    if (m->norm) {
        step = normed(b, step, "dt.norm");
        keys = normed(b, keys, "b.norm");
        queries = normed(b, queries, "c.norm");
    }
    step = topt_hf_linear(b, step, m->heads, 1, 1, "dt");
    v = topt_hf_add_all(b, "selective_scan", (int[]){v, step, keys, queries}, &scan,
                        "scan");
    return last(b, gated_by(b, v, z, TOPT_ACT_SILU), m->out_bias);
}

/* The gated delta rule (Yang et al., 2024): values of more heads than keys. */
static int delta(struct hf_builder *b, int x)
{
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs norm = {.head_dim = m->head_dim, .rms = 1, .eps = b->a->eps};
    struct topt_attrs rule = {.chunk = chunk_of(m)};
    int shared = topt_hf_linear(b, x, m->groups, 2 * m->state, 0, "in.qk");
    int v = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "in.v");
    int z = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "in.z");
    int beta = topt_hf_linear(b, x, m->heads, 1, 0, "in.b");
    int gate = topt_hf_linear(b, x, m->heads, 1, 0, "in.a");
    shared = convolved(b, shared, 1, "conv.qk");
    v = convolved(b, v, 1, "conv.v");
    v = topt_hf_add_all(b, "delta_rule", (int[]){v, shared, beta, gate}, &rule, "scan");
    v = topt_hf_add(b, "head_norm", v, -1, &norm, "mixer.norm");
    v = gated_by(b, v, z, TOPT_ACT_SILU);
    return last(b, v, 0);
}

/* A scan that is planned and not run, with 'extra' parameters of each head. */
static int scan(struct hf_builder *b, int x, int64_t extra)
{
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs attrs = {.features_unit = m->head_dim,
                               .state = m->state,
                               .chunk = m->chunk,
                               .extra = extra};
    return topt_hf_add(b, "scan", x, -1, &attrs, "scan");
}

/* Attention without a softmax, by blocks (Qin et al., 2024), a norm and a gate. */
static int lightning(struct hf_builder *b, int x)
{
    const struct hf_mixer *m = &b->a->mixer;
    int y = topt_hf_linear(b, x, m->heads, 3 * m->head_dim, 0, "qkv");
    y = topt_hf_unary(b, y, TOPT_ACT_SILU, "qkv.activation");
    y = topt_hf_unread(b, y, m->ranks[0], "qkv.norms");
    y = scan(b, y, 0);
    y = normed(b, y, "mixer.norm");
    int z = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "gate");
    y = gated_by(b, y, z, TOPT_ACT_SIGMOID);
    return last(b, y, 0);
}

/* A convolution between two gates. */
static int short_conv(struct hf_builder *b, int x)
{
    const struct hf_mixer *m = &b->a->mixer;
    int before = topt_hf_linear(b, x, b->a->width, 1, m->bias, "in.b");
    int after = topt_hf_linear(b, x, b->a->width, 1, m->bias, "in.c");
    int y = topt_hf_linear(b, x, b->a->width, 1, m->bias, "in.x");
    y = topt_hf_add(b, "mul", y, before, NULL, "gate.before");
    y = convolved(b, y, 0, "conv");
    y = topt_hf_add(b, "mul", y, after, NULL, "gate.after");
    return last(b, y, m->bias);
}

/* A map by way of few numbers. */
static int narrow(struct hf_builder *b, int x, int64_t rank, int activation, int bias,
                  const char *name)
{
    char part[40];
    snprintf(part, sizeof part, "%s.in", name);
    x = topt_hf_linear(b, x, rank, 1, 0, part);
    snprintf(part, sizeof part, "%s.activation", name);
    x = activation ? topt_hf_unary(b, x, activation, part) : x;
    return topt_hf_linear(b, x, b->a->mixer.heads, b->a->mixer.head_dim, bias, name);
}

/* RWKV-7 (Peng et al., 2025): a delta rule by decays and rates of each number; values are
 * mixed with the first layer's. */
static int rwkv7(struct hf_builder *b, int x)
{
    enum { KEYS_AND_BONUS = 3 };
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs each = {.head_dim = m->head_dim, .plain = 1, .eps = b->a->eps};
    int r = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "r");
    int k = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "k");
    int v = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "v");
    int w = narrow(b, x, m->ranks[0], TOPT_ACT_TANH, 1, "decay");
    int rate = narrow(b, x, m->ranks[1], 0, 1, "rate");
    int g = narrow(b, x, m->ranks[3], TOPT_ACT_SIGMOID, 0, "gate");
    if (b->layer)
        v = topt_hf_add(b, "mul", v, narrow(b, x, m->ranks[2], 0, 1, "first"), NULL,
                        "v.mixed");
    k = topt_hf_add(b, "mul", k, rate, NULL, "k.rate");
    int first = topt_hf_add(b, "concat", r, w, NULL, "scan.r");
    int second = topt_hf_add(b, "concat", k, v, NULL, "scan.kv");
    v = topt_hf_add(b, "concat", first, second, NULL, "scan.in");
    v = scan(b, v, KEYS_AND_BONUS * m->head_dim);
    v = topt_hf_add(b, "head_norm", v, -1, &each, "mixer.norm");
    v = topt_hf_add(b, "gain", v, -1, NULL, "mixer.norm.gain");
    v = topt_hf_add(b, "bias", v, -1, NULL, "mixer.norm.bias");
    v = topt_hf_add(b, "mul", v, g, NULL, "mixer.gated");
    return last(b, v, 0);
}

/* A delta rule by decays of each number of a key (Kimi Team, 2025); decays and the gate of what
 * comes out are made by way of few numbers. */
static int kda(struct hf_builder *b, int x)
{
    enum { RATE_AND_DECAYS = 1 };
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs norm = {.head_dim = m->head_dim, .rms = 1, .eps = b->a->eps};
    int q = topt_hf_linear(b, x, m->heads, m->state, 0, "in.q");
    int k = topt_hf_linear(b, x, m->heads, m->state, 0, "in.k");
    int v = topt_hf_linear(b, x, m->heads, m->head_dim, 0, "in.v");
    q = convolved(b, q, 1, "conv.q");
    k = convolved(b, k, 1, "conv.k");
    v = convolved(b, v, 1, "conv.v");
    int w = narrow(b, x, m->ranks[0], 0, 0, "decay");
    int beta = topt_hf_linear(b, x, m->heads, 1, 0, "in.b");
    int g = narrow(b, x, m->ranks[0], 0, 0, "gate");
    q = topt_hf_add(b, "concat", q, w, NULL, "scan.q");
    v = topt_hf_add(b, "concat", k, v, NULL, "scan.kv");
    v = topt_hf_add(b, "concat", q, v, NULL, "scan.qkv");
    v = topt_hf_add(b, "concat", v, beta, NULL, "scan.in");
    v = scan(b, v, RATE_AND_DECAYS + m->head_dim);
    v = topt_hf_add(b, "head_norm", v, -1, &norm, "mixer.norm");
    return last(b, gated_by(b, v, g, TOPT_ACT_SIGMOID), 0);
}

/* A matrix of each head that gates by exponentials write and forget (Beck et al., 2024). */
static int mlstm(struct hf_builder *b, int x)
{
    const struct hf_mixer *m = &b->a->mixer;
    struct topt_attrs norm = {.head_dim = m->head_dim, .plain = 1, .eps = b->a->eps};
    int q = topt_hf_linear(b, x, m->heads, m->state, m->bias, "in.q");
    int k = topt_hf_linear(b, x, m->heads, m->state, m->bias, "in.k");
    int v = topt_hf_linear(b, x, m->heads, m->head_dim, m->bias, "in.v");
    int i = topt_hf_linear(b, x, m->heads, 1, 1, "in.i");
    int f = topt_hf_linear(b, x, m->heads, 1, 1, "in.f");
    int o = topt_hf_linear(b, x, m->heads, m->head_dim, m->bias, "in.o");
    q = topt_hf_add(b, "concat", q, k, NULL, "scan.qk");
    i = topt_hf_add(b, "concat", i, f, NULL, "scan.gates");
    v = topt_hf_add(b, "concat", v, i, NULL, "scan.v");
    v = scan(b, topt_hf_add(b, "concat", q, v, NULL, "scan.in"), 0);
    v = topt_hf_add(b, "head_norm", v, -1, &norm, "mixer.norm");
    v = topt_hf_add(b, "gain", v, -1, NULL, "mixer.norm.gain");
    return last(b, gated_by(b, v, o, TOPT_ACT_SIGMOID), m->bias);
}

/* RWKV-4 (Peng et al., 2023): a decaying mean of values, each number by itself. */
static int rwkv4(struct hf_builder *b, int x)
{
    enum { DECAY_AND_FIRST = 2 };
    const struct hf_mixer *m = &b->a->mixer;
    int r = topt_hf_linear(b, x, m->heads, 1, 0, "r");
    int k = topt_hf_linear(b, x, m->heads, 1, 0, "k");
    int v = topt_hf_linear(b, x, m->heads, 1, 0, "v");
    v = scan(b, topt_hf_add(b, "concat", k, v, NULL, "scan.in"), DECAY_AND_FIRST);
    v = gated_by(b, v, r, TOPT_ACT_SIGMOID);
    return last(b, v, 0);
}

int topt_hf_mix(struct hf_builder *b, int x)
{
    static int (*const mixers[])(struct hf_builder *, int) = {
        [HF_MAMBA2] = mamba2,         [HF_MAMBA] = mamba,
        [HF_DELTA] = delta,           [HF_LIGHTNING] = lightning,
        [HF_SHORT_CONV] = short_conv, [HF_RWKV4] = rwkv4,
        [HF_RWKV7] = rwkv7,           [HF_KDA] = kda,
        [HF_MLSTM] = mlstm,           [HF_PLAMO] = plamo,
    };
    return mixers[b->a->mixer.kind](b, x);
}
