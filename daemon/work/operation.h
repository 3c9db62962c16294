/* operation.h - one thing that a worker does: all that it needs, and what it found.
 *
 * An operation outlives the request that made it: several requests may share its job.
 * Thread safety: written by its maker, then by its worker; read by anybody once its job has
 * ended. */
#ifndef TOPTD_OPERATION_H
#define TOPTD_OPERATION_H

#include <stddef.h>

#include "planner.h"
#include "query.h"

enum operation_kind {
    OPERATION_READ,  /* a body: find the model in it, and the question where it is one */
    OPERATION_FACTS, /* count a model's parameters, operators, FLOPs */
    OPERATION_PROFILE, /* check a hardware profile, in its normal form */
    OPERATION_PLAN     /* search */
};

/* An answer that the store could not take; 'doc' NULL where it did.  Owned. */
struct found {
    int is_pinned, feasible; /* pinned: its plan is stored */
    char *plan_id, *plan, *doc;
    int64_t search_ns;
};

struct operation {
    enum operation_kind kind;
    /* READ, PROFILE: what was sent.  Freed once it was read. */
    char *body;
    size_t body_len;
    int is_question; /* READ: a JSON question that holds the model; else the model's file */
    /* READ: the model's name where it says none; PROFILE: found */
    char *name;
    /* The question: READ finds it where 'is_question', and takes batch and seq for files that
     * need them; PLAN answers it. */
    struct query query;
    /* READ finds the model; FACTS and PLAN are given it.  READ of a question without a model
     * leaves them NULL. */
    char *model_id, *model_name, *model;
    /* PLAN is given the profile; PROFILE finds it. */
    char *hw_id, *hw;
    char *text; /* PLAN: of the question; with the two ids it is the store's key */
    /* FACTS, and READ where 'wants_facts', find them. */
    int wants_facts;
    struct planner_facts facts;
    struct found found; /* PLAN */
    char source[64]; /* what of the request an error is about; "" where it says nothing */
};

/* A new one of that kind; NULL without memory. */
struct operation *operation_create(enum operation_kind kind);
void operation_destroy(void *operation); /* NULL is fine */

#endif
