/* explain.h - the parts of the words about a plan.  Private to plan/. */
#ifndef TOPT_EXPLAIN_H
#define TOPT_EXPLAIN_H

#include "document.h"
#include "topt_text.h"

/* explain_split.c: what is split where, repeated blocks once; 'all': every operator by itself. */
void topt_explain_splits(struct topt_text *t, const struct topt_plan_doc *p,
                         const struct topt_blocks *b, int all);
/* The operator in the same place of the first block that does all that this one's block does;
 * itself outside of blocks. */
int topt_explain_first_like(const struct topt_plan_doc *p, const struct topt_blocks *b,
                            int op);

/* {"axes":[{"name","size","level","operators":{"data":N,...}}],"operators":{words:[names]}} */
json_t *topt_explain_splits_json(const struct topt_plan_doc *p);

/* explain_time.c: where the time of a step goes, and what bounds it; as JSON {"time_ns",
 * "compute_ns","network_ns","compute":[{"kind","ns"}],"network":[{"collective","of","where",
 * "ns"}]}, the longest first. */
int topt_explain_time(struct topt_text *t, const struct topt_plan_doc *p,
                      const json_t *doc, struct topt_error *err) TOPT_MUST_CHECK;
json_t *topt_explain_time_json(const struct topt_plan_doc *p, const json_t *doc,
                               struct topt_error *err) TOPT_MUST_CHECK;

/* explain_around.c: what fewer GPUs lack and what more would buy, searched as the plan was:
 * [{"gpus","feasible","memory_limit","memory_bytes","time_ns"}], and that in words. */
json_t *topt_explain_around_json(const struct topt_plan_doc *p, const json_t *doc,
                                 const struct topt_explain_options *o,
                                 struct topt_error *err) TOPT_MUST_CHECK;
void topt_explain_around(struct topt_text *t, const struct topt_plan_doc *p,
                         const json_t *around);

/* notation.c: a device mesh and tensor maps. */
void topt_explain_notation(struct topt_text *t, const struct topt_plan_doc *p,
                           const struct topt_blocks *b);

/* words.c: "data 2 x tensor 4 with ZeRO-1" of one operator. */
void topt_config_words(struct topt_text *t, const struct topt_op *op,
                       const struct topt_mesh *mesh, const struct topt_config *c);

#endif
