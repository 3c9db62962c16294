/* json_stream.c - a JSON text read piece by piece. */
#include "json_stream.h"

#include <stdlib.h>
#include <string.h>

int topt_json_stream_init(struct json_stream *s, const void *text, size_t len, FILE *file,
                          struct topt_error *err)
{
    s->at = text;
    s->end = len ? s->at + len : s->at;
    s->file = file;
    s->line = 1;
    s->io_failed = 0;
    s->err = err;
    s->string[0] = 0;
    s->buffer = file ? malloc(TOPT_JSON_BUFFER) : NULL;
    if (file) {
        s->at = s->end = s->buffer;
        if (!s->buffer)
            return topt_fail(err, TOPT_ERR_NOMEM, "no memory to read a file");
    }
    return 0;
}

void topt_json_stream_fini(struct json_stream *s)
{
    free(s->buffer);
    s->buffer = NULL;
}

/* The next byte, which stays; -1 at the end. */
static int refill(struct json_stream *s)
{
    if (!s->file)
        return -1;
    size_t n = fread(s->buffer, 1, TOPT_JSON_BUFFER, s->file);
    s->io_failed |= ferror(s->file);
    s->at = s->buffer;
    s->end = s->at + n;
    return n ? *s->at : -1;
}

static inline int look(struct json_stream *s)
{
    return s->at < s->end ? *s->at : refill(s);
}

int topt_json_peek(struct json_stream *s)
{
    int c;
    while ((c = look(s)) == ' ' || c == '\n' || c == '\t' || c == '\r') {
        s->line += c == '\n';
        s->at++;
    }
    return c > 0 ? c : 0;
}

int topt_json_expected(struct json_stream *s, const char *what)
{
    int c = look(s);
    if (s->io_failed)
        return topt_fail(s->err, TOPT_ERR_IO, "the file can't be read to its end");
    if (c < 0)
        return topt_fail(s->err, TOPT_ERR_INVAL,
                         "not valid JSON: it ends in line %lld, where %s is expected",
                         (long long)s->line, what);
    if (c < ' ' || c > '~')
        return topt_fail(s->err, TOPT_ERR_INVAL,
                         "not valid JSON: line %lld: byte %d, where %s is expected",
                         (long long)s->line, c, what);
    return topt_fail(s->err, TOPT_ERR_INVAL,
                     "not valid JSON: line %lld: '%c', where %s is expected",
                     (long long)s->line, c, what);
}

int topt_json_take(struct json_stream *s, char c)
{
    char what[] = "' '";
    if (topt_json_peek(s) == c) {
        s->at++;
        return 0;
    }
    what[1] = c;
    return topt_json_expected(s, what);
}

int topt_json_next(struct json_stream *s, int first, char close)
{
    int c = topt_json_peek(s);
    if (c == close) {
        s->at++;
        return 0;
    }
    if (first)
        return 1;
    if (c != ',')
        return topt_json_expected(s, close == ']' ? "',' or ']'" : "',' or '}'");
    s->at++;
    if (topt_json_peek(s) == close)
        return topt_json_expected(s, "an element after ','");
    return 1;
}

/* ---- strings ----------------------------------------------------------------------- */

static int hex4(struct json_stream *s, uint32_t *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        int c = look(s);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return topt_json_expected(s, "a hexadecimal digit");
        *ret = *ret * 16 + (uint32_t)digit;
    }
    return 0;
}

/* The character after "\u", with the second half of a pair where it is the first. */
static int escaped_code(struct json_stream *s, uint32_t *ret)
{
    uint32_t low;
    if (hex4(s, ret))
        return -1;
    if (*ret < 0xd800 || *ret > 0xdfff)
        return *ret ? 0 : topt_json_expected(s, "a character other than \\u0000");
    if (*ret >= 0xdc00 || look(s) != '\\')
        return topt_json_expected(s, "a pair of surrogates");
    s->at++;
    if (look(s) != 'u')
        return topt_json_expected(s, "a pair of surrogates");
    s->at++;
    if (hex4(s, &low))
        return -1;
    if (low < 0xdc00 || low > 0xdfff)
        return topt_json_expected(s, "a pair of surrogates");
    *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
    return 0;
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

static int take_escape(struct json_stream *s, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = look(s);
    uint32_t code;
    const char *known = c > 0 ? strchr(from, c) : NULL;
    if (c == 'u') {
        s->at++;
        if (escaped_code(s, &code))
            return -1;
        *n += put_utf8(s->string + *n, code);
        return 0;
    }
    if (!known)
        return topt_json_expected(s, "an escape sequence");
    s->at++;
    s->string[(*n)++] = to[known - from];
    return 0;
}

/* One character of more than a byte, as Unicode allows it. */
static int take_utf8(struct json_stream *s, size_t *n)
{
    int c = look(s), more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    uint32_t code = (uint32_t)c & (0x3fu >> more);
    if (c < 0xc2 || c > 0xf4)
        return topt_json_expected(s, "a character in UTF-8");
    s->at++;
    for (int i = 0; i < more; i++, s->at++) {
        c = look(s);
        if (c < 0x80 || c > 0xbf)
            return topt_json_expected(s, "a character in UTF-8");
        code = code << 6 | ((uint32_t)c & 0x3f);
    }
    if ((more == 2 && (code < 0x800 || (code >= 0xd800 && code <= 0xdfff))) ||
        (more == 3 && (code < 0x10000 || code > 0x10ffff)))
        return topt_json_expected(s, "a character in UTF-8");
    *n += put_utf8(s->string + *n, code);
    return 0;
}

static int too_long(struct json_stream *s)
{
    return topt_fail(s->err, TOPT_ERR_LIMIT, "line %lld: a string of more than %d bytes",
                     (long long)s->line, TOPT_JSON_STRING);
}

int topt_json_take_string(struct json_stream *s)
{
    size_t n = 0;
    int c;
    if (topt_json_peek(s) != '"')
        return topt_json_expected(s, "a string");
    s->at++;
    while ((c = look(s)) != '"') {
        if (n >= TOPT_JSON_STRING)
            return too_long(s);
        if (c < ' ')
            return topt_json_expected(s, "the rest of a string");
        if (c >= 0x80) {
            if (take_utf8(s, &n))
                return -1;
            continue;
        }
        s->at++;
        if (c != '\\')
            s->string[n++] = (char)c;
        else if (take_escape(s, &n))
            return -1;
    }
    if (n > TOPT_JSON_STRING)
        return too_long(s);
    s->at++;
    s->string[n] = 0;
    return 0;
}

int topt_json_take_key(struct json_stream *s)
{
    if (topt_json_take_string(s))
        return -1;
    return topt_json_take(s, ':');
}

/* ---- numbers ----------------------------------------------------------------------- */

enum json_number topt_json_take_whole(struct json_stream *s, int64_t *ret)
{
    int c = topt_json_peek(s), digits = 0;
    int64_t n = 0;
    if (c == '-')
        return JSON_NEGATIVE;
    for (; (c = look(s)) >= '0' && c <= '9'; s->at++, digits++) {
        if (digits == 1 && n == 0)
            return JSON_OTHER; /* 07 */
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, c - '0', &n))
            return JSON_TOO_LARGE;
    }
    if (c == '.' || c == 'e' || c == 'E')
        return JSON_FRACTION;
    *ret = n;
    return digits ? JSON_WHOLE : JSON_OTHER;
}

int topt_json_take_end(struct json_stream *s)
{
    topt_json_peek(s);
    return look(s) < 0 && !s->io_failed
               ? 0
               : topt_json_expected(s, "the end of the document");
}
