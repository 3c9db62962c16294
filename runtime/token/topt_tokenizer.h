/* topt_tokenizer.h - text to tokens and back, by a tokenizer.json of Hugging Face's libraries.
 *
 * What is read: models BPE (with bytes as characters, or with fall-back to bytes),
 * Unigram and WordPiece; normalizers Prepend, Replace, NFC, NFD, NFKC, NFKD,
 * StripAccents, Lowercase, BertNormalizer, Precompiled, and sequences; pre-tokenizers
 * ByteLevel, Split, Metaspace, Digits, Whitespace, WhitespaceSplit, Punctuation,
 * BertPreTokenizer, and sequences; added tokens.  What is none of these is refused by
 * name.  Special tokens that a post-processor would put around a text are left out.
 *
 * Thread safety: a tokenizer that was loaded is only read. */
#ifndef TOPT_TOKENIZER_H
#define TOPT_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_text.h"

struct topt_tokenizer;

/* Numbers of tokens that grow.  Start from {0}; the caller frees 'id'. */
struct topt_ids {
    int32_t *id;
    int64_t n, cap;
};
int topt_ids_put(struct topt_ids *ids, int32_t id, struct topt_error *err);
void topt_ids_fini(struct topt_ids *ids);

/* 'path': the file, or a folder that has it as tokenizer.json. */
int topt_tokenizer_load(const char *path, struct topt_tokenizer **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
void topt_tokenizer_destroy(struct topt_tokenizer *t);

/* One more than the largest number of a token. */
int64_t topt_tokenizer_vocab(const struct topt_tokenizer *t);
/* The token that ends a text ("<|endoftext|>", "</s>", ...); -1: it has none. */
int32_t topt_tokenizer_end(const struct topt_tokenizer *t);

/* The token that is written so ("[MASK]"); -1: there is none. */
int32_t topt_tokenizer_find(const struct topt_tokenizer *t, const char *text);

/* Appends the tokens of a text in UTF-8. */
int topt_tokenizer_encode(const struct topt_tokenizer *t, const char *text, size_t len,
                          struct topt_ids *ids, struct topt_error *err) TOPT_MUST_CHECK;
/* Appends the text of tokens; 'first': they begin it, so that the blank that some
 * tokenizers put before a text goes. */
int topt_tokenizer_decode(const struct topt_tokenizer *t, const int32_t *id, int64_t n,
                          int first, struct topt_text *text,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Tokens of a text file, or of all files of a directory in order of name, each followed by the
 * token that ends a text where there is one. */
int topt_tokenizer_encode_files(const struct topt_tokenizer *t, const char *path,
                                struct topt_ids *ids,
                                struct topt_error *err) TOPT_MUST_CHECK;

#endif
