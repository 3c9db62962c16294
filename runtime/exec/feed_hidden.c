/* feed_hidden.c - objectives that hide some of a text's tokens: masks for encoders, gaps for an
 * encoder and a decoder.
 *
 * Which are hidden is a function of the seed and the sample's number; of each sample as many,
 * so that the labels of a batch are known without looking. */
#include "feed_texts.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = 3, MOST_TOKENS = 1 << 24 };
static const double SHARE = 0.15;

struct hidden {
    struct topt_feed inner;
    enum topt_objective objective;
    const struct topt_op *tokens; /* what 'inner' is asked for */
    struct topt_specials special;
    int64_t seq, batch, vocab;
    int64_t window, hides, runs; /* tokens of a sample, of them hidden, in so many runs */
    uint64_t seed;
    int32_t *token, *cut, *said; /* of the sample at hand */
    uint64_t *draw;
    uint8_t *chosen;
};

static int64_t nearest(double x)
{
    int64_t n = (int64_t)(x + 0.5);
    return n < 1 ? 1 : n;
}

static int64_t hidden_of(int64_t window)
{
    return nearest(SHARE * (double)window);
}

static int64_t runs_of(int64_t window)
{
    return nearest((double)hidden_of(window) / RUN);
}

/* What is left of a window, with gaps and an end, fills the encoder as far as it can. */
static int64_t window_of(enum topt_objective o, int64_t seq)
{
    int64_t n = seq;
    if (o != TOPT_LEARN_SPANS)
        return o == TOPT_LEARN_MASKED ? seq : seq + 1;
    while (n + 1 - hidden_of(n + 1) + runs_of(n + 1) + 1 <= seq)
        n++;
    while (n > 1 && n - hidden_of(n) + runs_of(n) + 1 > seq)
        n--;
    return n;
}

struct topt_windows topt_feed_windows(enum topt_objective o, int64_t seq, int by_epoch)
{
    int64_t length = window_of(o, seq);
    return (struct topt_windows){length,
                                 !by_epoch              ? 1
                                 : o == TOPT_LEARN_NEXT ? seq
                                                        : length,
                                 by_epoch};
}

