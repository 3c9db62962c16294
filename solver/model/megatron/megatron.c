/* megatron.c - a decoder as Megatron-LM's arguments describe it.
 *
 * The arguments become the same 'struct hf_arch' that the readers of Hugging Face
 * configs fill, so that the same blocks come out.  Names and defaults are those of
 * megatron/training/arguments.py at commit 000c4ac2.  What changes the model and is
 * not done here is refused by its name; all other arguments (of optimizers, data,
 * parallelism, logging) are not looked at, but for those that say how the vocabulary
 * is padded and what a step has. */
#include "megatron_text.h"

#include "hf_arch.h"
#include "hf_build.h"
#include "hf_read.h"
#include "megatron.h"
#include "megatron_source.h"
#include "topt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    int64_t layers, width, inner, heads, kv_channels, query_groups, positions, seq, vocab,
        padded, multiple, tensor, experts, top_k, expert_inner, shared_inner, groups,
        top_groups, batch, mtp, latent_experts, query_rank, latent_rank, plain_dim,
        turned_dim, value_dim;
    double eps, init_std, rotary_base, rotary_share, rope_factor, route_factor, capacity,
        hidden_dropout, attention_dropout, balance, interpolated;
    int grouped, rotary, unplaced, scaled, untied, unbiased, qkv_bias, head_norms, gated,
        pre_softmax, expert_bias, shared_gate, squared, latent;
    int merges;
    char *normalization, *position, *score, *layer_freq, *tokenizer, *tokenizer_model;
    char open[240]; /* what the script leaves to whoever starts it */
};

/* ---- which arguments there are ----------------------------------------------------- */

enum kind { WHOLE, REAL, FLAG, TEXT };

#define ARG(name, kind, field)                                                           \
    {                                                                                    \
        name, kind, offsetof(struct arguments, field)                                    \
    }
