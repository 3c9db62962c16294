/* vocab.h - inside the tokenizer: pieces of text and their numbers. */
#ifndef TOPT_TOKEN_VOCAB_H
#define TOPT_TOKEN_VOCAB_H

#include "topt_tokenizer.h"

struct topt_piece {
    const char *s; /* NULL: no piece has this number */
    size_t len;
    double score;
};

struct topt_vocab {
    struct topt_piece *piece; /* by number */
    int32_t n, cap;
    int32_t *slot;
    uint32_t mask;
    size_t longest;
};

/* Pieces are borrowed, and stay where they are as long as the table. */
int topt_vocab_put(struct topt_vocab *v, int64_t id, const char *s, size_t len,
                   double score, struct topt_error *err) TOPT_MUST_CHECK;
/* When all are there; only then topt_vocab_find() has them. */
int topt_vocab_index(struct topt_vocab *v, struct topt_error *err) TOPT_MUST_CHECK;
int32_t topt_vocab_find(const struct topt_vocab *v, const char *s, size_t len); /* -1 */
void topt_vocab_fini(struct topt_vocab *v);

/* The tokens <0x00> to <0xFF>; -1 where there is none. */
void topt_vocab_bytes(const struct topt_vocab *v, int32_t ret[256]);

/* Bytes of the character at 's', which is valid UTF-8. */
static inline size_t topt_char_len(const char *s)
{
    unsigned char c = (unsigned char)*s;
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

#endif
