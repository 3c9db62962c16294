/* megatron_text.h - the words of a script that starts Megatron-LM.  Private to model/. */
#ifndef TOPT_MEGATRON_TEXT_H
#define TOPT_MEGATRON_TEXT_H

#include <stddef.h>

#include "topt_error.h"

/* The words of a shell script, or of a file of arguments, and the variables it sets. */
struct megatron_text {
    char **word; /* quotes and comments are gone, variables are not yet filled in */
    int nwords, words_cap;
    int failed;
};
/* Always followed by fini. */
int topt_megatron_split(struct megatron_text *t, const char *text, size_t len,
                        struct topt_error *err) TOPT_MUST_CHECK;
void topt_megatron_fini(struct megatron_text *t);

/* A word with its variables filled in, owned by the caller; NULL with an error where
 * the text does not say a variable's value, or says two. */
char *topt_megatron_fill(const struct megatron_text *t, const char *word,
                         struct topt_error *err) TOPT_MUST_CHECK;

#endif
