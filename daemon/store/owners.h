/* owners.h - inside of the store: what somebody may read, and whose a document is. */
#ifndef TOPTD_STORE_OWNERS_H
#define TOPTD_STORE_OWNERS_H

#include "db.h"

/* What 'who' may read, as values of statements: 'all' 1 for admins; 'uid' -1 and 'groups'
 * "[-1]" for those. */
struct reading {
    int64_t all, uid;
    char *groups; /* JSON array: -1 (everybody) and the user's groups */
};
int store_reading(const struct store_who *who, struct reading *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;
void store_reading_fini(struct reading *r);
/* A page of what 'who' may read: the statement takes all, uid, groups, before and the limit. */
json_t *store_readable(struct store *s, const struct store_who *who, const char *sql,
                       struct store_page *page, json_t *(*row)(sqlite3_stmt *),
                       struct topt_error *err);

/* In a transaction: 'uid' owns the document under the name.  1 new, 0 it was owned before, -1. */
int store_add_owner(struct conn *c, const char *id, int64_t uid, const char *name,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
