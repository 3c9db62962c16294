/* plans.h - inside of the store: plans, each kept without the model and the profile that stand in it. */
#ifndef TOPTD_STORE_PLANS_H
#define TOPTD_STORE_PLANS_H

#include "db.h"

/* A plan's text in three: what is its own, and the model and the profile that stand in
 * it.  All from one text. */
struct plan_cut {
    char *own;           /* owned; the text less the parts */
    const char *part[2]; /* model, hw: in the text; NULL where it is not cut out */
    size_t len[2];
    int64_t at[2];  /* bytes of 'own' where it belongs */
    char id[2][72]; /* of the part */
};
int plan_cut(const char *text, struct plan_cut *ret,
             struct topt_error *err) TOPT_MUST_CHECK;
void plan_cut_fini(struct plan_cut *p);
/* Put together from seven columns: doc; model_at, model_part, its doc; hw_at, hw_part,
 * its doc.  NULL where the row can't be right (IO) or memory does not suffice. */
char *plan_join(sqlite3_stmt *st, int first, struct topt_error *err);

/* In a transaction.  'summary' is made of the answer.  1 new, 0 the same was there, -1. */
int store_add_plan(struct conn *c, const struct store_key *key,
                   const struct store_answer *a, const struct plan_cut *cut,
                   const char *summary, struct topt_error *err) TOPT_MUST_CHECK;

#endif
