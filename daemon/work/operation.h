/* operation.h - one thing that a worker does: all that it needs, and what it found.
 *
 * An operation outlives the request that made it: several requests may share its job.
 * Thread safety: written by its maker, then by its slot; read by anybody once its job has
 * ended. */
#ifndef TOPTD_OPERATION_H
#define TOPTD_OPERATION_H

#include <stddef.h>

#include "pool.h"
#include "store.h"
#include "topt_query.h"

enum operation_kind {
    OPERATION_READ, /* a body: find the model in it, and the question where it is one; check it */
    OPERATION_CHECK,   /* a question that came without a body: are its words known? */
    OPERATION_FACTS,   /* count a model's parameters, operators, FLOPs */
    OPERATION_PROFILE, /* check a hardware profile, in its normal form */
    OPERATION_LAUNCH,  /* write the job script that runs a plan, or draw its schedule */
    OPERATION_PLAN     /* search */
};

struct operation_facts {
    int64_t parameters, operators, flops_per_sample, activation_bytes_per_sample;
    int64_t batch, seq;
};

struct operation {
    enum operation_kind kind;
    int64_t uid; /* who asks, whose what it finds becomes */
    /* READ, PROFILE: what was sent; LAUNCH: the plan.  Gone when the job has ended. */
    char *body;
    size_t body_len;
    int is_question; /* READ: a JSON question that holds the model; else the model's file */
    /* READ: the model's name where it says none; PROFILE: found */
    char *name;
    /* The question: READ finds it where 'is_question', else it is checked there, and its batch and
     * seq are taken for files that need them; PLAN answers it. */
    struct topt_query query;
    int has_query; /* READ of a file: there is a question beside it */
    /* READ finds the model; FACTS and PLAN are given it.  READ of a question without a model
     * leaves them NULL. */
    char *model_id, *model_name,
        *model; /* the document of PLAN: gone when the job has ended */
    /* PLAN is given the profile; PROFILE finds it. */
    char *hw_id, *hw; /* the document of PLAN as above */
    char *
        text; /* PLAN: of the question; with the two ids it is the store's key.  LAUNCH finds the script, or the
                 drawing */
    int is_drawn; /* LAUNCH: the schedule of its pipeline stages, as SVG */
    int64_t
        memory_mill; /* PLAN: thousandths that its memory counts for, above 1000; 0: as computed */
    char *
        notes; /* READ of a run's script finds what is taken otherwise than it says, a list as JSON, which PLAN puts
                    beside the run; NULL: nothing is */
    char *problem; /* PLAN: the same of the problem, whose memo a worker keeps */
    /* FACTS, and READ where 'wants_facts', find them. */
    int wants_facts;
    struct operation_facts facts;
    /* PLAN: the answer that the store could not take, and whether its plan is stored; .doc NULL where it did. */
    struct store_answer found;
    int is_pinned;
    char source
        [POOL_SOURCE]; /* what of the request an error is about; "" where it says nothing */
};

/* A new one of that kind; NULL without memory. */
struct operation *operation_create(enum operation_kind kind);
void operation_destroy(void *operation); /* NULL is fine */
void operation_trim(void *operation);    /* what only its run needs */

/* A PLAN's problem as a number that is not 0; equal for equal ones. */
uint64_t operation_problem(const struct operation *o);

/* Have it done by the worker process of the job's slot: all kinds but PLAN. */
int operation_run(struct pool *p, const struct job_run *run, struct operation *o,
                  struct topt_error *err) TOPT_MUST_CHECK;

struct operation_limits {
    int threads;
    int64_t max_table_bytes; /* where the question says nothing */
};
/* A PLAN.  '*ret_searched': else the worker's memo had all. */
int operation_search(struct pool *p, const struct job_run *run, struct operation *o,
                     const struct operation_limits *limits, struct store_answer *ret,
                     int *ret_searched, struct topt_error *err) TOPT_MUST_CHECK;

/* The profiles that come with the program, asked for once at the start. */
struct shipped {
    int n;
    struct shipped_hw {
        char *name, *id, *document;
    } * hw;
};
int shipped_load(struct pool *p, struct shipped *ret,
                 struct topt_error *err) TOPT_MUST_CHECK;
const struct shipped_hw *shipped_find(const struct shipped *s,
                                      const char *name); /* or NULL */
void shipped_fini(struct shipped *s);

#endif
