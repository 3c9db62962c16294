/* explain_parts.h - the parts of what is said of a plan.  Private to plan/explain. */
#ifndef TOPT_EXPLAIN_PARTS_H
#define TOPT_EXPLAIN_PARTS_H

#include <jansson.h>

#include "topt_plan.h"
#include "topt_text.h"

/* ---- explain_split.c: what is split where ---------------------------------------------- */

/* The splits of operators, of repeated blocks once; 'all': of every operator by itself. */
void topt_explain_splits(struct topt_text *t, const struct topt_plan_doc *p, int all);
/* {"axes":[{"name","size","level","operators":{"data":N,...}}],"operators":{words:[names]}} */
json_t *topt_explain_splits_json(const struct topt_plan_doc *p);
/* A device mesh and tensor maps, as papers write them. */
void topt_explain_notation(struct topt_text *t, const struct topt_plan_doc *p);

/* ---- explain_tables.c: what became of sparse tables, and what else could have ---------- */

/* A few lines a table, the largest first; nothing where the model has none. */
int topt_explain_tables(struct topt_text *t, const struct topt_plan_doc *p,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* [{"name","rows","features","lookups","named_rows","choices":[{"words","time_ns","memory_bytes",
 * "chosen"}]}], choices by time; a new reference, NULL with an error. */
json_t *topt_explain_tables_json(const struct topt_plan_doc *p, struct topt_error *err);

/* ---- explain_time.c: where the time of a step goes, and what bounds it ------------------ */

int topt_explain_time(struct topt_text *t, const struct topt_plan_doc *p,
                      const json_t *doc, struct topt_error *err) TOPT_MUST_CHECK;
/* {"time_ns","compute_ns","network_ns","compute":[{"kind","ns"}],
 *  "network":[{"collective","of","where","ns"}]}, the longest first. */
json_t *topt_explain_time_json(const struct topt_plan_doc *p, const json_t *doc,
                               struct topt_error *err) TOPT_MUST_CHECK;

#endif
