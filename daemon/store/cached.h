/* cached.h - rows that are found by a key, are used now and then, and may be lost: answers and
 * frontiers.  Thread safety: as of store.h. */
#ifndef TOPTD_CACHED_H
#define TOPTD_CACHED_H

#include "db.h"

/* A table of such rows. */
struct cached {
    /* Of a key: rowid, last use, and what 'take' reads from column 2 on.  1, or -1 where
     * the row can't be right (TOPT_ERR_IO) or memory does not suffice. */
    const char *select;
    int (*take)(sqlite3_stmt *st, void *ret, struct topt_error *err);
    const char *drop; /* the statement that deletes the row of a key */
    enum touch touch;
    int orphans; /* other rows may be of no use once a row is dropped */
};

/* 1 found, 0 not, -1.  A row that can't be read is dropped, and not found: it is searched again. */
int cached_get(struct store *s, const struct cached *table, const struct store_key *key,
               void *ret, struct topt_error *err) TOPT_MUST_CHECK;
int cached_drop(struct store *s, const struct cached *table, const struct store_key *key,
                struct topt_error *err) TOPT_MUST_CHECK;

#endif
