/* topt_answer_lines.h - an answer as KEY=VALUE lines for sbatch's plugin and scripts: toptd sends them as
 * text/plain, `topt plan --lines` prints them.  All append to 't' and set its oom on failure.  Thread safety: reentrant. */
#ifndef TOPT_ANSWER_LINES_H
#define TOPT_ANSWER_LINES_H

#include <jansson.h>

#include "topt_text.h"

/* Lines TOPT_SHOWN, the text for people: none, the alternatives or the whole answer; a curve is drawn. */
enum topt_lines_shown { TOPT_LINES_ALONE, TOPT_LINES_TABLE, TOPT_LINES_ALL };
void topt_lines_shown(struct topt_text *t, const json_t *answer,
                      enum topt_lines_shown what);

/* The lines of a plan.  'hint' NULL: the one of topt_hint.h. */
void topt_lines_of_plan(struct topt_text *t, const json_t *answer, const char *hint);

/* The plan's document for the job's environment; no line where it is NULL or too long, since the job then
 * fetches it by its id. */
void topt_lines_of_document(struct topt_text *t, const char *plan);

/* For an answer without a plan: the nearest to fitting, and options with which it would fit, in one line.
 * The caller frees it; NULL where there is neither. */
char *topt_nearest_line(const json_t *answer);

#endif
