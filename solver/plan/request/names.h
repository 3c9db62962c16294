/* names.h - the words people write for modes, spaces, types and optimizers.  Private
 * to plan/. */
#ifndef TOPT_NAMES_H
#define TOPT_NAMES_H

#include "topt_choices.h"
#include "topt_lower.h"

/* Which of 'n' names it is; INVAL with all of them where it is none, and the one it may
 * be a slip of. */
int topt_name_find(const char *what, const char *name, const char *(*at)(int), int n,
                   int *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* names.c: "operator", "unit" or "pool". */
int topt_gather_parse(const char *name, enum topt_gather *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* names.c: "full, blocks alike"; returns 'buf'. */
const char *topt_space_words(enum topt_space space, int alike, char *buf, size_t size);

#endif
