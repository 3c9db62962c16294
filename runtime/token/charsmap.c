/* charsmap.c - see charsmap.h.
 *
 * The table is the number of bytes of a trie, the trie, and texts that end with 0, at
 * whose places the trie's values point.  The trie is a double array as Darts-clone writes
 * it (Yata 2008): a unit of 32 bits is a label, a flag that a value follows, and an
 * offset, which is combined with the unit's own place by exclusive or.  What begins with a
 * key is changed as Hugging Face's library changes it: a grapheme of less than six bytes
 * as a whole, by its shortest key; else each character by itself. */
#include "charsmap.h"
#include "unicode.h"
#include "vocab.h"

#include <nettle/base64.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct topt_charsmap {
    uint8_t *bytes;
    size_t units;     /* of the trie, from byte 4 on */
    const char *text; /* behind it */
    size_t len;
};

enum { HEAD = 4, UNIT = 4 };

static uint32_t number_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static int decode(const char *letters, struct topt_charsmap *m, size_t *ret)
{
    struct base64_decode_ctx ctx;
    size_t len = strlen(letters), n = BASE64_DECODE_LENGTH(len);
    m->bytes = malloc(n + 1);
    base64_decode_init(&ctx);
    if (!m->bytes || !base64_decode_update(&ctx, &n, m->bytes, len, letters) ||
        !base64_decode_final(&ctx))
        return -1;
    *ret = n;
    return 0;
}

struct topt_charsmap *topt_charsmap_read(const char *letters, struct topt_error *err)
{
    struct topt_charsmap *m = calloc(1, sizeof *m);
    size_t n = 0;
    if (!m) {
        topt_nomem(err, "the tokenizer");
        return NULL;
    }
    int bad = decode(letters, m, &n) || n < HEAD || number_at(m->bytes) > n - HEAD ||
              number_at(m->bytes) % UNIT || !number_at(m->bytes);
    if (bad || topt_unicode_check(err)) {
        if (bad)
            topt_fail(err, TOPT_ERR_INVAL, "precompiled_charsmap is no table");
        topt_charsmap_free(m);
        return NULL;
    }
    size_t trie = number_at(m->bytes);
    m->units = trie / UNIT;
    m->text = (const char *)m->bytes + HEAD + trie;
    m->len = n - HEAD - trie;
    return m;
}

void topt_charsmap_free(struct topt_charsmap *m)
{
    if (m)
        free(m->bytes);
    free(m);
}

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* The value of the shortest key with which the text begins; -1: none. */
static int64_t find(const struct topt_charsmap *m, const char *s, size_t len)
{
    const uint8_t *trie = m->bytes + HEAD;
    uint32_t at = offset_of(number_at(trie));
    for (size_t i = 0; i < len && s[i]; i++) {
        at ^= (unsigned char)s[i];
        if (at >= m->units)
            return -1;
        uint32_t unit = number_at(trie + (size_t)at * UNIT);
        if ((unit & (1u << 31 | 0xff)) != (unsigned char)s[i])
            return -1;
        at ^= offset_of(unit);
        if (unit >> 8 & 1)
            return at < m->units
                       ? (int64_t)(number_at(trie + (size_t)at * UNIT) & 0x7fffffff)
                       : -1;
    }
    return -1;
}

static int change(const struct topt_charsmap *m, const char *s, size_t len,
                  struct topt_text *to)
{
    int64_t at = find(m, s, len);
    if (at < 0 || (size_t)at > m->len)
        return 0;
    topt_text_put(to, m->text + at, strnlen(m->text + at, m->len - (size_t)at));
    return 1;
}

void topt_charsmap_change(const struct topt_charsmap *m, const char *s, size_t len,
                          struct topt_text *to)
{
    enum { SHORT = 6 };
    for (size_t at = 0, n; at < len; at += n) {
        n = topt_grapheme(s + at, len - at);
        if (n < SHORT && change(m, s + at, n, to))
            continue;
        for (size_t i = at, c; i < at + n; i += c) {
            c = topt_char_len(s + i);
            if (!change(m, s + i, c, to))
                topt_text_put(to, s + i, c);
        }
    }
}
