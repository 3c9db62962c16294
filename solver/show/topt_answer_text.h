/* topt_answer_text.h - answers about plans as text: for `topt`, `topt client`, and of
 * toptd for sbatch.
 *
 * All append to 'out', whose oom tells failure.  Thread safety: reentrant; documents are only read.
 */
#ifndef TOPT_ANSWER_TEXT_H
#define TOPT_ANSWER_TEXT_H

#include <jansson.h>
#include <stdint.h>

#include "topt_text.h"

/* The answer of topt_plan.  'path': the file that the plan is written to, or NULL. */
void topt_text_of_plan(struct topt_text *out, const json_t *answer, const char *path);
/* The question's head: model, cluster, framework; and what was assumed. */
void topt_text_of_question(struct topt_text *out, const json_t *answer);
/* Rows of alternatives, or of answers for several batches ('by_batch'), to a question ('job'). */
void topt_text_of_rows(struct topt_text *out, const json_t *rows, const json_t *job,
                       int by_batch);
/* Of an answer whose search was stopped: when that was, as "after 60 s ..."; else NULL.  Owned by
 * the caller. */
char *topt_stopped_words(const json_t *answer);
/* How good an answer is known to be, where it is not exact. */
void topt_text_of_claim(struct topt_text *out, const json_t *answer);
/* Print the features of the framework that no question searches, from an answer, a curve or a frontier; nothing where
 * there is none. */
void topt_text_of_lacks(struct topt_text *out, const json_t *answer);
/* A line of words under a heading of the answer, folded. */
void topt_text_of_words(struct topt_text *out, const char *heading, const char *text);
/* What pins cost ("pins" of a plan or of an answer), beside what the plan takes: a
 * sentence, freed by the caller. */
char *topt_pins_words(const json_t *pins, int64_t time_ns, int64_t memory_bytes);
/* What a part of memory is called. */
const char *topt_part_words(const char *part);

#endif
