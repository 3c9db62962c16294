/* feed_records.c - samples of files of records (*.jsonl), a JSON object a line.
 *
 * What a model is for says what a record has to have: {"text", "label"} for a classifier,
 * {"source", "target"} for an encoder and a decoder, {"prompt", "completion"} or {"messages":
 * [{"role", "content"}, ...]} for a decoder, which learns completions and what the assistant
 * says.  A record is a sample: cut where it is longer than the sequence, filled up with the
 * token for that where it is shorter.  Each comes once before any comes again, in an order
 * of its own each time. */
#include "feed_file.h"
#include "feed_texts.h"
#include "topt_array.h"
#include "topt_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its tokens are 'from' to 'to', those of the target or label's text from 'second' on. */
struct record {
    int64_t from, second, to;
    int64_t labels; /* that count */
    int32_t label;
};

struct records {
    enum topt_objective objective;
    struct topt_specials special;
    const struct topt_tokenizer *t;
    struct topt_ids token, learnt; /* of all records; is each an answer? */
    struct record *record;
    int n, cap;
    json_t *names; /* of labels that are words: their numbers */
    int64_t seq, batch, vocab, classes;
    int at_end; /* a classifier that reads the last position */
    uint64_t seed;
};

int topt_feed_is_records(const char *path)
{
    size_t n = strlen(path);
    return n > 6 && !strcmp(path + n - 6, ".jsonl");
}

/* ---- lines ------------------------------------------------------------------------- */

typedef int visit(void *ctx, const json_t *record, struct topt_error *err);

static int each_line(const char *bytes, size_t len, visit *f, void *ctx,
                     struct topt_error *err)
{
    int64_t line = 0;
    for (const char *s = bytes, *end = bytes + len, *next; s < end; s = next + 1) {
        next = memchr(s, '\n', (size_t)(end - s));
        next = next ? next : end;
        line++;
        if (strspn(s, " \t\r\n") >= (size_t)(next - s))
            continue;
        json_t *doc = topt_json_parse(s, (size_t)(next - s), "the record", err);
        int rc = doc ? f(ctx, doc, err) : -1;
        json_decref(doc);
        if (rc)
            return topt_wrap(err, "line %lld", (long long)line);
    }
    return 0;
}

static int each_record(const char *path, visit *f, void *ctx, struct topt_error *err)
{
    size_t len;
    char *bytes = topt_feed_read(path, &len, err);
    int rc = bytes ? each_line(bytes, len, f, ctx, err) : -1;
    free(bytes);
    return rc;
}

static const char *words_of(const json_t *record, const char *key)
{
    return json_string_value(json_object_get(record, key));
}

/* ---- texts alone ------------------------------------------------------------------- */

struct texts {
    const struct topt_tokenizer *t;
    struct topt_ids *ids;
};

static int put_text(void *ctx, const json_t *record, struct topt_error *err)
{
    const struct texts *x = ctx;
    const char *text = words_of(record, "text");
    int32_t end = topt_tokenizer_end(x->t);
    if (!text)
        return topt_fail(err, TOPT_ERR_INVAL, "there is no \"text\"");
    return topt_tokenizer_encode(x->t, text, strlen(text), x->ids, err) ||
                   (end >= 0 && topt_ids_put(x->ids, end, err))
               ? -1
               : 0;
}

int topt_feed_records_texts(const char *path, const struct topt_tokenizer *t,
                            struct topt_ids *ids, struct topt_error *err)
{
    struct texts x = {t, ids};
    return each_record(path, put_text, &x, err) ? topt_wrap(err, "%s", path) : 0;
}

static int look(void *ctx, const json_t *record, struct topt_error *err)
{
    int *is_text = ctx;
    *is_text = words_of(record, "text") && !json_object_get(record, "label");
    return topt_fail(err, TOPT_ERR_NOTFOUND, "one is enough");
}

