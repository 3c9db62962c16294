/* wordpiece.h - inside the tokenizer: the longest pieces of one word, from left to right
 * (Schuster and Nakajima 2012). */
#ifndef TOPT_TOKEN_WORDPIECE_H
#define TOPT_TOKEN_WORDPIECE_H

#include <jansson.h>

#include "vocab.h"

struct topt_wordpiece {
    const struct topt_vocab *vocab;
    const char *prefix; /* of pieces that are not a word's first */
    int32_t unk;
    int64_t most; /* characters of a word that is looked at */
};

/* 'model' is that of the document; its pieces are in 'vocab' already.  Borrows both. */
int topt_wordpiece_init(struct topt_wordpiece *w, const struct topt_vocab *vocab,
                        const json_t *model, struct topt_error *err) TOPT_MUST_CHECK;
int topt_wordpiece_word(const struct topt_wordpiece *w, const char *s, size_t len,
                        struct topt_ids *ids, struct topt_error *err) TOPT_MUST_CHECK;

#endif
