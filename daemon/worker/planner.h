/* planner.h - the worker's only door to the solver.
 *
 * planner.c implements it with the solver; tests put a fake in its place.
 * Thread safety: a planner belongs to one thread. */
#ifndef TOPTD_PLANNER_H
#define TOPTD_PLANNER_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>

#include "topt_query.h"
#include "topt_digest.h"
#include "topt_error.h"
#include "topt_progress.h"

/* Keeps what it parsed and priced for the last few questions. */
struct planner;
struct planner *planner_create(void); /* NULL without memory */
void planner_destroy(struct planner *p);

struct planner_facts {
    int64_t parameters, operators, flops_per_sample, activation_bytes_per_sample;
    int64_t batch, seq;
};

/* Import a model document and count it.  'what' names it in messages. */
int planner_model_facts(const char *text, const char *what, struct planner_facts *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* The native document of a model in a file that is not JSON; batch and seq 0: the file's.  New. */
json_t *planner_model_document(const char *bytes, size_t len, const char *what,
                               int64_t batch, int64_t seq,
                               struct topt_error *err) TOPT_MUST_CHECK;

/* Are the words of a query ones the solver knows? */
int planner_check_query(const struct topt_query *q, const char **ret_source,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Take what the script of a run says into a question (topt_run_ask); '*ret_notes', a new reference, is a list of what is
 * taken otherwise than it says. */
int planner_take_run(const char *bytes, size_t len, const char *what,
                     struct topt_query *q, json_t **ret_notes, const char **ret_source,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The schedule of a plan's pipeline stages as SVG (new); INFEASIBLE where it has none. */
int planner_schedule(const char *plan, char **ret_svg,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* A profile document, checked.  'ret_doc' gets its normal form (new). */
int planner_check_hw(const json_t *doc, json_t **ret_doc,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The script for sbatch that runs a plan, by the usual launcher of its framework.  '*ret_script' is to
 * be freed.  INFEASIBLE where that can't obey the plan. */
int planner_launch(const char *plan, char **ret_script,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* Shipped profiles: names (NULL-ended), and a document by name (never a file's). */
const char *const *planner_hw_shipped(void);
int planner_hw_get(const char *name, json_t **ret_doc,
                   struct topt_error *err) TOPT_MUST_CHECK;

struct planner_question {
    const char *model_id, *model, *what; /* document, and its name in messages */
    const char *hw_id, *hw;              /* topt-hw/1 document */
    const struct topt_query *query;
    int threads;
    int64_t max_table_bytes; /* where the query says nothing */
    int64_t
        memory_mill; /* thousandths that a plan's memory counts for where above 1000 */
    const atomic_bool *cancel, *stop, *brief;
    struct topt_progress *progress;
    /* Names the question's problem, of whoever asks: other questions of the same name differ from it
     * in nothing that a strategy's costs depend on. */
    const char *problem;
    const char *notes; /* of a run's script, a list as JSON; "": none */
    int *searched; /* gets 1 where something had to be searched, else 0; may be NULL */
};

/* Search.  '*ret' is the solver's answer (a new reference); "plan" is in it where a plan was
 * asked for and is feasible. */
int planner_answer(struct planner *p, const struct planner_question *q, json_t **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* The id of a plan document, "p-<32 hex>". */
int planner_plan_id(const json_t *plan, char ret[TOPT_ID],
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