static const struct row {
    const char *name;
    enum kind kind;
    size_t offset;
} rows[] = {
    ARG("num-layers", WHOLE, layers),
    ARG("hidden-size", WHOLE, width),
    ARG("ffn-hidden-size", WHOLE, inner),
    ARG("num-attention-heads", WHOLE, heads),
    ARG("kv-channels", WHOLE, kv_channels),
    ARG("group-query-attention", FLAG, grouped),
    ARG("num-query-groups", WHOLE, query_groups),
    ARG("max-position-embeddings", WHOLE, positions),
    ARG("seq-length", WHOLE, seq),
    ARG("vocab-size", WHOLE, vocab),
    ARG("padded-vocab-size", WHOLE, padded),
    ARG("make-vocab-size-divisible-by", WHOLE, multiple),
    ARG("tensor-model-parallel-size", WHOLE, tensor),
    ARG("global-batch-size", WHOLE, batch),
    ARG("position-embedding-type", TEXT, position),
    ARG("use-rotary-position-embeddings", FLAG, rotary),
    ARG("no-position-embedding", FLAG, unplaced),
    ARG("rotary-base", REAL, rotary_base),
    ARG("rotary-percent", REAL, rotary_share),
    ARG("use-rope-scaling", FLAG, scaled),
    ARG("rope-scaling-factor", REAL, rope_factor),
    ARG("rotary-seq-len-interpolation-factor", REAL, interpolated),
    ARG("normalization", TEXT, normalization),
    ARG("norm-epsilon", REAL, eps),
    ARG("layernorm-epsilon", REAL, eps),
    ARG("init-method-std", REAL, init_std),
    ARG("swiglu", FLAG, gated),
    ARG("squared-relu", FLAG, squared),
    ARG("multi-latent-attention", FLAG, latent),
    ARG("q-lora-rank", WHOLE, query_rank),
    ARG("kv-lora-rank", WHOLE, latent_rank),
    ARG("qk-head-dim", WHOLE, plain_dim),
    ARG("qk-pos-emb-head-dim", WHOLE, turned_dim),
    ARG("v-head-dim", WHOLE, value_dim),
    ARG("untie-embeddings-and-output-weights", FLAG, untied),
    ARG("disable-bias-linear", FLAG, unbiased),
    ARG("add-qkv-bias", FLAG, qkv_bias),
    ARG("qk-layernorm", FLAG, head_norms),
    ARG("num-experts", WHOLE, experts),
    ARG("moe-router-topk", WHOLE, top_k),
    ARG("moe-ffn-hidden-size", WHOLE, expert_inner),
    ARG("moe-shared-expert-intermediate-size", WHOLE, shared_inner),
    ARG("moe-shared-expert-gate", FLAG, shared_gate),
    ARG("moe-layer-freq", TEXT, layer_freq),
    ARG("moe-latent-size", WHOLE, latent_experts),
    ARG("moe-router-score-function", TEXT, score),
    ARG("moe-router-pre-softmax", FLAG, pre_softmax),
    ARG("moe-router-enable-expert-bias", FLAG, expert_bias),
    ARG("moe-router-num-groups", WHOLE, groups),
    ARG("moe-router-group-topk", WHOLE, top_groups),
    ARG("moe-router-topk-scaling-factor", REAL, route_factor),
    ARG("moe-expert-capacity-factor", REAL, capacity),
    ARG("moe-aux-loss-coeff", REAL, balance),
    ARG("mtp-num-layers", WHOLE, mtp),
    ARG("hidden-dropout", REAL, hidden_dropout),
    ARG("attention-dropout", REAL, attention_dropout),
    ARG("tokenizer-type", TEXT, tokenizer),
    ARG("tokenizer-model", TEXT, tokenizer_model),
    ARG("merge-file", FLAG, merges),
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Arguments that change no parameters, but for the padding of tables: a script may leave them to
 * whoever starts it, and the note names them. */
static const char soft[] =
    " global-batch-size seq-length hidden-dropout attention-dropout "
    "init-method-std tensor-model-parallel-size tokenizer-type tokenizer-model "
    "moe-aux-loss-coeff moe-expert-capacity-factor ";

/* What makes another model, for which there are no operators or no reader. */
static const char refused[] =
    " window-size no-rope-freq mrope-section "
    "apply-residual-connection-post-layernorm "
    "quick-geglu glu-linear-offset attention-output-gate "
    "linear-attention-type linear-attention-freq experimental-attention-variant "
    "retro-add-retriever encoder-num-layers decoder-num-layers "
    "hybrid-override-pattern hybrid-layer-pattern hybrid-attention-ratio "
    "hybrid-mlp-ratio is-hybrid-model heterogeneous-layers-config-path "
    "heterogeneous-layers-config-encoded-json yaml-cfg ";

/* The programs that train other models than decoders. */
static const char *const programs[] = {"pretrain_bert.py",
                                       "pretrain_t5.py",
                                       "pretrain_mamba.py",
                                       "pretrain_ict.py",
                                       "pretrain_vlm.py",
                                       "pretrain_vision_classify.py",
                                       "pretrain_retro.py",
                                       "pretrain_vision_dino.py",
                                       "pretrain_vision_inpaint.py",
                                       NULL};

/* ---- values ------------------------------------------------------------------------ */

static int read_real(const char *s, double *ret, struct topt_error *err)
{
    char *end;
    *ret = strtod(s, &end);
    return end != s && !*end && *ret >= 0 && *ret <= 1e18
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "'%.40s' is not a number from 0 on", s);
}

static int read_text(const char *s, char **ret, struct topt_error *err)
{
    free(*ret);
    *ret = strdup(s);
    return *ret ? 0 : topt_nomem(err, "an argument");
}

static int read_value(const struct megatron_text *t, const struct row *r,
                      const char *word, struct arguments *a, struct topt_error *err)
{
    void *field = (char *)a + r->offset;
    if (r->kind == FLAG) {
        *(int *)field = 1;
        return 0;
    }
    char *s = word ? topt_megatron_fill(t, word, err) : NULL;
    if (!s)
        return word ? -1 : topt_fail(err, TOPT_ERR_INVAL, "its value is missing");
    int rc = r->kind == WHOLE  ? topt_parse_int(s, 0, INT64_C(1) << 40, field, err)
             : r->kind == REAL ? read_real(s, field, err)
                               : read_text(s, field, err);
    free(s);
    return rc;
}

