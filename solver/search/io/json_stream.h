/* json_stream.h - a JSON text read piece by piece, for documents too large to hold as
 * one.
 *
 * The reader asks for what it expects: an object's next key, an array's next element, a
 * string, a whole number.  Nothing is kept but a buffer, so memory does not depend on the
 * length of the text.
 * Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_JSON_STREAM_H
#define TOPT_SEARCH_JSON_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "topt_error.h"

enum { TOPT_JSON_STRING = 4096, TOPT_JSON_BUFFER = 1 << 16 };

struct json_stream {
    const unsigned char *at, *end; /* what was read and not yet taken */
    FILE *file;                    /* where more comes from; NULL: nowhere */
    unsigned char *buffer;
    int64_t line;
    int io_failed;
    struct topt_error *err;
    /* The last string or key, with room for the character that is too much. */
    char string[TOPT_JSON_STRING + 4];
};

/* Read from memory, or from a file; both are borrowed.  -1: NOMEM. */
int topt_json_stream_init(struct json_stream *s, const void *text, size_t len, FILE *file,
                          struct topt_error *err) TOPT_MUST_CHECK;
void topt_json_stream_fini(struct json_stream *s);

/* The first byte of the next token, 0 at the end of the text. */
int topt_json_peek(struct json_stream *s);

/* Take '{' and the like; -1 where something else stands. */
int topt_json_take(struct json_stream *s, char c) TOPT_MUST_CHECK;

/* Go to the next element before 'close' (']' or '}'); 'first' is 1 before any.  1 there
 * is one, 0 'close' was taken, -1. */
int topt_json_next(struct json_stream *s, int first, char close) TOPT_MUST_CHECK;

/* A string, or a key with its colon, into s->string. */
int topt_json_take_string(struct json_stream *s) TOPT_MUST_CHECK;
int topt_json_take_key(struct json_stream *s) TOPT_MUST_CHECK;

enum json_number { JSON_WHOLE, JSON_NEGATIVE, JSON_FRACTION, JSON_TOO_LARGE, JSON_OTHER };

/* A whole number of 0 to 2^63 - 1; the others are told apart. */
enum json_number topt_json_take_whole(struct json_stream *s, int64_t *ret);

/* Nothing but blanks is left. */
int topt_json_take_end(struct json_stream *s) TOPT_MUST_CHECK;

/* Fail with what was expected where the stream stands. */
int topt_json_expected(struct json_stream *s, const char *what);

#endif