int topt_feed_records_are_texts(const char *path)
{
    struct topt_error err;
    int is_text = 0;
    return each_record(path, look, &is_text, &err) ? is_text : 0;
}

/* ---- samples ----------------------------------------------------------------------- */

static int put(struct records *f, int32_t id, int is_learnt, struct topt_error *err)
{
    return topt_ids_put(&f->token, id, err) || topt_ids_put(&f->learnt, is_learnt, err)
               ? -1
               : 0;
}

static int put_words(struct records *f, const char *text, int is_learnt,
                     struct topt_error *err)
{
    if (topt_tokenizer_encode(f->t, text, strlen(text), &f->token, err))
        return -1;
    while (f->learnt.n < f->token.n)
        if (topt_ids_put(&f->learnt, is_learnt, err))
            return -1;
    return 0;
}

/* A label that is a number is that class; words have numbers in the order in which they are
 * met, first in what the model is trained on. */
static int read_label(struct records *f, const json_t *record, struct record *r,
                      struct topt_error *err)
{
    const json_t *label = json_object_get(record, "label");
    json_int_t number = json_is_integer(label) ? json_integer_value(label) : -1;
    const char *word = json_string_value(label);
    if (word) {
        const json_t *known = json_object_get(f->names, word);
        number =
            known ? json_integer_value(known) : (json_int_t)json_object_size(f->names);
        if (!known && json_object_set_new(f->names, word, json_integer(number)))
            return topt_nomem(err, NULL);
    }
    if (number < 0 || number >= f->classes)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "\"label\" has to be a number below %lld, or one of as many words",
            (long long)f->classes);
    r->label = (int32_t)number;
    r->labels = 1;
    return 0;
}

static int put_classified(struct records *f, const json_t *record, struct record *r,
                          struct topt_error *err)
{
    const char *text = words_of(record, "text");
    int64_t most = f->seq - (f->special.end >= 0);
    if (!text)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a classifier needs \"text\" and \"label\"");
    if (read_label(f, record, r, err) ||
        (f->special.first >= 0 && put(f, f->special.first, 0, err)) ||
        put_words(f, text, 0, err))
        return -1;
    if (f->token.n - r->from > most)
        f->token.n = f->learnt.n = r->from + most;
    return f->special.end >= 0 ? put(f, f->special.end, 0, err) : 0;
}

static int put_pair(struct records *f, const json_t *record, struct record *r,
                    struct topt_error *err)
{
    const char *source = words_of(record, "source"), *target = words_of(record, "target");
    if (!source || !target)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "an encoder and a decoder need \"source\" and \"target\"");
    if (put_words(f, source, 0, err) || put(f, f->special.end, 0, err))
        return -1;
    if (f->token.n - r->from > f->seq)
        f->token.n = f->learnt.n = r->from + f->seq;
    r->second = f->token.n;
    if (put_words(f, target, 1, err) || put(f, f->special.end, 1, err))
        return -1;
    r->labels = f->token.n - r->second;
    r->labels = r->labels < f->seq ? r->labels : f->seq;
    return 0;
}

/* ChatML: "<|im_start|>ROLE\n...<|im_end|>\n"; the assistant's words and their end are learnt. */
static int put_message(struct records *f, const json_t *message, struct topt_error *err)
{
    int32_t start = topt_tokenizer_find(f->t, "<|im_start|>");
    int32_t end = topt_tokenizer_find(f->t, "<|im_end|>");
    const char *role = words_of(message, "role"), *content = words_of(message, "content");
    if (!role || !content)
        return topt_fail(err, TOPT_ERR_INVAL, "a message needs \"role\" and \"content\"");
    if (start < 0 || end < 0)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "\"messages\" are written with <|im_start|> and <|im_end|>, which "
            "the tokenizer has not; give \"prompt\" and \"completion\"");
    int is_learnt = !strcmp(role, "assistant");
    return put(f, start, 0, err) || put_words(f, role, 0, err) ||
                   put_words(f, "\n", 0, err) || put_words(f, content, is_learnt, err) ||
                   put(f, end, is_learnt, err) || put_words(f, "\n", 0, err)
               ? -1
               : 0;
}

