/* topt_answer_lines.h - an answer as KEY=VALUE lines, which sbatch's plugin and scripts
 * read: of toptd as text/plain, and of `topt plan --lines`.  All append to 't', whose oom
 * tells failure.  Thread safety: reentrant. */
#ifndef TOPT_ANSWER_LINES_H
#define TOPT_ANSWER_LINES_H

#include <jansson.h>

#include "topt_text.h"

/* What people read of an answer, in lines TOPT_SHOWN: nothing, its alternatives, or all
 * of it; of a curve its drawing. */
enum topt_lines_shown { TOPT_LINES_ALONE, TOPT_LINES_TABLE, TOPT_LINES_ALL };
void topt_lines_shown(struct topt_text *t, const json_t *answer,
                      enum topt_lines_shown what);

/* A plan's lines.  'hint' NULL: what topt_hint.h has. */
void topt_lines_of_plan(struct topt_text *t, const json_t *answer, const char *hint);

/* The plan's document, for the job's environment; no line where it is NULL or too long
 * for that: then it is fetched by its id. */
void topt_lines_of_document(struct topt_text *t, const char *plan);

/* Of an answer without a plan what is nearest to fitting, and what would fit if it had
 * been asked for, in a line; owned, NULL where there is neither. */
char *topt_nearest_line(const json_t *answer);

#endif
