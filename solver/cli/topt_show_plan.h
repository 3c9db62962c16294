/* topt_show_plan.h - answers about plans as text, for `topt` and `topt client`; prints on
 * standard output. */
#ifndef TOPT_SHOW_PLAN_H
#define TOPT_SHOW_PLAN_H

#include <jansson.h>

#include "topt_answer_text.h"
#include "topt_model.h"

/* The answer of topt_plan.  'path': the file that the plan is written to, or NULL. */
void topt_show_plan(const json_t *answer, const char *path);
/* The question's head: model, cluster, framework; and what was assumed. */
void topt_show_question(const json_t *answer);
/* Features of the framework that no question searches. */
void topt_show_lacks(const json_t *answer);
/* Rows of alternatives, or of answers for several batches or kinds of hardware. */
void topt_show_rows(const json_t *rows, const json_t *job, enum topt_rows_by by);
/* Say which kernels 'topt run' lacks for the model; 'own': the plan is for it. */
void topt_show_lacking(const struct topt_model *m, int own);

#endif
