/* topt_plan.h - questions people ask, answered as documents.
 *
 * A request (model, hardware, mode, limits) becomes a plan document "topt-plan/1": the
 * chosen strategy with everything a rank needs to run it (the model inside), what it is
 * predicted to cost, and why it was chosen.  Every plan is re-costed and lowered by the
 * checker before anyone gets it.
 * Thread safety: reentrant; requests, models and profiles are only read. */
#ifndef TOPT_PLAN_H
#define TOPT_PLAN_H

#include "topt_drawing.h"
#include "topt_memo.h"
#include "topt_plan_doc.h"
#include "topt_question.h"

/* Answer a request of any mode.  Of those that find one plan:
 *  0 and '*ret' the answer, a new reference:
 *      {"feasible":true,"gpus","nodes","gpus_per_node","memory_bytes","peak_bytes","time_ns",
 *       "compute_ns","network_ns","why","strategy","space",...,"plan":{topt-plan/1}}
 *    or, when nothing fits,
 *      {"feasible":false,"why","nearest":{"gpus","memory_bytes",...}}   (no "plan")
 *    and of profiling
 *      {"points":[{"gpus","nodes","feasible","limit","memory_bytes","time_ns"},...], "model",
 *       "hw","space","batch","seq"}.
 * -1: the request is malformed, was canceled, or passed a limit. */
int topt_plan(const struct topt_request *r, json_t **ret,
              struct topt_error *err) TOPT_MUST_CHECK;

/* Answer as topt_plan does, byte for byte, from the memo of the request's problem, which
 * gets what is missing.  The caller sees to it that the memo is of this problem. */
int topt_plan_from(const struct topt_request *r, struct topt_memo *memo, json_t **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* Answer 'own' by the best plan, from the memo of its problem, and put a run that exists beside it: 'run' is the
 * same question with all that the run has chosen.  "as_is" of the answer has the run's members by the
 * names of the answer's own, and "verdict" by the limit of 'own', which it need not fit. */
int topt_plan_beside_run(const struct topt_request *own, const struct topt_request *run,
                         struct topt_memo *memo, json_t **ret,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* The whole frontier for r->gpus devices: {"points":[{"memory_bytes","time_ns",
 * "compute_ns","network_ns","nodes"},...],"exact","epsilon","space",...}. */
int topt_plan_frontier(const struct topt_request *r, json_t **ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* The choice of a system: splits, as pins (request.pin), NULL where it has no plan; and what is to
 * be said of it.  On groups of unlike devices also each group's share of all that the first axis
 * splits, in any order; all 0 where it knows of no groups. */
struct topt_chosen {
    char *pins, *why; /* owned by the caller */
    int64_t share[TOPT_HW_GROUPS];
};

/* A system that searches by itself, as a row of a comparison: it has an answer, or choices. */
struct topt_system {
    const char *name;
    const char *searches;   /* how it finds its plan, in a line */
    const char *leaves_out; /* what of our space it does not look at; NULL: nothing */
    /* It is ours, of devices of which the space knows the least alone: the others are held against
     * it, the search of the space among them. */
    int ours;
    /* the row whose space its plan is in, with choices; NULL: right-end */
    const char *within;
    /* The splits that it chooses; what it leaves open is chosen as is fastest, and the whole has
     * our costs.  'rule': by which of those that the function knows. */
    int (*choices)(const struct topt_system *row, const struct topt_request *r,
                   struct topt_chosen *ret, struct topt_error *err);
    int rule;
    /* Its answer within 'limit' bytes a GPU, members of a row (docs/formats/compare.schema.json):
     * {"feasible", "memory_bytes", "time_ns", "compute_ns", "network_ns", "strategy"}, beside
     * these "least_bytes" where it is known, and "why" where more is to be said of it than
     * what follows from the numbers.  NULL: it has no plan. */
    int (*answer)(const struct topt_request *r, int64_t limit, json_t **ret,
                  struct topt_error *err);
    /* What a step of our plan takes where it is simulated as those of this system are: its answer is
     * held against that.  NULL: as all others. */
    int (*simulate)(const struct topt_costing *k, const struct topt_strategy *s,
                    int64_t *ret_ns, struct topt_error *err);
};
/* All systems on r->gpus devices: "topt-compare/1", those that fit first, by time.  Each has its
 * fastest plan within the limit, or where it has none the one that needs least.  'systems':
 * beside those that search a part of the space; ends with NULL, may be NULL. */
int topt_plan_compare(const struct topt_request *r,
                      const struct topt_system *const *systems, json_t **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The name of its i-th row, ours first, whether a model has it or not; NULL past the end. */
const char *topt_compare_row(const struct topt_system *const *systems, int i);

/* Explain a plan in paragraphs; freed by the caller. */
struct topt_explain_options {
    int operators; /* every operator by itself */
    int notation;  /* also as a device mesh and tensor maps */
    /* Also what fewer and more GPUs would do, which is searched as the plan was. */
    int around, threads;
    const atomic_bool *cancel;
    struct topt_progress *progress;
};
char *topt_plan_explain(const json_t *plan, const struct topt_explain_options *o,
                        struct topt_error *err);
/* The same as numbers and lists, a new reference: docs/FORMATS.md. */
json_t *topt_plan_explain_json(const json_t *plan, const struct topt_explain_options *o,
                               struct topt_error *err);

#endif
