/* pattern.h - inside the tokenizer: regular expressions. */
#ifndef TOPT_TOKEN_PATTERN_H
#define TOPT_TOKEN_PATTERN_H

#include <stddef.h>

#include "topt_error.h"

struct topt_pattern;

struct topt_pattern *topt_pattern_compile(const char *regex, struct topt_error *err);
/* The text itself, whatever its characters mean elsewhere. */
struct topt_pattern *topt_pattern_literal(const char *text, struct topt_error *err);
void topt_pattern_free(struct topt_pattern *p);
/* 1: the first match at 'from' or after it; 0: none; -1: given up. */
int topt_pattern_find(const struct topt_pattern *p, const char *s, size_t len,
                      size_t from, size_t *ret_begin, size_t *ret_end,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
