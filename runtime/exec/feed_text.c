/* feed_text.c - character-level text as samples: a window of the text for each, labels
 * the next characters.  Byte values that occur are numbered from 0 in order. */
#include "feed_text.h"
#include "feed_file.h"
#include "feed_model.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

struct text {
    unsigned char *byte; /* already numbered */
    int64_t len, seq, batch;
    struct topt_windows windows;
    int vocab, number[256]; /* of byte values; -1: it does not occur */
    uint64_t seed;
};

static int check_model(const struct text *f, const struct topt_feed_needs *n,
                       struct topt_error *err)
{
    if (n->features || !n->classes)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "a text has no real numbers, which '%s' takes; give idx files, a "
            "table (csv) or 'synthetic'",
            n->features ? n->features->name : n->loss->name);
    if (n->answers != f->seq)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a text has a label for each of %lld positions, '%s' takes %lld",
                         (long long)f->seq, n->loss->name, (long long)n->answers);
    if (f->len < f->windows.length)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the text has %lld bytes, a sample needs %lld%s",
                         (long long)f->len, (long long)f->windows.length,
                         f->windows.length == f->seq + 1 ? " (sequence + 1)" : "");
    return 0;
}

/* Number the byte values that occur from 0, in order; behind those that another text has
 * numbered ('as'; NULL: none). */
static int number_bytes(struct text *f, const int *as, const struct topt_feed_needs *n,
                        struct topt_error *err)
{
    int *number = f->number, occurs[256] = {0};
    for (int64_t i = 0; i < f->len; i++)
        occurs[f->byte[i]] = 1;
    for (int b = 0; b < 256; b++) {
        number[b] = as ? as[b] : -1;
        f->vocab += number[b] >= 0;
    }
    for (int b = 0; b < 256; b++)
        if (occurs[b] && number[b] < 0)
            number[b] = f->vocab++;
    int tight = n->tokens && n->vocab < n->classes;
    int64_t vocab = tight ? n->vocab : n->classes;
    if (f->vocab > vocab)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "the text has %d different characters, '%s' of the model takes %lld",
            f->vocab, tight ? n->tokens->name : n->loss->name, (long long)vocab);
    for (int64_t i = 0; i < f->len; i++)
        f->byte[i] = (unsigned char)number[f->byte[i]];
    return 0;
}

static int load_text(void *ctx, const struct topt_op *op, int operand, int64_t step,
                     const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    const struct text *f = ctx;
    int64_t next = op->spec->loss;
    if (topt_feed_check(op, box, f->batch, err))
        return -1;
    if (topt_feed_is_kinds(op))
        return topt_feed_zeros(op, operand, box, ret);
    for (int64_t b = 0; b < box->len[0]; b++) {
        uint64_t sample = (uint64_t)(step * f->batch + box->off[0] + b);
        int64_t n = topt_windows_in(&f->windows, f->len);
        int64_t at = topt_window_of(&f->windows, f->seed, sample, n) * f->windows.stride +
                     box->off[1] + next;
        for (int64_t i = 0; i < box->len[1]; i++)
            *ret++ = f->byte[at + i];
    }
    return 0;
}

static void close_text(void *ctx)
{
    struct text *f = ctx;
    free(f->byte);
    free(f);
}

int topt_feed_text_numbers(const void *preprocessing)
{
    const int *number = preprocessing;
    int n = 0;
    for (int b = 0; b < 256; b++)
        n = number[b] >= n ? number[b] + 1 : n;
    return n;
}

int topt_feed_text_as(const char *bytes, size_t len, const void *preprocessing,
                      const struct topt_windows *windows, const struct topt_model *m,
                      uint64_t seed, struct topt_feed *ret, struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    struct text *f = calloc(1, sizeof *f);
    unsigned char *copy = malloc(len + 1);
    if (!f || !copy) {
        free(f);
        free(copy);
        return topt_nomem(err, NULL);
    }
    memcpy(copy, bytes, len);
    *f = (struct text){.byte = copy,
                       .len = (int64_t)len,
                       .windows = *windows,
                       .seq = m->seq,
                       .batch = m->batch,
                       .seed = topt_mix(seed ^ 0x7465787466656564u)};
    if (check_model(f, &n, err) || number_bytes(f, preprocessing, &n, err)) {
        close_text(f);
        return -1;
    }
    *ret = (struct topt_feed){.load = load_text,
                              .close = close_text,
                              .ctx = f,
                              .kind = "text",
                              .digest = topt_feed_digest(bytes, len),
                              .preprocessing = f->number};
    return 0;
}

int topt_feed_text(const char *bytes, size_t len, const struct topt_model *m,
                   uint64_t seed, struct topt_feed *ret, struct topt_error *err)
{
    struct topt_windows windows = {m->seq + 1, 1, 0};
    return topt_feed_text_as(bytes, len, NULL, &windows, m, seed, ret, err);
}
