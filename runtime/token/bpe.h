/* bpe.h - inside the tokenizer: byte pair encoding of one word (Sennrich, Haddow and Birch 2016).
 */
#ifndef TOPT_TOKEN_BPE_H
#define TOPT_TOKEN_BPE_H

#include <jansson.h>

#include "vocab.h"

struct topt_merge {
    int32_t left, right, rank, made;
};

struct topt_bpe {
    const struct topt_vocab *vocab;
    struct topt_merge *slot; /* by hash of the pair; rank -1: free */
    uint32_t mask;
    int32_t unk, byte[256];
    int byte_fallback, fuse_unk, ignore_merges;
};

/* 'model' is that of the document; its vocabulary is in 'vocab' already. */
int topt_bpe_init(struct topt_bpe *b, const struct topt_vocab *vocab, const json_t *model,
                  struct topt_error *err) TOPT_MUST_CHECK;
void topt_bpe_fini(struct topt_bpe *b);
int topt_bpe_word(const struct topt_bpe *b, const char *s, size_t len,
                  struct topt_ids *ids, struct topt_error *err) TOPT_MUST_CHECK;

#endif