static int put_answered(struct records *f, const json_t *record, struct record *r,
                        struct topt_error *err)
{
    const char *prompt = words_of(record, "prompt");
    const char *completion = words_of(record, "completion");
    const json_t *messages = json_object_get(record, "messages"), *message;
    size_t i;
    int rc = 0;
    if ((!prompt || !completion) && !json_array_size(messages))
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "a decoder needs \"prompt\" and \"completion\", or \"messages\"");
    if (prompt && completion)
        rc = put_words(f, prompt, 0, err) || put_words(f, completion, 1, err) ||
             (f->special.end >= 0 && put(f, f->special.end, 1, err));
    else
        json_array_foreach(messages, i, message) rc = rc || put_message(f, message, err);
    for (int64_t k = r->from + 1; k < f->token.n && k - r->from <= f->seq; k++)
        r->labels += f->learnt.id[k];
    return rc ? -1 : 0;
}

static int put_record(void *ctx, const json_t *record, struct topt_error *err)
{
    struct records *f = ctx;
    struct record r = {.from = f->token.n};
    int rc = f->objective == TOPT_LEARN_LABELS  ? put_classified(f, record, &r, err)
             : f->objective == TOPT_LEARN_SPANS ? put_pair(f, record, &r, err)
                                                : put_answered(f, record, &r, err);
    if (rc)
        return -1;
    r.to = f->token.n;
    if (!r.labels) { /* nothing is learnt of it: its answer lies beyond the sequence */
        f->token.n = f->learnt.n = r.from;
        return 0;
    }
    if (TOPT_ROOM(f->record, f->n, f->cap, 256))
        return topt_nomem(err, NULL);
    f->record[f->n++] = r;
    return 0;
}

/* ---- loading ----------------------------------------------------------------------- */

static const struct record *sample_of(const struct records *f, int64_t sample)
{
    uint64_t n = (uint64_t)f->n, epoch = (uint64_t)sample / n;
    return &f->record[topt_shuffled(topt_mix(f->seed + epoch), n, (uint64_t)sample % n)];
}

/* Token 'i' of 'from' to 'to', or what comes after them. */
static int32_t token_at(const struct records *f, int64_t from, int64_t to, int64_t i)
{
    return i >= 0 && from + i < to ? f->token.id[from + i] : f->special.pad;
}

static int32_t number_of(const struct records *f, const struct record *r,
                         const struct topt_op *op, int64_t i)
{
    int is_label = op->spec->loss;
    if (f->objective == TOPT_LEARN_LABELS) {
        int64_t before = f->at_end ? f->seq - (r->to - r->from) : 0;
        return is_label ? r->label : token_at(f, r->from, r->to, i - before);
    }
    if (f->objective == TOPT_LEARN_SPANS) {
        if (!strncmp(op->name, "encoder.", 8))
            return token_at(f, r->from, r->second, i);
        if (is_label)
            return r->second + i < r->to ? f->token.id[r->second + i] : -1;
        return token_at(f, r->second, r->to, i - 1);
    }
    if (!is_label)
        return token_at(f, r->from, r->to, i);
    int64_t next = r->from + i + 1;
    return next < r->to && f->learnt.id[next] ? f->token.id[next] : -1;
}

static int load(void *ctx, const struct topt_op *op, int operand, int64_t step,
                const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    const struct records *f = ctx;
    if (topt_feed_check(op, box, f->batch, err))
        return -1;
    if (topt_feed_is_kinds(op))
        return topt_feed_zeros(op, operand, box, ret);
    for (int64_t b = 0; b < box->len[0]; b++) {
        const struct record *r = sample_of(f, step * f->batch + box->off[0] + b);
        for (int64_t i = box->off[1]; i < box->off[1] + box->len[1]; i++)
            *ret++ = number_of(f, r, op, i);
    }
    return 0;
}

