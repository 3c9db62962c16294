/* json_stream.h - a JSON text read piece by piece, for documents too large to hold as
 * one.
 *
 * The reader asks for what it expects: an object's next key, an array's next element, a
 * string.  Nothing is kept but a string, so memory does not depend on the length of the
 * text.
 * Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_JSON_STREAM_H
#define TOPT_SEARCH_JSON_STREAM_H

#include <stdint.h>
#include <stdio.h>

#include "topt_error.h"

enum { TOPT_JSON_STRING = 4096 };

struct json_stream {
    FILE *file; /* borrowed */
    int c;      /* the next byte, EOF at the end */
    int64_t line;
    struct topt_error *err;
    char string[TOPT_JSON_STRING + 1]; /* the last one */
};

/* Go to the next byte. */
static inline void topt_json_advance(struct json_stream *s)
{
    s->c = getc_unlocked(s->file);
}

/* The first byte of the next token, 0 at the end of the text. */
int topt_json_peek(struct json_stream *s);

/* Take '{' and the like: is it there? */
int topt_json_skip(struct json_stream *s, char c);
/* The same; -1 where something else stands. */
int topt_json_take(struct json_stream *s, char c) TOPT_MUST_CHECK;

/* Go to the next element before 'close' (']' or '}'); 'first' is 1 before any.  1 there
 * is one, 0 'close' was taken, -1. */
int topt_json_next(struct json_stream *s, int first, char close) TOPT_MUST_CHECK;

/* A string, into s->string. */
int topt_json_take_string(struct json_stream *s) TOPT_MUST_CHECK;

/* Fail with what was expected where the stream stands. */
int topt_json_expected(struct json_stream *s, const char *what);

#endif