/* The value given before, or NULL: arguments that a file gives twice must agree, since
 * only one of them can be meant. */
static int check_again(const char **given, int row, const char *value,
                       struct topt_error *err)
{
    const char *before = given[row];
    given[row] = value;
    return before && value && strcmp(before, value)
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "it is given twice, as '%.40s' and '%.40s'", before, value)
               : 0;
}

/* Is the word one of the list, which has blanks around each? */
static int is_among(const char *list, const char *word, size_t n)
{
    char one[80];
    snprintf(one, sizeof one, " %.*s ", (int)n, word);
    return strstr(list, one) != NULL;
}

static int read_row(const struct megatron_text *t, int row, const char *value,
                    const char **given, struct arguments *a, struct topt_error *err)
{
    const struct row *r = &rows[row];
    struct topt_error own = {0};
    size_t n = strlen(a->open);
    int again = check_again(given, row, r->kind == FLAG ? NULL : value, &own);
    if (!again && !read_value(t, r, value, a, &own))
        return 0;
    if (!is_among(soft, r->name, strlen(r->name)) ||
        (!again && !(value && strchr(value, '$'))))
        return topt_fail(err, own.code, "%s", own.text);
    if (!strstr(a->open, r->name) && n + strlen(r->name) + 5 < sizeof a->open)
        snprintf(a->open + n, sizeof a->open - n, "%s--%s", n ? ", " : "", r->name);
    return 0;
}

static int refuse(const char *name, size_t n, const char *value, struct topt_error *err)
{
    if (n < 70 && is_among(refused, name, n))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--%.*s makes another model, which is not read yet", (int)n,
                         name);
    if (n == 12 && !strncmp(name, "softmax-type", n) && value && strcmp(value, "vanilla"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--softmax-type %.40s: no operator does that", value);
    return 0;
}

/* One argument, "--name value" or "--name=value"; 'next' is the word after it. */
static int read_argument(const struct megatron_text *t, const char *word,
                         const char *next, const char **given, struct arguments *a,
                         struct topt_error *err)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const char *value = equals                                ? equals + 1
                        : next && strncmp(next, "--", 2) != 0 ? next
                                                              : NULL;
    if (refuse(name, n, value, err))
        return -1;
    for (int i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == n && !strncmp(rows[i].name, name, n) &&
            read_row(t, i, value, given, a, err))
            return topt_wrap(err, "--%s", rows[i].name);
    return 0;
}

static int read_program(const char *word, struct topt_error *err)
{
    size_t n = strlen(word);
    for (int i = 0; programs[i]; i++) {
        size_t k = strlen(programs[i]);
        if (n >= k && !strcmp(word + n - k, programs[i]))
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "%s trains another model than a decoder, which is not read yet",
                programs[i]);
    }
    return 0;
}

/* Tokens of a tokenizer on the Hugging Face hub, by how its name begins: those of its file, with
 * the ones that are added. */
static int64_t tokens_of(const char *id)
{
    static const struct {
        const char *start;
        int64_t tokens;
    } known[] = {{"meta-llama/Llama-3", 128256},
                 {"meta-llama/Meta-Llama-3", 128256},
                 {"nvidia/Llama-3", 128256},
                 {"meta-llama/Llama-2", 32000},
                 {"deepseek-ai/DeepSeek-V3", 128815},
                 {"deepseek-ai/DeepSeek-R1", 128815},
                 {"deepseek-ai/DeepSeek-V2", 100002},
                 {"mistralai/Mixtral-8x7B", 32000},
                 {"mistralai/Mistral-7B-v0.1", 32000},
                 {"mistralai/Mistral-7B-Instruct-v0.3", 32768},
                 {"mistralai/Mistral-7B-v0.3", 32768},
                 {"Qwen/Qwen3", 151669},
                 {"Qwen/Qwen2.5", 151665},
                 {"Qwen/Qwen2", 151646}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(id, known[i].start, strlen(known[i].start)) &&
            !strstr(id, "Qwen3.5") && !strstr(id, "Qwen3-Next"))
            return known[i].tokens;
    return 0;
}

