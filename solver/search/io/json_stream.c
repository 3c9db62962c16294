/* json_stream.c - a JSON text read piece by piece. */
#include "json_stream.h"

#include "topt_json.h"

#include <string.h>

int topt_json_peek(struct json_stream *s)
{
    while (s->c == ' ' || s->c == '\n' || s->c == '\t' || s->c == '\r') {
        s->line += s->c == '\n';
        topt_json_advance(s);
    }
    return s->c > 0 ? s->c : 0;
}

int topt_json_expected(struct json_stream *s, const char *what)
{
    if (ferror(s->file))
        return topt_fail(s->err, TOPT_ERR_IO, "the file can't be read to its end");
    if (s->c < 0)
        return topt_fail(s->err, TOPT_ERR_INVAL,
                         "not valid JSON: it ends in line %lld, where %s is expected",
                         (long long)s->line, what);
    if (s->c < ' ' || s->c > '~')
        return topt_fail(s->err, TOPT_ERR_INVAL,
                         "not valid JSON: line %lld: byte %d, where %s is expected",
                         (long long)s->line, s->c, what);
    return topt_fail(s->err, TOPT_ERR_INVAL,
                     "not valid JSON: line %lld: '%c', where %s is expected",
                     (long long)s->line, s->c, what);
}

int topt_json_skip(struct json_stream *s, char c)
{
    int there = topt_json_peek(s) == c;
    if (there)
        topt_json_advance(s);
    return there;
}

int topt_json_take(struct json_stream *s, char c)
{
    return topt_json_skip(s, c) ? 0 : topt_json_expected(s, (char[]){'\'', c, '\'', 0});
}

int topt_json_next(struct json_stream *s, int first, char close)
{
    if (topt_json_skip(s, close))
        return 0;
    if (first)
        return 1;
    if (!topt_json_skip(s, ','))
        return topt_json_expected(s, close == ']' ? "',' or ']'" : "',' or '}'");
    if (topt_json_peek(s) == close)
        return topt_json_expected(s, "an element after ','");
    return 1;
}

static int too_long(struct json_stream *s)
{
    return topt_fail(s->err, TOPT_ERR_LIMIT, "line %lld: a string of more than %d bytes",
                     (long long)s->line, TOPT_JSON_STRING);
}

/* Put the text that a string literal stands for into the stream's buffer. */
static int decode(struct json_stream *s, const char *literal, size_t len)
{
    json_t *v = json_loadb(literal, len, JSON_DECODE_ANY, NULL);
    size_t n = json_string_length(v);
    int rc = 0;
    if (!v)
        rc = topt_fail(s->err, topt_json_lacked() ? TOPT_ERR_NOMEM : TOPT_ERR_INVAL,
                       "not valid JSON: line %lld: a string is not in UTF-8, or has a "
                       "wrong escape sequence",
                       (long long)s->line);
    else if (n > TOPT_JSON_STRING)
        rc = too_long(s);
    else
        memcpy(s->string, json_string_value(v), n + 1);
    json_decref(v);
    return rc;
}

int topt_json_take_string(struct json_stream *s)
{
    char literal[6 * TOPT_JSON_STRING + 4]; /* each byte may be written as \u0061 */
    size_t n = 0;
    if (topt_json_peek(s) != '"')
        return topt_json_expected(s, "a string");
    do {
        if (n + 3 > sizeof literal)
            return too_long(s);
        int escapes = s->c == '\\';
        literal[n++] = (char)s->c;
        topt_json_advance(s);
        if (escapes) {
            literal[n++] = (char)s->c;
            topt_json_advance(s);
        }
    } while (s->c != '"' && s->c >= ' ');
    if (s->c != '"')
        return topt_json_expected(s, "the rest of a string");
    topt_json_advance(s);
    literal[n++] = '"';
    return decode(s, literal, n);
}
