/* notation.h - a plan as papers write it.  Private to plan/. */
#ifndef TOPT_NOTATION_H
#define TOPT_NOTATION_H

#include "topt_plan_doc.h"
#include "topt_text.h"

/* A device mesh and tensor maps. */
void topt_explain_notation(struct topt_text *t, const struct topt_plan_doc *p,
                           const struct topt_blocks *b);

#endif
