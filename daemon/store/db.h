/* db.h - inside of the store: its connections, and statements on them.
 *
 * A statement is known by its text, a static array: db_bind prepares it once a connection
 * and keeps it. Thread safety: a connection belongs to whoever took it until it is given
 * back.  Locks: pool and write are leaves, each held over a few instructions; nothing
 * waits on the file while one is held. */
#ifndef TOPTD_STORE_DB_H
#define TOPTD_STORE_DB_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "store.h"

enum {
    STORE_READERS = 4,
    MAX_KEPT = 96, /* statements of the program, and to spare */
    TOUCHES = 1024,
    TOPT_APPLICATION = 1953460340, /* "topt", as in sql/ */
};

struct conn {
    sqlite3 *db;
    struct {
        const char *sql;
        sqlite3_stmt *st;
    } kept[MAX_KEPT];
    int nkept;
    int full; /* synchronous=FULL is set */
    struct conn *next;
};

/* A row that was used and whose time of use is to be written; by place in a table. */
enum touch { TOUCH_NONE, TOUCH_PLAN, TOUCH_ANSWER };

struct note {
    enum touch what;
    int64_t row;
};

struct store {
    int lock_fd; /* flock of the state directory */
    struct conn reader[STORE_READERS];
    struct conn *idle; /* readers that nobody uses; under pool */
    pthread_mutex_t pool;
    pthread_cond_t reader_back;
    struct conn writer;
    int writing; /* somebody has the writer; under write */
    pthread_mutex_t write;
    pthread_cond_t writer_back;
    pthread_mutex_t touch_lock; /* guards touched; a leaf */
    struct note touched[TOUCHES];
    _Atomic int64_t cache_bytes, keep_plans;    /* limits: bytes, seconds */
    _Atomic int64_t user_documents, user_bytes; /* that one user may keep */
    atomic_ullong given_up;                     /* how often somebody had to make room */
    atomic_bool grown;                          /* the cache, since it was last counted */
    atomic_bool orphans;                        /* there may be rows that nobody needs */
    int64_t counted, swept;                     /* when; of the housekeeper alone */
};

int64_t store_now(void);

/* ---- connections --------------------------------------------------------------------------- */

/* Waits while all are in use; never for the file. */
struct conn *store_reader(struct store *s);
void store_reader_end(struct store *s, struct conn *c);

enum durable {
    CACHE_ONLY, /* may be lost with the power, never broken */
    DURABLE     /* on disk when store_end returns: what somebody was promised */
};

/* Take the writer and begin.  Waits at most 'wait_ms' for others, and not while it holds anything.
 */
struct conn *store_begin(struct store *s, enum durable durable, int wait_ms,
                         struct topt_error *err) TOPT_MUST_CHECK;
/* Commit where 'rc' is not negative, else roll back.  'rc', or -1 where the commit fails. */
int store_end(struct store *s, struct conn *c, int rc, struct topt_error *err);

/* Close a connection's statements and the connection. */
void db_close(struct conn *c);

/* ---- statements ---------------------------------------------------------------------------- */

/* Describe what the connection complains of, and choose the code by it.  -1. */
int db_fail(sqlite3 *db, const char *doing, struct topt_error *err);
/* Did the last failure on it find damage? */
int db_damaged(struct conn *c);

/* With values bound by a format: 's' text (NULL is NULL), 'i' int64_t, 'b' const void *
 * and size_t.  Borrowed until db_done.  NULL where it can't be prepared or bound. */
sqlite3_stmt *db_bind(struct conn *c, struct topt_error *err, const char *sql,
                      const char *format, ...) TOPT_MUST_CHECK;
/* 1 a row, 0 none, -1. */
int db_step(struct conn *c, sqlite3_stmt *st, struct topt_error *err) TOPT_MUST_CHECK;
void db_done(sqlite3_stmt *st);

/* Bind, run to the end.  The number of rows changed, or -1. */
int db_run(struct conn *c, struct topt_error *err, const char *sql, const char *format,
           ...) TOPT_MUST_CHECK;
/* Bind, and is there a row?  Its first number goes to 'ret' (may be NULL).  1, 0 or -1. */
int db_one(struct conn *c, struct topt_error *err, int64_t *ret, const char *sql,
           const char *format, ...) TOPT_MUST_CHECK;

/* Owned text of a column; NULL for a NULL column, and where memory does not suffice. */
char *db_text(sqlite3_stmt *st, int i);
/* Borrowed; "" for NULL. */
const char *db_words(sqlite3_stmt *st, int i);

/* A list: 'st' gives rows, made by 'row', at most page->limit. */
json_t *store_rows(struct conn *c, sqlite3_stmt *st, struct store_page *page,
                   json_t *(*row)(sqlite3_stmt *), struct topt_error *err);

#endif
