/* tokenizer.c - a tokenizer.json: its tokens, its stages, its model, and back to text. */
#include "topt_tokenizer.h"
#include "bpe.h"
#include "feed_file.h"
#include "split.h"
#include "topt_hash.h"
#include "topt_json.h"
#include "unigram.h"
#include "wordpiece.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 256 << 20 };

struct added {
    const char *s;
    size_t len;
    int32_t id;
    int left, right; /* takes the white space there, too */
};

struct topt_tokenizer {
    json_t *doc; /* pieces are its strings */
    struct topt_vocab vocab;
    struct added *added;
    size_t nadded;
    uint8_t begins[256]; /* first bytes of added tokens */
    struct topt_stages stages;
    const struct model *model;
    struct topt_bpe bpe;
    struct topt_unigram unigram;
    struct topt_wordpiece wordpiece;
    int32_t end;
    const char *mark; /* of blanks, where pieces have one; NULL: bytes as characters */
    int drops_blank;  /* a text begins with a blank that is not its own */
    int byte_level;
    int cleans; /* WordPiece: no blanks before marks in its texts */
};

int topt_ids_put(struct topt_ids *ids, int32_t id, struct topt_error *err)
{
    if (ids->n == ids->cap) {
        int64_t cap = ids->cap ? 2 * ids->cap : 256;
        int32_t *more = realloc(ids->id, (size_t)cap * sizeof *more);
        if (!more)
            return topt_nomem(err, "tokens");
        ids->id = more;
        ids->cap = cap;
    }
    ids->id[ids->n++] = id;
    return 0;
}

void topt_ids_fini(struct topt_ids *ids)
{
    free(ids->id);
    *ids = (struct topt_ids){0};
}

/* ---- reading ----------------------------------------------------------------------- */

static int read_numbered_vocab(struct topt_tokenizer *t, const json_t *vocab,
                               struct topt_error *err)
{
    const char *piece;
    json_t *id;
    json_object_foreach((json_t *)(uintptr_t)vocab, piece, id)
    {
        if (!json_is_integer(id))
            return topt_fail(err, TOPT_ERR_INVAL, "model.vocab: '%.40s' has no number",
                             piece);
        if (topt_vocab_put(&t->vocab, json_integer_value(id), piece, strlen(piece), 0,
                           err))
            return -1;
    }
    return 0;
}

static int read_unigram_vocab(struct topt_tokenizer *t, const json_t *vocab,
                              struct topt_error *err)
{
    for (size_t i = 0; i < json_array_size(vocab); i++) {
        const json_t *entry = json_array_get(vocab, i);
        const json_t *s = json_array_get(entry, 0), *score = json_array_get(entry, 1);
        if (!json_is_string(s) || !json_is_number(score))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "model.vocab[%zu] is no piece with its score", i);
        if (topt_vocab_put(&t->vocab, (int64_t)i, json_string_value(s),
                           json_string_length(s), json_number_value(score), err))
            return -1;
    }
    return 0;
}

/* ---- models ------------------------------------------------------------------------ */

static int init_bpe(struct topt_tokenizer *t, const json_t *model, struct topt_error *err)
{
    return topt_bpe_init(&t->bpe, &t->vocab, model, err);
}

static int init_unigram(struct topt_tokenizer *t, const json_t *model,
                        struct topt_error *err)
{
    return topt_unigram_init(&t->unigram, &t->vocab, model, err);
}

static int init_wordpiece(struct topt_tokenizer *t, const json_t *model,
                          struct topt_error *err)
{
    const json_t *decoder = json_object_get(t->doc, "decoder");
    t->cleans = !json_is_false(json_object_get(decoder, "cleanup"));
    return topt_wordpiece_init(&t->wordpiece, &t->vocab, model, err);
}

static int bpe_word(const struct topt_tokenizer *t, const char *s, size_t len,
                    struct topt_ids *ids, struct topt_error *err)
{
    return topt_bpe_word(&t->bpe, s, len, ids, err);
}

static int unigram_word(const struct topt_tokenizer *t, const char *s, size_t len,
                        struct topt_ids *ids, struct topt_error *err)
{
    return topt_unigram_word(&t->unigram, s, len, ids, err);
}

static int wordpiece_word(const struct topt_tokenizer *t, const char *s, size_t len,
                          struct topt_ids *ids, struct topt_error *err)
{
    return topt_wordpiece_word(&t->wordpiece, s, len, ids, err);
}