/* Scripts that leave the tokenizer to a common one set it in a variable. */
static int read_tokenizer(const struct megatron_text *t, struct arguments *a,
                          struct topt_error *err)
{
    static const char set[] = "TOKENIZER_MODEL=";
    for (int i = 0; i < t->nwords && !a->tokenizer_model; i++)
        if (!strncmp(t->word[i], set, sizeof set - 1) &&
            tokens_of(t->word[i] + sizeof set - 1) &&
            read_text(t->word[i] + sizeof set - 1, &a->tokenizer_model, err))
            return -1;
    return 0;
}

static int read_all(const struct megatron_text *t, struct arguments *a,
                    struct topt_error *err)
{
    const char *given[ROWS] = {0};
    for (int i = 0; i < t->nwords; i++) {
        const char *w = t->word[i];
        if (read_program(w, err))
            return -1;
        if (!strncmp(w, "--", 2) &&
            read_argument(t, w, i + 1 < t->nwords ? t->word[i + 1] : NULL, given, a, err))
            return -1;
    }
    return read_tokenizer(t, a, err);
}

/* ---- patterns of layers ------------------------------------------------------------ */

/* "([0]*3+[1]*58)": sums and multiples of lists. */
struct pattern {
    const char *s;
    uint8_t at[HF_MAX_LAYERS];
    int n, bad;
};

static void skip_quotes(struct pattern *p)
{
    while (*p->s == ' ' || *p->s == '\'' || *p->s == '"')
        p->s++;
}

static void read_sum(struct pattern *p, int depth);

static void read_list(struct pattern *p)
{
    do {
        char *end;
        p->s++;
        skip_quotes(p);
        long v = strtol(p->s, &end, 10);
        p->bad |= end == p->s || v < 0 || v > 1 || p->n == HF_MAX_LAYERS;
        if (p->bad)
            return;
        p->at[p->n++] = (uint8_t)v;
        p->s = end;
        skip_quotes(p);
    } while (*p->s == ',');
    p->bad |= *p->s != ']';
    p->s += !p->bad;
}

/* A list, or a sum in parentheses, perhaps several times. */
static void read_multiple(struct pattern *p, int depth)
{
    int first = p->n;
    skip_quotes(p);
    if (*p->s == '[') {
        read_list(p);
    } else if (*p->s == '(' && depth < 8) {
        p->s++;
        read_sum(p, depth + 1);
        p->bad |= *p->s != ')';
        p->s += !p->bad;
    } else {
        p->bad = 1;
    }
    for (skip_quotes(p); !p->bad && *p->s == '*'; skip_quotes(p)) {
        char *end;
        long times = strtol(++p->s, &end, 10), n = p->n - first;
        p->bad |= end == p->s || times < 0 || times > HF_MAX_LAYERS ||
                  first + n * times > HF_MAX_LAYERS;
        p->s = end;
        for (long k = 1; k < times && !p->bad; k++)
            memcpy(p->at + first + k * n, p->at + first, (size_t)n);
        p->n = p->bad ? p->n : first + (int)(n * times);
    }
}

static void read_sum(struct pattern *p, int depth)
{
    read_multiple(p, depth);
    while (!p->bad && *p->s == '+') {
        p->s++;
        read_multiple(p, depth);
    }
}

/* Layers without experts: a pattern, or all but every so-and-so-many-th from the first
 * on. */
static int mark_dense(const struct arguments *x, struct hf_arch *a,
                      struct topt_error *err)
{
    struct pattern p = {.s = x->layer_freq ? x->layer_freq : "1"};
    int64_t every = 1;
    skip_quotes(&p);
    if (*p.s != '[' && *p.s != '(') {
        if (topt_parse_int(p.s, 1, HF_MAX_LAYERS, &every, err))
            return topt_wrap(err, "--moe-layer-freq");
        for (int64_t i = 0; i < a->layers; i++)
            a->layer[i] |= i % every ? HF_DENSE : 0;
        return 0;
    }
    read_sum(&p, 0);
    skip_quotes(&p);
    if (p.bad || *p.s || p.n != a->layers)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--moe-layer-freq '%.60s' is no pattern of %lld layers",
                         x->layer_freq, (long long)a->layers);
    for (int i = 0; i < p.n; i++)
        a->layer[i] |= p.at[i] ? 0 : HF_DENSE;
    return 0;
}

