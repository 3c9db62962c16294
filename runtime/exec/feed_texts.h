/* feed_texts.h - inside the feeds: what models of text learn of tokens beside the next. */
#ifndef TOPT_FEED_TEXTS_H
#define TOPT_FEED_TEXTS_H

#include "feed_model.h"
#include "feed_order.h"
#include "topt_tokenizer.h"

/* What a model is for, by how it reads its tokens and what its loss answers.  BY_MODEL: none of
 * these, its samples are no texts. */
enum topt_objective topt_feed_purpose(const struct topt_model *m);

/* Tokens that stand for no text; -1: there is none. */
struct topt_specials {
    int32_t mask, pad, end, first; /* 'first' stands before a text */
    int32_t span;                  /* the first gap; others are below it */
};
struct topt_specials topt_specials_of(const struct topt_tokenizer *t);

/* Samples of a text: from each token on, or side by side, each once an epoch. */
struct topt_windows topt_feed_windows(enum topt_objective o, int64_t seq, int by_epoch);
/* A feed of tokens ('inner', which it takes over, also where it fails) with some hidden: of each sample
 * 15 in 100, of which 80 in 100 become 's->mask', 10 another token, and 10 stay (Devlin et
 * al., BERT, 2019); or runs of 3 on average are cut out for gaps, and the decoder says what was
 * there (Raffel et al., T5, 2020). */
int topt_feed_hidden(struct topt_feed *inner, enum topt_objective o,
                     const struct topt_specials *s, const struct topt_model *m,
                     uint64_t seed, struct topt_feed *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Is it a file of records, a JSON object a line? */
int topt_feed_is_records(const char *path);
/* Samples of records: a text and its label, a source and a target, a prompt and a completion,
 * or messages, of which the assistant's are learnt.  Each once before any comes again.  Labels
 * that are words have the numbers that they have in 'like', which may be NULL. */
int topt_feed_records(const char *path, const struct topt_tokenizer *t,
                      const struct topt_feed *like, const struct topt_model *m,
                      uint64_t seed, struct topt_feed *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* Is the first record a text alone? */
int topt_feed_records_are_texts(const char *path);
/* The texts of records, each with the token that ends one. */
int topt_feed_records_texts(const char *path, const struct topt_tokenizer *t,
                            struct topt_ids *ids, struct topt_error *err) TOPT_MUST_CHECK;

#endif
