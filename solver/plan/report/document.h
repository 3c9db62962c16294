/* document.h - plans as documents.  Private to plan/. */
#ifndef TOPT_DOCUMENT_H
#define TOPT_DOCUMENT_H

#include <jansson.h>

#include "free.h"
#include "topt_choices.h"
#include "topt_framework.h"

/* The contents of a plan document beside the strategy. */
struct topt_plan_facts {
    const struct topt_costing *k; /* of a micro-batch */
    /* all devices, of which k's mesh is one pipeline stage */
    const struct topt_mesh *whole;
    const struct topt_model *model; /* of the whole batch */
    const struct topt_strategy *strategy;
    const struct topt_strategy_cost *cost;
    int64_t peak_bytes;
    enum topt_space space;
    int alike; /* blocks choose alike */
    /* uniform: what was chosen for all; else unread */
    const struct topt_degrees *degrees;
    int positions; /* uniform: tensor parallelism is with sequence parallelism */
    const struct topt_framework *framework; /* NULL: none was asked for */
    const char *algorithm;
    const char *mode, *why;                     /* why: NULL where it was not asked for */
    int64_t memory_limit;                       /* 0: none */
    const struct topt_certificate *certificate; /* NULL: nothing was searched */
    json_t *pins; /* what was pinned, and what is without; borrowed, NULL: nothing */
};

/* A new "topt-plan/1" document, or NULL. */
json_t *topt_plan_write(const struct topt_plan_facts *f, struct topt_error *err);

/* Put the claims of an answer into its document: "exact", "epsilon" (null: nothing is proven), and
 * the operators that were decided by heuristic, where there are any. */
void topt_certificate_write(json_t *doc, const struct topt_model *m,
                            const struct topt_certificate *c);

/* Counted work, a new reference. */
json_t *topt_work_json(const struct topt_search_stats *s);

/* The counted work of pricing, as JSON. */
json_t *topt_pricing_json(const struct topt_problem_stats *s);

#endif
