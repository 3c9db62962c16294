/* generate.c - `topt generate`: text from a model that was trained, token by token.
 *
 * Keys and values, states and last inputs of what was said are kept, so that a token takes
 * the work of one position (decode.h).  Where a model is none that can be run so, or its
 * positions are used up, it runs forward over a window that holds the end of what was said;
 * what comes after the window's end can't be seen by what is before, so that one window serves
 * a text that grows. */
#include "alone.h"
#include "cli.h"
#include "decode.h"
#include "random.h"
#include "rank.h"
#include "topt_checkpoint.h"
#include "topt_options.h"
#include "topt_tokenizer.h"
#include "topt_weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct args {
    const char *checkpoint, *tokenizer, *prompt;
    int64_t seq, tokens, top_k, seed;
    double temperature;
    int whole;
};

static const struct topt_option options[] = {
    TOPT_EXAMPLE("topt generate model --prompt ROMEO: --tokens 20",
                 "what a model in the folder model goes on with"),
    {"checkpoint", TOPT_OPT_STRING, offsetof(struct args, checkpoint), "DIR",
     "weights of the last checkpoint there, instead of MODEL's own"},
    {"tokenizer", TOPT_OPT_STRING, offsetof(struct args, tokenizer), "FILE",
     "tokenizer.json (MODEL's)"},
    {"prompt", TOPT_OPT_STRING, offsetof(struct args, prompt), "TEXT",
     "what the text goes on from (the beginning of a text)"},
    {"tokens", TOPT_OPT_COUNT, offsetof(struct args, tokens), "N", "at most (100)"},
    {"seq", TOPT_OPT_COUNT, offsetof(struct args, seq), "N",
     "tokens that the model sees: as in training (what the model usually does)"},
    {"temperature", TOPT_OPT_REAL, offsetof(struct args, temperature), "X",
     "0: always the likeliest token; 1: as the model says (0.8)"},
    {"top-k", TOPT_OPT_INT, offsetof(struct args, top_k), "K",
     "of the K likeliest only (40; 0: of all)"},
    {"seed", TOPT_OPT_INT, offsetof(struct args, seed), "S", "of the choices (1)"},
    {"whole", TOPT_OPT_FLAG, offsetof(struct args, whole), "",
     "each token by a whole forward pass: nothing is kept between them"},
    {0}};

static const char usage[] = "topt generate MODEL [options]   (a folder with config.json, "
                            "model.safetensors and tokenizer.json)";

struct generator {
    const struct args *args;
    struct topt_tokenizer *tokenizer;
    struct topt_ids ids; /* the prompt and what came after it */
    int64_t prompt;      /* tokens of it */
    struct topt_model *model;
    struct topt_alone alone;
    struct topt_decode *decode; /* NULL: by whole passes */
    int64_t computed;           /* tokens that it has */
    int64_t vocab;              /* of the model; it may be padded */
    double *logit;
    struct choice *choice;
};

/* ---- the model --------------------------------------------------------------------- */

/* Tokens of the window; labels do not matter. */
static int load_window(void *ctx, const struct topt_op *op, int operand, int64_t step,
                       const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    const struct generator *g = ctx;
    int64_t seq = g->model->seq, from = g->ids.n > seq ? g->ids.n - seq : 0;
    (void)operand, (void)step, (void)err;
    for (int64_t i = 0; i < box->len[1]; i++) {
        int64_t at = from + box->off[1] + i;
        ret[i] = at < g->ids.n && !op->spec->loss ? g->ids.id[at] : 0;
    }
    return 0;
}

/* Of the operator table only attention looks beyond its own position. */
static int check_model(const struct topt_model *m, struct topt_error *err)
{
    const struct topt_op *loss = &m->op[m->loss];
    int text = !strcmp(loss->spec->name, "cross_entropy") && loss->spec->ndims == 3 &&
               loss->count[1] == m->seq;
    for (int i = 0; i < m->nops && text; i++)
        text = strncmp(m->op[i].spec->name, "atten", 5) != 0 || m->op[i].attrs->causal;
    return text ? 0
                : topt_fail(err, TOPT_ERR_INVAL,
                            "'%.80s' does not write text: it predicts no next token from "
                            "those before it",
                            m->name);
}

