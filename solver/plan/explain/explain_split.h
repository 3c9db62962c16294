/* explain_split.h - what a plan splits where, in few lines.  Private to plan/. */
#ifndef TOPT_EXPLAIN_SPLIT_H
#define TOPT_EXPLAIN_SPLIT_H

#include <jansson.h>

#include "topt_plan_doc.h"
#include "topt_text.h"

/* The splits of operators, of repeated blocks once; 'all': of every operator by itself. */
void topt_explain_splits(struct topt_text *t, const struct topt_plan_doc *p,
                         const struct topt_blocks *b, int all);

/* The operator in the same place of the first block that does all that this one's block
 * does; itself outside of blocks. */
int topt_explain_first_like(const struct topt_plan_doc *p, const struct topt_blocks *b,
                            int op);

/*
 * {"axes":[{"name","size","level","operators":{"data":N,...}}],"operators":{words:[names]}} */
json_t *topt_explain_splits_json(const struct topt_plan_doc *p);

#endif