static const struct model {
    const char *name;
    int (*read_vocab)(struct topt_tokenizer *t, const json_t *vocab,
                      struct topt_error *err);
    int (*init)(struct topt_tokenizer *t, const json_t *model, struct topt_error *err);
    int (*word)(const struct topt_tokenizer *t, const char *s, size_t len,
                struct topt_ids *ids, struct topt_error *err);
} models[] = {{"BPE", read_numbered_vocab, init_bpe, bpe_word},
              {"Unigram", read_unigram_vocab, init_unigram, unigram_word},
              {"WordPiece", read_numbered_vocab, init_wordpiece, wordpiece_word}};

static int read_model(struct topt_tokenizer *t, const json_t *model,
                      struct topt_error *err)
{
    const char *type = json_string_value(json_object_get(model, "type"));
    const json_t *vocab = json_object_get(model, "vocab");
    if (!type && json_object_get(model, "merges"))
        type = "BPE"; /* older files do not say what they are */
    for (size_t i = 0; i < sizeof models / sizeof *models && type; i++)
        if (!strcmp(models[i].name, type))
            t->model = &models[i];
    if (!t->model)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "model '%.40s' is not known here (BPE, Unigram and WordPiece "
                         "are)",
                         type ? type : "");
    return t->model->read_vocab(t, vocab, err) || topt_vocab_index(&t->vocab, err) ||
                   t->model->init(t, model, err)
               ? -1
               : 0;
}

/* They are found before anything else; and have numbers as pieces do. */
static int read_added(struct topt_tokenizer *t, const json_t *all, struct topt_error *err)
{
    size_t n = json_array_size(all);
    t->added = calloc(n + 1, sizeof *t->added);
    if (!t->added)
        return topt_nomem(err, "the tokenizer");
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(all, i), *s = json_object_get(x, "content");
        const json_t *id = json_object_get(x, "id");
        if (!json_is_string(s) || !json_string_length(s) || !json_is_integer(id))
            return topt_fail(err, TOPT_ERR_INVAL, "added_tokens[%zu] is no token", i);
        if (json_is_true(json_object_get(x, "single_word")))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "added token '%.40s': single_word is not known here",
                             json_string_value(s));
        struct added *a = &t->added[t->nadded++];
        *a = (struct added){.s = json_string_value(s), .len = json_string_length(s)};
        a->id = (int32_t)json_integer_value(id);
        a->left = json_is_true(json_object_get(x, "lstrip"));
        a->right = json_is_true(json_object_get(x, "rstrip"));
        t->begins[(unsigned char)*a->s] = 1;
        if (topt_vocab_put(&t->vocab, json_integer_value(id), a->s, a->len, 0, err))
            return -1;
    }
    return 0;
}

static void find_end(struct topt_tokenizer *t)
{
    static const char *const names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>",
                                        "<eos>", "<|endofdocument|>"};
    t->end = -1;
    for (size_t i = 0; i < sizeof names / sizeof *names && t->end < 0; i++)
        for (size_t k = 0; k < t->nadded; k++)
            if (!strcmp(t->added[k].s, names[i]))
                t->end = t->added[k].id;
}

/* What pieces are made of follows from the stages. */
static void find_form(struct topt_tokenizer *t)
{
    for (int i = 0; i < t->stages.n; i++) {
        const struct topt_stage *g = &t->stages.stage[i];
        t->byte_level |= g->kind == TOPT_BYTES;
        t->drops_blank |= g->kind == TOPT_PREPEND || (g->kind == TOPT_META && g->prefix);
        if (g->kind == TOPT_META || g->kind == TOPT_REPLACE)
            t->mark = g->content;
    }
}

static int read_document(struct topt_tokenizer *t, const char *path,
                         struct topt_error *err)
{
    char in_folder[4096];
    struct stat st;
    int folder = !stat(path, &st) && S_ISDIR(st.st_mode);
    snprintf(in_folder, sizeof in_folder, "%.4000s/tokenizer.json", path);
    t->doc = topt_json_load(folder ? in_folder : path, MOST_BYTES, err);
    if (!t->doc)
        return -1;
    if (read_model(t, json_object_get(t->doc, "model"), err) ||
        topt_stages_read(&t->stages, t->doc, err) ||
        read_added(t, json_object_get(t->doc, "added_tokens"), err))
        return topt_wrap(err, "%s", folder ? in_folder : path);
    find_end(t);
    find_form(t);
    return 0;
}

int topt_tokenizer_load(const char *path, struct topt_tokenizer **ret,
                        struct topt_error *err)
{
    struct topt_tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return topt_nomem(err, "the tokenizer");
    if (read_document(t, path, err)) {
        topt_tokenizer_destroy(t);
        return -1;
    }
    *ret = t;
    return 0;
}

void topt_tokenizer_destroy(struct topt_tokenizer *t)
{
    if (!t)
        return;
    topt_bpe_fini(&t->bpe);
    topt_unigram_fini(&t->unigram);
    topt_stages_fini(&t->stages);
    topt_vocab_fini(&t->vocab);
    free(t->added);
    json_decref(t->doc);
    free(t);
}

