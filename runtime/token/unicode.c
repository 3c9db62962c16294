/* unicode.c - see unicode.h.  Text is changed line by line: none of the changes looks
 * beyond a line's end. */
#include "unicode.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if TOPT_HAVE_UTF8PROC
#include <utf8proc.h>

int topt_unicode_check(struct topt_error *err)
{
    (void)err;
    return 0;
}

static int32_t next(const char *s, size_t len, size_t *ret_bytes)
{
    utf8proc_int32_t c;
    utf8proc_ssize_t n = utf8proc_iterate((const uint8_t *)s, (utf8proc_ssize_t)len, &c);
    *ret_bytes = n > 0 ? (size_t)n : 1;
    return n > 0 ? c : 0xfffd;
}

static void put(struct topt_text *to, int32_t c)
{
    uint8_t bytes[4];
    utf8proc_ssize_t n = utf8proc_encode_char(c, bytes);
    topt_text_put(to, (const char *)bytes, n > 0 ? (size_t)n : 0);
}

/* White_Space of Unicode. */
static int is_blank(int32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static int is_control(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return c != '\t' && c != '\n' && c != '\r' &&
           (k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF ||
            k == UTF8PROC_CATEGORY_CO || k == UTF8PROC_CATEGORY_CS);
}

/* The blocks of CJK ideographs that BERT spaces out. */
static int is_chinese(int32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static void clean(unsigned changes, const char *s, size_t len, struct topt_text *to)
{
    for (size_t at = 0, n; at < len; at += n) {
        int32_t c = next(s + at, len - at, &n);
        int spaced = changes & TOPT_SPACE_CHINESE && is_chinese(c);
        if (changes & TOPT_CLEAN && (c == 0 || c == 0xfffd || is_control(c)))
            continue;
        if (changes & TOPT_CLEAN && is_blank(c))
            c = ' ';
        if (spaced)
            topt_text_put(to, " ", 1);
        put(to, c);
        if (spaced)
            topt_text_put(to, " ", 1);
    }
}

/* As characters, decomposed where that is asked for; '*ret' is the caller's. */
static utf8proc_ssize_t decompose(unsigned changes, const char *s, size_t len,
                                  int32_t **ret)
{
    utf8proc_option_t o = UTF8PROC_STABLE;
    if (changes & TOPT_DECOMPOSE)
        o |= UTF8PROC_DECOMPOSE;
    if (changes & TOPT_COMPATIBLE)
        o |= UTF8PROC_COMPAT;
    const uint8_t *from = (const uint8_t *)s;
    utf8proc_ssize_t bytes = (utf8proc_ssize_t)len,
                     n = utf8proc_decompose(from, bytes, NULL, 0, o);
    *ret = n >= 0 ? malloc(((size_t)n + 1) * sizeof **ret) : NULL;
    return *ret ? utf8proc_decompose(from, bytes, *ret, n, o) : -1;
}

static int is_dropped(unsigned changes, int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    int nonspacing = k == UTF8PROC_CATEGORY_MN;
    int mark = nonspacing || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
    return (changes & TOPT_DROP_NONSPACING && nonspacing) ||
           (changes & TOPT_DROP_MARKS && mark);
}

/* The one letter whose small form is two characters. */
static void put_lower(struct topt_text *to, int32_t c)
{
    enum { DOTTED_I = 0x130, DOT = 0x307 };
    put(to, c == DOTTED_I ? 'i' : utf8proc_tolower(c));
    if (c == DOTTED_I)
        put(to, DOT);
}

static int change_line(unsigned changes, const char *s, size_t len, struct topt_text *to)
{
    int32_t *c = NULL;
    utf8proc_ssize_t n = decompose(changes, s, len, &c), kept = 0;
    for (utf8proc_ssize_t i = 0; i < n; i++)
        if (!is_dropped(changes, c[i]))
            c[kept++] = c[i];
    if (n >= 0 && changes & TOPT_COMPOSE)
        kept = utf8proc_normalize_utf32(c, kept, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; n >= 0 && i < kept; i++)
        if (changes & TOPT_LOWER)
            put_lower(to, c[i]);
        else
            put(to, c[i]);
    free(c);
    return n >= 0 && kept >= 0 ? 0 : -1;
}

static int is_ascii(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] >= 0x80)
            return 0;
    return 1;
}

int topt_unicode_change(unsigned changes, const char *s, size_t len, struct topt_text *to,
                        struct topt_error *err)
{
    const unsigned first = TOPT_CLEAN | TOPT_SPACE_CHINESE;
    struct topt_text cleaned = {0};
    int rc = 0;
    if (changes & first) {
        clean(changes, s, len, &cleaned);
        s = cleaned.s ? cleaned.s : "";
        len = cleaned.len;
    }
    for (size_t at = 0, n; at < len && !rc; at += n) {
        const char *end = memchr(s + at, '\n', len - at);
        n = end ? (size_t)(end - (s + at)) + 1 : len - at;
        if (!(changes & ~first) || (!(changes & TOPT_LOWER) && is_ascii(s + at, n)))
            topt_text_put(to, s + at, n);
        else
            rc = change_line(changes & ~first, s + at, n, to);
    }
    int oom = rc || to->oom || cleaned.oom;
    topt_text_fini(&cleaned);
    return oom ? topt_nomem(err, "a text") : 0;
}

size_t topt_grapheme(const char *s, size_t len)
{
    utf8proc_int32_t state = 0;
    size_t n, at = 0;
    int32_t c = len ? next(s, len, &at) : 0;
    while (at < len) {
        int32_t other = next(s + at, len - at, &n);
        if (utf8proc_grapheme_break_stateful(c, other, &state))
            break;
        c = other;
        at += n;
    }
    return at;
}
#else
int topt_unicode_check(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_INVAL,
                     "a normalizer of Unicode's forms needs utf8proc, and topt was built "
                     "without "
                     "libutf8proc-dev");
}

int topt_unicode_change(unsigned changes, const char *s, size_t len, struct topt_text *to,
                        struct topt_error *err)
{
    (void)changes, (void)s, (void)len, (void)to;
    return topt_unicode_check(err);
}

size_t topt_grapheme(const char *s, size_t len)
{
    (void)s;
    return len;
}
#endif
