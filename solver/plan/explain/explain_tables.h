/* explain_tables.h - what became of sparse tables, and what else could have.  Private to plan/. */
#ifndef TOPT_EXPLAIN_TABLES_H
#define TOPT_EXPLAIN_TABLES_H

#include <jansson.h>

#include "topt_plan_doc.h"
#include "topt_text.h"

/* A few lines a table, the largest first; nothing where the model has none. */
int topt_explain_tables(struct topt_text *t, const struct topt_plan_doc *p,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* [{"name","rows","features","lookups","named_rows","choices":[{"words","time_ns","memory_bytes",
 * "chosen"}]}], choices by time; a new reference, NULL with an error. */
json_t *topt_explain_tables_json(const struct topt_plan_doc *p, struct topt_error *err);

#endif
