/* quota.h - inside of the store: how much one user may keep, and who makes room. */
#ifndef TOPTD_STORE_QUOTA_H
#define TOPTD_STORE_QUOTA_H

#include "db.h"

/* In a transaction, after 'uid' became the owner of 'id'.  Where that is more than one user may
 * keep: LIMIT under STORE_REFUSE; else the user's own that were used least recently are given up
 * until it is not ('id' is not), LIMIT where 'id' alone is too much.  0 or -1. */
int store_make_room(struct store *s, struct conn *c, int64_t uid, const char *id,
                    enum store_full full, struct topt_error *err) TOPT_MUST_CHECK;

/* In a transaction: a model or plan that nobody owns or may read goes at once, a model where no
 * plan is of it.  0 or -1. */
int store_let_go(struct conn *c, const char *id, struct topt_error *err) TOPT_MUST_CHECK;

#endif
