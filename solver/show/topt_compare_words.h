/* topt_compare_words.h - what is said of a comparison's rows.  Thread safety: reentrant. */
#ifndef TOPT_COMPARE_WORDS_H
#define TOPT_COMPARE_WORDS_H

#include <jansson.h>
#include <stdint.h>

/* Rows of systems, ours first, get "ratio" and "why" and are put in order: those that fit, the
 * nearest to ours first, then those that do not.  Returns the table in a sentence, freed by the
 * caller. */
char *topt_compare_read(json_t *rows, int64_t limit);

/* Does the row have a plan, whether it fits or not? */
int topt_compare_has_plan(const json_t *row);

#endif
