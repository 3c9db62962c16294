/* split.h - inside the tokenizer: what is done to a text before its words are looked at. */
#ifndef TOPT_TOKEN_SPLIT_H
#define TOPT_TOKEN_SPLIT_H

#include <jansson.h>

#include "topt_tokenizer.h"

enum { TOPT_MOST_STAGES = 16 };

enum topt_behavior {
    TOPT_REMOVED,
    TOPT_ISOLATED,
    TOPT_MERGED_WITH_PREVIOUS,
    TOPT_MERGED_WITH_NEXT,
    TOPT_CONTIGUOUS,
};

struct topt_charsmap;
struct topt_pattern; /* a regular expression */

/* A normalizer, which changes text, or a pre-tokenizer, which cuts it. */
struct topt_stage {
    enum {
        TOPT_PREPEND,
        TOPT_REPLACE,
        TOPT_UNICODE,
        TOPT_CHARSMAP,
        TOPT_SPLIT,
        TOPT_BYTES,
        TOPT_META
    } kind;
    unsigned changes;          /* UNICODE: bits of enum topt_unicode_change */
    struct topt_charsmap *map; /* CHARSMAP */
    const char *content;       /* PREPEND, REPLACE by it; META: what stands for a blank */
    struct topt_pattern *pattern; /* REPLACE, SPLIT; BYTES: may be NULL */
    enum topt_behavior behavior;
    int invert;        /* SPLIT: what lies between matches is what matches */
    int prefix, first; /* BYTES, META: a blank before each, or before the text alone */
    int whole;         /* META: words are not cut */
};

struct topt_stages {
    struct topt_stage stage[TOPT_MOST_STAGES];
    int n;
    struct topt_pattern *own[TOPT_MOST_STAGES]; /* to be freed */
};

/* Of the document's "normalizer" and "pre_tokenizer"; borrows its strings. */
int topt_stages_read(struct topt_stages *s, const json_t *doc,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_stages_fini(struct topt_stages *s);

/* Calls 'f' with each word of a text in turn; 'first': nothing stands before the text. */
typedef int topt_word_visit(void *ctx, const char *s, size_t len, struct topt_error *err);
int topt_stages_run(const struct topt_stages *s, const char *text, size_t len, int first,
                    topt_word_visit *f, void *ctx,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* The byte that a character in UTF-8 stands for where bytes are characters; -1: none. */
int topt_char_byte(const char *s, size_t len);

#endif