/* ---- the model --------------------------------------------------------------------- */

static int missing(const char *name, int64_t value, int64_t most, struct topt_error *err)
{
    if (value < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "--%s is missing", name);
    return value > most ? topt_fail(err, TOPT_ERR_LIMIT, "--%s %lld is above %lld", name,
                                    (long long)value, (long long)most)
                        : 0;
}

/* As the embedding is padded to whole multiples for every part of tensor parallelism. */
static int find_vocab(const struct arguments *x, struct hf_arch *a,
                      struct topt_error *err)
{
    enum { GPT2 = 50257, LLAMA2 = 32000 };
    const char *type = x->tokenizer ? x->tokenizer : "";
    int64_t vocab = x->vocab, multiple = x->multiple * x->tensor;
    if (!vocab && (!strcmp(type, "GPT2BPETokenizer") || (x->merges && !*type))) {
        vocab = GPT2;
        topt_hf_note(a, "the vocabulary is taken to be GPT-2's, 50257 and padding");
    }
    if (!vocab && !strcmp(type, "Llama2Tokenizer"))
        vocab = LLAMA2;
    if (!vocab && x->tokenizer_model && (vocab = tokens_of(x->tokenizer_model))) {
        char text[200];
        snprintf(text, sizeof text,
                 "the vocabulary is that of %.80s's tokenizer, %lld and padding",
                 x->tokenizer_model, (long long)vocab);
        topt_hf_note(a, text);
    }
    if (x->padded)
        vocab = x->padded;
    else if (vocab && multiple > 0)
        vocab = (vocab + multiple - 1) / multiple * multiple;
    a->vocab = vocab;
    if (!vocab)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "--vocab-size is missing, and a tokenizer's file is not read: add "
            "--vocab-size or --padded-vocab-size to the arguments");
    return missing("vocab-size", vocab, HF_MAX_VOCAB, err);
}

static int find_positions(const struct arguments *x, struct hf_arch *a,
                          struct topt_error *err)
{
    const char *type = x->rotary     ? "rope"
                       : x->unplaced ? "none"
                       : x->position ? x->position
                                     : "learned_absolute";
    a->context = x->positions ? x->positions : x->seq;
    a->usual_seq = x->seq;
    if (x->mtp && strcmp(type, "rope") && strcmp(type, "none"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--mtp-num-layers with --position-embedding-type %.40s: "
                         "Megatron-LM has it with rope and none alone",
                         type);
    if (!strcmp(type, "learned_absolute")) {
        a->positions = x->positions;
        return missing("max-position-embeddings", x->positions, HF_MAX_CONTEXT, err);
    }
    if (!strcmp(type, "rope")) {
        a->context = a->context ? a->context : HF_MAX_CONTEXT;
        a->rope.rope_theta = x->rotary_base;
        a->rope.rope_dim = (int64_t)((double)a->head_dim * x->rotary_share) / 2 * 2;
        if (x->interpolated > 1)
            a->rope.rope_factor = x->interpolated;
        if (x->scaled) { /* as Llama 3.1's configs say */
            a->rope.rope_factor = x->rope_factor;
            a->rope.rope_context = 8192;
            a->rope.rope_slow = 1;
            a->rope.rope_fast = 4;
        }
        return 0;
    }
    a->context = a->context ? a->context : HF_MAX_CONTEXT;
    return !strcmp(type, "none")
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "--position-embedding-type %.40s: no reader does "
                           "that yet",
                           type);
}

static int find_norm(const struct arguments *x, struct hf_arch *a, struct topt_error *err)
{
    const char *name = x->normalization ? x->normalization : "LayerNorm";
    a->rms = !strcmp(name, "RMSNorm");
    return a->rms || !strcmp(name, "LayerNorm")
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "--normalization %.40s is not known",
                           name);
}

