/* document.h - writing plan documents.  Private to plan/. */
#ifndef TOPT_DOCUMENT_H
#define TOPT_DOCUMENT_H

#include "problem.h"

/* What a plan document says beside the strategy. */
struct topt_plan_facts {
    const struct topt_costing *k;   /* of a micro-batch */
    const struct topt_model *model; /* of the whole batch */
    const struct topt_strategy *strategy;
    const struct topt_strategy_cost *cost;
    int64_t peak_bytes;
    enum topt_space space;
    int alike; /* blocks choose alike */
    const struct topt_variant
        *variant; /* uniform: what was chosen for all; else unread */
    const struct topt_framework *framework; /* NULL: nobody asked for one */
    const char *algorithm;
    const char *mode, *why;         /* why: NULL where nobody asked */
    int64_t memory_limit;           /* 0: none */
    const struct topt_claim *claim; /* NULL: nothing was searched */
};

/* A new "topt-plan/1" document, or NULL. */
json_t *topt_plan_write(const struct topt_plan_facts *f, struct topt_error *err);

/* What is claimed, into a document: "exact", "epsilon" (null: nothing is proven), and what was
 * decided by heuristic where anything was. */
void topt_claim_write(json_t *doc, const struct topt_model *m,
                      const struct topt_claim *c);
/* Counted work, a new reference. */
json_t *topt_work_json(const struct topt_search_stats *s);
/* The same of making problems, before they are searched. */
json_t *topt_pricing_json(const struct topt_problem_stats *s);

/* names.c: which of 'n' names it is; INVAL with all of them where it is none, and the one it may be a slip of. */
int topt_name_find(const char *what, const char *name, const char *(*at)(int), int n,
                   int *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* names.c: "operator", "unit" or "pool". */
int topt_gather_parse(const char *name, enum topt_gather *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* words.c: "data 2 x tensor 4", what a strategy splits; freed by the caller, NULL when out of
 * memory. */
char *topt_strategy_words(const struct topt_model *m, const struct topt_mesh *mesh,
                          const struct topt_strategy *s, int64_t micro_batches);

/* The same of a uniform plan, as its framework calls it: "FSDP2 over 8 GPUs, checkpointing, micro-batch 1, 4
 * accumulation steps". */
char *topt_uniform_words(const struct topt_framework *f, const struct topt_mesh *mesh,
                         const struct topt_variant *v, int64_t micro_batch);

/* names.c: "full, blocks alike"; returns 'buf'. */
const char *topt_space_words(enum topt_space space, int alike, char *buf, size_t size);

/* check.c: re-cost from scratch and lower; fails where the claim does not hold. */
int topt_plan_check(const struct topt_costing *k, const struct topt_strategy *s,
                    int64_t memory_bytes, int64_t time_ns,
                    struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
