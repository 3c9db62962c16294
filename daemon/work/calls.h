/* calls.h - what worker processes are asked for: reading, facts, profiles, and searches.
 *
 * A reading is a job of the submit lane: parse and import what a client sent, find what it is called
 * and its id.  A search is part of a job of whoever stores its answer (call_plan).
 *
 * Thread safety: a reading belongs to its job; who did not run it reads it when it has ended. */
#ifndef TOPTD_CALLS_H
#define TOPTD_CALLS_H

#include "jobs.h"
#include "pool.h"
#include "query.h"

struct call_facts {
    int64_t parameters, operators, flops_per_sample, activation_bytes_per_sample;
    int64_t batch, seq;
};

struct reading {
    struct pool *pool;
    struct frame request; /* gone when the job has ended */
    int with_facts;       /* of the model that is read, too */
    /* the results; strings are owned, NULL where there is none */
    struct query query;         /* FORM_*, but FORM_MODEL */
    char *question;             /* the query's text */
    char *id, *name, *document; /* of the model or profile */
    struct call_facts facts;
    char source[POOL_SOURCE]; /* the field at fault, or "" */
};
extern const struct job_kind reading_kind;

/* A body or the query of a URL, as 'form' says.  'name': what the model is called, may be NULL.
 * Everything is copied. */
struct reading *reading_of_body(struct pool *p, enum frame_form form, const char *name,
                                const char *body, size_t len,
                                const struct query_pair *pairs, int npairs,
                                struct topt_error *err);
/* The facts of a model document. */
struct reading *reading_of_facts(struct pool *p, const char *name, const char *document,
                                 struct topt_error *err);
/* A hardware profile as it came. */
struct reading *reading_of_hw(struct pool *p, const char *body, size_t len,
                              struct topt_error *err);
void reading_destroy(struct reading *r); /* what was not given to a job */

struct call_question {
    const struct query *query;
    const char *model_id, *model_name, *model;
    const char *hw_id, *hw;
    int threads;
    int64_t max_table_bytes;
};
struct call_answer {
    int feasible;
    char *answer;         /* without the plan; owned, as those below */
    char *plan_id, *plan; /* NULL: none */
};
/* Search.  Part of a job, on its slot. */
int call_plan(struct pool *p, const struct job_run *run, const struct call_question *q,
              struct call_answer *ret, char source[POOL_SOURCE],
              struct topt_error *err) TOPT_MUST_CHECK;
void call_answer_fini(struct call_answer *a);

/* The profiles that come with the program. */
struct shipped {
    int n;
    struct shipped_hw {
        char *name, *id, *document;
    } * hw;
};
int call_shipped(struct pool *p, struct shipped *ret,
                 struct topt_error *err) TOPT_MUST_CHECK;
const struct shipped_hw *shipped_find(const struct shipped *s,
                                      const char *name); /* or NULL */
void shipped_fini(struct shipped *s);

#endif
