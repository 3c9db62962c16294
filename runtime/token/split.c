/* split.c - normalizers and pre-tokenizers, one after the other.
 *
 * Each stage gets a piece of text and hands what it makes of it to the next one, so that no
 * list of all words is ever held. */
#include "split.h"
#include "charsmap.h"
#include "pattern.h"
#include "unicode.h"
#include "vocab.h"
#include "topt_json.h"

#include <string.h>

#define GPT2_PATTERN                                                                     \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* What Unicode says that words are made of (UTS 18, annex C). */
#define WORD                                                                             \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}"             \
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

/* ---- bytes as characters ----------------------------------------------------------- */

/* Printable bytes stand for themselves, the others, in order, for U+0100 and on. */
static int prints(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static int code_of(int byte)
{
    int code = 256;
    if (prints(byte))
        return byte;
    for (int b = 0; b < byte; b++)
        code += !prints(b);
    return code;
}

/* The character that stands for a byte where bytes are characters, in UTF-8. */
static size_t byte_char(unsigned char byte, char ret[2])
{
    int code = code_of(byte);
    if (code < 0x80) {
        ret[0] = (char)code;
        return 1;
    }
    ret[0] = (char)(0xc0 | code >> 6);
    ret[1] = (char)(0x80 | (code & 0x3f));
    return 2;
}

int topt_char_byte(const char *s, size_t len)
{
    char c[2];
    for (int b = 0; b < 256; b++)
        if (byte_char((unsigned char)b, c) == len && !memcmp(c, s, len))
            return b;
    return -1;
}

/* ---- reading ----------------------------------------------------------------------- */

static struct topt_stage *add(struct topt_stages *s, struct topt_stage stage,
                              struct topt_error *err)
{
    if (s->n == TOPT_MOST_STAGES) {
        topt_fail(err, TOPT_ERR_LIMIT, "more than %d normalizers and pre-tokenizers",
                  TOPT_MOST_STAGES);
        return NULL;
    }
    s->own[s->n] = stage.pattern;
    s->stage[s->n] = stage;
    return &s->stage[s->n++];
}

static int add_split(struct topt_stages *s, const char *regex,
                     enum topt_behavior behavior, int invert, struct topt_error *err)
{
    struct topt_pattern *p = topt_pattern_compile(regex, err);
    struct topt_stage stage = {
        .kind = TOPT_SPLIT, .pattern = p, .behavior = behavior, .invert = invert};
    return p && add(s, stage, err) ? 0 : -1;
}

static int read_behavior(const json_t *doc, enum topt_behavior *ret,
                         struct topt_error *err)
{
    static const char *const name[] = {"Removed", "Isolated", "MergedWithPrevious",
                                       "MergedWithNext", "Contiguous"};
    const char *s = json_string_value(json_object_get(doc, "behavior"));
    for (int i = 0; i < 5; i++)
        if (s && !strcmp(s, name[i])) {
            *ret = (enum topt_behavior)i;
            return 0;
        }
    return topt_fail(err, TOPT_ERR_INVAL, "behavior '%.40s' is not known here",
                     s ? s : "");
}

static struct topt_pattern *read_pattern(const json_t *doc, struct topt_error *err)
{
    const json_t *p = json_object_get(doc, "pattern");
    const char *regex = json_string_value(json_object_get(p, "Regex"));
    const char *text = json_string_value(json_object_get(p, "String"));
    if (regex)
        return topt_pattern_compile(regex, err);
    if (text)
        return topt_pattern_literal(text, err);
    topt_fail(err, TOPT_ERR_INVAL, "a pattern is neither Regex nor String");
    return NULL;
}

static int read_split(struct topt_stages *s, const json_t *doc, struct topt_error *err)
{
    struct topt_stage stage = {.kind = TOPT_SPLIT};
    stage.invert = json_is_true(json_object_get(doc, "invert"));
    if (read_behavior(doc, &stage.behavior, err))
        return -1;
    stage.pattern = read_pattern(doc, err);
    return stage.pattern && add(s, stage, err) ? 0 : -1;
}

/* GPT-2's pattern, then bytes become characters. */
static int read_byte_level(struct topt_stages *s, const json_t *doc,
                           struct topt_error *err)
{
    struct topt_stage stage = {.kind = TOPT_BYTES};
    stage.prefix = json_is_true(json_object_get(doc, "add_prefix_space"));
    if (!json_is_false(json_object_get(doc, "use_regex"))) {
        stage.pattern = topt_pattern_compile(GPT2_PATTERN, err);
        if (!stage.pattern)
            return -1;
    }
    return add(s, stage, err) ? 0 : -1;
}

static int read_metaspace(struct topt_stages *s, const json_t *doc,
                          struct topt_error *err)
{
    const char *scheme = json_string_value(json_object_get(doc, "prepend_scheme"));
    const char *mark = json_string_value(json_object_get(doc, "replacement"));
    struct topt_stage stage = {.kind = TOPT_META, .content = mark ? mark : "\u2581"};
    stage.first = scheme && !strcmp(scheme, "first");
    stage.prefix =
        stage.first || !scheme
            ? stage.first || !json_is_false(json_object_get(doc, "add_prefix_space"))
            : strcmp(scheme, "never") != 0;
    stage.whole = json_is_false(json_object_get(doc, "split"));
    stage.pattern = topt_pattern_literal(stage.content, err);
    return stage.pattern && add(s, stage, err) ? 0 : -1;
}

static int read_digits(struct topt_stages *s, const json_t *doc, struct topt_error *err)
{
    int each = json_is_true(json_object_get(doc, "individual_digits"));
    return add_split(s, "\\p{N}", each ? TOPT_ISOLATED : TOPT_CONTIGUOUS, 0, err);
}

static int read_punctuation(struct topt_stages *s, const json_t *doc,
                            struct topt_error *err)
{
    enum topt_behavior behavior = TOPT_ISOLATED;
    if (json_object_get(doc, "behavior") && read_behavior(doc, &behavior, err))
        return -1;
    return add_split(s, "[!-/:-@\\[-`{-~]|\\p{P}", behavior, 0, err);
}

static int read_whitespace(struct topt_stages *s, const json_t *doc,
                           struct topt_error *err)
{
    (void)doc;
    return add_split(s, "[" WORD "]+|[^" WORD "\\s]+", TOPT_REMOVED, 1, err);
}

static int read_whitespace_split(struct topt_stages *s, const json_t *doc,
                                 struct topt_error *err)
{
    (void)doc;
    return add_split(s, "\\s", TOPT_REMOVED, 0, err);
}

static int read_prepend(struct topt_stages *s, const json_t *doc, struct topt_error *err)
{
    struct topt_stage stage = {.kind = TOPT_PREPEND};
    return topt_json_string(doc, "normalizer", "prepend", &stage.content, err) ||
                   !add(s, stage, err)
               ? -1
               : 0;
}

static int read_replace(struct topt_stages *s, const json_t *doc, struct topt_error *err)
{
    struct topt_stage stage = {.kind = TOPT_REPLACE};
    if (topt_json_string(doc, "normalizer", "content", &stage.content, err))
        return -1;
    stage.pattern = read_pattern(doc, err);
    return stage.pattern && add(s, stage, err) ? 0 : -1;
}

static int add_unicode(struct topt_stages *s, unsigned changes, struct topt_error *err)
{
    const struct topt_stage stage = {.kind = TOPT_UNICODE, .changes = changes};
    return topt_unicode_check(err) || !add(s, stage, err) ? -1 : 0;
}

/* Those that have no settings. */
static int read_plain(struct topt_stages *s, const json_t *doc, struct topt_error *err)
{
    static const struct {
        const char *name;
        unsigned changes;
    } plain[] = {{"NFC", TOPT_DECOMPOSE | TOPT_COMPOSE},
                 {"NFD", TOPT_DECOMPOSE},
                 {"NFKC", TOPT_DECOMPOSE | TOPT_COMPATIBLE | TOPT_COMPOSE},
                 {"NFKD", TOPT_DECOMPOSE | TOPT_COMPATIBLE},
                 {"StripAccents", TOPT_DROP_MARKS},
                 {"Lowercase", TOPT_LOWER}};
    const char *type = topt_json_words_at(doc, "type");
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(plain[i].name, type))
            return add_unicode(s, plain[i].changes, err);
    return topt_fail(err, TOPT_ERR_INTERNAL, "a normalizer without a change");
}

