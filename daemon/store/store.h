/* store.h - what toptd remembers: models, profiles, plans given out, answers.
 *
 * One SQLite file (WAL) in the state directory, which is locked: one daemon a directory.
 * Thread safety: any thread.  One connection behind one lock (the last in rank: nothing else
 * is taken and no callback is called while it is held); statements are short. */
#ifndef TOPTD_STORE_H
#define TOPTD_STORE_H

#include <jansson.h>
#include <stdint.h>

#include "topt_error.h"

struct store;

/* Creates the directory and the file where they are not there, and brings the schema up to
 * date.  Fails where another daemon has the directory, or the file is newer than us. */
int store_open(const char *dir, struct store **ret,
               struct topt_error *err) TOPT_MUST_CHECK;
void store_close(struct store *s);

/* A document under its id.  All strings borrowed. */
struct store_doc {
    const char *id, *name, *doc;
};

/* 1 stored, 0 it was there already, -1.  put_hw fails with USAGE where another profile has
 * the name. */
int store_put_model(struct store *s, const struct store_doc *m,
                    struct topt_error *err) TOPT_MUST_CHECK;
int store_put_hw(struct store *s, const struct store_doc *h,
                 struct topt_error *err) TOPT_MUST_CHECK;

/* Owned copies of what is stored; NOTFOUND.  A model is found by id, or by a name that no other
 * has; a profile by id or name ('key' "" means the only one there is).  'ret_id' and 'ret_name'
 * may be NULL. */
int store_get_model(struct store *s, const char *key, char **ret_id, char **ret_name,
                    char **ret_doc, struct topt_error *err) TOPT_MUST_CHECK;
int store_get_hw(struct store *s, const char *key, char **ret_id, char **ret_name,
                 char **ret_doc, struct topt_error *err) TOPT_MUST_CHECK;
int store_get_plan(struct store *s, const char *id, char **ret_doc,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* Newest first, at most 'limit' objects with "id", "name", "created"...  New reference. */
json_t *store_list_models(struct store *s, int limit,
                          struct topt_error *err) TOPT_MUST_CHECK;
json_t *store_list_hw(struct store *s, int limit, struct topt_error *err) TOPT_MUST_CHECK;
json_t *store_list_plans(struct store *s, int limit,
                         struct topt_error *err) TOPT_MUST_CHECK;

struct store_key {
    const char *model, *hw, *question;
};

/* Strings owned by whoever holds it; {0} is empty. */
struct store_answer {
    int feasible;
    char *plan_id; /* NULL where the answer has no plan */
    char *plan;    /* its text */
    char *doc;     /* the answer less its plan */
    int64_t search_ns;
};
void store_answer_fini(struct store_answer *a);

/* 1 found, 0 not, -1. */
int store_get_answer(struct store *s, const struct store_key *key,
                     struct store_answer *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* The model, the plan and the answer in one transaction: all or nothing.  An answer that is
 * there already stays as it is. */
int store_publish(struct store *s, const struct store_key *key,
                  const struct store_doc *model, const struct store_answer *a,
                  struct topt_error *err) TOPT_MUST_CHECK;

/* Does the store answer?  For /readyz. */
int store_check(struct store *s, struct topt_error *err) TOPT_MUST_CHECK;

#endif
