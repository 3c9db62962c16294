/* wordpiece.c - see wordpiece.h.  A word of which a part is no piece is unknown as a whole. */
#include "wordpiece.h"
#include "topt_json.h"

#include <stdlib.h>
#include <string.h>

int topt_wordpiece_init(struct topt_wordpiece *w, const struct topt_vocab *vocab,
                        const json_t *model, struct topt_error *err)
{
    const char *unk = "[UNK]";
    *w = (struct topt_wordpiece){.vocab = vocab, .prefix = "##", .most = 100};
    if (topt_json_string_or(model, "model", "unk_token", &unk, err) ||
        topt_json_string_or(model, "model", "continuing_subword_prefix", &w->prefix,
                            err) ||
        topt_json_int_or(model, "model", "max_input_chars_per_word", 0, 1 << 20, &w->most,
                         err))
        return -1;
    w->unk = topt_vocab_find(vocab, unk, strlen(unk));
    return w->unk >= 0 ? 0
                       : topt_fail(err, TOPT_ERR_INVAL,
                                   "model.unk_token '%.40s' is no piece", unk);
}

static int64_t characters(const char *s, size_t len)
{
    int64_t n = 0;
    for (size_t i = 0; i < len; i += topt_char_len(s + i))
        n++;
    return n;
}

/* The longest piece with which s[at, len) begins; its bytes of the word in '*ret'. */
static int32_t longest(const struct topt_wordpiece *w, const char *s, size_t at,
                       size_t len, struct topt_text *word, size_t *ret)
{
    for (size_t end = len; end > at; end--) {
        if (end < len && ((unsigned char)s[end] & 0xc0) == 0x80)
            continue; /* inside a character */
        word->len = 0;
        if (at)
            topt_text_put(word, w->prefix, strlen(w->prefix));
        topt_text_put(word, s + at, end - at);
        int32_t id = word->oom ? -1 : topt_vocab_find(w->vocab, word->s, word->len);
        if (id >= 0) {
            *ret = end - at;
            return id;
        }
    }
    return -1;
}

int topt_wordpiece_word(const struct topt_wordpiece *w, const char *s, size_t len,
                        struct topt_ids *ids, struct topt_error *err)
{
    struct topt_text word = {0};
    int64_t before = ids->n;
    int32_t id = 0;
    int rc = 0;
    if (characters(s, len) > w->most)
        return topt_ids_put(ids, w->unk, err);
    for (size_t at = 0, n = 0; at < len && id >= 0 && !rc; at += n) {
        id = longest(w, s, at, len, &word, &n);
        rc = id >= 0 ? topt_ids_put(ids, id, err) : 0;
    }
    if (word.oom)
        rc = topt_nomem(err, "a word");
    else if (id < 0 && !rc) {
        ids->n = before;
        rc = topt_ids_put(ids, w->unk, err);
    }
    topt_text_fini(&word);
    return rc;
}