static int find_experts(const struct arguments *x, struct hf_arch *a,
                        struct topt_error *err)
{
    const char *score = x->score ? x->score : "softmax";
    if (x->experts < 1)
        return 0;
    if (!x->unbiased)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--num-experts without --disable-bias-linear: no operator adds "
                         "biases of experts");
    a->sigmoid = !strcmp(score, "sigmoid");
    if (!a->sigmoid && strcmp(score, "softmax"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--moe-router-score-function %.40s: no operator does that",
                         score);
    a->experts = x->experts;
    a->latent_experts = x->latent_experts;
    a->top_k = x->top_k;
    a->expert_inner = x->expert_inner ? x->expert_inner : a->inner;
    a->shared_inner = x->shared_inner;
    a->shared_gate = x->shared_gate;
    a->unnormalized = a->sigmoid ? a->top_k < 2 : x->pre_softmax;
    a->corrected = x->expert_bias;
    a->groups = x->groups;
    a->top_groups = x->top_groups;
    a->route_factor = x->route_factor;
    if (x->balance > 0)
        topt_hf_note(a, "there is no load-balancing loss");
    if (x->expert_bias)
        topt_hf_note(a, "the router's bias correction is not updated");
    if (x->capacity > 0)
        a->capacity = x->capacity;
    else
        topt_hf_give_slots(a);
    return missing("num-experts", a->experts, HF_MAX_EXPERTS, err) ||
                   missing("moe-router-topk", a->top_k, HF_MAX_EXPERTS, err)
               ? -1
               : mark_dense(x, a, err);
}

static int find_sizes(const struct arguments *x, struct hf_arch *a,
                      struct topt_error *err)
{
    if (missing("num-layers", x->layers, HF_MAX_LAYERS, err) ||
        missing("hidden-size", x->width, HF_MAX_WIDTH, err) ||
        missing("num-attention-heads", x->heads, HF_MAX_HEADS, err))
        return -1;
    if (x->inner > 4 * HF_MAX_WIDTH || x->expert_inner > 4 * HF_MAX_WIDTH ||
        x->shared_inner > 4 * HF_MAX_WIDTH || x->kv_channels > HF_MAX_WIDTH ||
        x->query_groups > x->heads || x->multiple > HF_MAX_VOCAB ||
        x->tensor > HF_MAX_WIDTH)
        return topt_fail(err, TOPT_ERR_LIMIT, "a size is beyond what models have");
    a->layers = x->layers;
    a->width = x->width;
    a->heads = x->heads;
    a->kv_heads = x->grouped ? x->query_groups : x->heads;
    a->head_dim = x->kv_channels;
    a->inner = x->inner ? x->inner
               : x->gated
                   ? 8 * x->width / 3 / 64 * 64 /* what the same number of weights has */
                   : 4 * x->width;
    return a->kv_heads < 1
               ? topt_fail(err, TOPT_ERR_INVAL, "--num-query-groups is missing")
               : topt_hf_set_heads(a, err);
}

/* Keys and values of all heads by way of few numbers; norms of these are an argument. */
static int find_latent(const struct arguments *x, struct hf_arch *a,
                       struct topt_error *err)
{
    if (!x->latent)
        return 0;
    if (!x->head_norms)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--multi-latent-attention without --qk-layernorm: latent "
                         "attention without norms is not read");
    a->head_norms = 0;
    a->query_rank = x->query_rank;
    a->latent_rank = x->latent_rank;
    a->plain_dim = x->plain_dim;
    a->value_dim = x->value_dim;
    a->kv_heads = a->heads;
    a->head_dim = x->plain_dim + x->turned_dim;
    a->rope.rope_dim = x->turned_dim;
    a->not_run = "angles of Megatron-LM's latent attention";
    return missing("kv-lora-rank", a->latent_rank, HF_MAX_WIDTH, err) ||
                   missing("qk-head-dim", a->plain_dim, HF_MAX_WIDTH, err) ||
                   missing("qk-pos-emb-head-dim", x->turned_dim, HF_MAX_WIDTH, err) ||
                   missing("v-head-dim", a->value_dim, HF_MAX_WIDTH, err)
               ? -1
               : 0;
}

