/* unigram.h - inside the tokenizer: the likeliest pieces of one word (Kudo 2018). */
#ifndef TOPT_TOKEN_UNIGRAM_H
#define TOPT_TOKEN_UNIGRAM_H

#include <jansson.h>

#include "vocab.h"

struct topt_unigram {
    const struct topt_vocab *vocab;
    int32_t *sorted; /* numbers of pieces, by their bytes */
    int32_t n, unk, byte[256];
    double unk_score;
    int byte_fallback;
};

/* 'model' is that of the document; its pieces are in 'vocab' already. */
int topt_unigram_init(struct topt_unigram *u, const struct topt_vocab *vocab,
                      const json_t *model, struct topt_error *err) TOPT_MUST_CHECK;
void topt_unigram_fini(struct topt_unigram *u);
int topt_unigram_word(const struct topt_unigram *u, const char *s, size_t len,
                      struct topt_ids *ids, struct topt_error *err) TOPT_MUST_CHECK;

#endif
