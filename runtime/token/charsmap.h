/* charsmap.h - inside the tokenizer: SentencePiece's table of what becomes of characters
 * ("Precompiled"). */
#ifndef TOPT_TOKEN_CHARSMAP_H
#define TOPT_TOKEN_CHARSMAP_H

#include "topt_error.h"
#include "topt_text.h"

struct topt_charsmap;

/* 'letters': the table in base64. */
struct topt_charsmap *topt_charsmap_read(const char *letters, struct topt_error *err);
void topt_charsmap_free(struct topt_charsmap *m);
/* Appends what becomes of a text. */
void topt_charsmap_change(const struct topt_charsmap *m, const char *s, size_t len,
                          struct topt_text *to);

#endif
