/* model_text.h - the bytes of a model's file before anything is read of them.  Private to
 * model/. */
#ifndef TOPT_MODEL_TEXT_H
#define TOPT_MODEL_TEXT_H

#include <stddef.h>

#include "topt_error.h"

/* Refuses what is known by its first bytes and is no model: text in UTF-16, a pointer of
 * Git LFS, weights of llama.cpp, an HTML page. */
int topt_model_refuse_other(const char *text, size_t len, const char *what,
                            struct topt_error *err) TOPT_MUST_CHECK;

/* A copy in which numbers that Python writes and JSON does not have (Infinity, NaN) are
 * the largest, and null; NULL where there are none, or no memory.  Freed by the
 * caller. */
char *topt_model_plain_json(const char *text, size_t len, size_t *ret_len);

#endif