int64_t topt_tokenizer_vocab(const struct topt_tokenizer *t)
{
    return t->vocab.n;
}

int32_t topt_tokenizer_end(const struct topt_tokenizer *t)
{
    return t->end;
}

int32_t topt_tokenizer_find(const struct topt_tokenizer *t, const char *text)
{
    for (size_t k = 0; k < t->nadded; k++)
        if (!strcmp(t->added[k].s, text))
            return (int32_t)t->added[k].id;
    return topt_vocab_find(&t->vocab, text, strlen(text));
}

/* ---- to tokens --------------------------------------------------------------------- */

/* Words that came before: texts have the same ones again and again. */
enum { REMEMBERED = 1 << 14, LONGEST = 40, MOST_IDS = 12 };
struct remembered {
    uint8_t len, n;
    char word[LONGEST];
    int32_t id[MOST_IDS];
};
struct encoder {
    const struct topt_tokenizer *t;
    struct topt_ids *ids;
    struct remembered *word; /* by hash; NULL: none */
};

static int put_word(void *ctx, const char *s, size_t len, struct topt_error *err)
{
    struct encoder *e = ctx;
    struct remembered *r = NULL;
    int64_t before = e->ids->n;
    if (len <= LONGEST && e->word)
        r = &e->word[topt_hash(s, len, 1) % REMEMBERED];
    if (r && r->len == len && !memcmp(r->word, s, len)) {
        for (int i = 0; i < r->n; i++)
            if (topt_ids_put(e->ids, r->id[i], err))
                return -1;
        return 0;
    }
    if (e->t->model->word(e->t, s, len, e->ids, err))
        return -1;
    int64_t n = e->ids->n - before;
    if (r && n <= MOST_IDS) {
        r->len = (uint8_t)len;
        r->n = (uint8_t)n;
        memcpy(r->word, s, len);
        memcpy(r->id, e->ids->id + before, (size_t)n * sizeof *r->id);
    }
    return 0;
}

/* The first added token at 'from' or after it, the longest there; NULL: none. */
static const struct added *find_added(const struct topt_tokenizer *t, const char *s,
                                      size_t len, size_t from, size_t *ret_at)
{
    const struct added *best = NULL;
    for (size_t i = from; i < len && !best; i++) {
        if (!t->begins[(unsigned char)s[i]])
            continue;
        for (size_t k = 0; k < t->nadded; k++) {
            const struct added *a = &t->added[k];
            if (a->len <= len - i && !memcmp(a->s, s + i, a->len) &&
                (!best || a->len > best->len))
                best = a;
        }
        *ret_at = i;
    }
    return best;
}

static int put_between(struct encoder *e, const char *s, size_t len, int first,
                       struct topt_error *err)
{
    return len ? topt_stages_run(&e->t->stages, s, len, first, put_word, e, err) : 0;
}

/* Where UTF-8 ends to be valid: the length where it is all. */
static size_t valid_utf8(const unsigned char *s, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        n = s[i] < 0x80 ? 1 : s[i] < 0xc2 ? 0 : s[i] < 0xe0 ? 2 : s[i] < 0xf0 ? 3 : 4;
        if (!n || s[i] > 0xf4 || i + n > len)
            return i;
        for (size_t k = 1; k < n; k++)
            if ((s[i + k] & 0xc0) != 0x80)
                return i;
        if ((s[i] == 0xe0 && s[i + 1] < 0xa0) || (s[i] == 0xed && s[i + 1] > 0x9f) ||
            (s[i] == 0xf0 && s[i + 1] < 0x90) || (s[i] == 0xf4 && s[i + 1] > 0x8f))
            return i;
    }
    return len;
}

int topt_tokenizer_encode(const struct topt_tokenizer *t, const char *text, size_t len,
                          struct topt_ids *ids, struct topt_error *err)
{
    struct encoder e = {.t = t, .ids = ids, .word = NULL};
    size_t valid = valid_utf8((const unsigned char *)text, len), at = 0, found = 0;
    const struct added *a;
    int rc = 0;
    if (valid < len)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "byte %zu is not UTF-8; `iconv -f latin1 -t utf-8` turns older "
                         "texts into it",
                         valid);
    if (len > 4096)
        e.word = calloc(REMEMBERED, sizeof *e.word);
    while (!rc && (a = find_added(t, text, len, at, &found))) {
        size_t end = found;
        while (a->left && end > at && isspace((unsigned char)text[end - 1]))
            end--;
        rc = put_between(&e, text + at, end - at, at == 0, err) ||
             topt_ids_put(ids, a->id, err);
        at = found + a->len;
        while (a->right && at < len && isspace((unsigned char)text[at]))
            at++;
    }
    if (!rc)
        rc = put_between(&e, text + at, len - at, at == 0, err);
    free(e.word);
    return rc;
}