static int64_t labels(void *ctx, int64_t step)
{
    const struct records *f = ctx;
    int64_t n = 0;
    for (int64_t b = 0; b < f->batch; b++)
        n += sample_of(f, step * f->batch + b)->labels;
    return n;
}

/* A decoder does not look ahead, to where its padding is. */
static void filled(void *ctx, int encoder, int64_t step, int64_t sample, int32_t ret[2])
{
    const struct records *f = ctx;
    const struct record *r = sample_of(f, step * f->batch + sample);
    int64_t n = encoder                            ? r->second - r->from
                : f->objective == TOPT_LEARN_SPANS ? f->seq
                                                   : r->to - r->from;
    int64_t first = f->at_end ? f->seq - n : 0;
    ret[0] = (int32_t)first;
    ret[1] = (int32_t)(first + n);
}

static void close_records(void *ctx)
{
    struct records *f = ctx;
    topt_ids_fini(&f->token);
    topt_ids_fini(&f->learnt);
    json_decref(f->names);
    free(f->record);
    free(f);
}

static uint64_t digest_of(const struct records *f)
{
    uint64_t h = topt_feed_digest(f->token.id, (size_t)f->token.n * sizeof *f->token.id);
    for (int i = 0; i < f->n; i++)
        h = topt_mix(h ^ (uint64_t)f->record[i].second ^
                     (uint64_t)f->record[i].label << 40);
    return h;
}

/* ---- opening ----------------------------------------------------------------------- */

static int check(const struct records *f, struct topt_error *err)
{
    if (!f->n)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "there is no record with an answer within %lld tokens",
                         (long long)f->seq);
    if (f->special.pad < 0 || (f->objective == TOPT_LEARN_SPANS && f->special.end < 0))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the tokenizer has no token that ends or fills a text");
    for (int64_t i = 0; i < f->token.n; i++)
        if (f->token.id[i] >= f->vocab)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the tokenizer gives token %d, the model's vocabulary ends "
                             "at %lld",
                             (int)f->token.id[i], (long long)f->vocab - 1);
    return 0;
}

/* Does the model read its answer off the last position? */
static int reads_last(const struct topt_model *m)
{
    int at = topt_model_find(m, "last");
    return at >= 0 && !strcmp(m->op[at].spec->name, "select");
}

/* The numbers that words have already; further ones come behind them. */
static json_t *names_of(const struct topt_feed *like)
{
    const struct records *of = like && !strcmp(like->kind, "records") ? like->ctx : NULL;
    return of ? json_deep_copy(of->names) : json_object();
}

int topt_feed_records(const char *path, const struct topt_tokenizer *t,
                      const struct topt_feed *like, const struct topt_model *m,
                      uint64_t seed, struct topt_feed *ret, struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    struct records *f = calloc(1, sizeof *f);
    if (!f)
        return topt_nomem(err, NULL);
    *f = (struct records){.objective = topt_feed_purpose(m),
                          .special = topt_specials_of(t),
                          .t = t,
                          .names = names_of(like),
                          .seq = m->seq,
                          .batch = m->batch,
                          .vocab = n.vocab,
                          .classes = n.classes,
                          .at_end = reads_last(m),
                          .seed = topt_mix(seed ^ 0x7265636f726473u)};
    if (each_record(path, put_record, f, err) || check(f, err)) {
        close_records(f);
        return topt_wrap(err, "%s", path);
    }
    f->t = NULL; /* the caller's, from here on of no use */
    *ret = (struct topt_feed){.load = load,
                              .labels = labels,
                              .filled = f->objective == TOPT_LEARN_NEXT ? NULL : filled,
                              .close = close_records,
                              .ctx = f,
                              .kind = "records",
                              .digest = digest_of(f)};
    return 0;
}
