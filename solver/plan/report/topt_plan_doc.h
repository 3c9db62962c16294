/* topt_plan_doc.h - plan documents read back, and what is predicted of them.
 *
 * Thread safety: reentrant; a document read has one owner. */
#ifndef TOPT_PLAN_DOC_H
#define TOPT_PLAN_DOC_H

#include <jansson.h>
#include <stdint.h>

#include "topt_digest.h"
#include "topt_hw.h"
#include "topt_lower.h"
#include "topt_model.h"

/* A plan document read back: everything a rank needs. */
struct topt_plan_doc {
    struct topt_model *model; /* of the global batch */
    /* of a micro-batch, which is lowered; 'model' where that is all */
    struct topt_model *micro;
    struct topt_mesh mesh;     /* of one pipeline stage, where there are several */
    int gpus, nodes, per_node; /* of all stages */
    struct topt_settings settings;
    struct topt_strategy *strategy;
    int64_t memory_bytes, peak_bytes, time_ns; /* as predicted when it was made */
    char id[TOPT_ID];                          /* "p-<32 hex>" of the document */
    struct topt_program *program;              /* lowered; what ranks execute */
    struct topt_router *router;
    struct topt_hw *hw; /* the profile it was planned for */
};
/* The plan inside of an answer of `topt plan --json`, or the document itself; borrowed. */
const json_t *topt_plan_in(const json_t *doc);
/* Parse, check (known fields, model digest, strategy fits) and lower. */
int topt_plan_read(const json_t *doc, struct topt_plan_doc **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
int topt_plan_load(const char *path, struct topt_plan_doc **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
void topt_plan_doc_destroy(struct topt_plan_doc *p);
/* Fail with INVAL where the plan has pipeline stages, which 'who' does not run. */
int topt_plan_without_stages(const struct topt_plan_doc *p, const char *who,
                             struct topt_error *err) TOPT_MUST_CHECK;

/* Memory of the largest device by component: what adds up to memory_bytes, and the
 * reserve beside it.  Temporary buffers are "loss" where they are of the loss, else "transient".
 * A new reference. */
json_t *topt_memory_parts(const struct topt_hw *hw, const struct topt_strategy_cost *c);
/* The same memory as three instruments show it: {"allocated_bytes"} of tensors, PyTorch's
 * max_memory_allocated; {"reserved_bytes"} with what its allocator can't use, max_memory_reserved, which
 * has to fit; {"process_bytes"} with about what context and libraries take, nvidia-smi's.  Owned. */
json_t *topt_memory_numbers(const struct topt_costing *k,
                            const struct topt_strategy_cost *c);
/* Between what and what memory of the device and time will be, and what the time rests
 * on:
 *
 * {"memory":{"low_bytes","high_bytes"},"time":{"low_ns","high_ns","rests_on_ns":{...}}}. */
json_t *topt_prediction_band(const struct topt_hw *hw, const struct topt_settings *s,
                             const struct topt_strategy_cost *c, int64_t peak_bytes);
/* Parameters, gradients and states of the optimizer, of memory_bytes. */
int64_t topt_memory_states(const struct topt_strategy_cost *c);
/* ... and what a framework's allocator holds and cannot use. */
int64_t topt_memory_share(const struct topt_settings *s,
                          const struct topt_strategy_cost *c);
/* Put "verdict" into an answer or a point with "memory_bytes" and "band": how its memory stands to 'limit'.
 * "fits"; "tight", where the band's upper end without the context, which no limit has, is above it; "does not fit". */
void topt_put_verdict(json_t *answer, const struct topt_hw *hw, int64_t limit);

/* The plan's strategy in a line ("data 2 x tensor 2"); freed by the caller. */
char *topt_plan_strategy_words(const struct topt_plan_doc *p);

#endif