/* Accents go where that is said; where nothing is said, with the capital letters. */
static int read_bert(struct topt_stages *s, const json_t *doc, struct topt_error *err)
{
    int clean = 1, chinese = 1, lower = 1;
    if (topt_json_bool_or(doc, "normalizer", "clean_text", &clean, err) ||
        topt_json_bool_or(doc, "normalizer", "handle_chinese_chars", &chinese, err) ||
        topt_json_bool_or(doc, "normalizer", "lowercase", &lower, err))
        return -1;
    const json_t *strip = json_object_get(doc, "strip_accents");
    int stripped = json_is_boolean(strip) ? json_is_true(strip) : lower;
    return add_unicode(s,
                       (clean ? TOPT_CLEAN : 0u) | (chinese ? TOPT_SPACE_CHINESE : 0u) |
                           (stripped ? TOPT_DECOMPOSE | TOPT_DROP_NONSPACING : 0u) |
                           (lower ? TOPT_LOWER : 0u),
                       err);
}

static int read_precompiled(struct topt_stages *s, const json_t *doc,
                            struct topt_error *err)
{
    struct topt_stage stage = {.kind = TOPT_CHARSMAP};
    const char *letters = json_string_value(json_object_get(doc, "precompiled_charsmap"));
    stage.map = topt_charsmap_read(letters ? letters : "", err);
    if (stage.map && add(s, stage, err))
        return 0;
    topt_charsmap_free(stage.map);
    return -1;
}