static int find_arch(const struct arguments *x, struct hf_arch *a, struct topt_error *err)
{
    char open[300];
    a->gated = x->gated;
    a->activation = x->gated     ? TOPT_ACT_SILU
                    : x->squared ? TOPT_ACT_RELU2
                                 : TOPT_ACT_GELU;
    a->tied = !x->untied;
    a->qkv_bias = !x->unbiased || x->qkv_bias;
    a->out_bias = a->mlp_bias = !x->unbiased;
    a->head_norms = x->head_norms;
    a->eps = x->eps;
    a->init_std = x->init_std;
    snprintf(open, sizeof open, "left to whoever starts the script: %s", x->open);
    if (x->open[0])
        topt_hf_note(a, open);
    a->dropout = x->hidden_dropout > 0;
    a->undropped_scores = !(x->attention_dropout > 0);
    if (a->dropout || x->attention_dropout > 0)
        topt_hf_note(a, TOPT_HF_DROPS);
    return find_sizes(x, a, err) || find_norm(x, a, err) || find_positions(x, a, err) ||
                   find_vocab(x, a, err) || find_latent(x, a, err) ||
                   find_experts(x, a, err)
               ? -1
               : 0;
}

/* Does a script start a program that trains another model than a decoder? */
static int starts_another(const char *text, size_t len)
{
    static const char shell[] = "#!/bin/";
    int found = 0;
    for (int i = 0; programs[i]; i++)
        found |= memmem(text, len, programs[i], strlen(programs[i])) != NULL;
    return found && len > sizeof shell && !memcmp(text, shell, sizeof shell - 1);
}

int topt_megatron_looks_like(const char *text, size_t len)
{
    static const char *const needed[] = {"--num-layers", "--hidden-size",
                                         "--num-attention-heads"};
    for (int i = 0; i < 3; i++)
        if (!memmem(text, len, needed[i], strlen(needed[i])))
            return starts_another(text, len);
    return 1;
}

static struct topt_model *build(const struct arguments *x, const char *name,
                                const struct topt_import_options *o,
                                struct topt_error *err)
{
    struct hf_arch a = {.context_key = "--max-position-embeddings"};
    struct topt_import_options own = o ? *o : (struct topt_import_options){0};
    own.batch = own.batch ? own.batch : x->batch;
    a.mtp = own.mtp ? own.mtp : x->mtp;
    if (a.mtp > TOPT_MAX_MTP) {
        topt_fail(err, TOPT_ERR_LIMIT, "--mtp-num-layers %lld is above %d",
                  (long long)a.mtp, TOPT_MAX_MTP);
        return NULL;
    }
    return find_arch(x, &a, err) ? NULL : topt_hf_build_arch(&a, name, NULL, &own, err);
}

struct topt_model *topt_megatron_build(const char *text, size_t len, const char *name,
                                       const struct topt_import_options *o,
                                       struct topt_error *err)
{
    struct arguments x = {.query_groups = 1,
                          .multiple = 128,
                          .latent_rank = 32,
                          .plain_dim = 128,
                          .turned_dim = 64,
                          .value_dim = 128,
                          .tensor = 1,
                          .top_k = 2,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .rotary_base = 10000,
                          .rotary_share = 1,
                          .rope_factor = 8,
                          .hidden_dropout = 0.1,
                          .attention_dropout = 0.1};
    struct megatron_text t;
    struct topt_model *m = NULL;
    if (!topt_megatron_split(&t, text, len, err) && !read_all(&t, &x, err))
        m = build(&x, name, o, err);
    char sources[300];
    topt_megatron_sources(text, len, sources, sizeof sources);
    if (!m && sources[0]) {
        struct topt_error own = *err;
        topt_fail(err, own.code,
                  "%s (%s, which it sources, is not read: put its text in "
                  "place of that line)",
                  own.text, sources);
    }
    topt_megatron_fini(&t);
    free(x.normalization);
    free(x.position);
    free(x.score);
    free(x.layer_freq);
    free(x.tokenizer);
    free(x.tokenizer_model);
    return m;
}