/* ---- to text ----------------------------------------------------------------------- */

static int is_added(const struct topt_tokenizer *t, int32_t id)
{
    for (size_t k = 0; k < t->nadded; k++)
        if (t->added[k].id == id)
            return 1;
    return 0;
}

static void put_byte_chars(const struct topt_piece *p, struct topt_text *text)
{
    for (size_t i = 0, n; i < p->len; i += n) {
        n = topt_char_len(p->s + i);
        int byte = topt_char_byte(p->s + i, n);
        char c = (char)byte;
        topt_text_put(text, byte < 0 ? p->s + i : &c, byte < 0 ? n : 1);
    }
}

static void put_marked(const struct topt_tokenizer *t, const struct topt_piece *p,
                       int begins, struct topt_text *text)
{
    size_t mark = t->mark ? strlen(t->mark) : 0;
    for (size_t i = 0; i < p->len;) {
        int is = mark && i + mark <= p->len && !memcmp(p->s + i, t->mark, mark);
        if (!is)
            topt_text_put(text, p->s + i, 1);
        else if (i || !begins)
            topt_text_put(text, " ", 1);
        i += is ? mark : 1;
    }
}

/* <0x0A>: the byte; else -1. */
static int byte_of(const struct topt_piece *p)
{
    char *end;
    if (p->len != 6 || memcmp(p->s, "<0x", 3) != 0 || p->s[5] != '>')
        return -1;
    long byte = strtol(p->s + 3, &end, 16);
    return end == p->s + 5 ? (int)byte : -1;
}

/* Words with blanks between, but for pieces that go on; then no blank before what belongs
 * to the word before. */
static void put_word_text(const struct topt_tokenizer *t, const struct topt_piece *p,
                          int begins, struct topt_text *text)
{
    static const char *const joined[] = {" .",  " ?",  " !",   " ,",  " n't",
                                         " 'm", " 's", " 've", " 're"};
    struct topt_text w = {0};
    size_t prefix = strlen(t->wordpiece.prefix);
    int goes_on = p->len >= prefix && !memcmp(p->s, t->wordpiece.prefix, prefix);
    if (!begins && !goes_on)
        topt_text_put(&w, " ", 1);
    topt_text_put(&w, p->s + (goes_on && !begins ? prefix : 0),
                  p->len - (goes_on && !begins ? prefix : 0));
    size_t skip = 0;
    for (size_t i = 0; i < sizeof joined / sizeof *joined && t->cleans && w.s; i++)
        if (!strncmp(w.s, joined[i], strlen(joined[i])))
            skip = 1;
    if (w.s)
        topt_text_put(text, w.s + skip, w.len - skip);
    text->oom |= w.oom;
    topt_text_fini(&w);
}

int topt_tokenizer_decode(const struct topt_tokenizer *t, const int32_t *id, int64_t n,
                          int first, struct topt_text *text, struct topt_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (id[i] < 0 || id[i] >= t->vocab.n || !t->vocab.piece[id[i]].s)
            continue; /* vocabularies are padded */
        const struct topt_piece *p = &t->vocab.piece[id[i]];
        if (t->wordpiece.prefix) {
            put_word_text(t, p, first && i == 0, text);
            continue;
        }
        int byte = t->byte_level ? -1 : byte_of(p);
        char c = (char)byte;
        if (byte >= 0)
            topt_text_put(text, &c, 1);
        else if (is_added(t, id[i]))
            topt_text_put(text, p->s, p->len);
        else if (t->byte_level)
            put_byte_chars(p, text);
        else
            put_marked(t, p, first && i == 0 && t->drops_blank, text);
    }
    return text->oom ? topt_nomem(err, "a text") : 0;
}

/* ---- files ------------------------------------------------------------------------- */

struct files {
    const struct topt_tokenizer *t;
    struct topt_ids *ids;
};

static int encode_file(void *ctx, const char *path, const char *bytes, size_t len,
                       struct topt_error *err)
{
    const struct files *f = ctx;
    if (topt_tokenizer_encode(f->t, bytes, len, f->ids, err))
        return topt_wrap(err, "%s", path);
    return f->t->end >= 0 ? topt_ids_put(f->ids, f->t->end, err) : 0;
}

int topt_tokenizer_encode_files(const struct topt_tokenizer *t, const char *path,
                                struct topt_ids *ids, struct topt_error *err)
{
    struct files f = {t, ids};
    return topt_feed_each_file(path, encode_file, &f, err);
}