/* Each expert has slots for all tokens: what is written of one does not depend on which
 * experts others took. */
static int load_model(struct generator *g, const char *path, struct topt_error *err)
{
    struct topt_import_options o = {
        .batch = 1, .seq = g->args->seq, .capacity = TOPT_MAX_EXPERTS};
    g->model = topt_model_load(path, &o, err);
    if (!g->model || check_model(g->model, err))
        return -1;
    o.seq = g->prompt + g->args->tokens; /* no longer than the text becomes */
    if (o.seq < g->model->seq) {
        topt_model_destroy(g->model);
        g->model = topt_model_load(path, &o, err);
    }
    if (!g->model)
        return -1;
    g->vocab = g->model->op[g->model->loss].count[2];
    return 0;
}

static void note(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "note: %s\n", text);
}

static int load_weights(struct generator *g, const char *path, struct topt_error *err)
{
    struct topt_checkpoint_facts f;
    struct stat st;
    if (!g->args->checkpoint && !stat(path, &st) && !S_ISDIR(st.st_mode))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "'%s' has no weights beside it: give a folder that has them, or "
                         "--checkpoint DIR",
                         path);
    if (!g->args->checkpoint)
        return topt_weights_load(g->alone.session,
                                 &(struct topt_weights_source){.dir = path}, err);
    if (topt_checkpoint_load_values(g->alone.session, g->args->checkpoint, note, g, &f,
                                    err))
        return -1;
    return f.step >= 0 ? 0
                       : topt_fail(err, TOPT_ERR_NOTFOUND, "no checkpoint in '%s'",
                                   g->args->checkpoint);
}

/* ---- tokens ------------------------------------------------------------------------ */

struct choice {
    int32_t id;
    double weight;
};

static int heavier(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* One of the 'k' likeliest, by a number in [0, 1). */
static int32_t choose(const struct generator *g, double u)
{
    int64_t n = topt_tokenizer_vocab(g->tokenizer), k = g->args->top_k;
    n = n < g->vocab ? n : g->vocab; /* what the tokenizer lacks has no text */
    for (int64_t i = 0; i < n; i++)
        g->choice[i] = (struct choice){(int32_t)i, g->logit[i]};
    qsort(g->choice, (size_t)n, sizeof *g->choice, heavier);
    if (g->args->temperature <= 0)
        return g->choice[0].id;
    k = k > 0 && k < n ? k : n;
    double sum = 0, most = g->choice[0].weight;
    for (int64_t i = 0; i < k; i++) {
        g->choice[i].weight = exp((g->choice[i].weight - most) / g->args->temperature);
        sum += g->choice[i].weight;
    }
    for (int64_t i = 0; i < k; i++)
        if ((u -= g->choice[i].weight / sum) < 0)
            return g->choice[i].id;
    return g->choice[k - 1].id;
}

static double uniform(uint64_t seed, int64_t i)
{
    return (double)(topt_random(topt_mix(seed ^ 0x67656e6572617465u), (uint64_t)i) >>
                    11) /
           9007199254740992.0;
}

/* Text of a token may be a part of a character: bytes go out as they come. */
static int say(const struct generator *g, const int32_t *id, int64_t n, int first,
               struct topt_error *err)
{
    struct topt_text t = {0};
    int rc = topt_tokenizer_decode(g->tokenizer, id, n, first, &t, err);
    if (!rc && t.len && fwrite(t.s, 1, t.len, stdout) != t.len)
        rc = topt_fail(err, TOPT_ERR_IO, "can't write to standard output");
    fflush(stdout);
    topt_text_fini(&t);
    return rc;
}

/* What the model says of the next token: by what is kept, as long as there are positions. */
static int read_logits(struct generator *g, struct topt_error *err)
{
    const struct topt_feed feed = {.load = load_window, .ctx = g, .kind = "window"};
    int64_t last = (g->ids.n < g->model->seq ? g->ids.n : g->model->seq) - 1;
    if (!g->decode || g->ids.n > g->model->seq)
        return topt_session_logits(g->alone.session, &feed, last, g->logit, g->vocab,
                                   err);
    int64_t from = g->computed;
    g->computed = g->ids.n;
    return topt_decode_more(g->decode, g->ids.id + from, g->ids.n - from, g->logit,
                            g->vocab, err);
}

static int next_token(struct generator *g, int32_t *ret, struct topt_error *err)
{
    if (read_logits(g, err))
        return -1;
    *ret = choose(g, uniform((uint64_t)g->args->seed, g->ids.n));
    return 0;
}

static int write_text(struct generator *g, struct topt_error *err)
{
    int32_t id = 0, end = topt_tokenizer_end(g->tokenizer);
    int64_t skip = g->ids.n && g->ids.id[0] == end;
    g->logit = malloc((size_t)g->vocab * sizeof *g->logit);
    g->choice = malloc((size_t)g->vocab * sizeof *g->choice);
    if (!g->logit || !g->choice)
        return topt_nomem(err, NULL);
    if (!g->args->whole && topt_decode_can(g->alone.session) &&
        topt_decode_open(g->alone.session, &g->decode, err))
        return -1;
    if (say(g, g->ids.id + skip, g->ids.n - skip, 1, err))
        return -1;
    for (int64_t i = 0; i < g->args->tokens; i++) {
        if (next_token(g, &id, err))
            return -1;
        if (id == end)
            break;
        if (topt_ids_put(&g->ids, id, err) || say(g, &id, 1, g->ids.n == skip + 1, err))
            return -1;
    }
    putchar('\n');
    return 0;
}

/* A text begins where another one has ended. */
static int read_prompt(struct generator *g, const char *model, struct topt_error *err)
{
    const char *prompt = g->args->prompt ? g->args->prompt : "";
    char beside[4096];
    snprintf(beside, sizeof beside, "%.4000s/tokenizer.json", model);
    if (!g->args->tokenizer && access(beside, F_OK))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "there is no '%s'; --tokenizer FILE says what the model reads and "
            "writes by",
            beside);
    if (topt_tokenizer_load(g->args->tokenizer ? g->args->tokenizer : beside,
                            &g->tokenizer, err))
        return topt_wrap(err, "--tokenizer");
    int32_t end = topt_tokenizer_end(g->tokenizer);
    if (end >= 0 && topt_ids_put(&g->ids, end, err))
        return -1;
    if (topt_tokenizer_encode(g->tokenizer, prompt, strlen(prompt), &g->ids, err))
        return topt_wrap(err, "--prompt");
    g->prompt = g->ids.n;
    return g->prompt ? 0
                     : topt_fail(err, TOPT_ERR_USAGE,
                                 "--prompt is missing: this tokenizer has no token that "
                                 "a text begins with");
}