static int read_bert_words(struct topt_stages *s, const json_t *doc,
                           struct topt_error *err)
{
    return read_whitespace_split(s, doc, err) || read_punctuation(s, doc, err) ? -1 : 0;
}

static const struct kind {
    const char *name;
    int normalizer;
    int (*read)(struct topt_stages *s, const json_t *doc, struct topt_error *err);
} kinds[] = {{"Prepend", 1, read_prepend},
             {"Replace", 1, read_replace},
             {"NFC", 1, read_plain},
             {"NFD", 1, read_plain},
             {"NFKC", 1, read_plain},
             {"NFKD", 1, read_plain},
             {"StripAccents", 1, read_plain},
             {"Lowercase", 1, read_plain},
             {"BertNormalizer", 1, read_bert},
             {"Precompiled", 1, read_precompiled},
             {"BertPreTokenizer", 0, read_bert_words},
             {"ByteLevel", 0, read_byte_level},
             {"Split", 0, read_split},
             {"Metaspace", 0, read_metaspace},
             {"Digits", 0, read_digits},
             {"Punctuation", 0, read_punctuation},
             {"Whitespace", 0, read_whitespace},
             {"WhitespaceSplit", 0, read_whitespace_split}};

static int read_stage(struct topt_stages *s, const json_t *doc, int normalizer,
                      struct topt_error *err)
{
    const char *type = json_string_value(json_object_get(doc, "type"));
    if (!doc || json_is_null(doc))
        return 0;
    if (type && !strcmp(type, "Sequence")) {
        const json_t *all =
            json_object_get(doc, normalizer ? "normalizers" : "pretokenizers");
        for (size_t i = 0; i < json_array_size(all); i++)
            if (read_stage(s, json_array_get(all, i), normalizer, err))
                return -1;
        return 0;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (type && !strcmp(type, kinds[i].name) && kinds[i].normalizer == normalizer)
            return kinds[i].read(s, doc, err);
    return topt_fail(err, TOPT_ERR_INVAL, "%s '%.60s' is not known here",
                     normalizer ? "normalizer" : "pre_tokenizer", type ? type : "");
}

int topt_stages_read(struct topt_stages *s, const json_t *doc, struct topt_error *err)
{
    return read_stage(s, json_object_get(doc, "normalizer"), 1, err) ||
                   read_stage(s, json_object_get(doc, "pre_tokenizer"), 0, err)
               ? -1
               : 0;
}

void topt_stages_fini(struct topt_stages *s)
{
    for (int i = 0; i < s->n; i++) {
        topt_pattern_free(s->own[i]);
        topt_charsmap_free(s->stage[i].map);
    }
    s->n = 0;
}

/* ---- running ----------------------------------------------------------------------- */

struct run {
    const struct topt_stages *s;
    topt_word_visit *f;
    void *ctx;
    struct topt_error *err;
};

static int pass(const struct run *r, int stage, const char *s, size_t len, int first);

static int pass_text(const struct run *r, int stage, struct topt_text *t, int first)
{
    int rc = t->oom ? topt_nomem(r->err, "a text")
                    : pass(r, stage, t->s ? t->s : "", t->len, first);
    topt_text_fini(t);
    return rc;
}

/* What matches and what lies between, in order, put together as the behavior says. */
struct cutter {
    const struct run *r;
    int next; /* stage that gets the pieces */
    enum topt_behavior behavior;
    const char *s;
    size_t begin, end; /* waits to be handed on; empty: nothing does */
    int match, first;
};

static int flush(struct cutter *c)
{
    size_t begin = c->begin, end = c->end;
    c->begin = c->end;
    return begin == end || (c->behavior == TOPT_REMOVED && c->match)
               ? 0
               : pass(c->r, c->next, c->s + begin, end - begin, c->first && begin == 0);
}

static int joins(const struct cutter *c, int match)
{
    if (c->begin == c->end)
        return 0;
    switch (c->behavior) {
    case TOPT_MERGED_WITH_PREVIOUS:
        return match && !c->match;
    case TOPT_MERGED_WITH_NEXT:
        return !match && c->match;
    case TOPT_CONTIGUOUS:
        return match == c->match;
    default:
        return 0;
    }
}

static int cut(struct cutter *c, size_t begin, size_t end, int match)
{
    if (begin == end)
        return 0;
    if (joins(c, match)) {
        c->end = end;
        c->match = match;
        return 0;
    }
    int rc = flush(c);
    c->begin = begin;
    c->end = end;
    c->match = match;
    return rc;
}

static int split(const struct run *r, const struct topt_stage *g, int stage,
                 const char *s, size_t len, int first)
{
    struct cutter c = {
        .r = r, .next = stage + 1, .behavior = g->behavior, .s = s, .first = first};
    size_t at = 0, from = 0, begin, end;
    int found = 0, rc = 0;
    while (!rc && from <= len &&
           (found = topt_pattern_find(g->pattern, s, len, from, &begin, &end, r->err)) >
               0) {
        rc = cut(&c, at, begin, g->invert) || cut(&c, begin, end, !g->invert);
        at = end;
        from = end > begin ? end : end + 1;
    }
    return rc || found < 0 || cut(&c, at, len, g->invert) || flush(&c) ? -1 : 0;
}

static int replace(const struct run *r, const struct topt_stage *g, int stage,
                   const char *s, size_t len, int first)
{
    struct topt_text t = {0};
    size_t at = 0, begin, end;
    int found;
    while ((found = topt_pattern_find(g->pattern, s, len, at, &begin, &end, r->err)) >
               0 &&
           end > begin) {
        topt_text_put(&t, s + at, begin - at);
        topt_text_put(&t, g->content, strlen(g->content));
        at = end;
    }
    topt_text_put(&t, s + at, len - at);
    if (found >= 0)
        return pass_text(r, stage + 1, &t, first);
    topt_text_fini(&t);
    return -1;
}

/* A word's bytes as characters. */
static int put_bytes(void *ctx, const char *s, size_t len, struct topt_error *err)
{
    const struct cutter *c = ctx;
    struct topt_text t = {0};
    char small[256], *to = small;
    size_t n = 0;
    (void)err;
    if (2 * len > sizeof small) {
        for (size_t i = 0; i < len; i++)
            topt_text_put(&t, small, byte_char((unsigned char)s[i], small));
        return pass_text(c->r, c->next, &t, 0);
    }
    for (size_t i = 0; i < len; i++)
        n += byte_char((unsigned char)s[i], to + n);
    return pass(c->r, c->next, to, n, 0);
}

static int split_bytes(const struct run *r, const struct topt_stage *g, int stage,
                       const char *s, size_t len)
{
    struct cutter c = {.r = r, .next = stage + 1};
    struct topt_stages one = {.n = 1};
    one.stage[0] = (struct topt_stage){
        .kind = TOPT_SPLIT, .pattern = g->pattern, .behavior = TOPT_ISOLATED};
    if (!g->pattern)
        return put_bytes(&c, s, len, r->err);
    return topt_stages_run(&one, s, len, 0, put_bytes, &c, r->err);
}

static int byte_level(const struct run *r, const struct topt_stage *g, int stage,
                      const char *s, size_t len)
{
    struct topt_text t = {0};
    if (!g->prefix || (len && *s == ' '))
        return split_bytes(r, g, stage, s, len);
    topt_text_put(&t, " ", 1);
    topt_text_put(&t, s, len);
    int rc = t.oom ? topt_nomem(r->err, "a text") : split_bytes(r, g, stage, t.s, t.len);
    topt_text_fini(&t);
    return rc;
}

/* Blanks become a mark, with which words begin. */
static int metaspace(const struct run *r, const struct topt_stage *g, int stage,
                     const char *s, size_t len, int first)
{
    struct topt_text t = {0};
    size_t mark = strlen(g->content);
    int begins = (len && *s == ' ') || (len >= mark && !memcmp(s, g->content, mark));
    if (g->prefix && !begins && (first || !g->first))
        topt_text_put(&t, g->content, mark);
    for (size_t i = 0, n; i < len; i += n) {
        const char *blank = memchr(s + i, ' ', len - i);
        n = blank ? (size_t)(blank - s) - i : len - i;
        topt_text_put(&t, s + i, n);
        if (blank)
            topt_text_put(&t, g->content, mark);
        n += blank != NULL;
    }
    if (g->whole)
        return pass_text(r, stage + 1, &t, first);
    const struct topt_stage words = {.pattern = g->pattern,
                                     .behavior = TOPT_MERGED_WITH_NEXT};
    int rc = t.oom ? topt_nomem(r->err, "a text")
                   : split(r, &words, stage, t.s ? t.s : "", t.len, first);
    topt_text_fini(&t);
    return rc;
}

static int change(const struct run *r, const struct topt_stage *g, int stage,
                  const char *s, size_t len, int first)
{
    struct topt_text t = {0};
    if (g->map)
        topt_charsmap_change(g->map, s, len, &t);
    else if (topt_unicode_change(g->changes, s, len, &t, r->err)) {
        topt_text_fini(&t);
        return -1;
    }
    return pass_text(r, stage + 1, &t, first);
}

static int prepend(const struct run *r, const struct topt_stage *g, int stage,
                   const char *s, size_t len, int first)
{
    struct topt_text t = {0};
    if (len)
        topt_text_put(&t, g->content, strlen(g->content));
    topt_text_put(&t, s, len);
    return pass_text(r, stage + 1, &t, first);
}

static int pass(const struct run *r, int stage, const char *s, size_t len, int first)
{
    if (stage == r->s->n)
        return len ? r->f(r->ctx, s, len, r->err) : 0;
    const struct topt_stage *g = &r->s->stage[stage];
    switch (g->kind) {
    case TOPT_PREPEND:
        return prepend(r, g, stage, s, len, first);
    case TOPT_REPLACE:
        return replace(r, g, stage, s, len, first);
    case TOPT_UNICODE:
    case TOPT_CHARSMAP:
        return change(r, g, stage, s, len, first);
    case TOPT_SPLIT:
        return split(r, g, stage, s, len, first);
    case TOPT_BYTES:
        return byte_level(r, g, stage, s, len);
    case TOPT_META:
        return metaspace(r, g, stage, s, len, first);
    }
    return topt_fail(r->err, TOPT_ERR_INTERNAL, "an unknown stage of a tokenizer");
}

int topt_stages_run(const struct topt_stages *s, const char *text, size_t len, int first,
                    topt_word_visit *f, void *ctx, struct topt_error *err)
{
    const struct run r = {s, f, ctx, err};
    return pass(&r, 0, text, len, first);
}