static int by_draw(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Marks 'k' of 'n', each as likely. */
static void choose(struct hidden *f, uint64_t stream, int64_t n, int64_t k)
{
    memset(f->chosen, 0, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        f->draw[i] = (topt_random(stream, (uint64_t)i) & ~(uint64_t)(MOST_TOKENS - 1)) |
                     (uint64_t)i;
    qsort(f->draw, (size_t)n, sizeof *f->draw, by_draw);
    for (int64_t i = 0; i < k; i++)
        f->chosen[f->draw[i] & (MOST_TOKENS - 1)] = 1;
}

static int read_sample(struct hidden *f, int64_t step, int64_t sample,
                       struct topt_error *err)
{
    struct topt_box box = {.off = {sample, 0}, .len = {1, f->window}};
    return f->inner.load(f->inner.ctx, f->tokens, 0, step, &box, f->token, err);
}

/* ---- masks ------------------------------------------------------------------------- */

static int32_t masked_token(const struct hidden *f, uint64_t stream, int64_t i)
{
    uint64_t draw = topt_random(stream, (uint64_t)i);
    uint64_t of_ten = (draw >> 32) % 10;
    if (of_ten == 9)
        return f->token[i];
    return of_ten == 8 ? (int32_t)((draw & 0xffffffffu) % (uint64_t)f->vocab)
                       : f->special.mask;
}

static void put_masked(struct hidden *f, int is_label, uint64_t sample, int64_t first,
                       int64_t n, int32_t *ret)
{
    uint64_t stream = topt_mix(f->seed + sample);
    choose(f, stream, f->seq, f->hides);
    for (int64_t i = first; i < first + n; i++)
        if (is_label)
            *ret++ = f->chosen[i] ? f->token[i] : -1;
        else
            *ret++ = f->chosen[i] ? masked_token(f, stream + 1, i) : f->token[i];
}

/* ---- gaps -------------------------------------------------------------------------- */

/* Lengths of 'parts' runs that are 'n' together: one begins behind each chosen place. */
static int64_t run_length(const struct hidden *f, int64_t n, int64_t *at)
{
    int64_t from = *at;
    do
        ++*at;
    while (*at < n && !f->chosen[*at - 1]);
    return *at - from;
}

/* Kept and hidden runs in turn, the first kept; into what the encoder reads and what the
 * decoder says. */
static void cut_sample(struct hidden *f, uint64_t sample)
{
    uint64_t stream = topt_mix(f->seed + sample);
    int64_t kept = f->window - f->hides, ncut = 0, nsaid = 0, from = 0;
    int64_t at = 0, hidden_at = 0;
    int32_t *length = f->said; /* of hidden runs; written over as they are used up */
    choose(f, stream, f->hides - 1, f->runs - 1);
    for (int64_t r = 0; r < f->runs; r++)
        length[f->seq + r] = (int32_t)run_length(f, f->hides, &hidden_at);
    choose(f, stream + 1, kept - 1, f->runs - 1);
    for (int64_t r = 0; r < f->runs; r++) {
        int64_t keep = run_length(f, kept, &at), hide = length[f->seq + r];
        for (int64_t i = 0; i < keep; i++)
            f->cut[ncut++] = f->token[from++];
        f->cut[ncut++] = f->said[nsaid++] = f->special.span - (int32_t)r;
        for (int64_t i = 0; i < hide; i++)
            f->said[nsaid++] = f->token[from++];
    }
    f->cut[ncut++] = f->said[nsaid++] = f->special.end;
    while (ncut < f->seq)
        f->cut[ncut++] = f->special.pad;
}

static int64_t said_by_decoder(const struct hidden *f)
{
    return f->hides + f->runs + 1;
}

static void put_cut(struct hidden *f, const struct topt_op *op, uint64_t sample,
                    int64_t first, int64_t n, int32_t *ret)
{
    int is_encoder = !strncmp(op->name, "encoder.", 8);
    int64_t said = said_by_decoder(f);
    cut_sample(f, sample);
    for (int64_t i = first; i < first + n; i++)
        if (is_encoder)
            *ret++ = f->cut[i];
        else if (op->spec->loss)
            *ret++ = i < said ? f->said[i] : -1;
        else
            *ret++ = i == 0 || i > said ? f->special.pad : f->said[i - 1];
}

/* ---- both -------------------------------------------------------------------------- */

static int load(void *ctx, const struct topt_op *op, int operand, int64_t step,
                const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    struct hidden *f = ctx;
    if (topt_feed_check(op, box, f->batch, err))
        return -1;
    if (topt_feed_is_kinds(op))
        return topt_feed_zeros(op, operand, box, ret);
    for (int64_t b = 0; b < box->len[0]; b++, ret += box->len[1]) {
        int64_t of_batch = box->off[0] + b;
        uint64_t sample = (uint64_t)(step * f->batch + of_batch);
        if (read_sample(f, step, of_batch, err))
            return -1;
        if (f->objective == TOPT_LEARN_MASKED)
            put_masked(f, op->spec->loss, sample, box->off[1], box->len[1], ret);
        else
            put_cut(f, op, sample, box->off[1], box->len[1], ret);
    }
    return 0;
}

static int64_t labels(void *ctx, int64_t step)
{
    const struct hidden *f = ctx;
    (void)step;
    return f->batch * (f->objective == TOPT_LEARN_MASKED ? f->hides : said_by_decoder(f));
}

/* Of what an encoder reads: what was not cut, the gaps, and the end. */
static void filled(void *ctx, int encoder, int64_t step, int64_t sample, int32_t ret[2])
{
    const struct hidden *f = ctx;
    (void)step, (void)sample;
    if (encoder)
        ret[1] = (int32_t)(f->window - f->hides + f->runs + 1);
}

static void close_hidden(void *ctx)
{
    struct hidden *f = ctx;
    topt_feed_close(&f->inner);
    free(f->token);
    free(f->cut);
    free(f->said);
    free(f->draw);
    free(f->chosen);
    free(f);
}

static int check_specials(const struct hidden *f, struct topt_error *err)
{
    const struct topt_specials *s = &f->special;
    if (f->objective == TOPT_LEARN_MASKED)
        return s->mask >= 0 && s->mask < f->vocab
                   ? 0
                   : topt_fail(err, TOPT_ERR_INVAL,
                               "which token hides others? --mask-token N says it, or a "
                               "--tokenizer that has [MASK] or <mask>, below %lld",
                               (long long)f->vocab);
    return s->span < f->vocab && s->span - f->runs + 1 > s->end && s->end >= 0 &&
                   s->pad >= 0
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "gaps take %lld tokens at the end of the vocabulary, of %lld, "
                           "and two more: it has no room for them",
                           (long long)f->runs, (long long)f->vocab);
}

static int make_room(struct hidden *f, struct topt_error *err)
{
    size_t n = (size_t)(f->window > f->seq ? f->window : f->seq) + 2;
    f->token = calloc(n, sizeof *f->token);
    f->cut = calloc(n, sizeof *f->cut);
    f->said = calloc(2 * n, sizeof *f->said);
    f->draw = calloc(n, sizeof *f->draw);
    f->chosen = calloc(n, 1);
    return f->token && f->cut && f->said && f->draw && f->chosen ? 0
                                                                 : topt_nomem(err, NULL);
}

int topt_feed_hidden(struct topt_feed *inner, enum topt_objective o,
                     const struct topt_specials *s, const struct topt_model *m,
                     uint64_t seed, struct topt_feed *ret, struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    struct hidden *f = calloc(1, sizeof *f);
    int64_t window = window_of(o, m->seq);
    if (!f) {
        topt_feed_close(inner);
        return topt_nomem(err, NULL);
    }
    *f = (struct hidden){.inner = *inner,
                         .objective = o,
                         .tokens = n.tokens,
                         .special = *s,
                         .seq = m->seq,
                         .batch = m->batch,
                         .vocab = n.vocab < n.classes ? n.vocab : n.classes,
                         .window = window,
                         .hides = hidden_of(window),
                         .runs = runs_of(window),
                         .seed = topt_mix(seed ^ 0x68696464656eu)};
    if (f->special.span < 0)
        f->special.span = (int32_t)f->vocab - 1;
    if (m->seq < 4 || window >= MOST_TOKENS)
        topt_fail(err, TOPT_ERR_INVAL, "a sequence of %lld tokens is not hidden in",
                  (long long)m->seq);
    else if (!check_specials(f, err) && !make_room(f, err)) {
        *ret = *inner;
        ret->load = load;
        ret->labels = labels;
        ret->filled = o == TOPT_LEARN_SPANS ? filled : NULL;
        ret->close = close_hidden;
        ret->ctx = f;
        return 0;
    }
    close_hidden(f);
    return -1;
}