static int check_tokens(const struct generator *g, struct topt_error *err)
{
    for (int64_t i = 0; i < g->ids.n; i++)
        if (g->ids.id[i] >= g->vocab)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the tokenizer gives token %d, the model's vocabulary ends "
                             "at %lld",
                             (int)g->ids.id[i], (long long)g->vocab - 1);
    return 0;
}

static int generate(struct generator *g, const char *model, struct topt_error *err)
{
    const struct topt_session_options o = {.seed = 1};
    return read_prompt(g, model, err) || load_model(g, model, err) ||
                   check_tokens(g, err) ||
                   topt_alone_open(g->model, &o, &g->alone, err) ||
                   load_weights(g, model, err) || write_text(g, err)
               ? -1
               : 0;
}

static void clean_up(struct generator *g)
{
    topt_decode_close(g->decode);
    topt_alone_close(&g->alone);
    topt_model_destroy(g->model);
    topt_ids_fini(&g->ids);
    topt_tokenizer_destroy(g->tokenizer);
    free(g->logit);
    free(g->choice);
}

int topt_cmd_generate(int argc, char **argv)
{
    struct args a = {.tokens = 100, .top_k = 40, .seed = 1, .temperature = 0.8};
    struct topt_error err = {0};
    const char *model;
    int n = 0, rc = topt_options_parse(options, argc, argv, &a, &model, 1, &n, &err);
    if (rc > 0) {
        topt_options_help(stdout, usage, options);
        return 0;
    }
    struct generator g = {.args = &a};
    if (!rc && !n)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "which model? usage: %s", usage);
    if (!rc)
        rc = generate(&g, model, &err);
    if (rc)
        topt_complain("generate", &err);
    clean_up(&g);
    return rc ? topt_err_exit(err.code) : 0;
}
